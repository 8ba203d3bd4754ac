/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts, each after a pause in which a side that sleeps has gone to sleep. A count is a burst. */
#include <time.h>

#include "tests/bench/peers/measure.h"

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void step(const struct order *o, uint64_t i)
{
	if (o->test == TEST_PAUSE_BW) {
		if (pair.side == 0)
			measure_say(i, o);
		else
			measure_hear(o);
	} else if (pair.side == 0) {
		measure_say(i, o);
		measure_hear(o);
	} else {
		measure_hear(o);
		measure_say(i, o);
	}
}

/* The time when the first message was there; marks: those behind it, ns since then. */
static uint64_t burst(const struct order *o, uint64_t mark_ns[PAUSE_MARKS])
{
	uint64_t first;

	step(o, 0);
	first = measure_now();
	for (uint64_t i = 2; i <= o->burst; i++) {
		step(o, i - 1);
		if (i == 10)
			mark_ns[TO_10] = measure_now() - first;
		else if (i == 100)
			mark_ns[TO_100] = measure_now() - first;
	}
	mark_ns[TO_ALL] = measure_now() - first;
	return first;
}

/* On side 0. A round trip has two ways. */
static void note(const struct order *o, uint64_t i, double first_us, const uint64_t *mark_ns)
{
	const uint64_t number[PAUSE_MARKS] = {10, 100, o->burst};
	double ways = o->test == TEST_PAUSE ? 2 : 1;

	if (i >= EACH_MAX)
		return;
	pair.area->each_us[i] = first_us;
	for (int k = 0; k < PAUSE_MARKS; k++)
		pair.area->behind_us[k][i] =
			o->burst < number[k] || number[k] < 2 ?
				0 :
				(double)mark_ns[k] / (double)(number[k] - 1) / ways / 1e3;
}

static void round_trips(const struct order *o, uint64_t i)
{
	uint64_t mark_ns[PAUSE_MARKS], begin = measure_now(), first = burst(o, mark_ns);

	if (pair.side == 0)
		note(o, i, (double)(first - begin) / 2e3, mark_ns);
}

/* Answered when all is there; what the receiver's marks leave of the time is the first message's
 * and the answer's. */
static void one_way(const struct order *o, uint64_t i)
{
	uint64_t mark_ns[PAUSE_MARKS], begin = measure_now(), all;

	burst(o, mark_ns);
	if (pair.side) {
		for (int k = 0; k < PAUSE_MARKS; k++)
			pair.area->mark_ns[k] = mark_ns[k];
		measure_say(o->burst, o);
		return;
	}
	measure_hear(o);
	all = measure_now() - begin - pair.area->mark_ns[TO_ALL];
	note(o, i, (double)all / 2e3, pair.area->mark_ns);
}

double pauses_run(const struct order *o, uint64_t n)
{
	const struct timespec rest = {(time_t)(o->idle_ns / 1000000000),
				      (long)(o->idle_ns % 1000000000)};
	uint64_t begin, worked;

	measure_meet();
	begin = measure_now();
	worked = cpu_ns();
	for (uint64_t i = 0; i < n; i++) {
		if (pair.side == 0)
			nanosleep(&rest, NULL);
		if (o->test == TEST_PAUSE)
			round_trips(o, i);
		else
			one_way(o, i);
	}
	pair.area->cpu_ns[pair.side] = cpu_ns() - worked;
	measure_meet();
	return (double)(measure_now() - begin);
}

static double median(double *x, size_t n)
{
	measure_sort(x, n);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

void pauses_answer(const struct order *o, struct answer *a)
{
	size_t n = (size_t)o->count;

	a->first_us = median(pair.area->each_us, n);
	a->to10_us = median(pair.area->behind_us[TO_10], n);
	a->to100_us = median(pair.area->behind_us[TO_100], n);
	a->lat_us = o->burst > 1 ? median(pair.area->behind_us[TO_ALL], n) : a->first_us;
	a->cpu_us = (double)(pair.area->cpu_ns[0] + pair.area->cpu_ns[1]) / (double)n / 1e3;
}
