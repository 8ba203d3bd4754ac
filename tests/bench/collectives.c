/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations beside MPI's: "collectives SYSTEMS PAIRS [ONLY]" prints Markdown.
 * SYSTEMS: a file of lines "RANKS, tab, NAME, tab, COMMAND"; NAME "ours" is ours, those that begin
 * "boards: " are what it chooses from, forced; all others are MPI's with one setting each
 * (peers/coll.c). For each row all that it is held against are sampled in turns a few times; then
 * ours and the best of them take turns for PAIRS samples. ONLY: rows whose name contains it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/child.h"
#include "tests/bench/stats.h"

enum { SYSTEMS = 40, PAIRS = 200, LOOKS = 5, ANSWER_MS = 60000, LINE = 1024 };

struct system {
	unsigned ranks;
	char name[64], command[LINE];
	struct child child;
	bool lost;
};

/* What ours is held against. */
enum against { MPI, MESSAGE, BOARDS };

struct row {
	unsigned ranks;
	const char *name, *order, *key; /* the answer's */
	double bar;                     /* 0: shown only */
	enum against against;
};

static const struct row rows[] = {
	{2, "barrier", "barrier 0 20000", "lat_us", 0.40, MPI},
	{2, "barrier, over a message", "barrier 0 20000", "lat_us", 1.1, MESSAGE},
	{2, "allreduce, 8 B", "allreduce 8 20000", "lat_us", 0.45, MPI},
	{2, "allreduce, 8 B, over a message", "allreduce 8 20000", "lat_us", 1.3, MESSAGE},
	{2, "broadcast, 8 B, roots in turn", "bcast 8 20000", "lat_us", 0.58, MPI},
	{2, "allreduce, 1 KiB", "allreduce 1024 8000", "lat_us", 0.65, MPI},
	{2, "allreduce, 64 KiB", "allreduce 65536 600", "lat_us", 0.70, MPI},
	{2, "allreduce, 1 MiB", "allreduce 1048576 60", "lat_us", 0.85, MPI},
	{2, "broadcast, 1 MiB, roots in turn", "bcast 1048576 100", "lat_us", 0.85, MPI},
	{2, "allgather, 1 MiB", "allgather 1048576 60", "lat_us", 0.90, MPI},
	{2, "alltoall, 1 MiB", "alltoall 1048576 60", "lat_us", 0.90, MPI},
	{2, "broadcast, 4 KiB, chosen", "bcast 4096 6000", "lat_us", 1.05, BOARDS},
	{2, "broadcast, 64 KiB, chosen", "bcast 65536 800", "lat_us", 1.05, BOARDS},
	{2, "broadcast, 1 MiB, chosen", "bcast 1048576 100", "lat_us", 1.05, BOARDS},
	{2, "allgather, 32 KiB, chosen", "allgather 32768 1000", "lat_us", 1.05, BOARDS},
	{2, "allgather, 1 MiB, chosen", "allgather 1048576 60", "lat_us", 1.05, BOARDS},
	{2, "alltoall, 32 KiB, chosen", "alltoall 32768 1000", "lat_us", 1.05, BOARDS},
	{2, "alltoall, 1 MiB, chosen", "alltoall 1048576 60", "lat_us", 1.05, BOARDS},
	{4, "alltoall, 64 KiB, chosen", "alltoall 65536 150", "lat_us", 1.05, BOARDS},
	{4, "barrier", "barrier 0 3000", "lat_us", 0, MPI},
	{4, "barrier, median", "barrier 0 3000 each", "lat_us_p50", 0.65, MPI},
	{4, "barrier, p99", "barrier 0 3000 each", "lat_us_p99", 1.0, MPI},
	{4, "allreduce, 8 B", "allreduce 8 3000", "lat_us", 0, MPI},
	{4, "allreduce, 8 B, median", "allreduce 8 3000 each", "lat_us_p50", 0.65, MPI},
	{4, "allreduce, 8 B, p99", "allreduce 8 3000 each", "lat_us_p99", 1.0, MPI},
	{8, "barrier", "barrier 0 1500", "lat_us", 0, MPI},
	{8, "barrier, median", "barrier 0 1500 each", "lat_us_p50", 0.5, MPI},
	{8, "barrier, p99", "barrier 0 1500 each", "lat_us_p99", 1.0, MPI},
	{8, "allreduce, 8 B", "allreduce 8 1500", "lat_us", 0, MPI},
	{8, "allreduce, 8 B, median", "allreduce 8 1500 each", "lat_us_p50", 0.5, MPI},
	{8, "allreduce, 8 B, p99", "allreduce 8 1500 each", "lat_us_p99", 1.0, MPI},
	{16, "barrier", "barrier 0 600", "lat_us", 0, MPI},
	{16, "barrier, median", "barrier 0 600 each", "lat_us_p50", 0.5, MPI},
	{16, "barrier, p99", "barrier 0 600 each", "lat_us_p99", 1.0, MPI},
	{16, "allreduce, 8 B", "allreduce 8 600", "lat_us", 0, MPI},
	{16, "allreduce, 8 B, median", "allreduce 8 600 each", "lat_us_p50", 0.5, MPI},
	{16, "allreduce, 8 B, p99", "allreduce 8 600 each", "lat_us_p99", 1.0, MPI},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct system systems[SYSTEMS];
static int count;

/* ---- systems --------------------------------------------------------------------------------- */

static bool begins(const struct system *s, const char *name)
{
	return strncmp(s->name, name, strlen(name)) == 0;
}

static bool is_mpi(const struct system *s)
{
	return !begins(s, "ours") && !begins(s, "boards: ");
}

/* One that ours may be held against. */
static bool is_rival(const struct row *r, const struct system *s)
{
	if (s->ranks != r->ranks)
		return false;
	if (r->against == MPI)
		return is_mpi(s);
	return begins(s, "boards: ");
}

static bool read_systems(const char *path)
{
	FILE *file = fopen(path, "r");
	struct system *s = systems;

	if (!file)
		return false;
	while (count < SYSTEMS &&
	       fscanf(file, "%u\t%63[^\t]\t%1023[^\n]\n", &s->ranks, s->name, s->command) == 3) {
		s++;
		count++;
	}
	fclose(file);
	return count > 0;
}

static struct system *ours_of(const struct row *r)
{
	for (int i = 0; i < count; i++)
		if (systems[i].ranks == r->ranks && strcmp(systems[i].name, "ours") == 0)
			return &systems[i];
	return NULL;
}

static void start_all(unsigned ranks, int log)
{
	for (int i = 0; i < count; i++)
		if (systems[i].ranks == ranks)
			systems[i].lost = child_start(&systems[i].child, systems[i].command, log);
}

static void stop_all(unsigned ranks)
{
	for (int i = 0; i < count; i++)
		if (systems[i].ranks == ranks)
			child_stop(&systems[i].child);
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool sample(struct system *s, const char *order, const char *key, double *us)
{
	const char *why = "answers nonsense", *answer;
	char line[LINE / 4];

	if (s->lost)
		return false;
	if (!is_mpi(s))
		snprintf(line, sizeof line, "%s members %u\n", order, s->ranks);
	else
		snprintf(line, sizeof line, "%s\n", order);
	answer = child_ask(&s->child, line, ANSWER_MS, &why);
	*us = answer ? answer_number(answer, key) : -1;
	if (*us > 0)
		return true;
	fprintf(stderr, "%u ranks, %s, %s: %s\n", s->ranks, s->name, order, answer ? answer : why);
	s->lost = true;
	return false;
}

/* The best of the others, by a few samples in turns; NULL: there is none. */
static struct system *best_of(const struct row *r)
{
	double us[SYSTEMS][LOOKS], least = 0;
	struct system *best = NULL;

	for (int k = 0; k < LOOKS; k++)
		for (int i = 0; i < count; i++)
			if (is_rival(r, &systems[i]))
				(void)sample(&systems[i], r->order, r->key, &us[i][k]);
	for (int i = 0; i < count; i++) {
		double middle;

		if (!is_rival(r, &systems[i]) || systems[i].lost)
			continue;
		middle = median(us[i], LOOKS);
		if (best && middle >= least)
			continue;
		best = &systems[i];
		least = middle;
	}
	return best;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *verdict_of(const struct row *r, struct estimate e)
{
	if (r->bar <= 0)
		return "";
	return e.high <= r->bar ? "holds" : e.low > r->bar ? "does not hold" : "undecided";
}

static void print_row(const struct row *r, const double *a, const double *b, int n,
		      const char *name)
{
	struct estimate e = ratio(a, b, n);
	char bar[16] = "";

	if (r->bar > 0)
		snprintf(bar, sizeof bar, "≤ %.2f", r->bar);
	printf("| %u | %s | %s | %.4g us | %.4g us | %s | %.3g (%.3g to %.3g) | %s |\n", r->ranks,
	       r->name, bar, median(a, n), median(b, n), name, e.mid, e.low, e.high,
	       verdict_of(r, e));
	fflush(stdout);
}

/* A sample of what ours is held against. */
static bool other(const struct row *r, struct system *against, double *us)
{
	if (r->against == MESSAGE)
		return sample(against, "send_lat 8 20000", "lat_us", us);
	return sample(against, r->order, r->key, us);
}

static bool measure(const struct row *r, int pairs)
{
	static double a[PAIRS], b[PAIRS];
	struct system *ours = ours_of(r);
	struct system *against = r->against == MESSAGE ? ours : best_of(r);

	for (int i = 0; ours && against && i < pairs; i++) {
		bool well =
			i & 1 ? sample(ours, r->order, r->key, &a[i]) && other(r, against, &b[i]) :
				other(r, against, &b[i]) && sample(ours, r->order, r->key, &a[i]);

		if (!well)
			against = NULL;
	}
	if (ours && against) {
		print_row(r, a, b, pairs, r->against == MESSAGE ? "8 B one way" : against->name);
		return true;
	}
	printf("| %u | %s | | | | | | not measured |\n", r->ranks, r->name);
	return false;
}

static bool is_wanted(const struct row *r, const char *only)
{
	char name[LINE];

	snprintf(name, sizeof name, "%u %s", r->ranks, r->name);
	return strstr(name, only) != NULL;
}

/* All rows of so many ranks; the next row's index. */
static int measure_ranks(int first, int pairs, const char *only, bool *well)
{
	unsigned ranks = rows[first].ranks;
	bool started = false;
	int i = first;

	for (; i < ROWS && rows[i].ranks == ranks; i++) {
		if (!is_wanted(&rows[i], only))
			continue;
		if (!started)
			start_all(ranks, STDERR_FILENO);
		started = true;
		*well = measure(&rows[i], pairs) && *well;
	}
	if (started)
		stop_all(ranks);
	return i;
}

int main(int argc, char **argv)
{
	int pairs = argc > 2 ? atoi(argv[2]) : 0;
	bool well = true;

	if (argc < 3 || pairs < 1 || pairs > PAIRS || !read_systems(argv[1])) {
		fprintf(stderr, "usage: %s SYSTEMS PAIRS [ONLY]; 1 to %d pairs\n", argv[0], PAIRS);
		return 2;
	}
	child_step_forward();
	printf("| ranks | | bar | ours | held against | which | ratio | |\n"
	       "| --: | --- | --- | --: | --: | --- | --- | --- |\n");
	for (int i = 0; i < ROWS;)
		i = measure_ranks(i, pairs, argc > 3 ? argv[3] : "", &well);
	printf("\nSettings:\n\n");
	for (int i = 0; i < count; i++)
		printf("* %u ranks, %s: `%s`\n", systems[i].ranks, systems[i].name,
		       systems[i].command);
	return well ? 0 : 1;
}
