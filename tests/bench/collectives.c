/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations beside MPI's: "collectives SYSTEMS PAIRS [ONLY]" prints Markdown.
 * SYSTEMS: a file of lines "RANKS, tab, NAME, tab, COMMAND"; NAME "ours" is ours, "ours, ..." with
 * algorithms that are forced, "machine" what is done without a library (collectives_bare.c), all
 * others are MPI's with one setting each (peers/coll.c). RANKS is "4", or "4 hosts": then each is
 * on a host of its own; or "8 on 4 hosts": two on each. For each row all that it is held against are sampled in turns a few times;
 * then ours, the best of these and the machine take turns for PAIRS samples. A row whose bar is
 * beyond the machine holds where ours is within WITHIN of that. ONLY: rows whose name contains it.
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

#define WITHIN 1.05
/* Of those that take turns, on hosts, and of ours with what is forced: which pages and addresses
 * processes get stays with them. */
#define STARTS 6

enum { SYSTEMS = 48, PAIRS = 200, LOOKS = 5, ANSWER_MS = 60000, LINE = 1024 };

struct system {
	char ranks[16], name[64], command[LINE];
	struct child child;
	bool lost;
};

/* What ours is held against. */
/* MPI_SHARED: ours in memory of its group. */
enum against { MPI, MESSAGE, MPI_SHARED, FORCED };

struct row {
	const char *ranks, *name, *order, *key; /* the answer's */
	double bar;                             /* 0: shown only */
	enum against against;
	bool bare; /* the machine has it, too */
};

#define HOSTS  "4 hosts"
#define PAIRED "8 on " HOSTS

static const struct row rows[] = {
	{"2", "barrier", "barrier 0 20000", "lat_us", 0.40, MPI, true},
	{"2", "barrier, over a message", "barrier 0 20000", "lat_us", 1.1, MESSAGE, false},
	{"2", "allreduce, 8 B", "allreduce 8 20000", "lat_us", 0.45, MPI, true},
	{"2", "allreduce, 8 B, over a message", "allreduce 8 20000", "lat_us", 1.3, MESSAGE, false},
	{"2", "broadcast, 8 B, roots in turn", "bcast 8 20000", "lat_us", 0.58, MPI, true},
	{"2", "allreduce, 1 KiB", "allreduce 1024 8000", "lat_us", 0.65, MPI, true},
	{"2", "allreduce, 64 KiB", "allreduce 65536 600", "lat_us", 0.70, MPI, false},
	{"2", "allreduce, 1 MiB", "allreduce 1048576 60", "lat_us", 0.85, MPI, false},
	{"2", "allreduce, 1 MiB, in group memory", "allreduce 1048576 60", "lat_us", 0.75,
	 MPI_SHARED, false},
	{"2", "broadcast, 1 MiB, roots in turn", "bcast 1048576 100", "lat_us", 0.85, MPI, false},
	{"2", "allgather, 1 MiB", "allgather 1048576 60", "lat_us", 0.90, MPI, false},
	{"2", "alltoall, 1 MiB", "alltoall 1048576 60", "lat_us", 0.90, MPI, false},
	{"4", "barrier", "barrier 0 3000", "lat_us", 0, MPI, true},
	{"4", "barrier, median", "barrier 0 3000 each", "lat_us_p50", 0.65, MPI, true},
	{"4", "barrier, p99", "barrier 0 3000 each", "lat_us_p99", 1.0, MPI, false},
	{"4", "allreduce, 8 B", "allreduce 8 3000", "lat_us", 0, MPI, true},
	{"4", "allreduce, 8 B, median", "allreduce 8 3000 each", "lat_us_p50", 0.65, MPI, true},
	{"4", "allreduce, 8 B, p99", "allreduce 8 3000 each", "lat_us_p99", 1.0, MPI, false},
	{"8", "barrier", "barrier 0 1500", "lat_us", 0, MPI, true},
	{"8", "barrier, median", "barrier 0 1500 each", "lat_us_p50", 0.5, MPI, true},
	{"8", "barrier, p99", "barrier 0 1500 each", "lat_us_p99", 1.0, MPI, false},
	{"8", "allreduce, 8 B", "allreduce 8 1500", "lat_us", 0, MPI, true},
	{"8", "allreduce, 8 B, median", "allreduce 8 1500 each", "lat_us_p50", 0.5, MPI, true},
	{"8", "allreduce, 8 B, p99", "allreduce 8 1500 each", "lat_us_p99", 1.0, MPI, false},
	{"16", "barrier", "barrier 0 600", "lat_us", 0, MPI, false},
	{"16", "barrier, median", "barrier 0 600 each", "lat_us_p50", 0.5, MPI, false},
	{"16", "barrier, p99", "barrier 0 600 each", "lat_us_p99", 1.0, MPI, false},
	{"16", "allreduce, 8 B", "allreduce 8 600", "lat_us", 0, MPI, false},
	{"16", "allreduce, 8 B, median", "allreduce 8 600 each", "lat_us_p50", 0.5, MPI, false},
	{"16", "allreduce, 8 B, p99", "allreduce 8 600 each", "lat_us_p99", 1.0, MPI, false},
	{"2", "broadcast, 4 KiB, over the best forced", "bcast 4096 6000", "lat_us", 1.05, FORCED,
	 false},
	{"2", "broadcast, 64 KiB, over the best forced", "bcast 65536 800", "lat_us", 1.05, FORCED,
	 false},
	{"2", "broadcast, 1 MiB, over the best forced", "bcast 1048576 100", "lat_us", 1.05, FORCED,
	 false},
	{"2", "allgather, 32 KiB, over the best forced", "allgather 32768 1000", "lat_us", 1.05,
	 FORCED, false},
	{"2", "allgather, 1 MiB, over the best forced", "allgather 1048576 60", "lat_us", 1.05,
	 FORCED, false},
	{"2", "alltoall, 32 KiB, over the best forced", "alltoall 32768 1000", "lat_us", 1.05,
	 FORCED, false},
	{"2", "alltoall, 1 MiB, over the best forced", "alltoall 1048576 60", "lat_us", 1.05,
	 FORCED, false},
	{"4", "alltoall, 64 KiB, over the best forced", "alltoall 65536 150", "lat_us", 1.05,
	 FORCED, false},
	{HOSTS, "barrier", "barrier 0 2000", "lat_us", 0, MPI, true},
	{HOSTS, "allreduce, 8 B", "allreduce 8 2000", "lat_us", 0.8, MPI, true},
	{HOSTS, "allreduce, 1 KiB", "allreduce 1024 2000", "lat_us", 0, MPI, true},
	{HOSTS, "allreduce, 64 KiB", "allreduce 65536 300", "lat_us", 0, MPI, false},
	{HOSTS, "allreduce, 1 MiB", "allreduce 1048576 40", "lat_us", 0.9, MPI, false},
	{HOSTS, "broadcast, 1 MiB, roots in turn", "bcast 1048576 40", "lat_us", 0, MPI, false},
	{HOSTS, "barrier, over the best forced", "barrier 0 2000", "lat_us", 1.05, FORCED, false},
	{HOSTS, "allreduce, 8 B, over the best forced", "allreduce 8 2000", "lat_us", 1.05, FORCED,
	 false},
	{HOSTS, "allreduce, 1 KiB, over the best forced", "allreduce 1024 2000", "lat_us", 1.05,
	 FORCED, false},
	{HOSTS, "allreduce, 64 KiB, over the best forced", "allreduce 65536 300", "lat_us", 1.05,
	 FORCED, false},
	{HOSTS, "allreduce, 1 MiB, over the best forced", "allreduce 1048576 40", "lat_us", 1.05,
	 FORCED, false},
	{HOSTS, "broadcast, 1 MiB, over the best forced", "bcast 1048576 40", "lat_us", 1.05,
	 FORCED, false},
	{PAIRED, "barrier", "barrier 0 1000", "lat_us", 0, MPI, false},
	{PAIRED, "allreduce, 8 B", "allreduce 8 1000", "lat_us", 0, MPI, false},
	{PAIRED, "allreduce, 8 KiB", "allreduce 8192 500", "lat_us", 0, MPI, false},
	{PAIRED, "allreduce, 64 KiB", "allreduce 65536 150", "lat_us", 0, MPI, false},
	{PAIRED, "allreduce, 1 MiB", "allreduce 1048576 20", "lat_us", 0, MPI, false},
	{PAIRED, "broadcast, 8 B, roots in turn", "bcast 8 1000", "lat_us", 0, MPI, false},
	{PAIRED, "broadcast, 1 MiB, roots in turn", "bcast 1048576 24", "lat_us", 0, MPI, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct system systems[SYSTEMS];
static int count;

/* ---- systems --------------------------------------------------------------------------------- */

static bool is_ours(const struct system *s)
{
	return strncmp(s->name, "ours", 4) == 0;
}

static bool is_forced(const struct system *s)
{
	return is_ours(s) && s->name[4];
}

static bool is_machine(const struct system *s)
{
	return strcmp(s->name, "machine") == 0;
}

static bool is_against(const struct system *s, const struct row *r)
{
	return !strcmp(s->ranks, r->ranks) &&
	       (r->against == FORCED ? is_forced(s) : !is_ours(s) && !is_machine(s));
}

static bool read_systems(const char *path)
{
	FILE *file = fopen(path, "r");
	struct system *s = systems;

	if (!file)
		return false;
	while (count < SYSTEMS && fscanf(file, "%15[^\t]\t%63[^\t]\t%1023[^\n]\n", s->ranks,
					 s->name, s->command) == 3) {
		s++;
		count++;
	}
	fclose(file);
	return count > 0;
}

static struct system *system_of(const char *ranks, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(systems[i].ranks, ranks) && !strcmp(systems[i].name, name))
			return &systems[i];
	return NULL;
}

static void start_all(const char *ranks, int log)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(systems[i].ranks, ranks))
			systems[i].lost = child_start(&systems[i].child, systems[i].command, log);
}

static void stop_all(const char *ranks)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(systems[i].ranks, ranks))
			child_stop(&systems[i].child);
}

/* ---- samples --------------------------------------------------------------------------------- */

struct times {
	double us[PAIRS], cpu[PAIRS]; /* of an operation; processor time of all, or less than 0 */
};

/* Forced for kinds that have it: others are done as ours does them unforced. */
static bool is_as_named(const struct system *s, const char *answer)
{
	char named[sizeof s->name + 16];

	if (!is_forced(s) || !strstr(answer, "\"algorithm\":\""))
		return true;
	snprintf(named, sizeof named, "\"algorithm\":\"%s\"", s->name + strlen("ours, "));
	return strstr(answer, named) != NULL;
}

/* The I-th of T. */
static bool sample(struct system *s, const char *order, const char *key, struct times *t, int i)
{
	const char *why = "answers nonsense", *answer;
	char line[LINE / 4];

	if (s->lost)
		return false;
	if (is_ours(s))
		snprintf(line, sizeof line, "%s members %d\n", order, atoi(s->ranks));
	else
		snprintf(line, sizeof line, "%s\n", order);
	answer = child_ask(&s->child, line, ANSWER_MS, &why);
	if (answer && !is_as_named(s, answer))
		return false;
	t->us[i] = answer ? answer_number(answer, key) : -1;
	t->cpu[i] = answer ? answer_number(answer, "cpu_us") : -1;
	if (t->us[i] > 0)
		return true;
	fprintf(stderr, "%s ranks, %s, %s: %s\n", s->ranks, s->name, order, answer ? answer : why);
	s->lost = true;
	return false;
}

/* One that takes so many times what the best so far does is not sampled further. */
#define HOPELESS 4

static bool is_in_race(const struct system *s, const struct row *r)
{
	return is_against(s, r) && !s->lost;
}

/* The best of what R is held against, by a few samples in turns; NULL: there is none. */
static struct system *best_of(const struct row *r)
{
	static struct times t[SYSTEMS];
	struct system *best = NULL;
	int looks[SYSTEMS] = {0};
	double least = 0;

	for (int k = 0; k < LOOKS; k++)
		for (int i = 0; i < count; i++) {
			if (!is_in_race(&systems[i], r) ||
			    (k && (!looks[i] || t[i].us[0] > HOPELESS * least)) ||
			    !sample(&systems[i], r->order, r->key, &t[i], k))
				continue;
			looks[i]++;
			if (least <= 0 || t[i].us[k] < least)
				least = t[i].us[k];
		}
	for (int i = 0; i < count; i++) {
		double middle;

		if (!is_in_race(&systems[i], r) || looks[i] < LOOKS)
			continue;
		middle = median(t[i].us, LOOKS);
		if (best && middle >= least)
			continue;
		best = &systems[i];
		least = middle;
	}
	return best;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct { /* of a row */
	struct times ours, other, machine;
} taken;

/* OVER: ours over the machine; PEER: the machine over the best peer. */
static const char *verdict_of(const struct row *r, struct estimate e, struct estimate over,
			      struct estimate peer)
{
	if (r->bar <= 0)
		return "";
	if (e.high <= r->bar)
		return "holds";
	if (r->bare && peer.low > r->bar && over.high <= WITHIN)
		return "holds: beyond the machine";
	return e.low > r->bar ? "does not hold" : "undecided";
}

static void print_times(const struct row *r, const struct times *t, int n)
{
	printf("%.4g us", median(t->us, n));
	if (strstr(r->ranks, HOSTS))
		printf(", processors %.4g us", median(t->cpu, n));
	printf(" | ");
}

static void print_row(const struct row *r, int n, const char *name)
{
	struct estimate e = ratio(taken.ours.us, taken.other.us, n), over = {0}, peer = {0};
	char bar[16] = "", machine[64] = "|";

	if (r->bar > 0)
		snprintf(bar, sizeof bar, "≤ %.2f", r->bar);
	if (r->bare) {
		over = ratio(taken.ours.us, taken.machine.us, n);
		peer = ratio(taken.machine.us, taken.other.us, n);
		snprintf(machine, sizeof machine, "%.4g us | %.3g (%.3g to %.3g)",
			 median(taken.machine.us, n), over.mid, over.low, over.high);
	}
	printf("| %s | %s | %s | ", r->ranks, r->name, bar);
	print_times(r, &taken.ours, n);
	print_times(r, &taken.other, n);
	printf("%s | %.3g (%.3g to %.3g) | %s | %s |\n", name, e.mid, e.low, e.high, machine,
	       verdict_of(r, e, over, peer));
	fflush(stdout);
}

static bool own(const struct row *r, struct system *ours, int i)
{
	char order[LINE / 8];

	snprintf(order, sizeof order, "%s%s", r->order, r->against == MPI_SHARED ? " shared" : "");
	return sample(ours, order, r->key, &taken.ours, i);
}

/* A sample of what ours is held against. */
static bool other(const struct row *r, struct system *against, int i)
{
	if (r->against == MESSAGE)
		return sample(against, "send_lat 8 20000", "lat_us", &taken.other, i);
	return sample(against, r->order, r->key, &taken.other, i);
}

/* All of them once, in this order or the other. */
static bool sample_all(const struct row *r, struct system *const by[3], int i)
{
	bool well = true;

	for (int k = 0; k < 3 && well; k++) {
		int which = i & 1 ? k : 2 - k;

		if (which == 0)
			well = own(r, by[0], i);
		else if (which == 1)
			well = other(r, by[1], i);
		else if (r->bare)
			well = sample(by[2], r->order, r->key, &taken.machine, i);
	}
	return well;
}

static void start_again(struct system *s)
{
	child_stop(&s->child);
	s->lost = child_start(&s->child, s->command, STDERR_FILENO);
}

/* Before the I-th of PAIRS. */
static bool is_to_start(const struct row *r, int i, int pairs)
{
	return i && (r->against == FORCED || strstr(r->ranks, HOSTS)) &&
	       i * STARTS / pairs != (i - 1) * STARTS / pairs;
}

static bool measure(const struct row *r, int pairs)
{
	struct system *ours = system_of(r->ranks, "ours");
	struct system *against = r->against == MESSAGE ? ours : best_of(r);
	struct system *machine = system_of(r->ranks, "machine");
	struct system *const by[] = {ours, against, machine};
	bool well = ours && against && (machine || !r->bare);

	for (int i = 0; well && i < pairs; i++) {
		if (is_to_start(r, i, pairs))
			for (int k = 0; k < 2; k++)
				start_again(by[k]);
		well = sample_all(r, by, i);
	}
	if (well) {
		print_row(r, pairs, r->against == MESSAGE ? "8 B one way" : against->name);
		return true;
	}
	printf("| %s | %s | | | | | | | | not measured |\n", r->ranks, r->name);
	return false;
}

static bool is_wanted(const struct row *r, const char *only)
{
	char name[LINE];

	snprintf(name, sizeof name, "%s %s", r->ranks, r->name);
	return strstr(name, only) != NULL;
}

static void print_heading(void)
{
	static bool printed;

	if (!printed)
		printf("| ranks | | bar | ours | held against | which | ratio | machine | ours over that | |\n"
		       "| --: | --- | --- | --: | --: | --- | --- | --: | --- | --- |\n");
	printed = true;
}

static void print_settings(const char *ranks)
{
	printf("\nSettings:\n\n");
	for (int i = 0; i < count; i++)
		if (!strcmp(systems[i].ranks, ranks))
			printf("* %s, %s: `%s`\n", ranks, systems[i].name, systems[i].command);
	printf("\n");
}

/* All rows of so many ranks, of which there are systems; the next row's index. */
static int measure_ranks(int first, int pairs, const char *only, bool *well)
{
	const char *ranks = rows[first].ranks;
	bool started = false;
	int i = first;

	for (; i < ROWS && !strcmp(rows[i].ranks, ranks); i++) {
		if (!system_of(ranks, "ours") || !is_wanted(&rows[i], only))
			continue;
		if (!started)
			start_all(ranks, STDERR_FILENO);
		started = true;
		print_heading();
		*well = measure(&rows[i], pairs) && *well;
	}
	if (started) {
		stop_all(ranks);
		print_settings(ranks);
	}
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
	for (int i = 0; i < ROWS;)
		i = measure_ranks(i, pairs, argc > 3 ? argv[3] : "", &well);
	return well ? 0 : 1;
}
