/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything measured in a run, and its tables. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdio.h>

#include "tests/bench/system.h"

enum { SAMPLES = 400 };

struct series {
	int n;
	double v[SAMPLES];
};

struct duel {            /* ours and the rival of one cell, sample by sample in turn */
	int ours, rival; /* systems; -1: nobody serves this cell */
	int moved;       /* pairs kept although the host moved the CPUs between the two */
	int lost;        /* samples that somebody would not give */
	struct series a, b;
	struct series hops, far_cpu; /* of ours */
};

struct results {
	struct system system[SYSTEMS];
	int systems;
	struct series first[SYSTEMS][METRICS][SIZES]; /* the first pass: everybody */
	struct duel duel[METRICS][SIZES];
	struct series line_ns;
	double remote_reads; /* the most that an answer of ours told; -1: none told */
	FILE *samples;       /* every sample, as it comes */
};

void series_add(struct series *s, double v);
/* The system of that class that does best in the first pass; -1: none. */
int results_best(const struct results *r, enum metric m, int size, const char *class);

/* The table of all systems; the same as a tab-separated file and plot data in dir. */
void report_systems(const struct results *r, FILE *to);
int report_files(const struct results *r, const char *dir);
/* The table of verdicts, and the same in dir/ratios.tsv. */
int report_verdicts(const struct results *r, const char *dir, FILE *to);

/* What the reports share: three digits and a dash for NAN, three decimals, a file to write. */
const char *figure(double v);
const char *figure3(double v);
FILE *results_file(const char *dir, const char *name);

#endif
