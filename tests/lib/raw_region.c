/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, as they are spoken of on the wire (raw_region.h). */
#include "tests/lib/raw_region.h"

#include <poll.h>
#include <slmpm.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"

struct raw_region raw_region;

void raw_region_begin(struct raw_peer *p, const char *address, uint64_t features)
{
	raw_region = (struct raw_region){.fd = -1};
	raw_begin(p, raw_connect(address));
	p->hello.features = LITTLE_64(features);
	raw_steps(p, RAW_HELLO, RAW_UP);
	CHECK(mapping_create(&raw_region.own, "slmpm-test", RAW_REGION_SIZE) == 0, "memory");
}

void raw_region_come(struct raw_peer *p, const char *address)
{
	raw_region_begin(p, address, WIRE_FEATURE_MEMORY);
	CHECK(raw_hear(p->fd, &raw_region.granted, sizeof(raw_region.granted), &raw_region.fd) ==
			      sizeof(raw_region.granted) &&
		      LITTLE_32(raw_region.granted.head.type) == WIRE_GRANT,
	      "no grant came");
}

void raw_region_leave(struct raw_peer *p)
{
	mapping_destroy(&raw_region.own);
	if (raw_region.fd >= 0)
		close(raw_region.fd);
	raw_end(p);
}

struct wire_grant raw_grant_of(uint32_t id)
{
	struct wire_grant g = {
		.key.grant = LITTLE_32(id),
		.key.access = LITTLE_32(SLMPM_READ_WRITE),
		.key.size = LITTLE_64(raw_region.own.size),
		.blob_length = LITTLE_32(sizeof(struct raw_map_blob)),
	};
	struct raw_map_blob blob = {.how = LITTLE_32(1), .size = g.key.size};

	memcpy(g.blob, &blob, sizeof(blob));
	return g;
}

void raw_say_grant(struct raw_peer *p, struct wire_grant g, int fd)
{
	raw_say_packet(p->fd, WIRE_GRANT, &g, sizeof(g), fd);
}

void raw_say_region(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint64_t id, const void *data,
		    uint32_t length)
{
	raw_post(p, opcode, seq, 0, id, data, length);
}

int raw_answer(struct raw_peer *p, uint64_t *bytes)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;
	uint64_t head[3];

	for (*bytes = 0;;) {
		int rc = ring_peek(&p->r, &packet);

		CHECK(rc >= 0 && actor_now_ms() < until, "no answer to request %llu",
		      (unsigned long long)raw_region.requests);
		if (!rc) {
			ring_publish_produced(&p->w);
			raw_ring_bell(p);
			(void)poll(NULL, 0, 1);
			continue;
		}
		memcpy(head, packet.data, sizeof(head));
		if (packet.kind >= WIRE_READ_FIRST && packet.kind <= WIRE_READ_ONLY)
			*bytes += packet.length - sizeof(head);
		ring_release(&p->r, &packet);
		if (packet.kind == WIRE_ACKNOWLEDGE && head[0] == raw_region.requests)
			return -wire_status((uint32_t)head[2]);
		if (packet.kind == WIRE_READ_LAST || packet.kind == WIRE_READ_ONLY ||
		    packet.kind == WIRE_ATOMIC_ACKNOWLEDGE)
			return 0;
	}
}

int raw_read(struct raw_peer *p, uint32_t id, const unsigned char *secret, uint64_t offset,
	     uint64_t length)
{
	struct wire_target t = {
		.offset = LITTLE_64(offset),
		.length = LITTLE_64(length),
		.grant = LITTLE_32(id),
	};
	uint64_t bytes;
	int status;

	memcpy(t.secret, secret, sizeof(t.secret));
	raw_post(p, WIRE_READ_REQUEST, ++raw_region.requests, 0, length, &t, sizeof(t));
	status = raw_answer(p, &bytes);
	CHECK(status || bytes == length, "%llu bytes came, not %llu", (unsigned long long)bytes,
	      (unsigned long long)length);
	return status;
}
