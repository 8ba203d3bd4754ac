/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Links that are refused: joins again, of what is no memory, of another fabric, and storms of them.
 * The reason is said, the channel goes on, an honest peer of two links works on, and no more is
 * made for the asker than it may have links.
 */
#include <poll.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_link.h"
#include "tests/lib/raw_link_trial.h"

#define STORM 600
#define LIVES 100 /* less than the answers that a socket holds */
#define LINKS 2   /* of each peer */
#define PAUSE 50  /* ms: so many tries of an honest peer lie in that */

/* ---- what is refused ------------------------------------------------------------------------- */

static void fabric_of_no_name(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	memset(w.name, 'x', sizeof(w.name)); /* no end */
	raw_link_say(p, &w, raw_link_memory.fd);
	raw_link_refused(p, 1, 0, "another fabric is wanted here");
	raw_link_go_on(p);
}

static void another_fabric(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	memcpy(w.name, "tcp", 4);
	raw_link_say(p, &w, raw_link_memory.fd);
	raw_link_refused(p, 1, 0, "another fabric is wanted here");
	raw_link_go_on(p);
}

static void same_life_again(struct raw_peer *p)
{
	raw_link_begin(p, 1, 0);
	raw_link_begin(p, 1, 0);
	raw_link_refused(p, 1, 0, "its time is over");
	raw_link_go_on(p);
}

static void same_life_of_joined(struct raw_peer *p)
{
	raw_link_join(p);
	raw_link_begin(p, 1, 0);
	raw_link_refused(p, 1, 0, "its time is over");
	raw_link_go_on(p);
}

static void earlier_life(struct raw_peer *p)
{
	raw_link_begin(p, 1, 32766);
	raw_link_begin(p, 1, 32765);
	raw_link_refused(p, 1, 32765, "its time is over");
	raw_link_go_on(p);
}

static void first_link_again(struct raw_peer *p)
{
	raw_link_begin(p, 0, 0);
	raw_link_refused(p, 0, 0, "its time is over");
	raw_link_go_on(p);
}

/* Whose seals are closed by now. */
static void ring_of_first_link(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	raw_link_say(p, &w, p->own.fd);
	raw_link_refused(p, 1, 0, "not permitted");
	raw_link_go_on(p);
}

static void what_is_no_memory(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	raw_link_say(p, &w, p->fd);
	raw_link_refused(p, 1, 0, " ");
	raw_link_go_on(p);
}

/* No descriptor comes that way, nor goes back. */
static void ring_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_link_ring(p, 1, 0);

	raw_post(p, WIRE_BOND_LINK, 0, 0, 0, &w, sizeof(w));
	raw_link_go_on(p);
}

/* The try that they are not about goes on. */
static void late_words(struct raw_peer *p)
{
	struct wire_round w, echo = raw_link_about(1, 1, 3);
	uint64_t epoch;

	raw_link_begin(p, 1, 3);
	w = raw_link_hear_round(p, 0);
	epoch = raw_link_epoch(&w);
	raw_link_say_plain(p, 1, 1, 2); /* of another life */
	raw_link_say_plain(p, 1, 0, 3); /* of another link */
	raw_link_say_plain(p, 7, 1, 4);
	raw_link_say_plain(p, WIRE_ROUND_NOT, 1, 2);
	raw_link_say_plain(p, WIRE_ROUND_NOT, 0, 3);
	(void)raw_link_hear_round(p, 1);
	raw_link_blob(&echo, &epoch, sizeof(epoch));
	raw_link_say(p, &echo, -1);
	(void)raw_link_hear_round(p, 2);
	raw_link_say_plain(p, WIRE_ROUND_NOT, 1, 3);
	raw_link_say_plain(p, 9, 1, 3); /* of none that is being made */
	raw_link_go_on(p);
}

/* Of a life that is still to come: the one that is made goes on, and then stands. */
static void early_refusals(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_say_plain(p, WIRE_ROUND_NOT, 1, 1);
	raw_link_finish(p, raw_link_epoch(&w));
	raw_link_say_plain(p, WIRE_ROUND_NOT, 1, 1);
	raw_link_await_read(p);
	raw_link_go_on(p);
}

/* ---- storms ---------------------------------------------------------------------------------- */

static void storm_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_link_about(WIRE_ROUND_NOT, 1, 9);

	for (int i = 0; i < STORM; i++)
		raw_post(p, WIRE_BOND_LINK, 0, 0, 0, &w, sizeof(w));
	raw_link_go_on(p);
}

/* Each answer with a ring lies in the socket, and would be memory. */
static void storm_unread(struct raw_peer *p)
{
	unsigned rings, refused;

	for (unsigned life = 0; life < LIVES; life++) {
		raw_link_begin(p, 1, life);
		if (life % (LIVES / 4) == 0) {
			raw_link_await_read(p);
			(void)poll(NULL, 0, PAUSE + 5); /* others may be tried by now */
		}
	}
	raw_link_await_read(p);
	rings = raw_link_answers(p, LIVES, &refused);
	CHECK(rings >= 1 && rings <= LINKS, "%u rings were given", rings);
	CHECK(refused >= 1, "none was refused: %u rings", rings);
	raw_link_go_on(p);
}

/* Who reads them may keep them. */
static void storm_in_turn(struct raw_peer *p)
{
	int64_t began = actor_now_ms(), pauses;
	unsigned rings = 0;

	for (unsigned life = 0; life < LIVES; life++) {
		unsigned refused;

		raw_link_begin(p, 1, 2 * life);
		rings += raw_link_answers(p, 2 * life + 1, &refused);
	}
	pauses = (actor_now_ms() - began) / PAUSE + 2;
	CHECK(rings >= 1 && rings <= LINKS * pauses, "%u rings in %lld pauses", rings,
	      (long long)pauses);
	raw_link_go_on(p);
}

/* And an honest one of its two may still come. */
static void join_behind_storm(struct raw_peer *p)
{
	struct wire_round w;
	unsigned refused, life = LIVES;

	for (unsigned i = 0; i < LIVES; i++)
		raw_link_begin(p, 1, i);
	raw_link_await_read(p);
	do {
		(void)raw_link_answers(p, ++life, &refused);
		raw_link_begin(p, 1, ++life);
		w = raw_link_hear(p);
		CHECK(life < 32000, "it is never its turn"); /* nearly all lives there are */
	} while (LITTLE_32(w.round) == WIRE_ROUND_NOT);
	CHECK(LITTLE_32(w.round) == 0, "round %u", LITTLE_32(w.round));
	raw_link_go_on(p);
}

/* clang-format off */
static const struct offence refusals[] = {
	{"R10", "a storm, unread", storm_unread, LINK_STILL},
	{"R10", "a storm, each in its turn", storm_in_turn, LINK_STILL},
	{"R10", "a link behind a storm", join_behind_storm, LINK_STILL},
	{"R10", "a storm by the bond", storm_by_bond, LINK_STILL},
	{"R6", "a fabric of no name", fabric_of_no_name, LINK_STILL},
	{"R6", "another fabric", another_fabric, LINK_STILL},
	{"R8", "the same life again", same_life_again, LINK_STILL},
	{"R8", "the life of one that stands", same_life_of_joined, LINK_STILL},
	{"R8", "an earlier life", earlier_life, LINK_STILL},
	{"R8", "the first link again", first_link_again, LINK_STILL},
	{"R8", "the first link's memory", ring_of_first_link, LINK_STILL},
	{"R5", "what is no memory", what_is_no_memory, LINK_STILL},
	{"R5", "memory by the bond", ring_by_bond, LINK_STILL},
	{"R8", "words about other lives", late_words, LINK_STILL},
};

static const struct offence standing[] = {
	{"R8", "refusals ahead of time", early_refusals, LINK_STILL},
};
/* clang-format on */

int main(void)
{
	static const struct trial seen = {.come = link_trial_come,
					  .leave = link_trial_leave,
					  .inspect = link_trial_look,
					  .see = link_trial_see_standing};
	static const struct trial trial = {.come = link_trial_come,
					   .leave = link_trial_leave,
					   .inspect = link_trial_look,
					   .see = link_trial_see};
	struct victim v;

	link_victim_begin(&v, "hostile-link-refused");
	SURVIVE(&v, &trial, refusals);
	SURVIVE(&v, &seen, standing);
	link_victim_end(&v);
	return 0;
}
