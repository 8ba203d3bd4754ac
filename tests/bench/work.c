/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The figures of work queues and their bars: "work CPU,CPU PERFTEST LINKS [PAIRS [ONLY [BEFORE]]]"
 * prints Markdown. A sample of ours and one of what it is held against follow each other, each of
 * fresh processes. LINKS: the program of links.c. ONLY: groups whose name contains it. BEFORE:
 * slmpm_perftest of an earlier build.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/stats.h"
#include "tests/bench/work.h"

enum { PAIRS = 200 };

const char *perftest_path, *links_path, *before_path;

static double ours[ROWS][PAIRS], against[ROWS][PAIRS];

static struct estimate estimate_of(const struct row *r, int i, int n)
{
	struct estimate e;

	if (r->kind == RATIO)
		return ratio(ours[i], against[i], n);
	e = r->kind == ITSELF ? central(ours[i], n) : difference(ours[i], against[i], n);
	return (struct estimate){e.mid * r->scale, e.low * r->scale, e.high * r->scale};
}

static const char *verdict_of(const struct row *r, struct estimate e)
{
	if (!*r->bar)
		return "";
	if (r->at_least ? e.low >= r->limit : e.high <= r->limit)
		return "holds";
	if (r->at_least ? e.high < r->limit : e.low > r->limit)
		return "does not hold";
	return "undecided";
}

static void print_head(const struct row *r)
{
	printf("| %s |", r->name);
	if (*r->bar)
		printf(" %s %s", r->at_least ? "≥" : "≤", r->bar);
	printf(" |");
}

static void print_row(const struct row *r, int i, int n)
{
	struct estimate e = estimate_of(r, i, n);

	print_head(r);
	printf(" %.4g %s |", median(ours[i], n) * r->scale, r->unit);
	if (*r->against)
		printf(" %s: %.4g %s", r->against, median(against[i], n) * r->scale, r->unit);
	printf(" | %s%.3g (%.3g to %.3g) | %s |\n", r->kind == DIFFERENCE ? "+" : "", e.mid, e.low,
	       e.high, verdict_of(r, e));
}

/* There was no sample. */
static void print_lack(const struct row *r)
{
	if (!*r->bar)
		return;
	print_head(r);
	printf(" | | | not measured |\n");
}

static bool take_group(const struct group *g, int pairs)
{
	for (int i = 0; i < pairs; i++) {
		struct figures f[ROWS] = {{0}};

		if (!g->take(i & 1, f))
			return false;
		for (int k = 0; k < g->count; k++) {
			ours[k][i] = f[k].ours;
			against[k][i] = f[k].against;
		}
	}
	return true;
}

/* False: a sample could not be taken. */
static bool measure(const struct group *g, int pairs)
{
	bool well = take_group(g, pairs);

	for (int k = 0; k < g->count; k++)
		if (well)
			print_row(&g->rows[k], k, pairs);
		else
			print_lack(&g->rows[k]);
	fflush(stdout);
	return well;
}

static bool is_wanted(const struct group *g, const char *only)
{
	return strstr(g->name, only) && (*before_path || strcmp(g->name, "before") != 0);
}

int main(int argc, char **argv)
{
	int pairs = argc > 4 ? atoi(argv[4]) : 15;
	const char *only = argc > 5 ? argv[5] : "";
	bool well = true;

	if (argc < 4 || sscanf(argv[1], "%u,%u", &cpus[0], &cpus[1]) != 2 || pairs < 1 ||
	    pairs > PAIRS) {
		fprintf(stderr,
			"usage: %s CPU,CPU PERFTEST LINKS [1 to %d pairs [ONLY [BEFORE]]]\n",
			argv[0], PAIRS);
		return 2;
	}
	perftest_path = argv[2];
	links_path = argv[3];
	before_path = argc > 6 ? argv[6] : "";
	if (!common_make())
		return 1;
	printf("| | bar | ours | held against | ratio, or ours, or beyond it | |\n"
	       "| --- | --- | --: | --: | --: | --- |\n");
	for (int i = 0; i < group_count; i++)
		if (is_wanted(&groups[i], only))
			well = measure(&groups[i], pairs) && well;
	return well ? 0 : 1;
}
