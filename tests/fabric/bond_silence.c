/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Links of a bond that fall silent: what goes by them vanishes, and they do not end. They are found
 * out, at any packet of an exchange, and nothing is lost; those of a peer that is stopped, or slow,
 * stay. The time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"

#define DEAD    UINT64_C(800)
#define TICK    (DEAD / 16)
#define PACKETS 6 /* each way */
#define LAND    100

static uint64_t now;

static uint64_t tend(struct rig *r, int side)
{
	return bond_keepalive(r->link[side], now, DEAD);
}

static uint32_t length_of(uint64_t seed)
{
	return (uint32_t)(seed % 3 ? seed * 29 % 90 : LAND + seed);
}

struct exchange {
	struct rig r;
	uint64_t sent[SIDES], taken[SIDES];
	unsigned char place[SIDES][8192];
};

static void put(struct exchange *x, int side)
{
	uint64_t seed = x->sent[side] + 1;

	x->sent[side] += link_put(x->r.link[side], seed, length_of(seed), 0) == 1;
}

static bool take(struct exchange *x, int side)
{
	struct fabric_link *l = x->r.link[side];
	struct fabric_wr land = {.op = FABRIC_LAND, .into = x->place[side]};
	struct fabric_arrival a;
	int n = bond_fabric.poll(l, &a, 1);

	CHECK(n >= 0, "poll said %d (%s; %s)", n, l->violation ? l->violation : "sound",
	      l->lost ? l->lost : "not lost");
	if (n && !a.data && a.length) {
		CHECK(bond_fabric.post(l, &land) == 1, "not landed");
		return true;
	}
	if (!n)
		return false;
	link_check(&a, x->taken[side] + 1, length_of(x->taken[side] + 1));
	bond_fabric.release(l, &a);
	x->taken[side]++;
	return true;
}

#define LOOKS 9 /* by then a bond has looked at all its links */

static void look_around(struct exchange *x)
{
	for (int i = 0; i < LOOKS; i++)
		for (int side = 0; side < SIDES; side++)
			(void)take(x, side);
}

/* Both sides go on, and the time with them: how long until all has come, or LIMIT. */
static uint64_t go_on(struct exchange *x, uint64_t packets, uint64_t limit)
{
	uint64_t since = now;

	while ((x->taken[LEFT] < packets || x->taken[RIGHT] < packets) && now < since + limit) {
		for (int side = 0; side < SIDES; side++) {
			if (x->sent[side] < packets)
				put(x, side);
			(void)tend(&x->r, side);
		}
		look_around(x);
		now += TICK;
	}
	return now - since;
}

/* Over links of any kind what has been posted may take a moment. */
static void settle(struct exchange *x)
{
	int64_t until = actor_now_ms() + 20;

	do
		look_around(x);
	while (x->r.pair[0].domain[LEFT]->fd >= 0 && actor_now_ms() < until);
}

static void begin(struct exchange *x, const struct rig_shape *shape)
{
	memset(x, 0, sizeof(*x));
	rig_open(&x->r, fabric, shape);
}

/* ---- links that are silent ------------------------------------------------------------------- */

struct moment {
	int steps;     /* of the exchange before */
	int ways;      /* a bit for each side that is not heard any more */
	uint64_t keep; /* packets under way from it that are */
	int room;      /* that go into nothing before the link is full */
};

static void silence(struct exchange *x, int path, const struct moment *m)
{
	struct wire *w = &x->r.wire[path];

	for (int side = 0; side < SIDES; side++) {
		uint64_t on_way = lossy_under_way(w, side);

		if (m->ways >> side & 1)
			lossy_mute(w, side, m->keep < on_way ? m->keep : on_way, m->room);
	}
}

static void step(struct exchange *x, int i)
{
	int side = i % 2;

	if (i / 2 % 4 != 3 && x->sent[side] < PACKETS)
		put(x, side);
	else
		(void)take(x, side);
}

static void play(const struct rig_shape *shape, const struct moment *m)
{
	struct exchange x;
	uint64_t took;

	begin(&x, shape);
	for (int i = 0; i < m->steps; i++)
		step(&x, i);
	silence(&x, 0, m);
	took = go_on(&x, PACKETS, 10 * DEAD);
	CHECK(x.taken[LEFT] == PACKETS && x.taken[RIGHT] == PACKETS,
	      "after %d steps, silent %d, %llu kept: %llu and %llu packets came", m->steps, m->ways,
	      (unsigned long long)m->keep, (unsigned long long)x.taken[LEFT],
	      (unsigned long long)x.taken[RIGHT]);
	CHECK(took <= 3 * DEAD, "after %d steps, silent %d, %llu kept, room for %d: it took %llu",
	      m->steps, m->ways, (unsigned long long)m->keep, m->room, (unsigned long long)took);
	for (int side = 0; side < SIDES; side++)
		CHECK(bond_up(x.r.link[side]) >> 1 & 1, "the other link is lost, too");
	rig_quiet(&x.r);
	rig_close(&x.r);
}

static bool is_passed_over(void)
{
	static unsigned moment;
	struct fabric_caps caps;

	(void)fabric->probe(NULL, &caps);
	return moment++ % (caps.commit == FABRIC_COMMIT_STREAM ? 211 :
			   actor_slow() > 1                    ? 13 :
								 1) !=
	       0;
}

static void every_moment(const struct rig_shape *shape)
{
	struct moment m;

	for (m.steps = 0; m.steps < 24; m.steps++)
		for (m.ways = 1; m.ways < 4; m.ways++)
			for (m.keep = 0; m.keep < 4; m.keep++)
				for (m.room = 0; m.room < 200; m.room = 4 * m.room + 1)
					if (!is_passed_over())
						play(shape, &m);
}

static void silence_at_every_packet(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};

	(void)state;
	every_moment(&shape);
}

static void silence_of_what_is_landing(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, LAND, 2};

	(void)state;
	every_moment(&shape);
}

/* Two at once; and one, while the other's loss is being made up for. */
static void silence_of_two_links(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 3};
	const struct moment all = {.ways = 3, .room = 100};

	(void)state;
	for (uint64_t gap = 0; gap < 3 * DEAD; gap += TICK) {
		struct exchange x;

		if (is_passed_over())
			continue;
		begin(&x, &shape);
		(void)go_on(&x, PACKETS / 2, DEAD);
		silence(&x, 0, &all);
		(void)go_on(&x, PACKETS, gap);
		silence(&x, 1, &all);
		(void)go_on(&x, 2 * PACKETS, 10 * DEAD);
		assert_int_equal(x.taken[LEFT], 2 * PACKETS);
		assert_int_equal(x.taken[RIGHT], 2 * PACKETS);
		rig_close(&x.r);
	}
}

/* The packets have changed to another link, and what says so on the former one is lost. */
static void silence_while_links_change(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};

	(void)state;
	for (uint64_t keep = 0; keep < 3; keep++)
		for (int ways = 1; ways < 4; ways++)
			for (int both = 0; both < 2; both++) {
				const struct moment m = {.ways = ways, .keep = keep, .room = 100};
				struct exchange x;

				begin(&x, &shape);
				(void)go_on(&x, PACKETS / 2, DEAD);
				settle(&x);
				put(&x, LEFT);
				assert_int_equal(bond_use(x.r.link[LEFT], 1), 0);
				if (both)
					assert_int_equal(bond_use(x.r.link[RIGHT], 1), 0);
				put(&x, LEFT);
				silence(&x, 0, &m);
				(void)go_on(&x, PACKETS, 10 * DEAD);
				assert_int_equal(x.taken[LEFT], PACKETS);
				assert_int_equal(x.taken[RIGHT], PACKETS);
				rig_close(&x.r);
			}
}

/* ---- links that are not ---------------------------------------------------------------------- */

static void check_up(struct exchange *x)
{
	for (int side = 0; side < SIDES; side++)
		assert_int_equal(bond_up(x->r.link[side]), 3);
}

/* It answers nowhere, and goes on as if nothing had been. */
static void a_stopped_peer_loses_nothing(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};

	(void)state;
	for (int packets = 0; packets < 40; packets += 3) {
		struct exchange x;

		begin(&x, &shape);
		(void)go_on(&x, 2, DEAD);
		for (int stop = 0; stop < 3; stop++) {
			for (int i = 0; i < packets; i++)
				put(&x, LEFT);
			for (int i = 0; i < 200; i++, now += TICK) {
				(void)tend(&x.r, LEFT);
				(void)take(&x, LEFT);
			}
			check_up(&x);
			/* Awake for one look, and stopped again. */
			(void)take(&x, RIGHT);
			(void)tend(&x.r, RIGHT);
		}
		x.taken[LEFT] = x.sent[RIGHT];
		(void)go_on(&x, x.sent[LEFT], DEAD);
		assert_int_equal(x.taken[RIGHT], x.sent[LEFT]);
		check_up(&x);
		rig_close(&x.r);
	}
}

/* It looks now and then, and takes one packet, or the link is full all the time. */
static void a_slow_peer_loses_nothing(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};

	(void)state;
	for (uint64_t pause = TICK; pause < 20 * TICK; pause += 3 * TICK) {
		struct exchange x;
		uint64_t due = now;

		begin(&x, &shape);
		for (int i = 0; i < 2000; i++, now += TICK) {
			put(&x, LEFT);
			(void)tend(&x.r, LEFT);
			(void)take(&x, LEFT);
			if (now < due)
				continue;
			due = now + pause;
			(void)take(&x, RIGHT);
			(void)tend(&x.r, RIGHT);
		}
		assert_true(x.taken[RIGHT] > 90);
		check_up(&x);
		rig_close(&x.r);
	}
}

/* It has all that was sent, and does not give its place back: nothing fits, no question either. */
static void packets_held_lose_nothing(void **state)
{
	const struct rig_shape shape = {8, 64, 1 << 14, 0, 2};
	struct fabric_arrival held[8];
	struct exchange x;
	int count = 0;

	(void)state;
	begin(&x, &shape);
	while (link_put(x.r.link[LEFT], x.sent[LEFT] + 1, 8, 0) == 1)
		x.sent[LEFT]++;
	for (int i = 0; i < 400; i++, now += TICK) {
		if (count < 8)
			count += bond_fabric.poll(x.r.link[RIGHT], &held[count], 1) == 1;
		(void)bond_fabric.poll(x.r.link[RIGHT], &held[7], 0);
		for (int side = 0; side < SIDES; side++)
			(void)tend(&x.r, side);
		(void)take(&x, LEFT);
	}
	assert_int_equal(count, x.sent[LEFT]);
	check_up(&x);
	for (int i = 0; i < count; i++)
		bond_fabric.release(x.r.link[RIGHT], &held[i]);
	rig_close(&x.r);
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* A question or two, and then nobody has anything to do. */
static void who_owes_nothing_is_left_alone(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};
	struct exchange x;
	uint64_t posted = 0;

	(void)state;
	begin(&x, &shape);
	assert_true(tend(&x.r, LEFT) == UINT64_MAX);
	put(&x, LEFT);
	assert_true(tend(&x.r, LEFT) > now && tend(&x.r, LEFT) <= now + DEAD);
	(void)go_on(&x, PACKETS, DEAD);
	for (int i = 0; i < 40; i++, now += TICK) {
		for (int side = 0; side < SIDES; side++) {
			(void)tend(&x.r, side);
			settle(&x);
		}
		if (i == 20)
			for (int path = 0; path < 2; path++)
				posted +=
					x.r.wire[path].posted[LEFT] + x.r.wire[path].posted[RIGHT];
	}
	for (int side = 0; side < SIDES; side++)
		assert_true(tend(&x.r, side) == UINT64_MAX);
	for (int path = 0; path < 2; path++)
		posted -= x.r.wire[path].posted[LEFT] + x.r.wire[path].posted[RIGHT];
	assert_int_equal(posted, 0);
	assert_true(x.r.wire[0].posted[LEFT] + x.r.wire[1].posted[LEFT] <= PACKETS + 4 + 4);
	check_up(&x);
	rig_close(&x.r);
}

/* With one link there is nobody to tell a silent one from a stopped peer. */
static void the_last_link_is_not_given_up(void **state)
{
	const struct rig_shape one = {64, 64, 1 << 14, 0, 1}, two = {64, 64, 1 << 14, 0, 2};
	const struct moment all = {.ways = 3, .room = 100};

	(void)state;
	for (int paths = 1; paths < 3; paths++) {
		struct exchange x;

		begin(&x, paths == 1 ? &one : &two);
		for (int i = 0; i < paths; i++)
			silence(&x, i, &all);
		put(&x, LEFT);
		assert_true((tend(&x.r, LEFT) == UINT64_MAX) == (paths == 1));
		(void)go_on(&x, PACKETS, 10 * DEAD);
		assert_int_equal(x.taken[LEFT] + x.taken[RIGHT], 0);
		assert_int_equal(bond_up(x.r.link[LEFT]), (1 << paths) - 1);
		rig_close(&x.r);
	}
}

/* ---- one that stores, and one that is read seldom -------------------------------------------- */

#define FEW                                                                                        \
	9 /* polls in a tick: fewer in all than a path is left alone for beside one that stores */

static void begin_stored(struct exchange *x)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 1};
	int path;

	memset(x, 0, sizeof(*x));
	rig_open_stored(&x->r, fabric, &shape);
	path = rig_path(&x->r, fabric, &shape);
	rig_add(&x->r, path, LEFT);
	rig_add(&x->r, path, RIGHT);
}

/* The answer of the one in memory does not make the other's late. */
static void few_polls_make_none_silent(void **state)
{
	struct exchange x;

	(void)state;
	begin_stored(&x);
	(void)bond_use(x.r.link[LEFT], 1);
	put(&x, LEFT);
	for (int i = 0; i < 64; i++) {
		for (int side = 0; side < SIDES; side++)
			(void)tend(&x.r, side);
		for (int n = 0; n < FEW; n++)
			for (int side = 0; side < SIDES; side++)
				(void)take(&x, side);
		CHECK(bond_up(x.r.link[LEFT]) == 3 && bond_up(x.r.link[RIGHT]) == 3,
		      "a path is lost after %d ticks", i);
		now += TICK;
	}
	rig_close(&x.r);
}

/* What has been read of the other is known at once. */
static void a_change_is_seen_soon(void **state)
{
	struct exchange x;
	int n = 0;

	(void)state;
	begin_stored(&x);
	look_around(&x);
	(void)bond_use(x.r.link[LEFT], 1);
	(void)bond_use(x.r.link[RIGHT], 1);
	put(&x, LEFT);
	put(&x, RIGHT);
	while (x.taken[LEFT] < 1 || x.taken[RIGHT] < 1)
		look_around(&x);
	(void)bond_use(x.r.link[RIGHT], 0);
	put(&x, RIGHT);
	while (x.taken[LEFT] < 2)
		(void)take(&x, LEFT);
	for (int i = 0; i < 3; i++)
		(void)take(&x, LEFT);
	while (!bond_is_read_next(x.r.link[RIGHT]) && n++ < 100)
		(void)take(&x, RIGHT);
	CHECK(n < 100, "not known after %d polls", n);
	rig_close(&x.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(silence_at_every_packet),
		FABRIC_TEST(silence_of_what_is_landing),
		FABRIC_TEST(silence_of_two_links),
		FABRIC_TEST(silence_while_links_change),
		FABRIC_TEST(a_stopped_peer_loses_nothing),
		FABRIC_TEST(a_slow_peer_loses_nothing),
		FABRIC_TEST(packets_held_lose_nothing),
		FABRIC_TEST(who_owes_nothing_is_left_alone),
		FABRIC_TEST(the_last_link_is_not_given_up),
		FABRIC_TEST(few_polls_make_none_silent),
		FABRIC_TEST(a_change_is_seen_soon),
	};

	return FABRIC_SUITE(tests);
}
