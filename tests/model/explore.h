/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: from one state of both coroutines and the memory between them to every other that
 * some schedule and some choice of readable messages leads to, each visited once.
 */
#ifndef TESTS_MODEL_EXPLORE_H
#define TESTS_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/machine.h"

struct search {
	void (*entry[THREADS])(void);
	unsigned segments;
	unsigned reverse;             /* see machine_init */
	uint64_t start;               /* both totals begin here */
	void *private;                /* what the two sides keep outside their stacks ... */
	size_t private_size;          /* ... all of it */
	void (*canonical)(void);      /* clears there what influences nothing */
	const char *(*settled)(void); /* nobody can go on: NULL, or what is wrong with that */
	/* Of a state seen for the first time: NULL, or what is wrong with it. May be NULL. */
	const char *(*fresh)(const struct search *s);
	/*
	 * Take a store at once, without trying the other thread in front of it: who must not see
	 * it yet still reads the older message. Not so under membarrier, which acts on whatever
	 * has been stored, nor where the writer may be killed between two stores.
	 */
	bool hurry;
	bool kill;           /* the writer may stop before any step */
	unsigned limit;      /* steps, 0 none: a search for a shorter way to a fault */
	uint64_t states_max; /* a bound against mistakes in a scenario */
};

struct outcome {
	uint64_t states, transitions;
	double executions; /* paths through the graph of states */
	unsigned depth;    /* steps of the longest path, or of the one to the fault */
	const char *fault;
};

struct outcome explore(const struct search *search);
/* Prints the steps of the last fault found. */
void explore_print_trace(const struct search *search);

/* ---- for the sides ---- */

/* One of N ways to go on; all are tried. */
unsigned model_choose(unsigned n);
/* Polling in vain: returns when the word has something newer than what was read last. */
void model_wait(const volatile void *word);
/* Sleeps until a bell; true when the other side's death ended it. */
bool model_sleep(void);
void model_bell(void);
void model_barrier(void);
void model_write_payload(unsigned segment, bool first, uint64_t value);
uint64_t model_read_payload(unsigned segment, bool first);
uint64_t model_newest(int location); /* what anybody would read in the end */
/* This side's part is over. */
_Noreturn void model_end(void);
_Noreturn void model_fault(const char *text);

bool explore_writer_dead(void);
/* For the memory: ends the present path with a fault. */
void explore_fault(const char *text);

#endif
