/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a comparison: all systems are started once and asked in turn. The first pass samples every
 * system in every cell and so finds the best peer of each; the second takes samples of ours and of
 * that peer alternately. Both go round all cells again and again, so that each cell's samples are
 * spread over the whole run. At the end comes what takes one long sample.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/peers/order.h"
#include "tests/bench/results.h"

#define RETAKES 4
#define TURNS   2 /* of each pattern */

struct plan {
	const char *systems, *dir;
	int rounds, pairs, long_ms, turn_ms;
	double sample_ms;
};

static struct results all;

void series_add(struct series *s, double v)
{
	if (s->n < SAMPLES)
		s->v[s->n++] = v;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void progress(const char *what, int done, int of)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s: round %d of %d%s", what, done, of, done == of ? "\n" : " ");
}

/* Large messages may be fetched, large loans lie in areas, an atomic operation reads. */
static int reads_nothing(enum metric m, int z)
{
	return m != FETCH_ADD && SIZE[z] < (m == LOAN ? 4096 : 65536);
}

static int take(int system, enum metric m, int z, const struct plan *p, const char *pass,
		struct reading *got)
{
	struct system *s = &all.system[system];

	if (KIND[m].judgement == ONCE ? system_sample_long(s, m, z, p->long_ms, got) :
					system_sample(s, m, z, p->sample_ms, got))
		return -1;
	fprintf(all.samples, "%s\t%s\t%s\t%s\t%.6g\t%.6g\n", pass, KIND[m].name, cell_word(m, z),
		s->name, got->value, got->line_ns);
	if (got->line_ns > 0)
		series_add(&all.line_ns, got->line_ns);
	if (system_is(s, "ours") && reads_nothing(m, z) && got->remote_reads > all.remote_reads)
		all.remote_reads = got->remote_reads;
	return 0;
}

/* ---- first pass ---- */

static int of_class(const char *class)
{
	for (int i = 0; i < all.systems; i++)
		if (all.system[i].child.pid && system_is(&all.system[i], class))
			return i;
	return -1;
}

static int is_ranked(enum metric m, int z)
{
	if (KIND[m].judgement != RATIO || KIND[m].turns ||
	    (m > PUT_BW && of_class(cell_rival(m, z)) < 0))
		return 0; /* nobody to choose from, and no row in the tables */
	/* Who is best in lat is the one whose 99th percentile counts. */
	return m != P99 && (cell_chosen(m, z) || (m == LAT && cell_chosen(P99, z)));
}

static int is_first(enum metric m, int z, int round)
{
	return is_ranked(m, z) && (!KIND[m].rounds || round <= KIND[m].rounds);
}

static int is_due(enum metric m, int round)
{
	return !KIND[m].turns && (!KIND[m].every || round % KIND[m].every == 0);
}

/* ---- a second of silence ---- */

#define STAGGER_MS 100 /* a burst after it lasts half as long */

static int is_asked(int i, enum metric m, int z, int round, int second)
{
	const struct duel *d = &all.duel[m][z];

	if (second)
		return is_due(m, round) && (d->ours == i || d->rival == i);
	return is_first(m, z, round) && system_plays(&all.system[i], m, z);
}

/* Those who sleep do it side by side, and have their bursts one after the other. */
static void share_silence(enum metric m, int z, int round, int second)
{
	const struct timespec stagger = {0, STAGGER_MS * 1000000};
	int who[SYSTEMS], n = 0;

	for (int i = 0; i < all.systems; i++) {
		struct system *s = &all.system[i];

		if (!s->child.pid || system_is(s, "spins") || !is_asked(i, m, z, round, second) ||
		    system_keeps(s, m, z))
			continue;
		if (system_tell(s, m, z) == 0)
			who[n++] = i;
		nanosleep(&stagger, NULL);
	}
	for (int k = 0; k < n; k++)
		system_hear(&all.system[who[k]], m, z);
}

static void new_round(int round, int second)
{
	for (int i = 0; i < all.systems; i++)
		system_forget(&all.system[i]);
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++)
			if (cell_is_silent((enum metric)m, z))
				share_silence((enum metric)m, z, round, second);
}

static void first_pass(const struct plan *p)
{
	struct reading got;

	for (int round = 1; round <= p->rounds; round++) {
		progress("first pass", round, p->rounds);
		new_round(round, 0);
		for (int m = 0; m < METRICS; m++)
			for (int z = 0; z < SIZES; z++)
				for (int i = 0;
				     i < all.systems && is_first((enum metric)m, z, round); i++)
					if (take(i, (enum metric)m, z, p, "first", &got) == 0)
						series_add(&all.first[i][m][z], got.value);
	}
}

static int find_rival(enum metric m, int z)
{
	const char *rival = cell_rival(m, z);

	if (!rival)
		return -1;
	if (KIND[m].judgement != RATIO || KIND[m].turns)
		return of_class(rival);
	return results_best(&all, m == P99 ? LAT : m, z, rival);
}

static void match(void)
{
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES; z++) {
			int chosen = cell_chosen((enum metric)m, z);

			all.duel[m][z].ours = chosen ? of_class(KIND[m].ours) : -1;
			all.duel[m][z].rival = chosen ? find_rival((enum metric)m, z) : -1;
		}
}

/* ---- second pass ---- */

/* Same placement, as far as the two probes of the line tell; on one CPU there is none to tell. */
static int together(enum metric m, const struct reading *a, const struct reading *b)
{
	double x = a->line_ns, y = b->line_ns;

	if (m == ONE_CPU || m == CROWD || m == BUSY || x == -2 || y == -2)
		return 1; /* there is none, or the answers do not tell */
	return x > 0 && y > 0 && x <= y * ORDER_SAME_PLACE && y <= x * ORDER_SAME_PLACE;
}

static void pair_up(struct duel *d, enum metric m, int z, int round, const struct plan *p)
{
	int who[2] = {d->ours, d->rival}, first = round & 1, tries = 0, same;
	struct reading got[2];

	do {
		/* Who goes first alternates: what a sample leaves behind must favour nobody. */
		for (int k = 0; k < 2; k++)
			if (take(who[k ^ first], m, z, p, "pairs", &got[k ^ first])) {
				d->lost++;
				return;
			}
		same = together(m, &got[0], &got[1]);
		/* An order of a column's own takes long, and waking longer than a line. */
	} while (!same && !KIND[m].column_order[z] && ++tries < RETAKES);
	d->moved += !same;
	series_add(&d->a, got[0].value);
	series_add(&d->b, got[1].value);
	if (m == LAT && got[0].hops > 0)
		series_add(&d->hops, got[0].hops);
	if (m == PUT_BW && got[0].far_cpu >= 0)
		series_add(&d->far_cpu, got[0].far_cpu);
}

static void alone(struct duel *d, enum metric m, int z, const struct plan *p)
{
	struct reading got;

	if (take(d->ours, m, z, p, "alone", &got))
		d->lost++;
	else
		series_add(&d->a, got.value);
}

static void second_pass(const struct plan *p)
{
	for (int round = 1; round <= p->pairs; round++) {
		progress("second pass", round, p->pairs);
		new_round(round, 1);
		for (int m = 0; m < METRICS; m++)
			for (int z = 0; z < SIZES; z++) {
				struct duel *d = &all.duel[m][z];

				if (!is_due((enum metric)m, round))
					continue;
				if (d->ours >= 0 && d->rival >= 0)
					pair_up(d, (enum metric)m, z, round, p);
				else if (d->ours >= 0 && KIND[m].judgement == ALONE)
					alone(d, (enum metric)m, z, p);
			}
	}
}

/* One process has each pattern for a while, again and again; what it is held against comes in
 * between. */
static void take_turns(enum metric m, const struct plan *p)
{
	for (int turn = 0; turn < TURNS; turn++)
		for (int z = 0; z < SIZES; z++) {
			struct duel *d = &all.duel[m][z];
			long end = now_ms() + 2 * p->turn_ms; /* ours, and as long the rival's */

			for (int round = 1; d->ours >= 0 && d->rival >= 0 && now_ms() < end;
			     round++)
				pair_up(d, m, z, round, p);
		}
}

static void long_samples(const struct plan *p)
{
	for (int m = 0; m < METRICS; m++)
		for (int z = 0; z < SIZES && KIND[m].judgement == ONCE; z++)
			if (all.duel[m][z].ours >= 0)
				alone(&all.duel[m][z], (enum metric)m, z, p);
}

/* ---- the run ---- */

static FILE *open_in(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return fopen(path, "ae");
}

static int run(const struct plan *p)
{
	FILE *log = open_in(p->dir, "log.txt");

	all.samples = open_in(p->dir, "samples.tsv");
	all.systems = systems_read(p->systems, all.system);
	all.remote_reads = -1;
	if (!log || !all.samples || all.systems < 1) {
		fprintf(stderr, "cannot read %s or write in %s\n", p->systems, p->dir);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	child_step_forward();
	for (int i = 0; i < all.systems; i++)
		if (system_is_wanted(&all.system[i]))
			system_start(&all.system[i], fileno(log));
	first_pass(p);
	match();
	second_pass(p);
	for (int m = 0; m < METRICS; m++)
		if (KIND[m].turns)
			take_turns((enum metric)m, p);
	long_samples(p);
	for (int i = 0; i < all.systems; i++)
		child_stop(&all.system[i].child);
	fclose(all.samples);
	fclose(log);
	report_systems(&all, stdout);
	return report_verdicts(&all, p->dir, stdout) || report_files(&all, p->dir) ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct plan p = {
		.rounds = 5, .pairs = 60, .long_ms = 10000, .turn_ms = 2000, .sample_ms = 8};
	const char *bad;
	int o;

	while ((o = getopt(argc, argv, "r:n:m:l:t:c:")) != -1)
		switch (o) {
		case 'r': p.rounds = atoi(optarg); break;
		case 'n': p.pairs = atoi(optarg); break;
		case 'm': p.sample_ms = atof(optarg); break;
		case 'l': p.long_ms = atoi(optarg); break;
		case 't': p.turn_ms = atoi(optarg); break;
		case 'c':
			if (cells_choose(optarg, &bad) == 0)
				break;
			fprintf(stderr,
				"no such cell: %s; known are METRIC or METRIC:SIZE, as in lat:8 or tbw:64K\n",
				bad);
			cells_list(stderr);
			return 2;
		default: return 2;
		}
	if (optind + 2 != argc || p.rounds < 1 || p.pairs < 0 || p.pairs > SAMPLES ||
	    p.sample_ms <= 0 || p.long_ms < 1 || p.turn_ms < 1) {
		fprintf(stderr,
			"usage: %s [-r ROUNDS] [-n PAIRS] [-m MS] [-l MS] [-t MS] [-c CELLS] SYSTEMS DIR\n",
			argv[0]);
		return 2;
	}
	p.systems = argv[optind];
	p.dir = argv[optind + 1];
	return run(&p);
}
