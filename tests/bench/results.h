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
	int ours, rival; /* systems; rival -1: nobody serves this cell */
	int moved;       /* pairs kept although the host moved the CPUs between the two */
	struct series a, b;
	struct series hops; /* of ours */
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

/* The tables for people, and the same as tab-separated files and plot data in dir. */
void report_systems(const struct results *r, FILE *to);
void report_duels(const struct results *r, FILE *to);
int report_files(const struct results *r, const char *dir);

#endif
