/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond's own packets as no honest peer says them: each ends the bond, with the rule by its name;
 * what is only late or repeated does not. */
#include <errno.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/base/wire.h"
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
	{WIRE_BOND_ACK, {1, 0, 1}, 0, "acknowledgement in a bond", 0}, /* a part to come */
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

static void open_after_some(struct rig *r, const struct rig_shape *shape)
{
	rig_open(r, fabric, shape);
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

		open_after_some(&r, &three);
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

/* No honest peer loses what lies in its own memory: there is nothing to send again. */
static void stored_is_never_asked_for(void **state)
{
	static const struct fabric_wr wr = {
		.op = FABRIC_SEND, .kind = WIRE_BOND_RESUME, .head = {0, 1, 1}};
	struct rig r;

	(void)state;
	rig_open_stored(&r, fabric, &three);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), 1);
	say(&r, 1, &wr);
	assert_int_equal(listen(&r), 0);
	assert_string_equal(r.link[LEFT]->violation, "resumption after a lost link");
	rig_close(&r);
}

#define LONG 100 /* bytes that want a place */

/* The core has a place for what was handed out without its bytes: that comes again, and nothing
 * else. */
static void what_comes_again_is_the_same(void **state)
{
	static const struct rig_shape landing = {256, 64, 1 << 14, LONG, 3};
	static const unsigned char payload[LONG + 1] = {[LONG] = 'x'};

	(void)state;
	for (int lie = 0; lie < 4; lie++) {
		unsigned char place[LONG + 1] = {0};
		struct fabric_wr land = {.op = FABRIC_LAND, .into = place};
		struct fabric_wr restart = {
			.op = FABRIC_SEND, .kind = WIRE_BOND_RESTART, .head = {SENT, 1, 0}};
		struct fabric_wr wr = {.op = FABRIC_SEND,
				       .kind = 1,
				       .head = {7, 8, 9},
				       .length = LONG,
				       .data = payload};
		struct fabric_arrival a;
		struct rig r;

		open_after_some(&r, &landing);
		say(&r, 0, &wr);
		while (!bond_fabric.poll(r.link[LEFT], &a, 1))
			;
		assert_true(!a.data && a.length == LONG);
		assert_int_equal(bond_fabric.post(r.link[LEFT], &land), 1);
		rig_cut(&r, 0, true);
		assert_int_equal(listen(&r), 0);
		wr.kind = lie == 1 ? 2 : 1;
		wr.head[2] += lie == 2;
		wr.length += lie == 3;
		say(&r, 1, &restart);
		say(&r, 1, &wr);
		assert_int_equal(listen(&r), lie == 0);
		if (lie)
			assert_string_equal(r.link[LEFT]->violation, "packet sent again in a bond");
		else
			assert_null(r.link[LEFT]->violation);
		assert_int_equal(place[LONG], 0);
		rig_close(&r);
	}
}

/* Of what a path was before: the one that stands in its place now is not meant. */
static void late_reports_of_earlier_lives(void **state)
{
	struct fabric_wr wr = {.op = FABRIC_SEND, .kind = WIRE_BOND_LOST};
	struct rig r;

	(void)state;
	open_after_some(&r, &three);
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

/* After the loss of path 0: who begins again where, and behind what. */
static void restarts_are_where_they_say(void **state)
{
	static const struct {
		struct lie say[3];
		int count;
		const char *rule;
	} turns[] = {
		{{{WIRE_BOND_RESTART, {SENT, 1, 1}, 0, NULL, 2},
		  {WIRE_BOND_RESTART, {SENT, 1, 0}, 0, NULL, 1},
		  {WIRE_BOND_SWITCH, {2, SENT, 0}, 0, NULL, 1}},
		 3,
		 NULL},
		{{{WIRE_BOND_RESTART, {SENT + 1, 1, 0}, 0, NULL, 1}},
		 1,
		 "restart after a lost link"},
		{{{WIRE_BOND_RESTART, {SENT, 1, 2}, 0, NULL, 2},
		  {WIRE_BOND_RESTART, {SENT, 1, 0}, 0, NULL, 1},
		  {WIRE_BOND_SWITCH, {2, SENT, 0}, 0, NULL, 1}},
		 3,
		 "change of links"},
		{{{WIRE_BOND_RESTART, {SENT + 1, 1, 1}, 0, NULL, 2},
		  {WIRE_BOND_RESTART, {SENT, 1, 0}, 0, NULL, 1},
		  {WIRE_BOND_SWITCH, {2, SENT, 0}, 0, NULL, 1}},
		 3,
		 "change of links"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		struct rig r;

		open_after_some(&r, &three);
		rig_cut(&r, 0, true);
		for (int k = 0; k < turns[i].count; k++) {
			const struct lie *lie = &turns[i].say[k];
			struct fabric_wr wr = {.op = FABRIC_SEND, .kind = lie->kind};

			assert_int_equal(listen(&r), 0);
			assert_null(r.link[LEFT]->violation);
			memcpy(wr.head, lie->head, sizeof(wr.head));
			say(&r, lie->path, &wr);
		}
		assert_int_equal(listen(&r), 0);
		if (turns[i].rule)
			assert_string_equal(r.link[LEFT]->violation, turns[i].rule);
		else
			assert_null(r.link[LEFT]->violation);
		rig_close(&r);
	}
}

/* To a question, once, and of a form that there is. */
static void answers_have_their_form(void **state)
{
	static const struct {
		uint64_t word;
		int times;
		bool sound;
	} answers[] = {
		{1, 1, true}, {0x21, 1, true}, {1, 2, false}, {2, 1, false}, {0x101, 1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct fabric_wr wr = {.op = FABRIC_SEND,
				       .kind = WIRE_BOND_PROBE,
				       .head = {SENT, 1, answers[i].word}};
		struct rig r;

		open_after_some(&r, &three);
		assert_int_equal(link_put(r.link[LEFT], 9, 8, 0), 1);
		for (uint64_t now = 10; now < 100; now += 10) {
			(void)bond_keepalive(r.link[LEFT], now, 80);
			assert_int_equal(listen(&r), 0);
		}
		for (int k = 0; k < answers[i].times; k++)
			say(&r, 1, &wr);
		assert_int_equal(listen(&r), 0);
		assert_true(answers[i].sound == !r.link[LEFT]->violation);
		rig_close(&r);
	}
}

/* A peer that makes us send again and again does so a bounded number of times. */
static void resumptions_are_bounded(void **state)
{
	struct rig r;
	uint64_t round = 1;

	(void)state;
	open_after_some(&r, &three);
	for (; round < 100 && !r.link[LEFT]->violation; round++) {
		struct fabric_wr wr = {
			.op = FABRIC_SEND, .kind = WIRE_BOND_RESUME, .head = {0, round, 4}};

		say(&r, 0, &wr);
		assert_int_equal(listen(&r), 0);
	}
	assert_true(round < 12);
	rig_close(&r);
}

/* However many stand in front of a packet: a poll that has none says that none is there. */
static void none_hides_behind_them(void **state)
{
	const struct fabric_wr wr = {.op = FABRIC_SEND, .kind = 1},
			       own = {.op = FABRIC_SEND, .kind = WIRE_BOND_ACK, .head = {SENT}};
	struct fabric_arrival a;
	struct rig r;

	(void)state;
	if (!fabric->alloc) /* a socket may have no more yet */
		return;
	open_after_some(&r, &three);
	for (int i = 0; i < 200; i++)
		say(&r, 0, &own);
	say(&r, 0, &wr);
	assert_int_equal(bond_fabric.poll(r.link[LEFT], &a, 1), 1);
	bond_fabric.release(r.link[LEFT], &a);
	rig_close(&r);
}

/* Nor more often where it tries the same link again and again. */
static void the_same_link_counts_once(void **state)
{
	struct rig r;
	uint64_t round = 1;

	(void)state;
	rig_open_stored(&r, fabric, &three);
	for (; round < 100 && !r.link[LEFT]->violation; round++) {
		struct fabric_wr wr = {
			.op = FABRIC_SEND, .kind = WIRE_BOND_RESUME, .head = {0, round, 1}};

		assert_int_equal(bond_expect(r.link[LEFT], 0, 1), -EBUSY);
		say(&r, 1, &wr);
		assert_int_equal(listen(&r), 0);
	}
	assert_true(round < 14);
	rig_close(&r);
}

/* Whatever words: the bond ends by a rule, or goes on; never worse. */
static void words_at_random(void **state)
{
	struct rng g = {rng_run_seed(0xb0d)};

	(void)state;
	for (int life = 0; life < 300; life++) {
		struct rig r;

		open_after_some(&r, &three);
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
		FABRIC_TEST(stored_is_never_asked_for),
		FABRIC_TEST(the_same_link_counts_once),
		FABRIC_TEST(what_comes_again_is_the_same),
		FABRIC_TEST(late_reports_of_earlier_lives),
		FABRIC_TEST(restarts_are_where_they_say),
		FABRIC_TEST(answers_have_their_form),
		FABRIC_TEST(resumptions_are_bounded),
		FABRIC_TEST(none_hides_behind_them),
		FABRIC_TEST(words_at_random),
	};

	return FABRIC_SUITE(tests);
}
