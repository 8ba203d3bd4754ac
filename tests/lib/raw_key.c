/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests written from the description of the wire. */
#include "tests/lib/raw_key.h"

#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

struct raw_keys *raw_keys;

void raw_keys_make(void)
{
	raw_keys = child_common(sizeof(*raw_keys));
}

/* From a key's bytes: magic, rights, then grant, size, address, secret. */
struct raw_request raw_ask_with(const struct slmpm_key *key, uint64_t offset, uint64_t length)
{
	struct raw_request r = {
		.target = {.offset = LITTLE_64(offset), .length = LITTLE_64(length)}};
	uint64_t grant;

	memcpy(&grant, key->bytes + 8, 8);
	r.target.grant = LITTLE_32((uint32_t)LITTLE_64(grant));
	memcpy(r.target.secret, key->bytes + 32, 16);
	return r;
}

struct raw_request raw_ask(uint64_t offset, uint64_t length)
{
	return raw_ask_with(&raw_keys->read_write, offset, length);
}

void raw_request(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint32_t flags,
		 const struct raw_request *r, uint64_t extent, uint32_t length)
{
	static unsigned char packet[(64 << 10) + sizeof(*r)];

	memcpy(packet, r, sizeof(*r));
	memset(packet + RAW_LEAD, 0x77, length > RAW_LEAD ? length - RAW_LEAD : 0);
	if (opcode == WIRE_FETCH_ADD || opcode == WIRE_COMPARE_SWAP || opcode == WIRE_SWAP)
		memcpy(packet, r, sizeof(*r));
	raw_post(p, opcode, seq, wire_route(0, 5), wire_extent(extent, flags), packet, length);
}

void raw_push(struct raw_peer *p)
{
	ring_publish_produced(&p->w);
	raw_ring_bell(p);
}

struct wire_grant raw_keys_grant(uint64_t bytes)
{
	uint32_t magic = LITTLE_32(WIRE_KEY_MAGIC), access = LITTLE_32(SLMPM_READ_WRITE);
	uint64_t id = LITTLE_64(1), size = LITTLE_64(bytes), at = LITTLE_64(0x10000);
	unsigned char *key = raw_keys->foreign.bytes;

	memset(key, 0, SLMPM_KEY_SIZE);
	memcpy(key, &magic, 4);
	memcpy(key + 4, &access, 4);
	memcpy(key + 8, &id, 8);
	memcpy(key + 16, &size, 8);
	memcpy(key + 24, &at, 8);
	return (struct wire_grant){
		.key = {.grant = LITTLE_32(1), .access = access, .size = size, .address = at}};
}

void raw_keys_come(struct raw_peer *p, const char *name)
{
	struct wire_grant g = raw_keys_grant(RAW_FOREIGN);

	raw_begin(p, raw_connect(name));
	p->hello.features = LITTLE_64(WIRE_FEATURE_MEMORY | WIRE_FEATURE_ACTIVE);
	raw_steps(p, RAW_HELLO, RAW_UP);
	CHECK(raw_say_packet(p->fd, WIRE_GRANT, &g, sizeof(g), -1), "the grant");
	raw_send(p, 1, "legal", 5);
	raw_ring_bell(p);
	for (int64_t until = actor_now_ms() + PATIENCE; !raw_keys->ready; usleep(200))
		CHECK(actor_now_ms() < until, "no key comes");
}

slmpm_peer raw_keys_meet(slmpm_listener listener, slmpm_mem mem, int (*body)(void *), void *arg,
			 pid_t *pid)
{
	unsigned char got[8];
	slmpm_peer peer;

	raw_keys->ready = 0;
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 5);
	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &raw_keys->read_write));
	return peer;
}
