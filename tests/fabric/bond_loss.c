/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Links of a bond are lost: at every packet of a short exchange, with each number of packets lost
 * on the way, whoever notices first; a second one while the first is being made up for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"

#define PACKETS 6 /* each way */
#define LAND    100

struct exchange {
	struct rig r;
	uint64_t sent[SIDES], taken[SIDES];
	unsigned char place[SIDES][8192]; /* that arrivals are landed at */
	bool landing[SIDES];
};

static uint32_t length_of(uint64_t seed)
{
	return (uint32_t)(seed % 3 ? seed * 29 % 90 : LAND + seed);
}

static void begin(struct exchange *x, const struct rig_shape *shape)
{
	memset(x, 0, sizeof(*x));
	rig_open(&x->r, fabric, shape);
}

/* SIDE posts its next packet, if it may. */
static bool put(struct exchange *x, int side)
{
	uint64_t seed = x->sent[side] + 1;
	int rc = link_put(x->r.link[side], seed, length_of(seed), 0);

	CHECK(rc == 1 || rc == -EAGAIN, "post said %d", rc);
	x->sent[side] += rc == 1;
	return rc == 1;
}

/* SIDE takes one, where one has come. */
static bool take(struct exchange *x, int side)
{
	struct fabric_link *l = x->r.link[side];
	uint64_t seed = x->taken[side] + 1;
	struct fabric_arrival a;
	int n = bond_fabric.poll(l, &a, 1);

	CHECK(n >= 0, "poll said %d (%s; %s)", n, l->violation ? l->violation : "sound",
	      l->lost ? l->lost : "not lost");
	if (!n)
		return false;
	if (!a.data && a.length) { /* every other one to a place of ours */
		struct fabric_wr land = {.op = FABRIC_LAND,
					 .into = seed % 2 ? x->place[side] : NULL};

		CHECK(!x->landing[side], "handed out without data twice");
		x->landing[side] = true;
		CHECK(bond_fabric.post(l, &land) == 1, "not landed");
		return true;
	}
	if (x->landing[side] && seed % 2)
		CHECK(a.data == x->place[side], "landed elsewhere");
	x->landing[side] = false;
	link_check(&a, seed, length_of(seed));
	bond_fabric.release(l, &a);
	x->taken[side]++;
	return true;
}

static void finish(struct exchange *x)
{
	int64_t end = actor_now_ms() + PATIENCE;

	while (actor_now_ms() < end) {
		bool done = true;

		for (int side = 0; side < SIDES; side++) {
			if (x->sent[side] < PACKETS)
				put(x, side);
			take(x, side);
			done &= x->taken[side] == PACKETS;
		}
		if (done)
			break;
	}
	for (int side = 0; side < SIDES; side++)
		CHECK(x->taken[side] == PACKETS, "of %d packets %llu came", PACKETS,
		      (unsigned long long)x->taken[side]);
	rig_quiet(&x->r);
	rig_close(&x->r);
}

struct moment {
	int steps;     /* of the exchange before the cut */
	uint64_t drop; /* packets of each side that are lost on the way */
	int deaf[SIDES];
	int second; /* steps from there to the next cut, of the path in use then; -1: none */
};

static void cut(struct exchange *x, int path, const struct moment *m)
{
	struct wire *w = &x->r.wire[path];
	uint64_t keep[SIDES];

	for (int side = 0; side < SIDES; side++) {
		keep[side] = lossy_under_way(w, side);
		keep[side] -= m->drop < keep[side] ? m->drop : keep[side];
	}
	lossy_cut(w, keep, m->deaf);
}

/* Three packets of each side before the first is taken, and so on: several are under way. */
static void step(struct exchange *x, int i)
{
	int side = i % 2;

	if (i / 2 % 4 != 3 && x->sent[side] < PACKETS)
		put(x, side);
	else
		take(x, side);
}

static void play(const struct rig_shape *shape, const struct moment *m)
{
	struct exchange x;
	int i = 0;

	begin(&x, shape);
	for (; i < m->steps; i++)
		step(&x, i);
	cut(&x, 0, m);
	if (m->second >= 0) {
		for (int k = 0; k < m->second; k++)
			step(&x, i++);
		cut(&x, 1, m);
	}
	finish(&x);
}

/* Of so many moments one: links of some fabrics take longer to make. */
static bool is_passed_over(unsigned of)
{
	static unsigned moment;
	struct fabric_caps caps;

	(void)fabric->probe(NULL, &caps);
	of *= actor_slow() > 1 ? 13 : 1;
	return moment++ % (caps.commit == FABRIC_COMMIT_STREAM ? 1201 : of);
}

static void every_moment(const struct rig_shape *shape, int second_max)
{
	struct moment m;

	for (m.steps = 0; m.steps < 24; m.steps++)
		for (m.drop = 0; m.drop <= 4; m.drop++)
			for (int ears = 0; ears < 9; ears++)
				for (m.second = -1; m.second < second_max; m.second++) {
					m.deaf[LEFT] = ears % 3 * 3;
					m.deaf[RIGHT] = ears / 3 * 3;
					if (!is_passed_over(second_max ? 4 : 1))
						play(shape, &m);
				}
}

static void loss_at_every_packet(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};

	(void)state;
	every_moment(&shape, 0);
}

static void loss_of_what_is_landing(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, LAND, 2};

	(void)state;
	every_moment(&shape, 0);
}

static void second_loss_at_every_packet(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, LAND, 3};

	(void)state;
	every_moment(&shape, 8);
}

/* The links change, and the one left or the one taken is lost at each moment of that. */
static void loss_while_links_change(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, LAND, 3};

	(void)state;
	for (int from = 0; from < 12; from++)
		for (int gap = 0; gap < 8; gap++)
			for (int which = 0; which < 4; which++)
				for (uint64_t drop = 0; drop < 4; drop++) {
					struct moment m = {.drop = drop,
							   .deaf = {which % 2 * 2, drop % 2 * 3}};
					struct exchange x;
					int i = 0;

					if (is_passed_over(1))
						continue;
					begin(&x, &shape);
					for (; i < from; i++)
						step(&x, i);
					assert_int_equal(bond_use(x.r.link[LEFT], 1), 0);
					for (; i < from + gap; i++)
						step(&x, i);
					cut(&x, which / 2, &m);
					finish(&x);
				}
}

/* ---- what a loss brings besides -------------------------------------------------------------- */

static void without_links_reasons_are_told(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};
	struct fabric_arrival a;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	assert_int_equal(link_put(r.link[RIGHT], 1, 8, 0), 1);
	assert_int_equal(link_put(r.link[RIGHT], 2, 8, 0), 1);
	rig_cut(&r, 1, true);
	rig_cut(&r, 0, false);
	for (int i = 0; i < 20; i++)
		(void)link_put(r.link[LEFT], 1, 8, 0);
	/* What had come before is handed out all the same, and then it is over. */
	link_take(r.link[LEFT], 1, 8);
	link_take(r.link[LEFT], 2, 8);
	for (int i = 0; i < 20 && !r.link[LEFT]->lost; i++)
		(void)bond_fabric.poll(r.link[LEFT], &a, 1);
	assert_int_equal(bond_fabric.poll(r.link[LEFT], &a, 1), -EPIPE);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), -EPIPE);
	assert_null(bond_fabric.reserve(r.link[LEFT], 8));
	assert_string_equal(r.link[LEFT]->lost,
			    "link 0: its wire was cut; link 1: its wire was cut");
	assert_int_equal(bond_up(r.link[LEFT]), 0);
	assert_int_equal(bond_state(r.link[LEFT], 1), PATH_LOST);
	assert_int_equal(bond_state(r.link[LEFT], 2), PATH_NONE);
	rig_close(&r);
}

/* Acknowledgements that are lost with their link do not leave the log full. */
static void lost_acknowledgements_are_made_up_for(void **state)
{
	const struct rig_shape shape = {1024, 64, 4096, 0, 3};
	uint64_t sent = 1, taken = 1;
	struct rig r;

	(void)state;
	for (int packets = 1; packets < 70; packets++) {
		const int deaf[SIDES] = {packets % 3 * 400, packets % 5 * 300};

		if (packets > 3 && packets != 30 && is_passed_over(1))
			continue;
		rig_open(&r, fabric, &shape);
		sent = taken = 1;
		assert_int_equal(bond_use(r.link[RIGHT], 1), 0); /* they come by another link */
		for (; taken < (uint64_t)packets; taken++) {
			while (link_put(r.link[LEFT], sent, 1000, 0) == 1)
				sent++;
			rig_take(&r, RIGHT, taken, 1000);
		}
		lossy_cut(&r.wire[1], (uint64_t[SIDES]){0, 0}, deaf);
		for (int64_t end = actor_now_ms() + PATIENCE; taken < 200;) {
			struct fabric_wr flush = {.op = FABRIC_FLUSH}; /* and listens */
			struct fabric_arrival a;

			while (link_put(r.link[LEFT], sent, 1000, 0) == 1)
				sent++;
			(void)bond_fabric.post(r.link[LEFT], &flush);
			CHECK(actor_now_ms() < end, "the log stays full behind packet %llu",
			      (unsigned long long)taken);
			if (bond_fabric.poll(r.link[RIGHT], &a, 1) != 1)
				continue;
			link_check(&a, taken++, 1000);
			bond_fabric.release(r.link[RIGHT], &a);
		}
		rig_close(&r);
	}
}

/* Where a path's peer breaks the rules, the bond ends: nothing moves over. */
static void violation_never_moves_over(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};
	struct fabric_wr odd = {.op = FABRIC_SEND, .kind = 250, .head = {1}};
	struct fabric_arrival a;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	assert_int_equal(fabric->post(r.pair[1].link[RIGHT], &odd), 1);
	r.wire[1].posted[RIGHT]++;
	for (int i = 0; i < 20 && !r.link[LEFT]->violation; i++)
		(void)bond_fabric.poll(r.link[LEFT], &a, 1);
	assert_int_equal(bond_fabric.poll(r.link[LEFT], &a, 1), -EPROTO);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), -EPROTO);
	assert_null(bond_fabric.reserve(r.link[LEFT], 8));
	assert_string_equal(r.link[LEFT]->violation, "acknowledgement in a bond");
	rig_close(&r);
}

#define REFUSALS 12

static void scan(struct rig *r, int side)
{
	struct fabric_arrival a;

	for (int i = 0; i < 20; i++)
		assert_int_equal(bond_fabric.poll(r->link[side], &a, 1), 0);
}

/* Links that the other side refuses, while none stands, cost no resumption. */
static void refused_while_all_are_lost(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 2};
	struct rig r;
	int path;

	(void)state;
	rig_open(&r, fabric, &shape);
	for (int side = 0; side < SIDES; side++)
		bond_may_reconnect(r.link[side], true);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), 1);
	for (int i = 0; i < 2; i++)
		rig_cut(&r, i, true);
	for (int side = 0; side < SIDES; side++)
		scan(&r, side);
	path = rig_path(&r, fabric, &shape);
	for (uint32_t life = 0; life < REFUSALS; life++) {
		assert_int_equal(bond_expect(r.link[RIGHT], (uint32_t)path, life), 0);
		bond_reject(r.link[RIGHT], (uint32_t)path);
		scan(&r, RIGHT);
	}
	for (int side = 0; side < SIDES; side++) {
		assert_int_equal(bond_expect(r.link[side], (uint32_t)path, REFUSALS), 0);
		rig_add(&r, path, side);
	}
	rig_take(&r, RIGHT, 1, 8);
	rig_quiet(&r);
	rig_close(&r);
}

/* Nor do they break a rule where each may have brought what is waited for. */
static void refused_while_it_is_waited(void **state)
{
	const struct rig_shape shape = {64, 64, 1 << 14, 0, 3};
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), 1);
	bond_reject(r.link[RIGHT], 2);
	rig_cut(&r, 0, true);
	scan(&r, RIGHT);
	for (uint32_t life = 1; life <= REFUSALS; life++) {
		assert_int_equal(bond_expect(r.link[RIGHT], 2, life), 0);
		assert_int_equal(bond_expect(r.link[LEFT], 2, life), -EBUSY);
		bond_reject(r.link[RIGHT], 2);
		scan(&r, RIGHT);
	}
	rig_take(&r, RIGHT, 1, 8);
	rig_quiet(&r);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(loss_at_every_packet),
		FABRIC_TEST(loss_of_what_is_landing),
		FABRIC_TEST(second_loss_at_every_packet),
		FABRIC_TEST(loss_while_links_change),
		FABRIC_TEST(without_links_reasons_are_told),
		FABRIC_TEST(lost_acknowledgements_are_made_up_for),
		FABRIC_TEST(violation_never_moves_over),
		FABRIC_TEST(refused_while_all_are_lost),
		FABRIC_TEST(refused_while_it_is_waited),
	};

	return FABRIC_SUITE(tests);
}
