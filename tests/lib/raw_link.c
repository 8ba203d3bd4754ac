/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of a link to be, written from the description of the wire. */
#include "tests/lib/raw_link.h"

#include <string.h>

#include "tests/lib/actor.h"

struct mapping raw_link_memory;

struct wire_link raw_link_about(uint32_t round, unsigned link, unsigned life)
{
	return (struct wire_link){.round = LITTLE_32(round),
				  .link = LITTLE_16((uint16_t)link),
				  .life = LITTLE_16((uint16_t)life),
				  .fabric = "shm"};
}

void raw_link_blob(struct wire_link *w, const void *blob, uint32_t n)
{
	w->blob_length = LITTLE_32(n);
	memcpy(w->blob, blob, n);
}

void raw_link_say(struct raw_peer *p, struct wire_link *w, int fd)
{
	(void)raw_say_packet(p->fd, WIRE_LINK, w, sizeof(*w), fd);
}

void raw_link_say_plain(struct raw_peer *p, uint32_t round, unsigned link, unsigned life)
{
	struct wire_link w = raw_link_about(round, link, life);

	raw_link_say(p, &w, -1);
}

struct wire_link raw_link_ring(struct raw_peer *p, unsigned link, unsigned life)
{
	struct ring_shape shape = {RAW_SEGMENTS, RAW_SEGMENT_SIZE};
	struct wire_link w = raw_link_about(0, link, life);

	if (!raw_link_memory.base)
		CHECK(mapping_create(&raw_link_memory, "raw-link", ring_size(&shape)) == 0,
		      "no memory");
	raw_link_blob(&w, &p->offer, sizeof(p->offer));
	return w;
}

void raw_link_begin(struct raw_peer *p, unsigned link, unsigned life)
{
	struct wire_link w = raw_link_ring(p, link, life);

	raw_link_say(p, &w, raw_link_memory.fd);
}

static struct wire_link hear(struct raw_peer *p)
{
	union {
		struct wire_link link;
		unsigned char bytes[512];
	} packet;

	do
		CHECK(raw_hear(p->fd, &packet, sizeof(packet), NULL) > 0, "it has ended");
	while (LITTLE_32(packet.link.head.type) != WIRE_LINK);
	return packet.link;
}

struct wire_link raw_link_hear_round(struct raw_peer *p, uint32_t round)
{
	struct wire_link w = hear(p);

	CHECK(LITTLE_32(w.round) == round, "round %u, not %u: %.100s", LITTLE_32(w.round), round,
	      (const char *)w.blob);
	return w;
}

void raw_link_refused(struct raw_peer *p, unsigned link, unsigned life, const char *why)
{
	struct wire_link w;
	char text[sizeof(w.blob) + 1] = "";

	do
		w = hear(p);
	while (LITTLE_32(w.round) != WIRE_LINK_NOT);
	memcpy(text, w.blob, sizeof(w.blob));
	CHECK(LITTLE_16(w.link) == link && LITTLE_16(w.life) == life && strstr(text, why),
	      "link %u, life %u: \"%s\"", LITTLE_16(w.link), LITTLE_16(w.life), text);
}

void raw_link_go_on(struct raw_peer *p)
{
	raw_send(p, 1, "still", 5);
	raw_ring_bell(p);
	raw_post(p, WIRE_BOND_LINK, 0, 0, 0, "", 1);
}

void raw_link_echo(struct raw_peer *p, uint32_t round, uint64_t epoch, int fd)
{
	struct wire_link w = raw_link_about(round, 1, 0);

	raw_link_blob(&w, &epoch, sizeof(epoch));
	raw_link_say(p, &w, fd);
}

uint64_t raw_link_epoch(const struct wire_link *w)
{
	struct raw_offer offer;

	memcpy(&offer, w->blob, sizeof(offer));
	return offer.epoch;
}

void raw_link_join(struct raw_peer *p)
{
	struct wire_link w;
	uint64_t epoch;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	epoch = raw_link_epoch(&w);
	(void)raw_link_hear_round(p, 1);
	CHECK(mapping_close_seals(&raw_link_memory) == 0, "cannot seal");
	raw_link_echo(p, 1, epoch, -1);
	(void)raw_link_hear_round(p, 2);
	raw_link_echo(p, 2, epoch, -1);
}
