/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of processes, one a mode, and what a load comes to with one of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/modes.h"

#define ANSWER_MS    20000
#define FEW          4
#define GROWTH       8 /* times as many at the most: the first few are colder, and so take longer */
#define ATTEMPTS     10
#define ALIKE        3
#define LEARNED_FROM 65536 /* bytes: of what is shorter nothing is learned */

static struct child child[MODES_MOST];
static uint64_t counts[LOADS_MOST][MODES_MOST]; /* that last as long as the load is to */

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- processes ------------------------------------------------------------------------------- */

void mode_start(int mode, const char *program, const char *cpus, int log)
{
	char command[512];
	const char *why;

	snprintf(command, sizeof command, "exec env %s %s --serve -c %s", MODE[mode].settings,
		 program, cpus);
	if (child_start(&child[mode], command, log) ||
	    !child_ask(&child[mode], "send_lat 8 100\n", ANSWER_MS, &why)) {
		printf("skipped: %s cannot be started (see log.txt)\n", MODE[mode].settings);
		child_stop(&child[mode]);
	}
}

void mode_stop_all(void)
{
	for (int m = 0; m < MODES; m++)
		child_stop(&child[m]);
}

/* ---- samples --------------------------------------------------------------------------------- */

double mode_ask(int mode, const struct load *load, uint64_t size, uint64_t count)
{
	const char *answer, *why;
	bool learns = load->size >= LEARNED_FROM && !(load->kind & BESIDE);
	char order[160], warm[32] = "";
	double value;

	/* What the load before it has taught the choice is no part of this one. */
	if (learns)
		snprintf(warm, sizeof warm, " warm %llu", (unsigned long long)(count / 2));
	snprintf(order, sizeof order, "%s %llu %llu%s%s\n", load->order, (unsigned long long)size,
		 (unsigned long long)count, load->options, warm);
	answer = child[mode].pid ? child_ask(&child[mode], order, ANSWER_MS, &why) : NULL;
	if (!answer)
		return 0;
	value = answer_number(answer, load->time ? "lat_us" : "messages_per_s");
	value /= load->time ? 1 : 1e6;
	return value > 0 ? value : 0;
}

static double lasted_ms(const struct load *load, uint64_t count, double value)
{
	return (double)count / 1e3 * (load->time ? 2 * value : 1 / value);
}

/* By a sample itself, and not by what a few promise: beside who computes these wait for one turn of
 * the scheduler's, however few they are. */
static uint64_t settle(int mode, const struct load *load)
{
	uint64_t count = FEW;

	for (int i = 0; i < ATTEMPTS; i++) {
		double value = mode_ask(mode, load, load->size, count), times;

		if (!(value > 0))
			break;
		times = load->ms / lasted_ms(load, count, value);
		if (times > 0.7 && times < 1.4)
			break;
		times = times > GROWTH ? GROWTH : times;
		count = (double)count * times < FEW ? FEW : (uint64_t)((double)count * times);
	}
	return count;
}

/* What lasts about as long as the choice sends as many: beside who computes longer samples differ
 * from shorter ones by a few percent, and the numbers stay for all generations. */
static uint64_t fair_count(int mode, int l)
{
	uint64_t *its = &counts[l][modes_choice(mode)], own;

	if (!*its)
		*its = settle(modes_choice(mode), &LOAD[l]);
	if (mode == modes_choice(mode))
		return *its;
	own = settle(mode, &LOAD[l]);
	return own <= ALIKE * *its && *its <= ALIKE * own ? *its : own;
}

double mode_sample(int mode, int l, FILE *samples)
{
	uint64_t *count = &counts[l][mode];
	double value, took;

	if (!*count)
		*count = fair_count(mode, l);
	took = seconds();
	value = mode_ask(mode, &LOAD[l], LOAD[l].size, *count);
	fprintf(samples, "%s\t%s\t%llu\t%.6g\t%.4f\n", LOAD[l].name, MODE[mode].settings,
		(unsigned long long)*count, value, seconds() - took);
	return value;
}
