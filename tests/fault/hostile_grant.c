/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that lies about regions: its own, which it grants with odd descriptors and sizes; ours,
 * whose keys it guesses and uses beyond their range. Violations have their names, refusals are
 * counted.
 */
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_region.h"

static slmpm_mem mem;

/* ---- grants that are none -------------------------------------------------------------------- */

static void grant_zero(struct raw_peer *p)
{
	raw_say_grant(p, raw_grant_of(0), raw_region.own.fd);
}

static void grant_twice(struct raw_peer *p)
{
	raw_say_grant(p, raw_grant_of(1), raw_region.own.fd);
	raw_say_grant(p, raw_grant_of(1), raw_region.own.fd);
}

static void grant_nothing(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.key.access = 0;
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_too_much(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.key.access = LITTLE_32(4 | SLMPM_READ);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_counter(struct raw_peer *p, uint64_t size, bool mapped)
{
	struct wire_grant g = raw_grant_of(1);
	struct raw_map_blob blob = {.how = LITTLE_32(1), .size = LITTLE_64(size)};
	struct mapping own;

	CHECK(mapping_create(&own, "slmpm-test", size) == 0, "memory");
	g.key.access = LITTLE_32(SLMPM_COUNT);
	g.key.size = LITTLE_64(size);
	memcpy(g.blob, &blob, sizeof(blob));
	if (!mapped)
		g.blob_length = 0;
	raw_say_grant(p, g, mapped ? own.fd : -1);
	mapping_destroy(&own);
}

static void grant_long_counter(struct raw_peer *p)
{
	grant_counter(p, 16, false);
}

static void grant_mapped_counter(struct raw_peer *p)
{
	grant_counter(p, 8, true);
}

static void grant_no_bytes(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.key.size = 0;
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_all_bytes(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.key.size = UINT64_MAX;
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_another_size(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);
	struct raw_map_blob blob = {.how = LITTLE_32(1),
				    .size = LITTLE_64(raw_region.own.size * 2)};

	g.key.size = blob.size;
	memcpy(g.blob, &blob, sizeof(blob));
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_two_sizes(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.key.size = LITTLE_64(raw_region.own.size / 2);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_long_blob(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = LITTLE_32(125);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_short_blob(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = LITTLE_32(8);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_noise(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	memset(g.blob, 0x5a, sizeof(g.blob));
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_a_word_too_far(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.access_word = LITTLE_32(3584);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_a_word_for_nothing(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = 0;
	g.access_word = LITTLE_32(1);
	raw_say_grant(p, g, -1);
}

static void grant_with_a_tail(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.zero = LITTLE_32(1);
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_half(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	raw_say_packet(p->fd, WIRE_GRANT, &g, sizeof(g) - 8, raw_region.own.fd);
}

static void grant_without_memory(struct raw_peer *p)
{
	raw_say_grant(p, raw_grant_of(1), -1);
}

static void grant_memory_for_nothing(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = 0;
	raw_say_grant(p, g, raw_region.own.fd);
}

static void grant_two_memories(struct raw_peer *p)
{
	struct wire_grant g = raw_grant_of(1);
	int fds[2] = {raw_region.own.fd, raw_region.own.fd};

	g.head.type = LITTLE_32(WIRE_GRANT);
	g.head.length = LITTLE_32(sizeof(g));
	raw_say(p->fd, &g, sizeof(g), fds, 2);
}

/* Where it can be attached to, and not mapped. */
static void grant_by(struct raw_peer *p, uint32_t how, uint64_t address, int fd)
{
	struct wire_grant g = raw_grant_of(1);
	struct raw_map_blob blob = {.how = LITTLE_32(how),
				    .size = LITTLE_64(raw_region.own.size),
				    .rest = {LITTLE_64(address)}};

	memcpy(g.blob, &blob, sizeof(blob));
	raw_say_grant(p, g, fd);
}

static void grant_beyond_all_memory(struct raw_peer *p)
{
	grant_by(p, 2, UINT64_MAX - raw_region.own.size + 1, -1);
}

static void grant_address_and_memory(struct raw_peer *p)
{
	grant_by(p, 2, 4096, raw_region.own.fd);
}

static void grant_by_no_way(struct raw_peer *p)
{
	grant_by(p, 3, 4096, -1);
}

static void grant_unsealed(struct raw_peer *p)
{
	int fd = memfd_create("slmpm-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, RAW_REGION_SIZE) == 0, "memory");
	raw_say_grant(p, raw_grant_of(1), fd);
	close(fd);
}

static void grant_socket(struct raw_peer *p)
{
	raw_say_grant(p, raw_grant_of(1), p->fd);
}

/* To be written to, it says; its pages can only be read. */
static void grant_what_cannot_be_written(struct raw_peer *p)
{
	CHECK(mapping_close_seals(&raw_region.own) == 0, "seals");
	raw_say_grant(p, raw_grant_of(1), raw_region.own.fd);
}

static void grant_without_end(struct raw_peer *p)
{
	struct pollfd end = {.fd = p->fd};
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = 0;
	for (uint32_t id = 1; id <= WIRE_KEYS_MAX + 1; id++) {
		g.key.grant = LITTLE_32(id);
		if (!raw_say_packet(p->fd, WIRE_GRANT, &g, sizeof(g), -1))
			return; /* it has heard enough */
		if (id % 64 == 0)
			(void)poll(&end, 1, 1);
	}
}

/* ---- packets --------------------------------------------------------------------------------- */

static void offer_unknown(struct raw_peer *p)
{
	struct slmpm_key key = {.bytes = {0x53, 0x4c, 0x4b, 0x31, 3, 0, 0, 0, 9}};

	raw_say_region(p, WIRE_REGION_OFFER, 0, 9, &key, sizeof(key));
}

static void offer_short(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_OFFER, 0, 1, "key", 3);
}

static void offer_noise(struct raw_peer *p)
{
	static const unsigned char noise[SLMPM_KEY_SIZE];

	raw_say_region(p, WIRE_REGION_OFFER, 0, 1, noise, sizeof(noise));
}

static void accept_unknown(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_ACCEPTED, 0, 77, NULL, 0);
}

static void accept_twice(struct raw_peer *p)
{
	for (int i = 0; i < 2; i++)
		raw_say_region(p, WIRE_REGION_ACCEPTED, 0, LITTLE_32(raw_region.granted.key.grant),
			       NULL, 0);
}

static void release_unknown(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_RELEASED, 0, 77, NULL, 0);
}

static void let_go_unasked(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_UNMAPPED, 0, LITTLE_32(raw_region.granted.key.grant), NULL,
		       0);
}

static void let_go_of_mapping_unasked(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_UNMAPPED, 1, LITTLE_32(raw_region.granted.key.grant), NULL,
		       0);
}

static void odd_sequence(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_RELEASED, 2, LITTLE_32(raw_region.granted.key.grant), NULL,
		       0);
}

static void odd_payload(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_RELEASED, 0, LITTLE_32(raw_region.granted.key.grant), "more",
		       4);
}

static void odd_grant(struct raw_peer *p)
{
	raw_say_region(p, WIRE_REGION_RELEASED, 0, UINT64_C(1) << 32, NULL, 0);
}

static void unmap_twice(struct raw_peer *p)
{
	raw_say_grant(p, raw_grant_of(1), raw_region.own.fd);
	raw_say_region(p, WIRE_REGION_REVOKED, 1, 1, NULL, 0);
	raw_say_region(p, WIRE_REGION_REVOKED, 1, 1, NULL, 0);
}

/* Each asks for an answer, and none is read: their number is bounded. */
static void revoke_without_end(struct raw_peer *p)
{
	struct pollfd end = {.fd = p->fd};
	struct wire_grant g = raw_grant_of(1);

	g.blob_length = 0;
	for (uint32_t id = 1; id <= 4 * WIRE_KEYS_MAX; id++) {
		g.key.grant = LITTLE_32(id);
		if (!raw_say_packet(p->fd, WIRE_GRANT, &g, sizeof(g), -1))
			return;
		raw_say_region(p, WIRE_REGION_REVOKED, 0, id, NULL, 0);
		if (id % 64 == 0 && poll(&end, 1, 0) == 1 && end.revents & POLLHUP)
			return;
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The host's answers at every edge of what it gave; then it goes on until it is thrown out. */
static void guess(struct raw_peer *p)
{
	const struct wire_grant *g = &raw_region.granted;
	uint32_t id = LITTLE_32(g->key.grant);
	uint64_t size = LITTLE_64(g->key.size), big = SLMPM_MESSAGE_MAX;
	unsigned char wrong[16];

	EXPECT(raw_read(p, id, g->key.secret, 0, 1), 0);
	EXPECT(raw_read(p, id, g->key.secret, size - 1, 1), 0);
	EXPECT(raw_read(p, id, g->key.secret, 0, size), 0);
	EXPECT(raw_read(p, id, g->key.secret, size, 0), 0);
	EXPECT(raw_read(p, id, g->key.secret, size, 1), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, size - 1, 2), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, 0, size + 1), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, size + 1, 0), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, UINT64_MAX, 0), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, UINT64_MAX, 1), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, UINT64_MAX - 7, 8), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, UINT64_MAX - big + 1, big), SLMPM_EINVAL);
	EXPECT(raw_read(p, id, g->key.secret, 1, big), SLMPM_EINVAL);
	/* Of sixteen guesses the last costs the connection. */
	for (int i = 0; i < 12; i++) {
		memcpy(wrong, g->key.secret, sizeof(wrong));
		wrong[i] ^= (unsigned char)(1u << i % 8);
		EXPECT(raw_read(p, id, wrong, 0, 0), SLMPM_EACCES);
	}
	EXPECT(raw_read(p, 0, g->key.secret, 0, 0), SLMPM_EACCES);
	EXPECT(raw_read(p, id + 1, g->key.secret, 0, 0), SLMPM_EACCES);
	EXPECT(raw_read(p, id ^ 0x80000000, g->key.secret, 0, 0), SLMPM_EACCES);
	{
		struct wire_target t = {.grant = LITTLE_32(UINT32_MAX)};

		raw_post(p, WIRE_READ_REQUEST, ++raw_region.requests, 0, 0, &t, sizeof(t));
	}
}

static const struct offence offences[] = {
	{"S1", "a grant without memory", grant_without_memory, "granted region", 0},
	{"S1", "memory for nothing", grant_memory_for_nothing, "granted region", 0},
	{"S1", "two descriptors", grant_two_memories, "granted region", 0},
	{"S4", "beyond all memory", grant_beyond_all_memory, "granted region", 0},
	{"S1", "an address, and memory", grant_address_and_memory, "granted region", 0},
	{"R14", "reached in no known way", grant_by_no_way, "granted region", 0},
	{"S3", "memory that can shrink", grant_unsealed, "granted region", 0},
	{"S3", "a socket for memory", grant_socket, "granted region", 0},
	{"S3", "writable, and is not", grant_what_cannot_be_written, "granted region", 0},
	{"S4", "memory of another size", grant_another_size, "granted region", 0},
	{"S4", "two sizes", grant_two_sizes, "granted region", 0},
	{"S4", "a region of no bytes", grant_no_bytes, "granted region", 0},
	{"S4", "a region of all bytes", grant_all_bytes, "granted region", 0},
	{"R5", "an access word too far", grant_a_word_too_far, "granted region", 0},
	{"R14", "an access word for nothing", grant_a_word_for_nothing, "granted region", 0},
	{"R14", "a grant with a tail", grant_with_a_tail, "granted region", 0},
	{"S7", "half a grant", grant_half, "granted region", 0},
	{"R5", "a long blob", grant_long_blob, "granted region", 0},
	{"R5", "a short blob", grant_short_blob, "granted region", 0},
	{"R5", "a blob of noise", grant_noise, "granted region", 0},
	{"R8", "grant zero", grant_zero, "granted region", 0},
	{"R8", "a grant again", grant_twice, "granted region", 0},
	{"R6", "access to nothing", grant_nothing, "granted region", 0},
	{"R6", "access of a new kind", grant_too_much, "granted region", 0},
	{"R6", "a counter of two words", grant_long_counter, "granted region", 0},
	{"R6", "a counter that is mapped", grant_mapped_counter, "granted region", 0},
	{"R10", "grants without end", grant_without_end, "granted region", 0},
	{"R8", "offers an unknown key", offer_unknown, "key of an offered region", 0},
	{"R8", "offers noise", offer_noise, "key of an offered region", 0},
	{"R5", "offers half a key", offer_short, "length of an offered region", 0},
	{"R8", "accepts what was not given", accept_unknown, "acceptance of a region", 0},
	{"R8", "accepts twice", accept_twice, "acceptance of a region", 0},
	{"R8", "releases what was not given", release_unknown, "answer about a region", 0},
	{"R8", "lets go, unasked", let_go_unasked, "answer about a region", 0},
	{"R8", "and of the mapping", let_go_of_mapping_unasked, "answer about a region", 0},
	{"R8", "unmaps twice", unmap_twice, "revocation of a mapping", 0},
	{"R10", "revokes without end", revoke_without_end, "granted region", 0},
	{"R14", "an odd sequence number", odd_sequence, "packet about a region", 0},
	{"R14", "an odd payload", odd_payload, "packet about a region", 0},
	{"R14", "an odd grant", odd_grant, "packet about a region", 0},
	{"R9", "guesses keys", guess, "key to a region", 25},
};
/* ---- who is offended ------------------------------------------------------------------------- */

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	struct slmpm_key key;
	slmpm_peer peer;

	(void)o;
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	EXPECT(stats.refused, o->note);
}

int main(void)
{
	static const struct trial trial = {
		.come = raw_region_come, .leave = raw_region_leave, .meet = meet, .see = see};
	struct victim v;
	void *base;

	victim_begin(&v, "hostile-grant");
	OK(slmpm_mem_alloc(v.ctx, RAW_REGION_SIZE, SLMPM_READ_WRITE, &mem, &base));
	SURVIVE(&v, &trial, offences);
	OK(slmpm_mem_destroy(mem, 0));
	victim_end(&v);
	return 0;
}
