/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 90 */
/*
 * Changes of mirrored memory: every way of making them, what becomes one, both sides at once,
 * parts, several peers. Both ends in one context, under many settings.
 */
#include <string.h>

#include "tests/lib/mirror_ends.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

/* ---- one way --------------------------------------------------------------------------------- */

static void functions(void)
{
	unsigned char model[200];

	ends_mirror(NULL, 0);
	ends_same("what was there");
	OK(slmpm_mirror_store8(ends.leader, ends.leads + 3, 0xab));
	OK(slmpm_mirror_store16(ends.leader, ends.leads + 10, 0xcdef));
	OK(slmpm_mirror_store16(ends.leader, ends.leads + 21, 0x1234));
	OK(slmpm_mirror_store32(ends.leader, ends.leads + 36, 0xdeadbeef));
	OK(slmpm_mirror_store32(ends.leader, ends.leads + 41, 0x01020304));
	OK(slmpm_mirror_store64(ends.leader, ends.leads + 64, UINT64_C(0x0123456789abcdef)));
	OK(slmpm_mirror_store64(ends.leader, ends.leads + 83, UINT64_C(0xfedcba9876543210)));
	ends_same("stores");
	CHECK(ends.follows[3] == 0xab &&
		      *(uint64_t *)(void *)(ends.follows + 64) == 0x0123456789abcdef,
	      "values");
	actor_fill(model, 5, sizeof(model));
	OK(slmpm_mirror_copy(ends.leader, ends.leads + 1001, model, sizeof(model)));
	OK(slmpm_mirror_set(ends.leader, ends.leads + 2000, 0x5a, 333));
	ends_same("copy and set");
	CHECK(!memcmp(ends.follows + 1001, model, sizeof(model)) && ends.follows[2332] == 0x5a,
	      "copied");
	for (int shift = -20; shift <= 20; shift++) {
		memcpy(model, ends.leads + 1001, sizeof(model));
		OK(slmpm_mirror_move(ends.leader, ends.leads + 1001 + shift, ends.leads + 1001,
				     sizeof(model)));
		CHECK(!memcmp(ends.leads + 1001 + shift, model, sizeof(model)), "moved by %d",
		      shift);
	}
	ends_same("move");
	ends.leads[5000] = 1;
	memset(ends.leads + 6000, 2, 77);
	OK(slmpm_mirror_changed(ends.leader, ends.leads + 5000, 1));
	OK(slmpm_mirror_changed(ends.leader, ends.leads + 6000, 77));
	ends_same("what the application changed");
	OK(slmpm_mirror_store8(ends.leader, ends.leads, 1));
	OK(slmpm_mirror_store8(ends.leader, ends.leads + ends.bytes - 1, 1));
	ends_same("both ends");
	ends_unmirror();
}

/* Many changes of one place before progress are one; those of many places share packets. */
static void coalescing(void)
{
	struct slmpm_mirror_info before, behind;

	ends_mirror(NULL, 0);
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	before = ends_info(ends.leader, ends.near);
	for (uint64_t i = 1; i <= 1000; i++)
		OK(slmpm_mirror_store64(ends.leader, ends.leads + 800, i));
	EXPECT(ends_info(ends.leader, ends.near).waiting, 8);
	ends_same("one place");
	behind = ends_info(ends.leader, ends.near);
	EXPECT(behind.sent_packets - before.sent_packets, 1);
	EXPECT(behind.sent_bytes - before.sent_bytes, 8);
	EXPECT(behind.sent - before.sent, 1);
	CHECK(*(uint64_t *)(void *)(ends.follows + 800) == 1000, "the last value");
	for (uint64_t i = 0; i < 64; i++)
		OK(slmpm_mirror_store64(ends.leader, ends.leads + 16 * i, i));
	ends_same("many places");
	before = ends_info(ends.leader, ends.near);
	EXPECT(before.sent_bytes - behind.sent_bytes, 64 * 8);
	CHECK(before.sent_packets - behind.sent_packets <= 16, "%d packets",
	      (int)(before.sent_packets - behind.sent_packets));
	for (uint64_t i = 0; i < ends.bytes / 8; i++)
		OK(slmpm_mirror_store64(ends.leader, ends.leads + 8 * i, i));
	EXPECT(ends_info(ends.leader, ends.near).waiting, ends.bytes);
	ends_same("all of it");
	ends_unmirror();
}

static void any_changes(unsigned char *memory, slmpm_mirror m, struct rng *g, int n)
{
	unsigned char some[3000];

	for (int i = 0; i < n; i++) {
		uint32_t len = 1 + rng_below(g, rng_one_in(g, 8) ? sizeof(some) : 24);
		uint32_t at = rng_below(g, (uint32_t)(ends.bytes - len));

		actor_fill(some, rng_next(g), len);
		OK(slmpm_mirror_copy(m, memory + at, some, len));
		if (rng_one_in(g, 40))
			(void)slmpm_progress(ends.ctx);
	}
}

static void any_order(void)
{
	struct rng g = {3};

	ends_mirror(NULL, 0);
	for (int round = 0; round < 10; round++) {
		any_changes(ends.leads, ends.leader, &g, 200);
		ends_same("random changes");
	}
	ends_unmirror();
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* Each side writes the same words without looking: in the end both have the same. */
static void both_at_once(void)
{
	struct rng g = {11};
	const uint64_t words = 24;

	ends_mirror(NULL, BOTH);
	for (int round = 0; round < 300; round++) {
		for (uint32_t i = rng_below(&g, 9); i; i--)
			OK(slmpm_mirror_store64(ends.leader, ends.leads + 8 * rng_below(&g, words),
						rng_next(&g)));
		if (rng_one_in(&g, 2))
			OK(slmpm_mirror_flush(ends.leader, PATIENCE));
		for (uint32_t i = rng_below(&g, 9); i; i--) {
			uint32_t at = rng_below(&g, 8 * words - 8);

			OK(slmpm_mirror_store64(ends.follower, ends.follows + at, rng_next(&g)));
		}
		if (rng_one_in(&g, 2))
			OK(slmpm_mirror_flush(ends.follower, PATIENCE));
		if (rng_one_in(&g, 3))
			(void)slmpm_progress(ends.ctx);
		if (round % 10 == 9) {
			ends_settle_both();
			ends_same("both wrote");
		}
	}
	any_changes(ends.leads, ends.leader, &g, 300);
	any_changes(ends.follows, ends.follower, &g, 300);
	any_changes(ends.leads, ends.leader, &g, 300);
	ends_settle_both();
	ends_same("both wrote everywhere");
	ends_unmirror();
}

/* A follower whose changes do not count is not heard, and has the leader's bytes again only where
 * these change. */
static void one_way_only(void)
{
	ends_mirror(NULL, 0);
	ends_same("filled");
	OK(slmpm_mirror_store64(ends.follower, ends.follows + 8, 1));
	OK(slmpm_mirror_flush(ends.follower, PATIENCE));
	EXPECT(ends_info(ends.follower, ends.far).sent_packets, 0);
	OK(slmpm_mirror_store64(ends.leader, ends.leads + 8, 2));
	ends_same("the leader's");
	ends_unmirror();
}

/* ---- spans, several peers -------------------------------------------------------------------- */

static void parts(void)
{
	const struct slmpm_span spans[] = {{8, 16}, {100, 1}, {4096, 5000}};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .spans = spans, .span_count = 3};

	ends_mirror(&o, BOTH);
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	for (size_t i = 0; i < ends.bytes; i++) {
		bool in = (i >= 8 && i < 24) || i == 100 || (i >= 4096 && i < 9096);

		CHECK(ends.follows[i] == (in ? ends.leads[i] : 0), "byte %zu", i);
	}
	OK(slmpm_mirror_set(ends.leader, ends.leads, 0x77, ends.bytes));
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	CHECK(ends.follows[7] == 0 && ends.follows[8] == 0x77 && ends.follows[24] == 0 &&
		      ends.follows[9095] == 0x77 && ends.follows[9096] == 0,
	      "changes in parts");
	EXPECT(ends_info(ends.leader, ends.near).sent_bytes, 2 * (16 + 1 + 5000));
	ends_unmirror();
}

/* A leader of two followers, one of which leads a third; changes of each reach all. */
static void several(void)
{
	unsigned char *memory[4];
	slmpm_mirror m[4];
	slmpm_peer to[4], back[4];
	struct rng g = {5};

	for (int i = 0; i < 4; i++) {
		memory[i] = (unsigned char *)ends.room[i];
		actor_fill(memory[i], (uint64_t)i, ends.bytes);
		m[i] = ends_new(memory[i], ends.bytes, NULL);
		if (i)
			actor_pair(ends.ctx, &to[i], &back[i]);
	}
	ends_join(m[0], to[1], m[1], back[1], 1, BOTH);
	ends_join(m[0], to[2], m[2], back[2], 1, BOTH);
	ends_join(m[1], to[3], m[3], back[3], 9, BOTH);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			any_changes(memory[i], m[i], &g, 20);
		for (int i = 0; i < 12; i++) {
			OK(slmpm_mirror_flush(m[i % 4], PATIENCE));
			for (int k = 0; k < 30; k++)
				(void)slmpm_progress(ends.ctx);
		}
		for (int turn = 0; turn < 3; turn++)
			for (int i = 1; i < 4; i++) {
				int up = i == 3 ? 1 : 0;

				ends_settle(m[i], back[i], m[up], to[i]);
				ends_settle(m[up], to[i], m[i], back[i]);
			}
		for (int i = 1; i < 4; i++)
			CHECK(!memcmp(memory[i], memory[0], ends.bytes), "mirror %d, round %d", i,
			      round);
	}
	for (int i = 0; i < 4; i++)
		OK(slmpm_mirror_destroy(m[i]));
	for (int i = 1; i < 4; i++) {
		OK(slmpm_close(to[i], PATIENCE));
		OK(slmpm_close(back[i], PATIENCE));
	}
}

static int under(const struct setting *s)
{
	ends_open(s);
	functions();
	coalescing();
	any_order();
	both_at_once();
	one_way_only();
	parts();
	several();
	return ends_close();
}

int main(void)
{
	return settings_each(under, 20);
}
