/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library chooses by itself against modes that are fixed: "modes [-g GENERATIONS] [-p PAIRS]
 * [-s SWEEPS] [-o LOADS] [-t] PERFTEST CPU,CPU DIR" prints Markdown and leaves its figures in DIR; -t: the
 * choice is compared with itself, too.
 *
 * A mode is a pair of processes with settings of its own, which gives samples in turns with the
 * others, one of which is the pair that chooses. What is long comes behind half as much of the same
 * that is not counted. Which pages processes get is worth a few percent for as long as they live:
 * so they are started again a number of times, and such a generation counts once. Who starts first
 * and who is asked first is drawn, for either is worth something. What is clear is not asked about
 * any more, and what is not clear until the time is over.
 */
#include "tests/bench/modes.h"

#include <getopt.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/results.h"
#include "tests/bench/stats.h"

#define PAIRS_MOST 100

static struct plan {
	const char *program, *cpus, *dir, *only;
	regex_t wanted;
	int generations, pairs, sweeps;
	double budget; /* seconds of generations */
	bool twins;
} plan = {.generations = GENERATIONS_MOST, .pairs = 2, .sweeps = 5, .budget = 200};

static struct comparison all;
static FILE *samples;
static int log_fd;

/* ---- who is compared ------------------------------------------------------------------------- */

static bool wanted(const struct load *load)
{
	return !plan.only || regexec(&plan.wanted, load->name, 0, NULL, 0) == 0;
}

static bool is_choice(int m)
{
	return modes_choice(m) == m;
}

static bool is_open(int l, int m)
{
	return wanted(&LOAD[l]) && !is_choice(m) && modes_compare(&LOAD[l], &MODE[m]) &&
	       (plan.twins || !MODE[m].twin) && !modes_settled(&all.of[l][m]);
}

/* A twin alone is of no interest. */
static bool is_load_open(int l)
{
	for (int m = 0; m < MODES; m++)
		if (!MODE[m].twin && is_open(l, m))
			return true;
	return false;
}

static bool takes_part(int l, int m)
{
	if (!is_load_open(l))
		return false;
	return is_choice(m) ? MODE[m].group == LOAD[l].group : is_open(l, m);
}

static bool stands(int m)
{
	for (int l = 0; l < LOADS; l++)
		if (takes_part(l, m))
			return true;
	return false;
}

/* The numbers below N, each once; the same in each run. */
static void draw(int *order, int n)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	for (int i = 0; i < n; i++) {
		int at;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		at = (int)(state % (uint64_t)(i + 1));
		order[i] = order[at];
		order[at] = i;
	}
}

/* ---- generations ----------------------------------------------------------------------------- */

static struct { /* of this one, by load and mode */
	int n;
	double own[PAIRS_MOST], fixed[PAIRS_MOST], gain[PAIRS_MOST];
} now[LOADS_MOST][MODES_MOST];

static void note(int l, int m, double own, double fixed)
{
	int i = now[l][m].n;

	if (!(own > 0 && fixed > 0)) {
		all.of[l][m].lost++;
		return;
	}
	now[l][m].own[i] = own;
	now[l][m].fixed[i] = fixed;
	now[l][m].gain[i] = LOAD[l].time ? log(fixed / own) : log(own / fixed);
	now[l][m].n++;
}

/* One of each, the choice itself among them. */
static void take_turn(int l, const bool *part)
{
	double value[MODES_MOST] = {0}, own = 0;
	int order[MODES_MOST];

	draw(order, MODES);
	for (int i = 0; i < MODES; i++) {
		int m = order[i];

		if (part[m])
			value[m] = mode_sample(m, l, samples);
		if (part[m] && is_choice(m))
			own = value[m];
	}
	for (int m = 0; m < MODES; m++)
		if (part[m] && !is_choice(m))
			note(l, m, own, value[m]);
}

static void conclude(void)
{
	for (int l = 0; l < LOADS; l++)
		for (int m = 0; m < MODES; m++) {
			struct contest *c = &all.of[l][m];
			int n = now[l][m].n;

			if (!n)
				continue;
			c->gain[c->n] = middle(now[l][m].gain, n).mid;
			c->own[c->n] = median(now[l][m].own, n);
			c->fixed[c->n++] = median(now[l][m].fixed, n);
			now[l][m].n = 0;
		}
}

/* Beside who computes a try of another way costs milliseconds, which are made up for by a hundred
 * times as many: loads that teach so come last, and half as often. */
static bool is_early(int turn)
{
	return (plan.pairs - 1 - turn) & 1;
}

static void generation(void)
{
	bool part[LOADS_MOST][MODES_MOST];
	int order[MODES_MOST];

	draw(order, MODES);
	for (int i = 0; i < MODES; i++)
		if (stands(order[i]))
			mode_start(order[i], plan.program, plan.cpus, log_fd);
	for (int l = 0; l < LOADS; l++)
		for (int m = 0; m < MODES; m++)
			part[l][m] = takes_part(l, m);
	for (int turn = 0; turn < plan.pairs; turn++)
		for (int l = 0; l < LOADS; l++)
			if (is_load_open(l) && !(LOAD[l].kind & BESIDE && is_early(turn)))
				take_turn(l, part[l]);
	conclude();
	mode_stop_all();
}

static bool is_any_open(void)
{
	for (int l = 0; l < LOADS; l++)
		if (is_load_open(l))
			return true;
	return false;
}

static void generations(void)
{
	double begin = seconds(), each = 0;
	int n = 0;

	while (n < plan.generations && is_any_open() && seconds() - begin + each < plan.budget) {
		double from = seconds();

		generation();
		each = seconds() - from;
		n++;
	}
	printf("%d generations of at most %d pairs in %.0f s\n", n, plan.pairs, seconds() - begin);
}

/* ---- latency against size -------------------------------------------------------------------- */

enum { SIZES_SWEPT = 11 };

static double swept[MODES_MOST][SIZES_SWEPT][GENERATIONS_MOST];

static uint64_t size_swept(int i)
{
	return UINT64_C(8) << 2 * i;
}

static bool sweeps_mode(const struct load *load, int m)
{
	return modes_compare(load, &MODE[m]) && !MODE[m].twin;
}

static void sweep(const struct load *load, const char *name)
{
	FILE *data = results_file(plan.dir, name);
	uint64_t count;

	for (int m = 0; m < MODES; m++)
		if (sweeps_mode(load, m))
			mode_start(m, plan.program, plan.cpus, log_fd);
	for (int i = 0; i < plan.sweeps; i++)
		for (int s = 0; s < SIZES_SWEPT; s++)
			for (int m = 0; m < MODES; m++) {
				count = 8 + 2000000 / (512 + size_swept(s));
				if (sweeps_mode(load, m))
					swept[m][s][i] = mode_ask(m, load, size_swept(s), count);
			}
	for (int m = 0; m < MODES && data; m++) {
		if (!sweeps_mode(load, m))
			continue;
		fprintf(data, "\"%s\" x\n", MODE[m].name);
		for (int s = 0; s < SIZES_SWEPT; s++)
			fprintf(data, "%llu\t%g\n", (unsigned long long)size_swept(s),
				median(swept[m][s], plan.sweeps));
		fprintf(data, "\n\n");
	}
	if (data)
		fclose(data);
	mode_stop_all();
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

	while ((o = getopt(argc, argv, "g:p:s:o:b:t")) != -1)
		switch (o) {
		case 'g': plan.generations = atoi(optarg); break;
		case 'p': plan.pairs = atoi(optarg); break;
		case 's': plan.sweeps = atoi(optarg); break;
		case 'b': plan.budget = atof(optarg); break;
		case 't': plan.twins = true; break;
		case 'o': plan.only = optarg; break;
		default: return 2;
		}
	if (optind + 3 != argc || plan.generations < 1 || plan.generations > GENERATIONS_MOST ||
	    plan.pairs < 1 || plan.pairs > PAIRS_MOST || plan.sweeps < 0 ||
	    plan.sweeps > GENERATIONS_MOST) {
		fprintf(stderr,
			"usage: %s [-g GENERATIONS] [-p PAIRS] [-s SWEEPS] [-b SECONDS] [-o LOADS] [-t] "
			"PROGRAM CPU,CPU DIR\n",
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
