/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of tests/stress/soak.c share: hubs that listen, and talkers that connect, send
 * numbered messages and leave, all of which are killed and started again at any moment.
 */
#ifndef TESTS_LIB_SOAK_H
#define TESTS_LIB_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SOAK_MS    30000 /* patience of a call: nothing is that late */
#define SOAK_TALKS 65536 /* later ones use their places again */
#define SOAK_LONG  400000

enum soak_fabric { SOAK_SHM, SOAK_TCP, SOAK_FABRICS };

enum soak_count {
	SOAK_MESSAGES, /* that hubs received, */
	SOAK_BYTES,    /* and theirs */
	SOAK_ENDED,    /* talks that came to their end, */
	SOAK_CUT,      /* whose talker was killed, */
	SOAK_ORPHANED, /* whose hub was, */
	SOAK_FORGED,   /* whose talker wrote over the hub's ring */
	SOAK_COUNTS
};

struct soak_talk {
	_Atomic uint64_t number;
	_Atomic uint32_t sent; /* messages of which slmpm_send has returned 0 */
	atomic_bool forges;
};

struct soak_hub {
	char url[320];
	_Atomic uint32_t life;  /* another one each time it is killed, before it is */
	_Atomic uint32_t ready; /* the life whose url stands above */
};

struct soak_board { /* shared by all */
	struct soak_hub hub[SOAK_FABRICS];
	_Atomic uint64_t talks;
	struct soak_talk talk[SOAK_TALKS];
	_Atomic uint64_t count[SOAK_COUNTS];
	atomic_bool talkers_end, hubs_end;
};

struct soak_head { /* of each message; its other bytes follow from both numbers */
	uint64_t talk;
	uint32_t index;
	uint32_t flags;
};

#define SOAK_ANSWER 1u
#define SOAK_LAST   2u

struct soak_role {
	struct soak_board *board;
	enum soak_fabric fabric;
	uint64_t seed;
};

static inline uint64_t soak_seed(const struct soak_head *head)
{
	return head->talk * 4096 + head->index;
}

static inline void soak_add(struct soak_board *board, enum soak_count what, uint64_t n)
{
	atomic_fetch_add_explicit(&board->count[what], n, memory_order_relaxed);
}

/* Exit codes, 0: all was as it has to be. ARG: a struct soak_role. */
int soak_hub(void *arg);
int soak_talker(void *arg);

#endif
