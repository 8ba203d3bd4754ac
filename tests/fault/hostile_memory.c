/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that lies about regions: its own, which it grants with odd descriptors and sizes; ours,
 * whose keys it guesses, uses beyond their range, or after they were taken back; and one that keeps
 * what it has been given. Violations have their names, refusals are counted, our memory is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/raw_peer.h"

#define SIZE     65536
#define BOUND_MS 5000

static char address[64];

/* ---- what a liar has ------------------------------------------------------------------------- */

struct liar {
	struct raw_peer raw;
	struct wire_grant granted; /* what the host gave, and its descriptor */
	int fd;
	struct mapping region; /* one of its own */
	uint64_t requests;
};

struct map_blob { /* of a mapped region */
	uint32_t how, zero;
	uint64_t size, rest[3];
	unsigned char probe[16];
};

static struct wire_grant grant_of(const struct liar *l, uint32_t id)
{
	struct wire_grant g = {
		.grant = LITTLE_32(id),
		.access = LITTLE_32(SLMPM_READ_WRITE),
		.size = LITTLE_64(l->region.size),
		.blob_length = LITTLE_32(sizeof(struct map_blob)),
	};
	struct map_blob blob = {.how = LITTLE_32(1), .size = g.size};

	memcpy(g.blob, &blob, sizeof(blob));
	return g;
}

static void say_grant(struct liar *l, struct wire_grant g, int fd)
{
	raw_say_packet(l->raw.fd, WIRE_GRANT, &g, sizeof(g), fd);
}

static void say(struct liar *l, uint8_t opcode, uint64_t seq, uint64_t id, const void *data,
		uint32_t length)
{
	raw_post(&l->raw, opcode, seq, 0, id, data, length);
}

/* ---- grants that are none -------------------------------------------------------------------- */

static void grant_zero(struct liar *l)
{
	say_grant(l, grant_of(l, 0), l->region.fd);
}

static void grant_twice(struct liar *l)
{
	say_grant(l, grant_of(l, 1), l->region.fd);
	say_grant(l, grant_of(l, 1), l->region.fd);
}

static void grant_nothing(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.access = 0;
	say_grant(l, g, l->region.fd);
}

static void grant_too_much(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.access = LITTLE_32(4 | SLMPM_READ);
	say_grant(l, g, l->region.fd);
}

static void grant_no_bytes(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.size = 0;
	say_grant(l, g, l->region.fd);
}

static void grant_all_bytes(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.size = UINT64_MAX;
	say_grant(l, g, l->region.fd);
}

static void grant_another_size(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);
	struct map_blob blob = {.how = LITTLE_32(1), .size = LITTLE_64(l->region.size * 2)};

	g.size = blob.size;
	memcpy(g.blob, &blob, sizeof(blob));
	say_grant(l, g, l->region.fd);
}

static void grant_two_sizes(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.size = LITTLE_64(l->region.size / 2);
	say_grant(l, g, l->region.fd);
}

static void grant_long_blob(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.blob_length = LITTLE_32(125);
	say_grant(l, g, l->region.fd);
}

static void grant_short_blob(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.blob_length = LITTLE_32(8);
	say_grant(l, g, l->region.fd);
}

static void grant_noise(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	memset(g.blob, 0x5a, sizeof(g.blob));
	say_grant(l, g, l->region.fd);
}

static void grant_half(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	raw_say_packet(l->raw.fd, WIRE_GRANT, &g, sizeof(g) - 8, l->region.fd);
}

static void grant_without_memory(struct liar *l)
{
	say_grant(l, grant_of(l, 1), -1);
}

static void grant_memory_for_nothing(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);

	g.blob_length = 0;
	say_grant(l, g, l->region.fd);
}

static void grant_two_memories(struct liar *l)
{
	struct wire_grant g = grant_of(l, 1);
	int fds[2] = {l->region.fd, l->region.fd};

	g.head.type = LITTLE_32(WIRE_GRANT);
	g.head.length = LITTLE_32(sizeof(g));
	raw_say(l->raw.fd, &g, sizeof(g), fds, 2);
}

static void grant_unsealed(struct liar *l)
{
	int fd = memfd_create("slmpm-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0, "memory");
	say_grant(l, grant_of(l, 1), fd);
	close(fd);
}

static void grant_socket(struct liar *l)
{
	say_grant(l, grant_of(l, 1), l->raw.fd);
}

/* To be written to, it says; its pages can only be read. */
static void grant_what_cannot_be_written(struct liar *l)
{
	CHECK(mapping_close_seals(&l->region) == 0, "seals");
	say_grant(l, grant_of(l, 1), l->region.fd);
}

static void grant_without_end(struct liar *l)
{
	struct pollfd end = {.fd = l->raw.fd};
	struct wire_grant g = grant_of(l, 1);

	g.blob_length = 0;
	for (uint32_t id = 1; id <= WIRE_KEYS_MAX + 1; id++) {
		g.grant = LITTLE_32(id);
		if (!raw_say_packet(l->raw.fd, WIRE_GRANT, &g, sizeof(g), -1))
			return; /* it has heard enough */
		if (id % 64 == 0)
			(void)poll(&end, 1, 1);
	}
}

/* ---- packets --------------------------------------------------------------------------------- */

static void offer_unknown(struct liar *l)
{
	struct slmpm_key key = {.bytes = {0x53, 0x4c, 0x4b, 0x31, 3, 0, 0, 0, 9}};

	say(l, WIRE_REGION_OFFER, 0, 9, &key, sizeof(key));
}

static void offer_short(struct liar *l)
{
	say(l, WIRE_REGION_OFFER, 0, 1, "key", 3);
}

static void offer_noise(struct liar *l)
{
	static const unsigned char noise[SLMPM_KEY_SIZE];

	say(l, WIRE_REGION_OFFER, 0, 1, noise, sizeof(noise));
}

static void accept_unknown(struct liar *l)
{
	say(l, WIRE_REGION_ACCEPTED, 0, 77, NULL, 0);
}

static void accept_twice(struct liar *l)
{
	for (int i = 0; i < 2; i++)
		say(l, WIRE_REGION_ACCEPTED, 0, LITTLE_32(l->granted.grant), NULL, 0);
}

static void release_unknown(struct liar *l)
{
	say(l, WIRE_REGION_RELEASED, 0, 77, NULL, 0);
}

static void let_go_unasked(struct liar *l)
{
	say(l, WIRE_REGION_LET_GO, 0, LITTLE_32(l->granted.grant), NULL, 0);
}

static void let_go_of_mapping_unasked(struct liar *l)
{
	say(l, WIRE_REGION_LET_GO, 1, LITTLE_32(l->granted.grant), NULL, 0);
}

static void odd_sequence(struct liar *l)
{
	say(l, WIRE_REGION_RELEASED, 2, LITTLE_32(l->granted.grant), NULL, 0);
}

static void odd_payload(struct liar *l)
{
	say(l, WIRE_REGION_RELEASED, 0, LITTLE_32(l->granted.grant), "more", 4);
}

static void odd_grant(struct liar *l)
{
	say(l, WIRE_REGION_RELEASED, 0, UINT64_C(1) << 32, NULL, 0);
}

static void unmap_twice(struct liar *l)
{
	say_grant(l, grant_of(l, 1), l->region.fd);
	say(l, WIRE_REGION_REVOKED, 1, 1, NULL, 0);
	say(l, WIRE_REGION_REVOKED, 1, 1, NULL, 0);
}

/* Each asks for an answer, and none is read: their number is bounded. */
static void revoke_without_end(struct liar *l)
{
	struct pollfd end = {.fd = l->raw.fd};
	struct wire_grant g = grant_of(l, 1);

	g.blob_length = 0;
	for (uint32_t id = 1; id <= 4 * WIRE_KEYS_MAX; id++) {
		g.grant = LITTLE_32(id);
		if (!raw_say_packet(l->raw.fd, WIRE_GRANT, &g, sizeof(g), -1))
			return;
		say(l, WIRE_REGION_REVOKED, 0, id, NULL, 0);
		if (id % 64 == 0 && poll(&end, 1, 0) == 1 && end.revents & POLLHUP)
			return;
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

/* What the host answers to a Read of LENGTH bytes at OFFSET by that key: 0 or SLMPM_E*. */
static int ask(struct liar *l, uint32_t id, const unsigned char *secret, uint64_t offset,
	       uint64_t length)
{
	struct wire_target t = {
		.offset = LITTLE_64(offset),
		.length = LITTLE_64(length),
		.grant = LITTLE_32(id),
	};
	int64_t until = actor_now_ms() + PATIENCE;
	uint64_t head[3], total = 0;
	struct ring_packet packet;

	memcpy(t.secret, secret, sizeof(t.secret));
	raw_post(&l->raw, WIRE_READ_REQUEST, ++l->requests, 0, length, &t, sizeof(t));
	for (;;) {
		int rc = ring_peek(&l->raw.r, &packet);

		CHECK(rc >= 0 && actor_now_ms() < until, "no answer to request %llu",
		      (unsigned long long)l->requests);
		if (!rc) {
			ring_publish_produced(&l->raw.w);
			raw_ring_bell(&l->raw);
			(void)poll(NULL, 0, 1);
			continue;
		}
		memcpy(head, packet.data, sizeof(head));
		if (packet.kind >= WIRE_READ_FIRST && packet.kind <= WIRE_READ_ONLY)
			total += packet.length - sizeof(head);
		ring_release(&l->raw.r, &packet);
		if (packet.kind == WIRE_ACKNOWLEDGE && head[0] == l->requests)
			return (int)(head[2] & WIRE_LENGTH_MASK);
		if (packet.kind == WIRE_READ_LAST || packet.kind == WIRE_READ_ONLY) {
			CHECK(total == length, "%llu bytes came, not %llu",
			      (unsigned long long)total, (unsigned long long)length);
			return 0;
		}
	}
}

/* The host's answers at every edge of what it gave; then it goes on until it is thrown out. */
static void guess(struct liar *l)
{
	const struct wire_grant *g = &l->granted;
	uint32_t id = LITTLE_32(g->grant);
	uint64_t size = LITTLE_64(g->size), big = SLMPM_MESSAGE_MAX;
	unsigned char wrong[16];

	EXPECT(ask(l, id, g->secret, 0, 1), 0);
	EXPECT(ask(l, id, g->secret, size - 1, 1), 0);
	EXPECT(ask(l, id, g->secret, 0, size), 0);
	EXPECT(ask(l, id, g->secret, size, 0), 0);
	EXPECT(ask(l, id, g->secret, size, 1), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, size - 1, 2), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, 0, size + 1), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, size + 1, 0), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, UINT64_MAX, 0), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, UINT64_MAX, 1), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, UINT64_MAX - 7, 8), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, UINT64_MAX - big + 1, big), SLMPM_EINVAL);
	EXPECT(ask(l, id, g->secret, 1, big), SLMPM_EINVAL);
	/* Of sixteen guesses the last costs the connection. */
	for (int i = 0; i < 12; i++) {
		memcpy(wrong, g->secret, sizeof(wrong));
		wrong[i] ^= (unsigned char)(1u << i % 8);
		EXPECT(ask(l, id, wrong, 0, 0), SLMPM_EACCES);
	}
	EXPECT(ask(l, 0, g->secret, 0, 0), SLMPM_EACCES);
	EXPECT(ask(l, id + 1, g->secret, 0, 0), SLMPM_EACCES);
	EXPECT(ask(l, id ^ 0x80000000, g->secret, 0, 0), SLMPM_EACCES);
	{
		struct wire_target t = {.grant = LITTLE_32(UINT32_MAX)};

		raw_post(&l->raw, WIRE_READ_REQUEST, ++l->requests, 0, 0, &t, sizeof(t));
	}
}

struct offence {
	const char *rule;
	const char *name;
	void (*commit)(struct liar *l);
	const char *word; /* the violation's name */
	int refused;      /* requests that were */
};

static const struct offence offences[] = {
	{"S1", "a grant without memory", grant_without_memory, "granted region", 0},
	{"S1", "memory for nothing", grant_memory_for_nothing, "granted region", 0},
	{"S1", "two descriptors", grant_two_memories, "granted region", 0},
	{"S3", "memory that can shrink", grant_unsealed, "granted region", 0},
	{"S3", "a socket for memory", grant_socket, "granted region", 0},
	{"S3", "writable, and is not", grant_what_cannot_be_written, "granted region", 0},
	{"S4", "memory of another size", grant_another_size, "granted region", 0},
	{"S4", "two sizes", grant_two_sizes, "granted region", 0},
	{"S4", "a region of no bytes", grant_no_bytes, "granted region", 0},
	{"S4", "a region of all bytes", grant_all_bytes, "granted region", 0},
	{"S7", "half a grant", grant_half, "granted region", 0},
	{"R5", "a long blob", grant_long_blob, "granted region", 0},
	{"R5", "a short blob", grant_short_blob, "granted region", 0},
	{"R5", "a blob of noise", grant_noise, "granted region", 0},
	{"R8", "grant zero", grant_zero, "granted region", 0},
	{"R8", "a grant again", grant_twice, "granted region", 0},
	{"R6", "access to nothing", grant_nothing, "granted region", 0},
	{"R6", "access of a new kind", grant_too_much, "granted region", 0},
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
#define OFFENCES (sizeof(offences) / sizeof(*offences))

/* ---- the liar's life ------------------------------------------------------------------------- */

/* Connected; it has been given a key to a region. */
static void begin(struct liar *l)
{
	memset(l, 0, sizeof(*l));
	raw_begin(&l->raw, raw_connect(address));
	l->raw.hello.features = LITTLE_64(WIRE_FEATURE_MEMORY);
	raw_steps(&l->raw, RAW_HELLO, RAW_UP);
	l->fd = -1;
	CHECK(mapping_create(&l->region, "slmpm-test", SIZE) == 0, "memory");
	CHECK(raw_hear(l->raw.fd, &l->granted, sizeof(l->granted), &l->fd) == sizeof(l->granted) &&
		      LITTLE_32(l->granted.head.type) == WIRE_GRANT,
	      "no grant came");
}

static void end(struct liar *l)
{
	mapping_destroy(&l->region);
	if (l->fd >= 0)
		close(l->fd);
	raw_end(&l->raw);
}

static int lie(void *arg)
{
	const struct offence *o = arg;
	struct liar l;
	char reason[112];

	begin(&l);
	o->commit(&l);
	ring_publish_produced(&l.raw.w);
	raw_ring_bell(&l.raw);
	raw_hear_end(l.raw.fd, reason);
	CHECK(strstr(reason, o->word), "%s: the answer was \"%s\"", o->name, reason);
	end(&l);
	return 0;
}

static slmpm_ctx ctx;
static slmpm_listener listener;

/* The liar as a peer, with a key to MEM. */
static slmpm_peer take_in(slmpm_mem mem, uint32_t access)
{
	struct slmpm_key key;
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mem_key(mem, peer, access, &key));
	return peer;
}

static void survive(const struct offence *o)
{
	struct holdings before = holdings_now();
	int64_t until = actor_now_ms() + BOUND_MS * actor_slow(), n;
	struct slmpm_stats stats;
	unsigned char got[64];
	slmpm_peer peer;
	slmpm_mem mem;
	char *base;
	pid_t pid = child_start(lie, (void *)(uintptr_t)o, 30);

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	while ((n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5)) != -SLMPM_EPROTO)
		CHECK(n == -SLMPM_ETIMEOUT && actor_now_ms() < until,
		      "%s was not noticed: %lld (%s)", o->name, (long long)n, slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), o->word), "%s: \"%s\"", o->name, slmpm_error_detail());
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	EXPECT(stats.violations, 1);
	EXPECT(stats.refused, o->refused);
	CHECK(child_wait(pid) == 0, "%s: see above", o->name);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(peer, PATIENCE));
	holdings_expect(before, o->name);
}

/* ---- one that keeps what it has -------------------------------------------------------------- */

/* Its own mapping is writable, and nobody can forbid that: but the region leaves it. */
static int keep(void *arg)
{
	struct liar l;
	volatile char *at;
	char go;

	(void)arg;
	begin(&l);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	CHECK(at != MAP_FAILED, "a writable region cannot be mapped: %s", strerror(errno));
	at[0] = 'k';
	raw_send(&l.raw, 1, "mapped", 6);
	raw_ring_bell(&l.raw);
	raw_await_packet(&l.raw); /* revoked; it does not answer */
	for (;;) {
		struct pollfd end_of = {.fd = l.raw.fd, .events = POLLIN};

		at[1]++; /* and again, while the host looks */
		if (poll(&end_of, 1, 0) == 1 && recv(l.raw.fd, &go, 1, MSG_DONTWAIT) == 0)
			break;
	}
	munmap((void *)(uintptr_t)at, SIZE);
	end(&l);
	return 0;
}

static void revoke_from_one_that_keeps(void)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(keep, NULL, 30);
	char got[16], *base, last;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 6);
	CHECK(base[0] == 'k', "it does reach the region");
	OK(slmpm_mem_revoke(mem, peer, PATIENCE)); /* it is not waited for */
	last = base[1];
	CHECK(base[0] == 'k', "what was there stays");
	for (int64_t until = actor_now_ms() + 50; actor_now_ms() < until;)
		CHECK(((volatile char *)base)[1] == last, "it still writes");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that keeps: see above");
	holdings_expect(before, "one that keeps");
}

/* It says that it is through, and is not: the next revocation takes that into account. */
static int release_and_keep(void *arg)
{
	struct liar l;
	volatile char *at;
	char reason[112];

	(void)arg;
	begin(&l);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	CHECK(at != MAP_FAILED, "no mapping");
	say(&l, WIRE_REGION_ACCEPTED, 0, LITTLE_32(l.granted.grant), NULL, 0);
	say(&l, WIRE_REGION_RELEASED, 0, LITTLE_32(l.granted.grant), NULL, 0);
	raw_send(&l.raw, 1, "released", 8);
	raw_ring_bell(&l.raw);
	raw_await_packet(&l.raw);
	at[0] = 'k';
	raw_send(&l.raw, 1, "written", 7);
	raw_ring_bell(&l.raw);
	raw_hear_end(l.raw.fd, reason);
	munmap((void *)(uintptr_t)at, SIZE);
	end(&l);
	return 0;
}

static void revoke_after_a_false_release(void)
{
	pid_t pid = child_start(release_and_keep, NULL, 30);
	char got[16], *base;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 8);
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 7);
	CHECK(!base[0], "it still writes");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "a false release: see above");
}

/* Who may only read has nothing to write with. */
static int pry(void *arg)
{
	struct liar l;
	char path[64], reason[112];
	void *at;
	int fd;

	(void)arg;
	begin(&l);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	CHECK(at == MAP_FAILED, "it can be mapped writable");
	at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, l.fd, 0);
	CHECK(at != MAP_FAILED, "it cannot be mapped");
	CHECK(mprotect(at, SIZE, PROT_READ | PROT_WRITE) != 0, "it can be made writable");
	CHECK(pwrite(l.fd, "x", 1, 0) < 0, "it can be written as a file");
	CHECK(ftruncate(l.fd, 0) != 0, "it can be cut");
	CHECK(fallocate(l.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0, "a hole");
	CHECK(madvise(at, 4096, MADV_REMOVE) != 0, "a hole by advice");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		CHECK(pwrite(fd, "x", 1, 0) < 0, "opened anew it can be written");
		CHECK(mmap(NULL, SIZE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
		      "opened anew it can be mapped writable");
		close(fd);
	}
	raw_send(&l.raw, 1, "tried", 5);
	raw_ring_bell(&l.raw);
	raw_hear_end(l.raw.fd, reason);
	munmap(at, SIZE);
	end(&l);
	return 0;
}

static void give_for_reading(void)
{
	pid_t pid = child_start(pry, NULL, 30);
	char got[16], *base;
	slmpm_peer peer;
	slmpm_mem mem;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ, &mem, (void **)&base));
	memset(base, 7, SIZE);
	peer = take_in(mem, SLMPM_READ);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 5);
	for (int i = 0; i < SIZE; i++)
		CHECK(base[i] == 7, "byte %d", i);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "for reading: see above");
}

/* ---- keys of others, and of yesterday -------------------------------------------------------- */

static int use_others(void *arg)
{
	const int *pipe_end = arg;
	unsigned char secret[16];
	struct liar l;
	uint32_t id, own;
	char reason[112];

	begin(&l);
	own = LITTLE_32(l.granted.grant);
	/* Another peer's key, which it has come by. */
	CHECK(read(*pipe_end, &id, sizeof(id)) == sizeof(id) &&
		      read(*pipe_end, secret, sizeof(secret)) == sizeof(secret),
	      "no key");
	EXPECT(ask(&l, id, secret, 0, 1), SLMPM_EACCES);
	EXPECT(ask(&l, own, l.granted.secret, 0, 1), 0);
	raw_send(&l.raw, 1, "revoke", 6);
	raw_ring_bell(&l.raw);
	raw_await_packet(&l.raw); /* revoked */
	raw_await_packet(&l.raw); /* and told so */
	/* However often: it was a key once, and no guess. */
	for (int i = 0; i < 40; i++)
		EXPECT(ask(&l, own, l.granted.secret, 0, 1), SLMPM_EACCES);
	say(&l, WIRE_REGION_LET_GO, 0, own, NULL, 0);
	for (int i = 0; i < 40; i++)
		EXPECT(ask(&l, own, l.granted.secret, 0, 1), SLMPM_EACCES);
	raw_send(&l.raw, 1, "over", 4);
	raw_ring_bell(&l.raw);
	raw_hear_end(l.raw.fd, reason);
	CHECK(!*reason, "stale keys were called \"%s\"", reason);
	end(&l);
	return 0;
}

static void refuse_others_keys(void)
{
	int ends[2];
	struct slmpm_stats stats;
	struct slmpm_key key;
	slmpm_peer peer, a, b;
	slmpm_mem mem;
	char got[16];
	void *base;
	pid_t pid;

	CHECK(pipe(ends) == 0, "pipe");
	pid = child_start(use_others, &ends[0], 30);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	peer = take_in(mem, SLMPM_READ_WRITE);
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	CHECK(write(ends[1], key.bytes + 8, 4) == 4 && write(ends[1], key.bytes + 32, 16) == 16,
	      "the key");
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 6);
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "now", 3, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 4);
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	EXPECT(stats.refused, 81);
	EXPECT(stats.violations, 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	CHECK(child_wait(pid) == 0, "others' keys: see above");
	close(ends[0]);
	close(ends[1]);
}

/* ---- one that knows no regions --------------------------------------------------------------- */

static int know_nothing(void *arg)
{
	struct liar l = {.fd = -1};
	char reason[112];

	(void)arg;
	raw_begin(&l.raw, raw_connect(address));
	raw_steps(&l.raw, RAW_HELLO, RAW_UP);
	raw_send(&l.raw, 1, "up", 2);
	raw_ring_bell(&l.raw);
	raw_await_packet(&l.raw);
	CHECK(mapping_create(&l.region, "slmpm-test", SIZE) == 0, "memory");
	say_grant(&l, grant_of(&l, 1), l.region.fd);
	raw_hear_end(l.raw.fd, reason);
	CHECK(strstr(reason, "granted region"), "the answer was \"%s\"", reason);
	end(&l);
	return 0;
}

static void ask_one_that_knows_nothing(void)
{
	pid_t pid = child_start(know_nothing, NULL, 30);
	struct slmpm_key key;
	slmpm_peer peer;
	slmpm_mem mem;
	char got[16];
	void *base;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 2);
	REFUSED(slmpm_mem_key(mem, peer, SLMPM_READ, &key), SLMPM_ENOTSUP, "does not know");
	REFUSED(slmpm_mem_share(mem, peer, SLMPM_READ, PATIENCE), SLMPM_ENOTSUP, "does not know");
	OK(slmpm_mem_revoke(mem, peer, PATIENCE));
	OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), -SLMPM_EPROTO);
	OK(slmpm_mem_destroy(mem, 0));
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that knows no regions: see above");
}

/* ---- one that leaves ------------------------------------------------------------------------- */

/* Its last word comes right behind the grant, and both perhaps before they are asked for. */
static int leave(void *arg)
{
	struct slmpm_key key = {.bytes = {0x53, 0x4c, 0x4b, 0x31, 3, 0, 0, 0, 1}};
	struct wire_bye bye = {.reason = "gone for tea"};
	struct liar l = {.fd = -1};
	struct wire_grant g;
	char reason[112];

	(void)arg;
	raw_begin(&l.raw, raw_connect(address));
	l.raw.hello.features = LITTLE_64(WIRE_FEATURE_MEMORY);
	raw_steps(&l.raw, RAW_HELLO, RAW_UP);
	CHECK(mapping_create(&l.region, "slmpm-test", SIZE) == 0, "memory");
	g = grant_of(&l, 1);
	memcpy(key.bytes + 16, &g.size, 8);
	raw_send(&l.raw, 1, &key, sizeof(key));
	say_grant(&l, g, l.region.fd);
	raw_say_packet(l.raw.fd, WIRE_BYE, &bye, sizeof(bye), -1);
	(void)shutdown(l.raw.fd, SHUT_WR);
	raw_hear_end(l.raw.fd, reason);
	end(&l);
	return 0;
}

static void hear_the_last_word(void)
{
	pid_t pid = child_start(leave, NULL, 30);
	struct slmpm_key key;
	slmpm_peer peer;
	slmpm_rmem rmem;
	int rc;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	rc = slmpm_mem_open(peer, &key, &rmem);
	CHECK(rc == 0 || rc == -SLMPM_EDEAD || rc == -SLMPM_EACCES, "open: %d (%s)", rc,
	      slmpm_error_detail());
	REFUSED(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), SLMPM_EDEAD,
		"gone for tea");
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "one that leaves: see above");
}

int main(void)
{
	char url[80];

	setenv("SLMPM_LOG_LEVEL", "none", 1);
	snprintf(address, sizeof(address), "hostile-memory-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	for (size_t i = 0; i < OFFENCES; i++) {
		survive(&offences[i]);
		printf("%-3s %-30s %s\n", offences[i].rule, offences[i].name, offences[i].word);
	}
	revoke_from_one_that_keeps();
	revoke_after_a_false_release();
	give_for_reading();
	refuse_others_keys();
	ask_one_that_knows_nothing();
	for (int i = 0; i < 20; i++)
		hear_the_last_word();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
