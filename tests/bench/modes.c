/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library chooses by itself against modes that are fixed: "modes [-g GENERATIONS] [-p PAIRS]
 * [-s SWEEPS] [-o LOADS] PERFTEST CPU,CPU DIR" prints Markdown and leaves its figures in DIR.
 *
 * A mode is a pair of processes with settings of its own, which gives samples in turns with the
 * others, one of which is the pair that chooses. What is long comes behind half as much of the same
 * that is not counted. Which pages processes get is worth a few percent for as long as they live: so
 * they are started anew a number of times, and such a generation counts once.
 */
#include "tests/bench/modes.h"

#include <getopt.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/results.h"
#include "tests/bench/stats.h"

#define ANSWER_MS    20000
#define PAIRS_MOST   100
#define FEW          4
#define BUDGET_S     120.0 /* the whole is to take two minutes and a half */
#define LEARNED_FROM 65536 /* bytes: of what is shorter nothing is learned */
#define LEAST        4     /* generations */

static struct plan {
	const char *program, *cpus, *dir, *only;
	regex_t wanted;
	int generations, pairs, sweeps;
} plan = {.generations = 16, .pairs = 2, .sweeps = 5};

static struct comparison all;
static struct child child[MODES_MOST];
static uint64_t counts[LOADS_MOST][MODES_MOST];
static FILE *samples;
static int log_fd;

/* ---- processes ------------------------------------------------------------------------------- */

static void start(int mode)
{
	char command[512];
	const char *why;

	snprintf(command, sizeof command, "exec env %s %s --serve -c %s", MODE[mode].settings,
		 plan.program, plan.cpus);
	if (child_start(&child[mode], command, log_fd) ||
	    !child_ask(&child[mode], "send_lat 8 100\n", ANSWER_MS, &why)) {
		printf("skipped: %s cannot be started (see log.txt)\n", MODE[mode].settings);
		child_stop(&child[mode]);
	}
}

static int wanted(const struct load *load)
{
	return !plan.only || regexec(&plan.wanted, load->name, 0, NULL, 0) == 0;
}

static int stands(int mode)
{
	for (int l = 0; l < LOADS; l++)
		if (wanted(&LOAD[l]) && modes_compare(&LOAD[l], &MODE[mode]))
			return 1;
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the load came to, more being better; 0: nothing. */
static double ask(int mode, const struct load *load, uint64_t size, uint64_t count)
{
	const char *answer, *why;
	bool learns = load->size >= LEARNED_FROM && !(load->kind & BUSY);
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
	value = answer_number(answer, load->time ? "lat_us" : "rate_mps");
	return value > 0 ? value : 0;
}

/* How many it takes for the load's time: the first few are colder, and so take longer. */
static uint64_t settle(int mode, const struct load *load)
{
	uint64_t few = FEW;
	double value = ask(mode, load, load->size, few), n;

	for (int i = 0; i < 2 && value > 0; i++) {
		n = load->ms * 1e3 * (load->time ? 0.5 / value : value) / (i ? 1 : 8);
		few = n < FEW ? FEW : (uint64_t)n;
		value = i || few == FEW ? value : ask(mode, load, load->size, few);
	}
	return few;
}

static double sample(int mode, int l)
{
	uint64_t *count = &counts[l][mode];
	double value, took;

	if (!*count)
		*count = settle(mode, &LOAD[l]);
	took = seconds();
	value = ask(mode, &LOAD[l], LOAD[l].size, *count);
	fprintf(samples, "%s\t%s\t%llu\t%.6g\t%.4f\n", LOAD[l].name, MODE[mode].settings,
		(unsigned long long)*count, value, seconds() - took);
	return value;
}

/* ---- generations ----------------------------------------------------------------------------- */

static struct { /* of this one, by load and mode */
	int n;
	double own[PAIRS_MOST], fixed[PAIRS_MOST];
} now[LOADS_MOST][MODES_MOST];

/* One of each, the choice itself among them, forwards and backwards in turn: what a sample leaves behind
 * must favour nobody. */
static void take_turn(int l, int turn)
{
	double value[MODES_MOST] = {0};
	int own = -1;

	for (int i = 0; i < MODES; i++) {
		int m = turn & 1 ? MODES - 1 - i : i;

		if (modes_compare(&LOAD[l], &MODE[m]))
			value[m] = sample(m, l);
	}
	for (int m = 0; m < MODES; m++) {
		int i = now[l][m].n;

		if (!modes_compare(&LOAD[l], &MODE[m]))
			continue;
		if (own < 0) {
			own = m; /* the first of its group */
			continue;
		}
		now[l][m].own[i] = value[own];
		now[l][m].fixed[i] = value[m];
		if (value[own] > 0 && value[m] > 0)
			now[l][m].n++;
		else
			all.of[l][m].lost++;
	}
}

static void conclude(void)
{
	for (int l = 0; l < LOADS; l++)
		for (int m = 0; m < MODES; m++) {
			struct contest *c = &all.of[l][m];
			int n = now[l][m].n;
			double sum = 0;

			if (!n)
				continue;
			for (int i = 0; i < n; i++)
				sum += log(now[l][m].own[i] / now[l][m].fixed[i]);
			c->gain[c->n] = (LOAD[l].time ? -sum : sum) / n;
			c->own[c->n] = median(now[l][m].own, n);
			c->fixed[c->n++] = median(now[l][m].fixed, n);
			now[l][m].n = 0;
		}
}

static void stop_all(void)
{
	for (int m = 0; m < MODES; m++)
		child_stop(&child[m]);
}

static void generation(void)
{
	for (int m = 0; m < MODES; m++)
		if (stands(m))
			start(m);
	for (int turn = 0; turn < plan.pairs; turn++)
		for (int l = 0; l < LOADS; l++)
			if (wanted(&LOAD[l]))
				take_turn(l, turn);
	conclude();
	stop_all();
}

/* As many as were asked for, unless a slow machine takes too long. */
static void generations(void)
{
	double begin = seconds(), each = 0;
	int n = 0;

	while (n < plan.generations && (n < LEAST || seconds() - begin + each < BUDGET_S)) {
		generation();
		each = (seconds() - begin) / ++n;
	}
	if (n < plan.generations)
		printf("%d of %d generations in %.0f s\n", n, plan.generations, BUDGET_S);
}

/* ---- latency against size -------------------------------------------------------------------- */

enum { SIZES_SWEPT = 11 };

static double swept[MODES_MOST][SIZES_SWEPT][GENERATIONS_MOST];

static uint64_t size_swept(int i)
{
	return UINT64_C(8) << 2 * i;
}

static void sweep(const struct load *load, const char *name)
{
	FILE *data = results_file(plan.dir, name);
	uint64_t count;

	for (int m = 0; m < MODES; m++)
		if (modes_compare(load, &MODE[m]))
			start(m);
	for (int i = 0; i < plan.sweeps; i++)
		for (int s = 0; s < SIZES_SWEPT; s++)
			for (int m = 0; m < MODES; m++) {
				count = 8 + 2000000 / (512 + size_swept(s));
				if (modes_compare(load, &MODE[m]))
					swept[m][s][i] = ask(m, load, size_swept(s), count);
			}
	for (int m = 0; m < MODES && data; m++) {
		if (!modes_compare(load, &MODE[m]))
			continue;
		fprintf(data, "\"%s\" x\n", MODE[m].name);
		for (int s = 0; s < SIZES_SWEPT; s++)
			fprintf(data, "%llu\t%g\n", (unsigned long long)size_swept(s),
				median(swept[m][s], plan.sweeps));
		fprintf(data, "\n\n");
	}
	if (data)
		fclose(data);
	stop_all();
}

static void sweeps(void)
{
	static const struct load messages = {"", "send_lat", "", 0, PROTOCOLS, 0, 1, MESSAGES},
				 puts = {"", "put_lat", "", 0, PROTOCOLS, 0, 1, PUTS};

	if (!plan.sweeps)
		return;
	sweep(&messages, "modes-lat.dat");
	sweep(&puts, "modes-put.dat");
}

/* ---- the run --------------------------------------------------------------------------------- */

static int run(void)
{
	FILE *log = results_file(plan.dir, "log.txt"), *table;

	samples = results_file(plan.dir, "samples.tsv");
	table = results_file(plan.dir, "ratios.tsv");
	if (!log || !samples || !table) {
		fprintf(stderr, "cannot write in %s\n", plan.dir);
		return 1;
	}
	log_fd = fileno(log);
	signal(SIGPIPE, SIG_IGN);
	child_step_forward();
	generations();
	sweeps();
	modes_report(&all, stdout, table);
	fclose(table);
	fclose(samples);
	fclose(log);
	return 0;
}

int main(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "g:p:s:o:")) != -1)
		switch (o) {
		case 'g': plan.generations = atoi(optarg); break;
		case 'p': plan.pairs = atoi(optarg); break;
		case 's': plan.sweeps = atoi(optarg); break;
		case 'o': plan.only = optarg; break;
		default: return 2;
		}
	if (optind + 3 != argc || plan.generations < 1 || plan.generations > GENERATIONS_MOST ||
	    plan.pairs < 1 || plan.pairs > PAIRS_MOST || plan.sweeps < 0 ||
	    plan.sweeps > GENERATIONS_MOST) {
		fprintf(stderr,
			"usage: %s [-g GENERATIONS] [-p PAIRS] [-s SWEEPS] [-o LOADS] PROGRAM "
			"CPU,CPU DIR\n",
			argv[0]);
		return 2;
	}
	if (plan.only && regcomp(&plan.wanted, plan.only, REG_EXTENDED | REG_NOSUB)) {
		fprintf(stderr, "no regular expression: %s\n", plan.only);
		return 2;
	}
	plan.program = argv[optind];
	plan.cpus = argv[optind + 1];
	plan.dir = argv[optind + 2];
	return run();
}
