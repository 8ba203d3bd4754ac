/* SPDX-License-Identifier: BSD-3-Clause */
/* A choice between two ways costs little more than the shorter one, also when that changes, when a
 * change of way costs by itself, and when something delays now and then. */
#include "slmpm/choice/choice.h"

#include "tests/lib/test.h"

#define LENGTH 100000

static struct choice choices[CHOICE_CLASSES];

struct ways {
	uint64_t ns[2];
	uint64_t change; /* more for the first turn after the other way, ... */
	uint64_t delay;  /* more for one turn in 16, by chance */
	/* ... and for each later one that part of it, of the other way alone; 0: an eighth, of both */
	uint64_t settles;
};

static void forget(void)
{
	for (int i = 0; i < CHOICE_CLASSES; i++)
		choices[i] = (struct choice){.left = 0};
}

/* As the selector's table has it: the shorter one, but for tries. */
static bool is_other(const struct choice *c)
{
	struct mode_view v;

	choice_view(c, &v);
	return (v.cost[0] && v.cost[1] && v.cost[1] <= v.cost[0]) != v.trial;
}

static bool by_chance(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 28 == 0;
}

/* N turns: what they took, over what the shorter way would have without a change. */
static double run(const struct ways *w, int n)
{
	uint64_t taken = 0, least = 0, shorter = w->ns[0] < w->ns[1] ? w->ns[0] : w->ns[1];
	static uint64_t more;

	for (int i = 0; i < n; i++) {
		struct choice *c = choice_of(choices, LENGTH);
		bool other = is_other(c), changes = other != c->last;
		uint64_t delay = by_chance() ? w->delay : 0;
		uint64_t took;

		more = changes ? (other || !w->settles ? w->change : 0) :
				 more / (w->settles ? w->settles : 8);
		took = w->ns[other] + more + delay;
		choice_learn(c, other, choice_taken(c, other), took, LENGTH);
		taken += took;
		least += shorter + delay;
	}
	return (double)taken / (double)least;
}

static void expect(double most, const struct ways *w, int n)
{
	double ratio = run(w, n);

	CHECK(ratio >= 1 && ratio <= most, "%d turns of %d and %d ns, changes of %d: %.4f", n,
	      (int)w->ns[0], (int)w->ns[1], (int)w->change, ratio);
}

/* Whatever the one costs more: no part of the time that would be felt. */
static void costs_little(uint64_t longer, uint64_t change)
{
	struct ways plain = {{10000, longer}, change, 0, 0},
		    other = {{longer, 10000}, change, 0, 0};

	forget();
	expect(2 + 4 * (double)(longer + change) / 10000 / 20, &plain, 20); /* a run to find out */
	run(&plain, 2000);
	expect(1.03, &plain, 20000);
	run(&other, 2000);
	expect(1.03, &other, 20000);
	run(&plain, 2000);
	expect(1.03, &plain, 20000);
}

/* What has changed is noticed within some hundred turns if the usual way has become longer. */
static void notices(void)
{
	struct ways before = {{10000, 15000}, 0, 0, 0}, after = {{30000, 15000}, 0, 0, 0};

	forget();
	run(&before, 5000);
	expect(1.2, &after, 600);
	expect(1.02, &after, 2000);
}

/* The first shared put after copies wakes the target, the second finds it far off; from the third
 * on sharing is the shorter way. */
static void outlasts_the_change(void)
{
	struct ways w = {{20000, 17000}, 400000, 0, 0};

	forget();
	run(&w, 4000);
	expect(1.03, &w, 20000);
}

/* Each turn after the change is shorter than the one before, but the fourth far from what it will
 * be: that is waited for, and once found it stays. */
static void outlasts_a_slow_change(void)
{
	struct ways w = {{20000, 12000}, 200000, 0, 2}, even = {{20000, 22000}, 200000, 0, 2};

	forget();
	run(&w, 6000);
	expect(1.03, &w, 20000);
	forget();
	run(&even, 6000);
	expect(1.03, &even, 20000);
}

/* The other way touches its memory for the first time, each turn a tenth less of it: a program of
 * some hundred turns has use of it. */
static void is_touched_first(void)
{
	uint64_t touched = 25000;

	forget();
	for (int i = 0; i < 40; i++) {
		struct choice *c = choice_of(choices, LENGTH);
		bool other = is_other(c);

		choice_learn(c, other, choice_taken(c, other), other ? touched : 17000, LENGTH);
		if (other && touched > 9000)
			touched -= touched / 10;
	}
	CHECK(is_other(choice_of(choices, LENGTH)), "given up at %d ns", (int)touched);
}

/* Two loads by turns, each with another shorter way: both are found within N turns. */
static void follows(const struct ways *plain, const struct ways *touched, double most, int n)
{
	forget();
	run(plain, 2000);
	for (int i = 0; i < 20; i++) {
		expect(most, touched, n);
		expect(most, plain, n);
	}
}

static void follows_changes(void)
{
	struct ways plain = {{7000, 4000}, 0, 0, 0}, touched = {{12000, 20000}, 0, 0, 0};
	struct ways near = {{9000, 14000}, 0, 0, 0};
	struct ways settling = {{7000, 4000}, 8000, 0, 2}, far = {{12000, 20000}, 8000, 0, 2};

	follows(&plain, &touched, 1.15, 600); /* 1.67 and 1.75: never */
	follows(&plain, &near, 1.15, 600);
	follows(&settling, &far, 1.25, 150);
}

/* What was the longer way under one load is tried soon under the next one, and found. */
static void begins_anew(void)
{
	struct ways before = {{20000, 30000}, 100000, 0, 2}, after = {{10000, 6000}, 100000, 0, 2};

	forget();
	run(&before, 50000);
	expect(1.6, &after, 6000); /* 1.67: never */
	expect(1.03, &after, 10000);
}

/* A try that was delayed for milliseconds is not held against the way once all has become
 * quicker. */
static void forgives(void)
{
	struct ways busy = {{10000, 4000000}, 0, 0, 0}, idle = {{5000, 3000}, 0, 0, 0};

	forget();
	run(&busy, 50);
	expect(1.2, &idle, 12000);
	expect(1.01, &idle, 12000);
}

/* Each try waits for a turn of the scheduler's, and the usual way's cost goes up and down: the
 * tries keep to their part of the time, nevertheless; and a way that is worth it is found once they
 * cost little. */
static void keeps_to_the_budget(void)
{
	struct ways w = {{10000, 11000}, 4000000, 0, 2}, later = {{10000, 6000}, 20000, 0, 2};
	double lost = 0;

	forget();
	run(&w, 2000);
	for (int i = 0; i < 4000; i++) {
		w.ns[0] = i % 2 ? 10000 : 25000;
		w.ns[1] = w.ns[0] + 1000;
		lost += (run(&w, 100) - 1) / 4000;
	}
	CHECK(lost > 0.001 && lost < 0.02, "tries have taken %.4f of the time", lost);
	run(&later, 200000);
	expect(1.03, &later, 20000);
}

/* A delay of a try does not put off for long a way that seems nearly as short; the next one
 * neither, when that has been made up for. */
static void spares_what_is_near(void)
{
	struct ways even = {{20000, 22000}, 0, 0, 0}, delayed = {{20000, 22000}, 4000000, 0, 2},
		    better = {{20000, 12000}, 0, 0, 0};

	for (int i = 0; i < 8; i++) {
		run(&even, 400000);
		run(&delayed, 6000);
		expect(1.4, &better, 8000); /* 1.67: never */
	}
}

/* What a long stop was charged with while everything was slow is not waited for when all is quick
 * again. */
static void forgets_a_stop(void)
{
	struct ways slow = {{4000000, 20000000}, 0, 0, 0},
		    stopped = {{4000000, 2000000000}, 0, 0, 0}, quick = {{2000, 1000}, 0, 0, 0};

	forget();
	run(&slow, 2000);
	run(&stopped, 6000);
	run(&quick, 2000000);
	expect(1.03, &quick, 20000); /* 2: never */
}

static void overlooks_delays(void)
{
	struct ways w = {{10000, 13000}, 2000, 1000000, 0};

	forget();
	run(&w, 4000);
	expect(1.05, &w, 20000);
}

/* What is hardly shorter is not worth a change. */
static void stays(void)
{
	int changes = 0;

	forget();
	for (int i = 0; i < 100000; i++) {
		struct choice *c = choice_of(choices, LENGTH);
		bool other = is_other(c);
		uint64_t took = 10000 + (other ? 100U : 0) + (by_chance() ? 0 : 200U);

		changes += other != c->last;
		choice_learn(c, other, choice_taken(c, other), took, LENGTH);
	}
	CHECK(changes > 10 && changes < 500, "%d changes", changes);
}

/* Ends are told late: some are under way when the next one is chosen. */
static void late(void)
{
	struct choice *c = choice_of(choices, LENGTH);
	enum choice_note note[32];
	int taken[2] = {0, 0};
	bool other[32];

	forget();
	for (int i = 0; i < 3200; i++) {
		other[i % 32] = is_other(c);
		note[i % 32] = choice_taken(c, other[i % 32]);
		taken[other[i % 32]]++;
		for (int j = 0; i % 32 == 31 && j < 32; j++)
			choice_learn(c, other[j], note[j], other[j] ? 500000 : 30000, LENGTH);
	}
	CHECK(taken[0] > 3150 && taken[1] > 1, "%d and %d", taken[0], taken[1]);
}

/* ---- decisions ------------------------------------------------------------------------------ */

/* What was decided holds until something else is known, and for those who ask likewise. */
static void decided(void)
{
	struct choice *c = choice_of(choices, LENGTH);
	struct ways w = {{10000, 20000}, 0, 0, 0};
	struct mode mode = {.way = MODE_PACKETS, .reason = SLMPM_REASON_FASTER};
	int kept = 0;

	forget();
	run(&w, 200);
	for (int i = 0; i < 1000; i++) {
		bool trial = is_other(c), had = choice_decided(c, 1).way;

		CHECK(!(had && trial), "a try in turn %d is not seen", i);
		CHECK(!choice_decided(c, 2).way, "decided for others");
		kept += had;
		if (!trial)
			choice_decide(c, 1, mode);
		run(&w, 1);
	}
	CHECK(kept > 900, "kept %d times", kept);
	choice_decide(c, 1, mode);
	choice_missed(c);
	CHECK(!choice_decided(c, 1).way, "kept though nobody came");
}

/* ---- nobody there --------------------------------------------------------------------------- */

static uint32_t turns_without(struct choice *c)
{
	uint32_t n = 0;

	for (; c->without; n++)
		CHECK(!choice_taken(c, false), "there was nothing to choose, and nothing to time");
	return n;
}

/* What came to nothing is not tried for a while, ever longer; it is forgiven by and by. */
static void missed(void)
{
	struct choice c = {.cost = {10, 20}}, before = c;
	uint32_t n, last = 0;

	for (int i = 0; i < 20; i++, last = n) {
		choice_missed(&c);
		n = turns_without(&c);
		CHECK(n == (!i ? 4 : last < 8192 ? 2 * last : 8192), "%u turns after %u", n, last);
	}
	CHECK(c.cost[0] == before.cost[0] && c.cost[1] == before.cost[1] && c.left == before.left,
	      "turns without a choice have changed it");
	for (int i = 0; i < 30; i++)
		choice_met(&c);
	choice_missed(&c);
	CHECK(turns_without(&c) == 4, "not forgiven");
}

/* The time until the next turn counts, as far as it could be the way's doing; and once. */
static void concluded(void)
{
	struct choice *c = choice_of(choices, LENGTH);
	struct choice_last last = {
		.of = c, .note = CHOICE_TIMED, .length = LENGTH, .took = 10000, .since = 50000};
	uint32_t cost;

	forget();
	choice_conclude(&last, 55000);
	cost = c->cost[0];
	CHECK(choice_expected(c, false, LENGTH) / 100 == 150, "15000 is %u", cost);
	choice_conclude(&last, 90000);
	CHECK(c->cost[0] == cost, "it counts twice");
	forget();
	last.note = CHOICE_TIMED;
	choice_conclude(&last, 1000000);
	CHECK(choice_expected(c, false, LENGTH) / 100 == 500, "50000 is %u", c->cost[0]);
	forget();
	last.note = CHOICE_TIMED;
	choice_conclude(&last, 40000);
	CHECK(choice_expected(c, false, LENGTH) / 100 == 100, "10000 is %u", c->cost[0]);
}

/* The first turns of the plain way are slow: they do not count for the other way. */
static void begins_slowly(void)
{
	struct choice *c = choice_of(choices, LENGTH);
	int others = 0;

	forget();
	for (int i = 0; i < 200; i++) {
		bool other = is_other(c);

		others += other;
		choice_learn(c, other, choice_taken(c, other),
			     other ? 15000 :
			     i < 8 ? 20000 :
				     10000,
			     LENGTH);
	}
	CHECK(others < 20, "%d turns by the longer way", others);
}

/* Of two that take nearly the same it is not chance that decides. */
static void prefers_the_plain(void)
{
	for (uint64_t less = 200; less <= 1000; less += 800) {
		const struct ways w = {{10000, 10000 - less}, 0, 0, 0};

		forget();
		(void)run(&w, 5000);
		CHECK(choice_of(choices, LENGTH)->usual == (less == 1000), "by %llu ns of 10000",
		      (unsigned long long)less);
	}
}

int main(void)
{
	static const uint64_t longer[] = {10100, 11000, 14000, 16000, 30000, 100000, 1000000};

	for (size_t i = 0; i < sizeof(longer) / sizeof(*longer); i++) {
		costs_little(longer[i], 0);
		costs_little(longer[i], 10000);
	}
	notices();
	outlasts_the_change();
	outlasts_a_slow_change();
	is_touched_first();
	begins_anew();
	follows_changes();
	forgives();
	keeps_to_the_budget();
	spares_what_is_near();
	forgets_a_stop();
	overlooks_delays();
	stays();
	late();
	decided();
	missed();
	concluded();
	begins_slowly();
	prefers_the_plain();
	CHECK(choice_of(choices, UINT64_MAX) < choices + CHOICE_CLASSES &&
		      choice_of(choices, 1) == choices &&
		      choice_of(choices, 65536) != choice_of(choices, 65535),
	      "classes");
	return 0;
}
