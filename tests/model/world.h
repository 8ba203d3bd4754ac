/* SPDX-License-Identifier: BSD-3-Clause */
/* The present state of a search: two coroutines, each in front of a request, and the memory. */
#ifndef TESTS_MODEL_WORLD_H
#define TESTS_MODEL_WORLD_H

#include <stdint.h>

#include "tests/model/coroutine.h"
#include "tests/model/machine.h"

enum operation {
	OP_LOAD,
	OP_STORE,
	OP_FENCE,
	OP_BARRIER,
	OP_CHOOSE,
	OP_WAIT,
	OP_SLEEP,
	OP_BELL,
	OP_END
};

struct request {
	uint16_t kind; /* enum operation */
	uint16_t site;
	int16_t location;
	uint16_t count; /* of choices */
	uint64_t order;
	uint64_t value;
};

struct thread {
	struct coroutine coroutine;
	struct request request;
	uint64_t result;
};

struct world {
	struct thread threads[THREADS];
	const char *fault;
	int running;           /* the thread whose code runs, -1 in the scheduler */
	struct machine memory; /* the last: only what is used of it is kept */
};

extern struct world world;

#endif
