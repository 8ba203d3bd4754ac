/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed modes, the loads by which they are compared with the library's own choice, and what came
 * out. */
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/bench/child.h"

/* Modes of a group have the same resources; its first one is the library's own choice. */
enum group { PROTOCOLS, LINKS, ENGINE, GROUPS };

enum kind {
	MESSAGES = 1,
	PUTS = 2,
	BESIDE = 4
}; /* of a load: what it is made of; something computes beside it */

struct mode {
	const char *name, *settings;
	enum group group;
	int not_for; /* KINDs of loads for which it is nothing, or takes forever */
	bool twin; /* the choice a second time: what the two differ by is the measurement's doing */
};

struct load {
	const char *name, *order, *options;
	uint64_t size;
	enum group group;
	double ms; /* that a sample lasts */
	int time;  /* a time is judged: less is better; else a rate */
	int kind;
};

extern const struct mode MODE[];
extern const struct load LOAD[];
extern const int MODES, LOADS;

enum { MODES_MOST = 24, LOADS_MOST = 32, GENERATIONS_MOST = 200 };

/* The own choice and a fixed mode under one load; an entry a generation of processes. */
struct contest {
	int n;
	int lost;                      /* samples that somebody would not give */
	double gain[GENERATIONS_MOST]; /* the logarithm of how much more the choice does */
	double own[GENERATIONS_MOST], fixed[GENERATIONS_MOST]; /* of a rate 1/us, of a time us */
};

struct comparison {
	struct contest of[LOADS_MOST][MODES_MOST];
};

/* Does LOAD compare MODE with anything? */
int modes_compare(const struct load *load, const struct mode *mode);
/* The own choice that MODE is compared with. */
int modes_choice(int mode);

/* ---- mode_sample.c ---- */

double seconds(void);
/* A pair of processes for MODE; it stands until all are stopped. */
void mode_start(int mode, const char *program, const char *cpus, int log);
void mode_stop_all(void);
/* What COUNT of SIZE come to, more being better unless a time is judged; 0: nothing. */
double mode_ask(int mode, const struct load *load, uint64_t size, uint64_t count);
/* The same of the Lth load, for as long as it is to last. */
double mode_sample(int mode, int l, FILE *samples);

/* ---- mode_report.c ---- */

/* More of the same would hardly change the verdict. */
bool modes_settled(const struct contest *c);
/* Tables and verdicts as Markdown; the same in numbers in TABLE. */
void modes_report(const struct comparison *c, FILE *to, FILE *table);

#endif
