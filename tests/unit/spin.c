/* SPDX-License-Identifier: BSD-3-Clause */
/* The time before sleep: patterns of waits are played, and what is polled for is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "slmpm/base/spin.h"

#define US 1000
#define MS 1000000

static uint64_t now, rung, polled;

/* A wait for what comes LENGTH later if both are awake; the peer SLEEPS when sent to, and each that
 * sleeps takes WAKE longer. Returns how long it took. */
static uint64_t wait_for(struct spin *s, uint64_t length, bool sleeps, uint64_t wake)
{
	struct spin_wait w = {.met = true};
	uint64_t most, spun;

	rung += sleeps;
	s->quick += 2;
	most = spin_begin(s, now, rung);
	w.took = length + (sleeps ? wake : 0);
	spun = w.took < most ? w.took : most;
	w.asleep = w.took > most;
	if (w.asleep)
		w.took += wake;
	polled += spun;
	now += w.took;
	w.bells = rung;
	spin_end(s, now, &w);
	return w.took;
}

static void start(struct spin *s)
{
	spin_init(s, SPIN_AUTO);
	now = MS, rung = polled = 0;
	s->bells = 0;
}

/* Who is asked once a millisecond, and who asks. */
static void lone_messages_are_not_polled_for(void **state)
{
	struct spin server, client;

	(void)state;
	start(&server);
	for (int i = 0; i < 1000; i++)
		(void)wait_for(&server, MS, true, 50 * US);
	polled = 0;
	for (int i = 0; i < 1000; i++)
		(void)wait_for(&server, MS, true, 50 * US);
	assert_int_equal(polled, 0);
	start(&client);
	for (int i = 0; i < 2000; i++) {
		polled = i == 1000 ? 0 : polled;
		now += MS;
		(void)wait_for(&client, 2 * US, true, 50 * US);
	}
	assert_true(polled < 100 * 50 * US);
}

/* N messages a burst, nearly all of which come before the clock is read; then a pause. */
static void burst(struct spin *s, uint32_t n, uint64_t pause)
{
	s->quick += n;
	(void)wait_for(s, pause, false, 50 * US);
}

static void bursts_are_polled_through(void **state)
{
	struct spin s;

	(void)state;
	start(&s);
	for (int i = 0; i < 100; i++)
		burst(&s, 100, 10 * MS);
	polled = 0;
	s.quick += 100;
	assert_true(wait_for(&s, 20 * US, false, 50 * US) == 20 * US); /* a stutter within one */
	assert_true(polled == 20 * US);
}

/* Large messages by turns: the peer fills one after waits for a word each. */
static void a_conversation_is_polled_through(void **state)
{
	static const uint64_t waits[][3] = {{2 * US, 18 * US, 66 * US}, {2 * US, 2 * US, 120 * US}};
	struct spin s;

	(void)state;
	for (int w = 0; w < 2; w++) {
		start(&s);
		for (int i = 0; i < 300; i++)
			assert_true(wait_for(&s, waits[w][i % 3], false, 50 * US) ==
				    waits[w][i % 3]);
	}
}

/* Both fall asleep just before the other answers: each sees two wake-ups, and a peer that slept. */
static void who_sleeps_because_the_other_does_wakes_up(void **state)
{
	struct spin s;
	int asleep = 0;

	(void)state;
	start(&s);
	for (int i = 0; i < 1000; i++) /* it has learnt to sleep at once */
		(void)wait_for(&s, MS, true, 50 * US);
	while (wait_for(&s, US, true, 50 * US) > 60 * US)
		assert_true(++asleep < 20);
	assert_true(asleep > 0);
	for (int i = 0; i < 100; i++)
		assert_true(wait_for(&s, US, true, 50 * US) < 60 * US);
}

static void one_process_that_alternates_learns_both(void **state)
{
	struct spin s;

	(void)state;
	start(&s);
	for (int turn = 0; turn < 5; turn++) {
		for (int i = 0; i < 1000; i++)
			(void)wait_for(&s, MS, true, 50 * US);
		polled = 0;
		for (int i = 0; i < 100; i++)
			(void)wait_for(&s, MS, true, 50 * US);
		assert_int_equal(polled, 0);
		for (int i = 0; i < 10; i++)
			burst(&s, 100, 10 * MS);
		s.quick += 100;
		assert_true(wait_for(&s, 20 * US, false, 50 * US) == 20 * US);
	}
}

/* Behind any number of lone messages. */
static void the_first_burst_ends_the_debt(void **state)
{
	struct spin s;

	(void)state;
	start(&s);
	for (int i = 0; i < 1000; i++)
		(void)wait_for(&s, MS, true, 50 * US);
	assert_false(spin_may_pay(&s));
	(void)wait_for(&s, 2 * US, false, 50 * US); /* its second message, slept for */
	(void)wait_for(&s, 10 * MS, true, 50 * US);
	assert_true(spin_may_pay(&s));
	polled = 0;
	assert_true(wait_for(&s, 2 * US, false, 50 * US) == 2 * US);
	assert_true(polled == 2 * US);
}

/* Whatever was before, on either side: the one that was silent itself, and the one that waited. */
static void behind_a_silence_a_wait_polls(void **state)
{
	struct spin s;

	(void)state;
	start(&s);
	for (int i = 0; i < 1000; i++)
		(void)wait_for(&s, MS, true, 50 * US);
	polled = 0;
	(void)wait_for(&s, MS, true, 50 * US);
	assert_int_equal(polled, 0);
	now += 1000 * MS;
	(void)wait_for(&s, US, true, 50 * US);
	assert_true(polled > 0);
	for (int i = 0; i < 1000; i++)
		(void)wait_for(&s, MS, true, 50 * US);
	(void)wait_for(&s, 1000 * MS, true, 50 * US);
	polled = 0;
	(void)wait_for(&s, US, false, 50 * US);
	assert_true(polled > 0);
}

/* No wait costs more than twice the best choice in hindsight, sleep being three wake-ups. */
static void a_wait_costs_at_most_twice_the_best(void **state)
{
	struct spin s;

	(void)state;
	for (uint64_t length = US; length < 2 * MS; length += 7 * US) {
		uint64_t sleep, best, cost;

		start(&s);
		sleep = 3 * s.wake;
		best = length < sleep ? length : sleep;
		cost = wait_for(&s, length, false, s.wake) > length ? polled + sleep : length;
		assert_true(cost <= 2 * best);
	}
}

static void the_cost_of_a_wake_up_is_learnt(void **state)
{
	static const uint64_t costs[] = {15 * US, 120 * US, 200 * US};
	struct spin s;

	(void)state;
	for (int c = 0; c < 3; c++) {
		start(&s);
		for (int i = 0; i < 200; i++)
			(void)wait_for(&s, US, true, costs[c]);
		assert_true(s.wake > costs[c] * 9 / 10 && s.wake < costs[c] * 11 / 10);
	}
	for (int i = 0; i < 1000;
	     i++) /* a peer that thinks is no wake-up: sleep comes within a millisecond */
		(void)wait_for(&s, 900 * US, true, 200 * US);
	assert_true(3 * s.wake < MS);
}

/* Two that share a processor with others that answer by and by. */
static void what_others_compute_is_not_paid_for(void **state)
{
	struct spin s;

	(void)state;
	for (int away = 0; away < 2; away++) {
		struct spin_wait w = {.took = 80 * US, .met = true};

		start(&s);
		for (int i = 0; i < 1000; i++) {
			(void)spin_begin(&s, now, 0);
			w.away = away ? 70 * US : 0;
			now += w.took;
			spin_end(&s, now, &w);
		}
		assert_int_equal(spin_may_pay(&s), away);
	}
}

/* What is set prevails, and nothing is learnt. */
static void a_fixed_time_stays(void **state)
{
	struct spin s;

	(void)state;
	spin_init(&s, 7 * US);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(spin_begin(&s, MS, 1), 7 * US);
		spin_end(&s, 2 * MS, &(struct spin_wait){.took = MS, .met = true, .asleep = true});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lone_messages_are_not_polled_for),
		cmocka_unit_test(bursts_are_polled_through),
		cmocka_unit_test(a_conversation_is_polled_through),
		cmocka_unit_test(who_sleeps_because_the_other_does_wakes_up),
		cmocka_unit_test(one_process_that_alternates_learns_both),
		cmocka_unit_test(the_first_burst_ends_the_debt),
		cmocka_unit_test(behind_a_silence_a_wait_polls),
		cmocka_unit_test(a_wait_costs_at_most_twice_the_best),
		cmocka_unit_test(the_cost_of_a_wake_up_is_learnt),
		cmocka_unit_test(what_others_compute_is_not_paid_for),
		cmocka_unit_test(a_fixed_time_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
