/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coroutines whose stacks stay at fixed addresses, so that a copy of the used part of a stack is
 * the whole of a coroutine's state: it can be hashed, kept and put back.
 */
#ifndef TESTS_MODEL_COROUTINE_H
#define TESTS_MODEL_COROUTINE_H

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)
#define COROUTINE_AVAILABLE 1
#else
#define COROUTINE_AVAILABLE 0
#endif

#define COROUTINE_STACK 16384

struct coroutine {
	void *sp; /* what is below it is unused */
	unsigned char *stack;
};

/* A coroutine that will run ENTRY, which must not return. */
void coroutine_init(struct coroutine *c, unsigned char *stack, void (*entry)(void));
/* Runs C until it calls coroutine_yield. */
void coroutine_resume(struct coroutine *c);
/* In a coroutine: back to who resumed it. */
void coroutine_yield(struct coroutine *c);

static inline size_t coroutine_used(const struct coroutine *c)
{
	return (size_t)(c->stack + COROUTINE_STACK - (unsigned char *)c->sp);
}

#endif
