/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond's own packets as no honest peer says them: each ends the bond, with the rule by its name;
 * what is only late or repeated does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/wire.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"

#define SENT 5 /* packets of each side before */

static const struct rig_shape three = {256, 64, 1 << 14, 0, 3};

struct lie {
	uint8_t kind;
	uint64_t head[3];
	uint32_t length;
	const char *rule; /* NULL: none is broken */
	int path;
};

static const struct lie lies[] = {
	{WIRE_BOND_ACK, {SENT, 0, 0}, 0, NULL, 0},
	{WIRE_BOND_ACK, {0, 1, 0}, 0, NULL, 1},
	{WIRE_BOND_ACK, {SENT + 1, 0, 0}, 0, "acknowledgement in a bond", 0},
	{WIRE_BOND_ACK, {UINT64_MAX, 0, 0}, 0, "acknowledgement in a bond", 2},
	{WIRE_BOND_ACK, {1, 2, 0}, 0, "acknowledgement in a bond", 0},
	{WIRE_BOND_ACK, {1, 0, 0}, 1, "length of a bond's packet", 0},
	{WIRE_BOND_SWITCH, {1, SENT, 0}, 0, NULL, 0},
	{WIRE_BOND_SWITCH, {3, SENT, 0}, 0, NULL, 0},              /* which joins later */
	{WIRE_BOND_SWITCH, {1, SENT, 0}, 0, NULL, 1},              /* where no part has begun */
	{WIRE_BOND_SWITCH, {1, SENT, 1}, 0, "change of links", 0}, /* a life that has not begun */
	{WIRE_BOND_SWITCH, {0, SENT, 0}, 0, "change of links", 0},
	{WIRE_BOND_SWITCH, {4, SENT, 0}, 0, "change of links", 0},
	{WIRE_BOND_SWITCH, {UINT64_MAX, SENT, 0}, 0, "change of links", 0},
	{WIRE_BOND_SWITCH, {1, SENT - 1, 0}, 0, "change of links", 0},
	{WIRE_BOND_SWITCH, {1, SENT + 1, 0}, 0, "change of links", 0},
	{WIRE_BOND_RESUME, {SENT, 1, 4}, 0, NULL, 0},
	{WIRE_BOND_RESUME, {0, 1, 4}, 0, NULL, 1},
	{WIRE_BOND_RESUME, {SENT + 1, 1, 4}, 0, "resumption after a lost link", 0},
	{WIRE_BOND_RESUME, {SENT, 0, 4}, 0, "resumption after a lost link", 0},
	{WIRE_BOND_RESUME, {SENT, 1, 0}, 0, "resumption after a lost link", 0},
	{WIRE_BOND_RESUME, {SENT, 1, 16}, 0, "resumption after a lost link", 0},
	{WIRE_BOND_RESUME, {SENT, UINT64_C(1) << 32, 4}, 0, "resumption after a lost link", 0},
	{WIRE_BOND_RESTART, {SENT, 1, 0}, 0, "restart after a lost link", 0},
	{WIRE_BOND_RESTART, {SENT, 1, 0}, 0, "restart after a lost link", 1},
	{WIRE_BOND_RESTART, {SENT, 0, 0}, 0, "restart after a lost link", 0}, /* begun already */
	{WIRE_BOND_RESTART, {SENT - 1, 0, 1}, 0, "restart after a lost link", 1},
	{WIRE_BOND_RESTART, {SENT + 9, 0, 1}, 0, NULL, 1}, /* of a part to come */
	{WIRE_BOND_LOST, {4, 0, 0}, 0, NULL, 0},
	{WIRE_BOND_LOST, {0, 0, 0}, 0, "report of a lost link", 0},
	{WIRE_BOND_LOST, {16, 0, 0}, 0, "report of a lost link", 0},
	{WIRE_BOND_LOST, {4 | 16, 0, 0}, 0, "report of a lost link", 0}, /* a life of another */
	{WIRE_BOND_LOST, {1 | 32767 << 4, 0, 0}, 0, "report of a lost link", 1},
	{WIRE_BOND_LOST, {UINT64_MAX, 0, 0}, 0, "report of a lost link", 1},
	{WIRE_BOND_PROBE, {SENT, 1, 0}, 0, NULL, 0},
	{WIRE_BOND_PROBE, {0, UINT64_MAX, 0}, 0, NULL, 1},
	{WIRE_BOND_PROBE, {SENT, 0, 0}, 0, "question by a link of a bond", 0},
	{WIRE_BOND_PROBE, {SENT, 1, 1}, 0, "question by a link of a bond", 0}, /* none was asked */
	{WIRE_BOND_PROBE, {SENT, 1, 2}, 0, "question by a link of a bond", 1},
	{WIRE_BOND_PROBE, {SENT + 1, 1, 0}, 0, "question by a link of a bond", 2},
};

static void open_after_some(struct rig *r)
{
	rig_open(r, fabric, &three);
	for (uint64_t seed = 1; seed <= SENT; seed++)
		for (int side = 0; side < SIDES; side++) {
			assert_int_equal(link_put(r->link[side], seed, 8, 0), 1);
			rig_take(r, !side, seed, 8);
		}
}

/* RIGHT says so by that path, past its bond. */
static void say(struct rig *r, int path, const struct fabric_wr *wr)
{
	assert_int_equal(fabric->post(r->pair[path].link[RIGHT], wr), 1);
	r->wire[path].posted[RIGHT]++;
}

/* LEFT hears it: packets that came besides. */
static int listen(struct rig *r)
{
	struct fabric_arrival a;
	int came = 0;

	for (int i = 0; i < 200 && !r->link[LEFT]->violation; i++) {
		int n = bond_fabric.poll(r->link[LEFT], &a, 1);

		assert_true(n >= 0 || n == -EPROTO || (n == -EPIPE && r->link[LEFT]->lost));
		came += n > 0;
		if (n > 0)
			bond_fabric.release(r->link[LEFT], &a);
	}
	return came;
}

static void each_lie_has_its_rule(void **state)
{
	static const unsigned char payload[1];

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const struct lie *lie = &lies[i];
		struct fabric_wr wr = {.op = FABRIC_SEND,
				       .kind = lie->kind,
				       .length = lie->length,
				       .data = payload};
		struct rig r;

		open_after_some(&r);
		memcpy(wr.head, lie->head, sizeof(wr.head));
		say(&r, lie->path, &wr);
		assert_int_equal(listen(&r), 0);
		if (lie->rule) {
			assert_non_null(r.link[LEFT]->violation);
			assert_string_equal(r.link[LEFT]->violation, lie->rule);
			assert_int_equal(link_put(r.link[LEFT], 9, 8, 0), -EPROTO);
		} else {
			assert_null(r.link[LEFT]->violation);
		}
		rig_close(&r);
	}
}

/* Of what a path was before: the one that stands in its place now is not meant. */
static void late_reports_of_earlier_lives(void **state)
{
	struct fabric_wr wr = {.op = FABRIC_SEND, .kind = WIRE_BOND_LOST};
	struct rig r;

	(void)state;
	open_after_some(&r);
	assert_int_equal(bond_expect(r.link[LEFT], 3, 2), 0);
	rig_add(&r, rig_path(&r, fabric, &three), LEFT);
	for (uint64_t life = 0; life <= 2; life++) {
		assert_int_equal(bond_up(r.link[LEFT]), 15);
		wr.head[0] = 8 | life << (4 + 3 * 15);
		say(&r, 0, &wr);
		assert_int_equal(listen(&r), 0);
		assert_null(r.link[LEFT]->violation);
	}
	assert_int_equal(bond_up(r.link[LEFT]), 7);
	rig_close(&r);
}

/* A peer that makes us send again and again does so a bounded number of times. */
static void resumptions_are_bounded(void **state)
{
	struct rig r;
	uint64_t round = 1;

	(void)state;
	open_after_some(&r);
	for (; round < 100 && !r.link[LEFT]->violation; round++) {
		struct fabric_wr wr = {
			.op = FABRIC_SEND, .kind = WIRE_BOND_RESUME, .head = {0, round, 4}};

		say(&r, 0, &wr);
		assert_int_equal(listen(&r), 0);
	}
	assert_true(round < 12);
	rig_close(&r);
}

/* Whatever words: the bond ends by a rule, or goes on; never worse. */
static void words_at_random(void **state)
{
	struct rng g = {rng_run_seed(0xb0d)};

	(void)state;
	for (int life = 0; life < 300; life++) {
		struct rig r;

		open_after_some(&r);
		for (int i = 0; i < 30 && !r.link[LEFT]->violation; i++) {
			static const unsigned char payload[64];
			struct fabric_wr wr = {.op = FABRIC_SEND, .data = payload};

			wr.kind = (uint8_t)(rng_one_in(&g, 4) ? 1 : 250 + rng_below(&g, 6));
			wr.length = rng_one_in(&g, 20) || wr.kind == 1 ? rng_below(&g, 64) : 0;
			for (int k = 0; k < 3; k++)
				wr.head[k] = rng_one_in(&g, 30) ? rng_next(&g) : rng_below(&g, 8);
			say(&r, (int)rng_below(&g, 3), &wr);
			if (rng_one_in(&g, 3))
				(void)link_put(r.link[LEFT], 9, rng_below(&g, 300), 0);
			(void)listen(&r);
		}
		rig_close(&r);
		if (strcmp(fabric->name, "shm") != 0 && life > 5)
			return; /* making links of it takes longer */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(each_lie_has_its_rule),
		FABRIC_TEST(late_reports_of_earlier_lives),
		FABRIC_TEST(resumptions_are_bounded),
		FABRIC_TEST(words_at_random),
	};

	return FABRIC_SUITE(tests);
}
