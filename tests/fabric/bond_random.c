/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* A bond against a model of it, at random: both ends post, build, take, hold and release, sleep,
 * change links; links join and are lost. Each packet comes exactly once and in order. What some
 * links take lies in the other end's memory: those are lost only before they have joined there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"

#define HELD  5
#define STEPS 1500

struct side {
	uint64_t sent, taken; /* packets, numbered from 1 */
	struct fabric_arrival held[HELD];
	uint64_t seeds[HELD];
	int count;
	bool landing, armed;
	uint32_t words; /* that room is held back for; it is there since something was posted: */
	bool room;
	uint32_t path; /* by this one */
	unsigned char *place;
	int known[BOND_PATHS];
};

struct life {
	struct rig r;
	struct rig_shape shape;
	struct rng g;
	uint32_t most;   /* bytes of a packet */
	uint32_t stores; /* links, a bit each */
	struct side side[SIDES];
};

/* Both ends know how long the packet is. */
static uint32_t length_of(const struct life *x, uint64_t seed)
{
	struct rng g = {seed * 77};

	return rng_one_in(&g, 3) ? rng_below(&g, x->most + 1) : rng_below(&g, 40);
}

static void release(struct life *x, int side, int i);
static bool take(struct life *x, int side);

static void wake(struct life *x, int side)
{
	if (x->side[side].armed)
		rig_arm(&x->r, side, false);
	x->side[side].armed = false;
}

/* All that was sent to SIDE is there, without another call of its peer's. */
static void see_at_once(struct life *x, int side)
{
	struct side *s = &x->side[side];

	wake(x, side);
	for (int i = 0; i < 100000 && s->taken < x->side[!side].sent; i++) {
		while (s->count)
			release(x, side, 0);
		(void)take(x, side);
	}
	CHECK(s->taken == x->side[!side].sent, "packet %llu is not seen at once",
	      (unsigned long long)s->taken + 1);
}

static uint16_t choose_flags(struct life *x)
{
	uint16_t flags = rng_one_in(&x->g, 3) ? FABRIC_MORE : 0;

	if (rng_one_in(&x->g, 10))
		flags |= (uint16_t)FABRIC_BY(rng_below(&x->g, BOND_PATHS));
	if (flags & FABRIC_BY_MASK && rng_one_in(&x->g, 2))
		flags |= FABRIC_ONLY;
	return flags;
}

static void hold_back(struct life *x, int side, uint32_t words)
{
	struct fabric_wr wr = {.op = FABRIC_HOLD_BACK, .length = words};
	int rc = bond_fabric.post(x->r.link[side], &wr);

	CHECK(rc == 1 || rc == -EINVAL, "held back: %d", rc);
	if (rc != 1)
		return;
	x->side[side].room &= words < x->side[side].words;
	x->side[side].words = words;
}

/* Room is held back for what comes next, a word that is read next if it is taken. */
static bool awaits_word(const struct life *x, int side)
{
	const struct side *s = &x->side[side];

	return s->words && length_of(x, s->sent + 1) <= FABRIC_WORD_MAX && x->stores & 1 &&
	       bond_is_read_next(x->r.link[side]);
}

static int put_next(struct life *x, int side, uint16_t flags)
{
	uint64_t seed = x->side[side].sent + 1;
	int rc = link_put(x->r.link[side], seed, length_of(x, seed), flags);

	x->side[side].sent += rc == 1;
	return rc;
}

/* By room held back: where it is read next it is taken, and seen at once. */
static void post_word(struct life *x, int side)
{
	struct side *s = &x->side[side];

	if (!awaits_word(x, side) || !s->room || s->path != bond_path(x->r.link[side]))
		return;
	hold_back(x, side, s->words - 1);
	CHECK(put_next(x, side, 0) == 1, "no room for a word");
	if (fabric->alloc)
		see_at_once(x, !side);
}

/* Beside what room is held back for: where it is read next, it is seen at once, if it is taken. */
static void post_beside(struct life *x, int side)
{
	struct side *s = &x->side[side];
	struct fabric_link *l = x->r.link[side];
	int rc;

	if (!awaits_word(x, side))
		return;
	rc = put_next(x, side, FABRIC_ONLY);
	CHECK(rc == 1 || rc == -EAGAIN || (rc == -EPIPE && !bond_up(l)), "post said %d", rc);
	if (rc != 1)
		return;
	s->room = true;
	s->path = bond_path(l);
	if (fabric->alloc)
		see_at_once(x, !side);
}

static void post(struct life *x, int side)
{
	struct side *s = &x->side[side];
	struct fabric_link *l = x->r.link[side];
	uint64_t seed = s->sent + 1;
	uint32_t length = length_of(x, seed);
	uint16_t flags = 0;
	int rc;

	if (rng_one_in(&x->g, 4)) {
		struct fabric_wr wr = {.op = FABRIC_SEND,
				       .kind = (uint8_t)(seed % 249 + 1),
				       .flags = FABRIC_BUILT,
				       .length = length,
				       .head = {seed, ~seed, seed << 40 | length}};
		unsigned char *at = bond_fabric.reserve(l, length);

		if (!at)
			return;
		actor_fill(at, seed, length);
		if (rng_one_in(&x->g, 5)) {
			wr = (struct fabric_wr){.op = FABRIC_FLUSH};
			(void)bond_fabric.post(l, &wr);
			return;
		}
		rc = bond_fabric.post(l, &wr);
		rc = rc ? rc : 1;
	} else {
		flags = choose_flags(x);
		rc = link_put(l, seed, length, flags);
	}
	CHECK(rc == 1 || rc == -EAGAIN || (rc == -ENOLINK && flags & FABRIC_ONLY) ||
		      (rc == -EPIPE && !bond_up(l)),
	      "post said %d (%s)", rc, l->violation ? l->violation : "sound");
	s->sent += rc == 1;
	if (rc == 1 && bond_is_read_next(l)) {
		s->room = true;
		s->path = bond_path(l);
	}
}

static void release(struct life *x, int side, int i)
{
	struct side *s = &x->side[side];

	link_check(&s->held[i], s->seeds[i], length_of(x, s->seeds[i]));
	bond_fabric.release(x->r.link[side], &s->held[i]);
	s->held[i] = s->held[--s->count];
	s->seeds[i] = s->seeds[s->count];
}

static void land(struct life *x, int side)
{
	struct fabric_wr wr = {.op = FABRIC_LAND,
			       .into = rng_one_in(&x->g, 2) ? x->side[side].place : NULL};

	x->side[side].landing = true;
	CHECK(bond_fabric.post(x->r.link[side], &wr) == 1, "not landed");
}

/* Up to all that may be held. True: something came. */
static bool take(struct life *x, int side)
{
	struct side *s = &x->side[side];
	struct fabric_arrival a[HELD];
	int n = bond_fabric.poll(x->r.link[side], a,
				 (int)rng_below(&x->g, (uint32_t)(HELD - s->count) + 1));

	CHECK(n >= 0 || (n == -EPIPE && !bond_up(x->r.link[side])), "poll said %d (%s)", n,
	      x->r.link[side]->violation ? x->r.link[side]->violation : "sound");
	for (int i = 0; i < n; i++) {
		uint64_t seed = s->taken + 1;

		if (!a[i].data && a[i].length) {
			CHECK(i == n - 1 && !s->landing, "without data, and not the last");
			land(x, side);
			continue;
		}
		s->landing = false;
		link_check(&a[i], seed, length_of(x, seed));
		s->taken++;
		if (a[i].data == s->place) { /* which the next one wants */
			bond_fabric.release(x->r.link[side], &a[i]);
			continue;
		}
		s->held[s->count] = a[i];
		s->seeds[s->count++] = seed;
	}
	if (s->landing && rng_one_in(&x->g, 3))
		land(x, side); /* elsewhere after all */
	return n > 0;
}

static int live_paths(const struct life *x)
{
	int n = 0;

	for (int i = 0; i < x->r.paths; i++)
		n += !x->r.wire[i].dead && x->side[LEFT].known[i] && x->side[RIGHT].known[i];
	return n;
}

/* It is not to be had at the end that has not joined it; that the other one is told. */
static void reject(struct life *x, int path)
{
	for (int side = 0; side < SIDES; side++) {
		if (x->side[side].known[path])
			continue;
		bond_reject(x->r.link[side], (uint32_t)path);
		x->side[side].known[path] = x->side[!side].known[path] = true;
		x->r.wire[path].dead = true;
		return;
	}
}

static void add(struct life *x, int path, int side)
{
	if (x->r.wire[path].dead) /* which takes nothing more, that neither */
		hold_back(x, side, 0);
	(x->stores >> path & 1 ? rig_add_stored : rig_add)(&x->r, path, side);
}

static void cut_one(struct life *x)
{
	int path = (int)rng_below(&x->g, (uint32_t)x->r.paths);
	struct wire *w = &x->r.wire[path];
	uint64_t keep[SIDES];
	int deaf[SIDES];

	if (w->dead || live_paths(x) < 2)
		return;
	if (x->stores >> path & 1) {
		reject(x, path);
		return;
	}
	for (int side = 0; side < SIDES; side++) {
		keep[side] = lossy_under_way(w, side);
		keep[side] -= rng_below(&x->g, (uint32_t)keep[side] + 1);
		deaf[side] = (int)(rng_one_in(&x->g, 2) ? 0 : rng_below(&x->g, 40));
	}
	lossy_cut(w, keep, deaf);
}

static void join_one(struct life *x, int side)
{
	int path = (int)rng_below(&x->g, BOND_PATHS);

	/* One end joins it now, the other whenever it comes to it. */
	if (path >= x->r.paths)
		path = rig_path(&x->r, fabric, &x->shape);
	if (!x->side[side].known[path])
		add(x, path, side);
	x->side[side].known[path] = true;
}

static void step(struct life *x)
{
	int side = (int)rng_below(&x->g, 2);
	struct side *s = &x->side[side];

	wake(x, side);
	switch (rng_below(&x->g, 40)) {
	case 0: (void)bond_use(x->r.link[side], rng_below(&x->g, BOND_PATHS)); break;
	case 1: rng_one_in(&x->g, 4) ? cut_one(x) : join_one(x, side); break;
	case 2:
		rig_arm(&x->r, side, true);
		s->armed = true;
		break;
	case 3: {
		struct fabric_wr flush = {.op = FABRIC_FLUSH};

		(void)bond_fabric.post(x->r.link[side], &flush);
		break;
	}
	case 4:
	case 5: hold_back(x, side, rng_below(&x->g, 4)); break;
	case 6:
	case 7: post_word(x, side); break;
	case 8: post_beside(x, side); break;
	default:
		if (rng_one_in(&x->g, 2))
			post(x, side);
		else if (s->count && rng_one_in(&x->g, 2))
			release(x, side, (int)rng_below(&x->g, (uint32_t)s->count));
		else
			(void)take(x, side);
	}
}

/* The links that live bring everything that was taken. */
static void settle(struct life *x)
{
	int64_t end = actor_now_ms() + PATIENCE;
	bool left = true;

	for (int path = 0; path < x->r.paths; path++)
		for (int side = 0; side < SIDES; side++)
			if (!x->side[side].known[path])
				add(x, path, side);
	while (left && actor_now_ms() < end) {
		left = false;
		for (int side = 0; side < SIDES; side++) {
			while (x->side[side].count)
				release(x, side, 0);
			(void)take(x, side);
			left |= x->side[side].taken < x->side[!side].sent;
		}
	}
	for (int side = 0; side < SIDES; side++)
		CHECK(x->side[!side].taken == x->side[side].sent,
		      "%llu packets were taken, %llu came", (unsigned long long)x->side[side].sent,
		      (unsigned long long)x->side[!side].taken);
	for (int side = 0; side < SIDES; side++)
		while (x->side[side].count)
			release(x, side, 0);
}

static uint64_t live(uint64_t seed)
{
	struct life x = {.g = {seed}};
	uint64_t total;

	x.shape = (struct rig_shape){
		.segments = 32u << rng_below(&x.g, 4),
		.segment_size = 64u << rng_below(&x.g, 3),
		.log = UINT64_C(2048) << rng_below(&x.g, 8),
		.land_min = rng_one_in(&x.g, 2) ? 0 : 200 + rng_below(&x.g, 400),
		.paths = 1 + (int)rng_below(&x.g, 3),
	};
	x.stores = rng_one_in(&x.g, 2) ? 0 : rng_below(&x.g, 1 << BOND_PATHS);
	for (int i = 1; i < x.shape.paths; i++)
		x.stores &= ~(1u << i); /* the rig's own */
	(x.stores & 1 ? rig_open_stored : rig_open)(&x.r, fabric, &x.shape);
	x.most = x.r.link[LEFT]->payload_max;
	for (int side = 0; side < SIDES; side++) {
		x.side[side].place = malloc(x.most + 1);
		for (int i = 0; i < x.shape.paths; i++)
			x.side[side].known[i] = true;
	}
	for (int i = 0; i < STEPS; i++)
		step(&x);
	settle(&x);
	total = x.side[LEFT].sent + x.side[RIGHT].sent;
	for (int side = 0; side < SIDES; side++)
		free(x.side[side].place);
	rig_close(&x.r);
	return total;
}

static void lives_at_random(void **state)
{
	const char *text = getenv("SLMPM_TEST_MS");
	int64_t end = actor_now_ms() + (text ? atoll(text) : 800);
	struct rng g = {rng_run_seed((uint64_t)actor_now_ms())};
	uint64_t packets = 0, incarnations = 0;

	(void)state;
	if (getenv("SLMPM_TEST_SEED")) {
		(void)live(g.state);
		return;
	}
	while (actor_now_ms() < end) {
		uint64_t seed = rng_next(&g);

		if (getenv("SLMPM_TEST_TRACE"))
			printf("a life of seed %#llx\n", (unsigned long long)seed);
		fflush(stdout);
		packets += live(seed);
		incarnations++;
	}
	printf("%llu lives, %llu packets\n", (unsigned long long)incarnations,
	       (unsigned long long)packets);
	assert_true(packets > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(lives_at_random),
	};

	return FABRIC_SUITE(tests);
}
