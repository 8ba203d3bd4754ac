/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Mirrored memory: every way of changing it, what becomes one, what does not fit, both sides at
 * once, several peers, and what is refused. Both ends in one context, under many settings.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define SIZE    (256 << 10)
#define BOTH    SLMPM_MIRROR_BOTH
#define LEADS   SLMPM_MIRROR_LEAD
#define FOLLOWS SLMPM_MIRROR_FOLLOW

static slmpm_ctx ctx;
static slmpm_peer near, far; /* the follower as the leader sees it; the leader as it is seen */
static _Alignas(65536) uint64_t room[4][SIZE / 8]; /* tracked ones share no page */
static unsigned char *leads = (unsigned char *)room[0], *follows = (unsigned char *)room[1];
static slmpm_mirror leader, follower;
static size_t bytes; /* that are mirrored */

static slmpm_mirror mirror_of(void *base, size_t n, const struct slmpm_mirror_options *o)
{
	slmpm_mirror m;

	OK(slmpm_mirror_create(ctx, base, n, o, &m));
	return m;
}

static struct slmpm_mirror_info info_of(slmpm_mirror m, slmpm_peer peer)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	OK(slmpm_mirror_query(m, peer, &info));
	return info;
}

/* One that was detached just before has its end on the way. */
static void ask(slmpm_mirror m, slmpm_peer peer, uint32_t tag, uint32_t how)
{
	int rc;

	while ((rc = slmpm_mirror_attach(m, peer, tag, how, 0)) == -SLMPM_EBUSY)
		(void)slmpm_progress(ctx);
	EXPECT(rc, -SLMPM_ETIMEOUT);
}

static void join(slmpm_mirror a, slmpm_peer to_b, slmpm_mirror b, slmpm_peer to_a, uint32_t tag,
		 uint32_t both)
{
	ask(a, to_b, tag, LEADS | both);
	OK(slmpm_mirror_attach(b, to_a, tag, FOLLOWS | both, PATIENCE));
	OK(slmpm_mirror_attach(a, to_b, tag, LEADS | both, PATIENCE));
}

static void open_both(const struct slmpm_mirror_options *o, uint32_t both)
{
	actor_fill(leads, 1, bytes);
	memset(follows, 0, bytes);
	leader = mirror_of(leads, bytes, o);
	follower = mirror_of(follows, bytes, o);
	join(leader, near, follower, far, 7, both);
}

static void close_both(void)
{
	OK(slmpm_mirror_destroy(leader));
	OK(slmpm_mirror_destroy(follower));
}

/* What FROM has sent is all at TO. */
static void settle(slmpm_mirror from, slmpm_peer to, slmpm_mirror at, slmpm_peer peer)
{
	OK(slmpm_mirror_flush(from, PATIENCE));
	for (unsigned idle = 0; info_of(at, peer).sequence < info_of(from, to).sent;) {
		if (slmpm_progress(ctx))
			idle = 0;
		else
			actor_idle(ctx, &idle);
	}
}

static void same(const char *what)
{
	settle(leader, near, follower, far);
	for (size_t i = 0; i < bytes; i++)
		CHECK(leads[i] == follows[i], "%s: byte %zu is %u, not %u", what, i, follows[i],
		      leads[i]);
}

/* ---- one way --------------------------------------------------------------------------------- */

static void functions(void)
{
	unsigned char model[200];

	open_both(NULL, 0);
	same("what was there");
	OK(slmpm_mirror_store8(leader, leads + 3, 0xab));
	OK(slmpm_mirror_store16(leader, leads + 10, 0xcdef));
	OK(slmpm_mirror_store16(leader, leads + 21, 0x1234));
	OK(slmpm_mirror_store32(leader, leads + 36, 0xdeadbeef));
	OK(slmpm_mirror_store32(leader, leads + 41, 0x01020304));
	OK(slmpm_mirror_store64(leader, leads + 64, UINT64_C(0x0123456789abcdef)));
	OK(slmpm_mirror_store64(leader, leads + 83, UINT64_C(0xfedcba9876543210)));
	same("stores");
	CHECK(follows[3] == 0xab && *(uint64_t *)(void *)(follows + 64) == 0x0123456789abcdef,
	      "values");
	actor_fill(model, 5, sizeof(model));
	OK(slmpm_mirror_copy(leader, leads + 1001, model, sizeof(model)));
	OK(slmpm_mirror_set(leader, leads + 2000, 0x5a, 333));
	same("copy and set");
	CHECK(!memcmp(follows + 1001, model, sizeof(model)) && follows[2332] == 0x5a, "copied");
	for (int shift = -20; shift <= 20; shift++) {
		memcpy(model, leads + 1001, sizeof(model));
		OK(slmpm_mirror_move(leader, leads + 1001 + shift, leads + 1001, sizeof(model)));
		CHECK(!memcmp(leads + 1001 + shift, model, sizeof(model)), "moved by %d", shift);
	}
	same("move");
	leads[5000] = 1;
	memset(leads + 6000, 2, 77);
	OK(slmpm_mirror_changed(leader, leads + 5000, 1));
	OK(slmpm_mirror_changed(leader, leads + 6000, 77));
	same("what the application changed");
	OK(slmpm_mirror_store8(leader, leads, 1));
	OK(slmpm_mirror_store8(leader, leads + bytes - 1, 1));
	same("both ends");
	close_both();
}

/* Many changes of one place before progress are one; those of many places share packets. */
static void coalescing(void)
{
	struct slmpm_mirror_info before, behind;

	open_both(NULL, 0);
	settle(leader, near, follower, far);
	before = info_of(leader, near);
	for (uint64_t i = 1; i <= 1000; i++)
		OK(slmpm_mirror_store64(leader, leads + 800, i));
	EXPECT(info_of(leader, near).waiting, 8);
	same("one place");
	behind = info_of(leader, near);
	EXPECT(behind.sent_packets - before.sent_packets, 1);
	EXPECT(behind.sent_bytes - before.sent_bytes, 8);
	EXPECT(behind.sent - before.sent, 1);
	CHECK(*(uint64_t *)(void *)(follows + 800) == 1000, "the last value");
	for (uint64_t i = 0; i < 64; i++)
		OK(slmpm_mirror_store64(leader, leads + 16 * i, i));
	same("many places");
	before = info_of(leader, near);
	EXPECT(before.sent_bytes - behind.sent_bytes, 64 * 8);
	CHECK(before.sent_packets - behind.sent_packets <= 16, "%d packets",
	      (int)(before.sent_packets - behind.sent_packets));
	for (uint64_t i = 0; i < bytes / 8; i++)
		OK(slmpm_mirror_store64(leader, leads + 8 * i, i));
	EXPECT(info_of(leader, near).waiting, bytes);
	same("all of it");
	close_both();
}

static void any_changes(unsigned char *memory, slmpm_mirror m, struct rng *g, int n)
{
	unsigned char some[3000];

	for (int i = 0; i < n; i++) {
		uint32_t len = 1 + rng_below(g, rng_one_in(g, 8) ? sizeof(some) : 24);
		uint32_t at = rng_below(g, (uint32_t)(bytes - len));

		actor_fill(some, rng_next(g), len);
		OK(slmpm_mirror_copy(m, memory + at, some, len));
		if (rng_one_in(g, 40))
			(void)slmpm_progress(ctx);
	}
}

static void any_order(void)
{
	struct rng g = {3};

	open_both(NULL, 0);
	for (int round = 0; round < 10; round++) {
		any_changes(leads, leader, &g, 200);
		same("random changes");
	}
	close_both();
}

/* ---- both ways ------------------------------------------------------------------------------- */

static void settle_both(void)
{
	for (int i = 0; i < 2; i++) {
		settle(follower, far, leader, near);
		settle(leader, near, follower, far);
	}
}

/* Each side writes the same words without looking: in the end both have the same. */
static void both_at_once(void)
{
	struct rng g = {11};
	const uint64_t words = 24;

	open_both(NULL, BOTH);
	for (int round = 0; round < 300; round++) {
		for (uint32_t i = rng_below(&g, 9); i; i--)
			OK(slmpm_mirror_store64(leader, leads + 8 * rng_below(&g, words),
						rng_next(&g)));
		if (rng_one_in(&g, 2))
			OK(slmpm_mirror_flush(leader, PATIENCE));
		for (uint32_t i = rng_below(&g, 9); i; i--) {
			uint32_t at = rng_below(&g, 8 * words - 8);

			OK(slmpm_mirror_store64(follower, follows + at, rng_next(&g)));
		}
		if (rng_one_in(&g, 2))
			OK(slmpm_mirror_flush(follower, PATIENCE));
		if (rng_one_in(&g, 3))
			(void)slmpm_progress(ctx);
		if (round % 10 == 9) {
			settle_both();
			same("both wrote");
		}
	}
	any_changes(leads, leader, &g, 300);
	any_changes(follows, follower, &g, 300);
	any_changes(leads, leader, &g, 300);
	settle_both();
	same("both wrote everywhere");
	close_both();
}

/* A follower whose changes do not count is not heard, and has the leader's bytes again only where
 * these change. */
static void one_way_only(void)
{
	open_both(NULL, 0);
	same("filled");
	OK(slmpm_mirror_store64(follower, follows + 8, 1));
	OK(slmpm_mirror_flush(follower, PATIENCE));
	EXPECT(info_of(follower, far).sent_packets, 0);
	OK(slmpm_mirror_store64(leader, leads + 8, 2));
	same("the leader's");
	close_both();
}

/* ---- spans, several peers -------------------------------------------------------------------- */

static void parts(void)
{
	const struct slmpm_span spans[] = {{8, 16}, {100, 1}, {4096, 5000}};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .spans = spans, .span_count = 3};

	open_both(&o, BOTH);
	settle(leader, near, follower, far);
	for (size_t i = 0; i < bytes; i++) {
		bool in = (i >= 8 && i < 24) || i == 100 || (i >= 4096 && i < 9096);

		CHECK(follows[i] == (in ? leads[i] : 0), "byte %zu", i);
	}
	OK(slmpm_mirror_set(leader, leads, 0x77, bytes));
	settle(leader, near, follower, far);
	CHECK(follows[7] == 0 && follows[8] == 0x77 && follows[24] == 0 && follows[9095] == 0x77 &&
		      follows[9096] == 0,
	      "changes in parts");
	EXPECT(info_of(leader, near).sent_bytes, 2 * (16 + 1 + 5000));
	close_both();
}

/* A leader of two followers, one of which leads a third; changes of each reach all. */
static void several(void)
{
	unsigned char *memory[4];
	slmpm_mirror m[4];
	slmpm_peer to[4], back[4];
	struct rng g = {5};

	for (int i = 0; i < 4; i++) {
		memory[i] = (unsigned char *)room[i];
		actor_fill(memory[i], (uint64_t)i, bytes);
		m[i] = mirror_of(memory[i], bytes, NULL);
		if (i)
			actor_pair(ctx, &to[i], &back[i]);
	}
	join(m[0], to[1], m[1], back[1], 1, BOTH);
	join(m[0], to[2], m[2], back[2], 1, BOTH);
	join(m[1], to[3], m[3], back[3], 9, BOTH);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			any_changes(memory[i], m[i], &g, 20);
		for (int i = 0; i < 12; i++) {
			OK(slmpm_mirror_flush(m[i % 4], PATIENCE));
			for (int k = 0; k < 30; k++)
				(void)slmpm_progress(ctx);
		}
		for (int turn = 0; turn < 3; turn++)
			for (int i = 1; i < 4; i++) {
				int up = i == 3 ? 1 : 0;

				settle(m[i], back[i], m[up], to[i]);
				settle(m[up], to[i], m[i], back[i]);
			}
		for (int i = 1; i < 4; i++)
			CHECK(!memcmp(memory[i], memory[0], bytes), "mirror %d, round %d", i,
			      round);
	}
	for (int i = 0; i < 4; i++)
		OK(slmpm_mirror_destroy(m[i]));
	for (int i = 1; i < 4; i++) {
		OK(slmpm_close(to[i], PATIENCE));
		OK(slmpm_close(back[i], PATIENCE));
	}
}

/* ---- publications ---------------------------------------------------------------------------- */

static void publications(void)
{
	const struct slmpm_span halves[] = {{bytes / 2, 64}, {0, 64}};
	unsigned char copy[128];
	uint64_t sequence = 0, last;

	open_both(NULL, 0);
	settle(leader, near, follower, far);
	last = info_of(follower, far).sequence;
	for (uint64_t i = 1; i < 50; i++) {
		OK(slmpm_mirror_begin(leader, PATIENCE));
		REFUSED(slmpm_mirror_begin(leader, 0), SLMPM_ESTATE, "begin");
		REFUSED(slmpm_mirror_flush(leader, 0), SLMPM_ESTATE, "begin");
		OK(slmpm_mirror_set(leader, leads, (int)i, bytes));
		for (int k = 0; k < 3; k++)
			(void)slmpm_progress(ctx);
		CHECK(follows[0] != (unsigned char)i, "seen before its end");
		OK(slmpm_mirror_end(leader));
		OK(slmpm_mirror_snapshot(follower, far, halves, 2, copy, &sequence, PATIENCE));
		for (int k = 1; k < 128 && i > 1; k++)
			CHECK(copy[k] == copy[0], "publication %llu: byte %d is %u, not %u",
			      (unsigned long long)sequence, k, copy[k], copy[0]);
		CHECK(copy[0] == i || copy[0] == (unsigned char)(i - 1) || i == 1, "%u in %d",
		      copy[0], (int)i);
		OK(slmpm_mirror_wait(follower, far, &last, PATIENCE));
		OK(slmpm_mirror_snapshot(follower, far, halves, 1, copy, &sequence, 0));
		CHECK(sequence == last && copy[0] == i && copy[63] == i, "publication %llu",
		      (unsigned long long)sequence);
	}
	REFUSED(slmpm_mirror_end(leader), SLMPM_ESTATE, "without");
	EXPECT(slmpm_mirror_wait(follower, far, &last, 0), -SLMPM_ETIMEOUT);
	close_both();
}

/* ---- messages behind ------------------------------------------------------------------------- */

static void messages_behind(void)
{
	uint64_t value;

	open_both(NULL, 0);
	settle(leader, near, follower, far);
	for (uint64_t i = 0; i < 300; i++) {
		OK(slmpm_mirror_store64(leader, leads + 4096, i));
		OK(slmpm_mirror_flush(leader, PATIENCE));
		OK(slmpm_send(near, 3, &i, sizeof(i), PATIENCE));
		EXPECT(slmpm_recv(far, 3, &value, sizeof(value), NULL, PATIENCE), sizeof(value));
		CHECK(*(uint64_t *)(void *)(follows + 4096) == i && value == i, "message %d",
		      (int)i);
	}
	close_both();
}

/* ---- what the library itself brings there ----------------------------------------------------- */

/* The leader's memory is the target of everything that lands; a second pair is where it comes from. */
static void landed_as(slmpm_peer from, slmpm_peer at, slmpm_mem mem, slmpm_rmem rmem,
		      slmpm_rmem other)
{
	struct slmpm_iov burst[3] = {{leads + 3000, 8}, {leads + 3100, 8}, {leads + 3200, 8}};
	struct slmpm_how fifo = {.size = sizeof(fifo), .flags = SLMPM_FIFO, .timeout_ms = -1};
	struct slmpm_fifo entry;
	slmpm_req req;
	uint64_t old;

	for (int i = 0; i < 3; i++)
		OK(slmpm_send(from, 1, room[2], 40, PATIENCE));
	EXPECT(slmpm_recv(at, 1, leads + 96, 100, NULL, PATIENCE), 40);
	EXPECT(slmpm_recv(at, 1, leads + 200, 20, NULL, PATIENCE), -SLMPM_ETRUNC);
	EXPECT(slmpm_recvv(at, 1, burst, 3, NULL, NULL), -SLMPM_ETRUNC);
	OK(slmpm_sendv(from, 2, &(struct slmpm_iov){room[2], bytes / 2}, 1, NULL, &req));
	EXPECT(slmpm_recv(at, 2, leads + bytes / 4, bytes / 2, NULL, PATIENCE),
	       (int64_t)(bytes / 2));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	same("received");
	EXPECT(slmpm_send_burst(from, 3, (struct slmpm_iov[]){{room[2], 8}, {room[2] + 1, 8}}, 2,
				PATIENCE),
	       2);
	EXPECT(slmpm_recv_burst(at, 3, burst, 2, NULL, PATIENCE) > 0, 1);
	OK(slmpm_put(rmem, 500, room[2], 700, NULL, NULL));
	OK(slmpm_flush(from, PATIENCE));
	OK(slmpm_atomic(rmem, 1600, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 1612, SLMPM_SWAP, 32, 9, 0, NULL, NULL, NULL));
	same("put and atomic operations");
	OK(slmpm_put(rmem, 2000, room[2], 100, &fifo, NULL));
	OK(slmpm_fifo_take(at, &entry, PATIENCE));
	OK(slmpm_fifo_store(&entry, mem, 2001, NULL, NULL));
	same("stored out of a FIFO");
	OK(slmpm_get(other, 8, leads + 4000, 333, NULL, NULL));
	OK(slmpm_get(other, 8, leads + 5000, 333, NULL, &req));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	OK(slmpm_atomic(other, 0, SLMPM_FETCH_ADD, 64, 1, 0, leads + 6000, NULL, NULL));
	same("got");
	while (slmpm_recv(at, SLMPM_ANY_STREAM, room[3], 100, NULL, 0) >= 0)
		;
}

static slmpm_rmem reach(slmpm_mem mem, slmpm_peer to, slmpm_peer from)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(from, &key, &rmem));
	return rmem;
}

static void landed(void)
{
	slmpm_peer from, at;
	slmpm_mem mem, other_mem, early_mem;
	slmpm_rmem rmem, other, early;
	slmpm_mirror m;

	actor_fill(room[2], 77, bytes);
	actor_pair(ctx, &from, &at);
	OK(slmpm_mem_register(ctx, room[3], bytes, SLMPM_READ_WRITE, &other_mem));
	other = reach(other_mem, from, at); /* its shortcut is there before the mirror */
	OK(slmpm_mem_register(ctx, room[2], bytes, SLMPM_READ_WRITE, &early_mem));
	early = reach(early_mem, at, from);
	if (slmpm_mirror_create(ctx, room[2], 64, NULL, &m) == 0)
		OK(slmpm_mirror_destroy(m)); /* nobody could reach it by itself */
	else
		REFUSED(slmpm_mirror_create(ctx, room[2], 64, NULL, &m), SLMPM_EBUSY, "by itself");
	open_both(NULL, 0);
	OK(slmpm_mem_register(ctx, leads, bytes, SLMPM_READ_WRITE, &mem));
	rmem = reach(mem, at, from);
	landed_as(from, at, mem, rmem, other);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_release(other));
	OK(slmpm_mem_release(early));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_mem_destroy(other_mem, PATIENCE));
	OK(slmpm_mem_destroy(early_mem, PATIENCE));
	OK(slmpm_close(from, PATIENCE));
	OK(slmpm_close(at, PATIENCE));
	close_both();
}

/* ---- automatic tracking ----------------------------------------------------------------------- */

static void any_stores(unsigned char *memory, struct rng *g, int n)
{
	for (int i = 0; i < n; i++) {
		uint32_t len = 1 + rng_below(g, 300), at = rng_below(g, (uint32_t)(bytes - len));

		memset(memory + at, (int)rng_below(g, 256), len);
	}
}

static void tracked(uint32_t how, const char *name)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	struct rng g = {how};
	unsigned idle = 0;

	if (slmpm_mirror_track_works((int)how) < 0) {
		REFUSED(slmpm_mirror_create(ctx, leads, bytes, &o, &leader), SLMPM_ENOTSUP,
			"tracked by");
		return;
	}
	open_both(&o, BOTH);
	same("tracked, filled");
	CHECK(!name || !strcmp(info_of(leader, near).track, name), "tracked by %s",
	      info_of(leader, near).track);
	EXPECT(slmpm_mirror_look(leader), 0);
	leads[100] ^= 1;
	leads[bytes - 1] ^= 1;
	EXPECT(slmpm_mirror_look(leader), 2);
	EXPECT(slmpm_mirror_look(leader), 0);
	leads[100] = leads[100];
	for (int round = 0; round < 10; round++) {
		any_stores(leads, &g, 20);
		same("plain stores");
		any_stores(leads, &g, 3);
		OK(slmpm_mirror_flush(leader, PATIENCE));
		any_stores(follows, &g, 3);
		OK(slmpm_mirror_flush(follower, PATIENCE));
		settle_both();
		same("plain stores of both");
	}
	leads[4711] ^= 0x55; /* progress alone finds it, in its time */
	while (follows[4711] != leads[4711])
		if (!slmpm_progress(ctx))
			actor_idle(ctx, &idle);
	close_both();
}

/* A word of which some bytes have changed goes as a whole, where the peer changes none of it. */
static void tracked_words(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	uint64_t *word = (uint64_t *)(void *)(leads + 512);
	struct slmpm_mirror_info before;

	open_both(&o, 0);
	*word = 0xffff;
	same("a word");
	before = info_of(leader, near);
	*word += 1;
	EXPECT(slmpm_mirror_look(leader), 3);
	EXPECT(info_of(leader, near).waiting, sizeof(*word));
	same("its next value");
	EXPECT(info_of(leader, near).sent_bytes - before.sent_bytes, sizeof(*word));
	close_both();
}

static int stay(void *socket)
{
	char byte = 0;
	int fd = *(int *)socket;

	return write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1;
}

/* A child that goes on does not keep its parent's pages watched. */
static void tracked_forked(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	slmpm_mirror m;
	int ends[2];
	pid_t pid;
	char byte;

	if (slmpm_mirror_track_works((int)how) < 0)
		return;
	m = mirror_of(leads, bytes, &o);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid = child_start(stay, &ends[0], 20);
	CHECK(read(ends[1], &byte, 1) == 1, "the child is not there");
	OK(slmpm_mirror_destroy(m));
	m = mirror_of(leads, bytes, &o);
	OK(slmpm_mirror_destroy(m));
	CHECK(write(ends[1], &byte, 1) == 1, "the child has gone");
	OK(child_wait(pid));
	close(ends[0]);
	close(ends[1]);
}

/* ---- handlers --------------------------------------------------------------------------------- */

static void in_handler(const struct slmpm_am *am, void *arg)
{
	(void)am;
	for (size_t at = 0; at < bytes; at += 2048)
		OK(slmpm_mirror_set(leader, leads + at, 0x33, 1024));
	*(int *)arg = slmpm_mirror_flush(leader, PATIENCE);
}

/* More than goes out at once: a flush would wait, and says why it does not. */
static void flushed_in_handler(void)
{
	unsigned idle = 0;
	int rc = 1;

	open_both(NULL, 0);
	OK(slmpm_am_handler(ctx, 5, in_handler, &rc));
	OK(slmpm_am(near, 5, NULL, 0, NULL, 0, NULL, NULL));
	while (rc == 1)
		if (!slmpm_progress(ctx))
			actor_idle(ctx, &idle);
	CHECK(rc == -SLMPM_ESTATE || (rc == 0 && bytes < SIZE), "a flush in a handler: %d", rc);
	OK(slmpm_am_handler(ctx, 5, NULL, NULL));
	same("changed in a handler");
	close_both();
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void misfits(void)
{
	const struct slmpm_span span = {0, 8};
	const struct slmpm_mirror_options part = {
		.size = sizeof(part), .spans = &span, .span_count = 1};
	slmpm_mirror small = mirror_of(room[2], 64, NULL), other = mirror_of(room[3], bytes, &part);

	leader = mirror_of(leads, bytes, NULL);
	follower = mirror_of(follows, bytes, NULL);
	ask(leader, near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(small, far, 1, FOLLOWS, PATIENCE), SLMPM_EINVAL, "longer");
	REFUSED(slmpm_mirror_attach(leader, near, 1, LEADS, PATIENCE), SLMPM_EINVAL, "longer");
	ask(leader, near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(follower, far, 1, LEADS, PATIENCE), SLMPM_EINVAL, "lead");
	REFUSED(slmpm_mirror_attach(leader, near, 1, LEADS, PATIENCE), SLMPM_EINVAL, "lead");
	ask(leader, near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(follower, far, 1, FOLLOWS | BOTH, PATIENCE), SLMPM_EINVAL,
		"takes no changes");
	REFUSED(slmpm_mirror_attach(leader, near, 1, LEADS, PATIENCE), SLMPM_EINVAL, "changes");
	ask(leader, near, 1, LEADS);
	REFUSED(slmpm_mirror_attach(other, far, 1, FOLLOWS, PATIENCE), SLMPM_EINVAL, "spans");
	REFUSED(slmpm_mirror_attach(leader, near, 1, LEADS, PATIENCE), SLMPM_EINVAL, "spans");
	/* One that gives up is no offence, and the next one finds nothing of it. */
	ask(leader, near, 1, LEADS);
	EXPECT(info_of(leader, near).state, SLMPM_MIRROR_ASKED);
	REFUSED(slmpm_mirror_attach(leader, near, 2, LEADS, 0), SLMPM_EBUSY, "otherwise");
	OK(slmpm_mirror_detach(leader, near));
	REFUSED(slmpm_mirror_detach(leader, near), SLMPM_EINVAL, "attached");
	join(leader, near, follower, far, 1, 0);
	REFUSED(slmpm_mirror_attach(small, far, 1, FOLLOWS, 0), SLMPM_EBUSY, "tag");
	REFUSED(slmpm_mirror_attach(follower, near, 5, FOLLOWS, 0), SLMPM_EBUSY, "leader");
	OK(slmpm_mirror_detach(follower, far));
	for (unsigned idle = 0; info_of(leader, near).state != SLMPM_MIRROR_STALE;)
		if (!slmpm_progress(ctx))
			actor_idle(ctx, &idle);
	EXPECT(info_of(leader, near).error, -SLMPM_ECLOSED);
	join(leader, near, follower, far, 1, 0);
	same("attached anew");
	close_both();
	OK(slmpm_mirror_destroy(small));
	OK(slmpm_mirror_destroy(other));
}

static void bad_arguments(void)
{
	struct slmpm_mirror_options o = {.size = sizeof(o)};
	struct slmpm_mirror_info info = {.size = 1};
	struct slmpm_span span = {8, 8};
	uint64_t sequence = 0;
	slmpm_mirror none = {0}, m;

	EXPECT(slmpm_mirror_create(ctx, leads, 8, NULL, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ctx, NULL, 8, NULL, &m), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ctx, leads + 1, 8, NULL, &m), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_create(ctx, leads, 0, NULL, &m), -SLMPM_EINVAL);
	o.track = 99;
	EXPECT(slmpm_mirror_create(ctx, leads, 8, &o, &m), -SLMPM_EINVAL);
	o = (struct slmpm_mirror_options){.size = sizeof(o), .spans = &span, .span_count = 1};
	EXPECT(slmpm_mirror_create(ctx, leads, 8, &o, &m), -SLMPM_EINVAL);
	o.size = 3;
	EXPECT(slmpm_mirror_create(ctx, leads, 8, &o, &m), -SLMPM_EINVAL);
	leader = mirror_of(leads, 64, NULL);
	REFUSED(slmpm_mirror_create(ctx, leads + 56, 8, NULL, &m), SLMPM_EBUSY, "another");
	REFUSED(slmpm_mirror_store8(leader, leads + 64, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_store64(leader, leads + 57, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_store32(leader, (void *)((uintptr_t)leads - 1), 1), SLMPM_EINVAL,
		"mirror");
	REFUSED(slmpm_mirror_store16(leader, leads + 63, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_copy(leader, leads, NULL, 1), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_set(leader, leads, 0, 65), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_move(leader, leads, (void *)((uintptr_t)leads - 8), 8), SLMPM_EINVAL,
		"mirror");
	REFUSED(slmpm_mirror_changed(leader, leads + 1, SIZE_MAX), SLMPM_EINVAL, "mirror");
	EXPECT(slmpm_mirror_attach(leader, near, 1, 3, 0), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_attach(leader, near, 1, 9, 0), -SLMPM_EINVAL);
	EXPECT(slmpm_mirror_attach(leader, (slmpm_peer){0}, 1, LEADS, 0), -SLMPM_EHANDLE);
	REFUSED(slmpm_mirror_query(leader, near, &info), SLMPM_EINVAL, "mirror");
	info.size = sizeof(info);
	REFUSED(slmpm_mirror_query(leader, near, &info), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_wait(leader, near, NULL, 0), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_wait(leader, near, &sequence, 0), SLMPM_EINVAL, "mirror");
	REFUSED(slmpm_mirror_snapshot(leader, near, &span, 1, NULL, NULL, 0), SLMPM_EINVAL,
		"mirror");
	REFUSED(slmpm_mirror_snapshot(leader, near, &span, 1, room[2], NULL, 0), SLMPM_EINVAL,
		"mirror");
	span.len = 64;
	REFUSED(slmpm_mirror_snapshot(leader, near, &span, 1, room[2], NULL, 0), SLMPM_EINVAL,
		"mirror");
	OK(slmpm_mirror_flush(leader, 0));
	OK(slmpm_mirror_destroy(leader));
	REFUSED(slmpm_mirror_destroy(leader), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_store64(none, leads, 1), SLMPM_EHANDLE, "mirror");
	EXPECT(slmpm_mirror_flush(leader, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_begin(leader, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_end(leader), -SLMPM_EHANDLE);
	EXPECT(slmpm_mirror_detach(leader, near), -SLMPM_EHANDLE);
	REFUSED(slmpm_mirror_enter(leader, &sequence), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_leave(leader, 0), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_look(leader), SLMPM_EHANDLE, "mirror");
	REFUSED(slmpm_mirror_track_works(SLMPM_TRACK_TWIN + 1), SLMPM_EINVAL, "track");
	OK(slmpm_mirror_track_works(SLMPM_TRACK_TWIN));
}

static int under(const struct setting *s)
{
	bytes = s->bytes < SIZE ? 16384 : SIZE;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &near, &far);
	functions();
	coalescing();
	any_order();
	both_at_once();
	one_way_only();
	parts();
	several();
	publications();
	messages_behind();
	landed();
	tracked(SLMPM_TRACK_AUTO, NULL);
	tracked(SLMPM_TRACK_PAGEMAP, "pagemap");
	tracked(SLMPM_TRACK_FAULT, "fault");
	tracked(SLMPM_TRACK_SIGNAL, "signal");
	tracked(SLMPM_TRACK_TWIN, "twin");
	tracked_words(SLMPM_TRACK_AUTO);
	tracked_words(SLMPM_TRACK_TWIN);
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++)
		tracked_forked(how);
	flushed_in_handler();
	misfits();
	bad_arguments();
	leader = mirror_of(leads, bytes, NULL); /* ends with the context */
	return slmpm_shut(ctx, PATIENCE) == 0 ? 0 : 1;
}

int main(void)
{
	return settings_each(under, 20);
}
