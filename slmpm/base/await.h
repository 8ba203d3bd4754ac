/* SPDX-License-Identifier: BSD-3-Clause */
/* Who goes on once a total has come so far. */
#ifndef SLMPM_AWAIT_H
#define SLMPM_AWAIT_H

#include <stdint.h>

#include "shm/compiler.h"
#include "slmpm/base/list.h"

struct await {
	struct list node; /* of those that wait for the total's owner, or alone */
	const uint64_t *total;
	uint64_t start;                /* what it began with; */
	uint64_t value;                /* so much beyond that */
	void (*over)(struct await *a); /* it is, and in no list; begins nothing here and now */
};

static inline bool await_is_over(const struct await *a)
{
	return *a->total - a->start >= a->value;
}

/* Beyond the greatest is never: no total comes so far. */
static inline uint64_t total_plus(uint64_t total, uint64_t more)
{
	return more < UINT64_MAX - total ? total + more : UINT64_MAX;
}

/* Those of AWAITS whose total has come so far. */
void awaits_end(struct list *awaits);

/* A total of theirs has moved. */
static inline void await_inspect(struct list *awaits)
{
	if (UNLIKELY(!list_empty(awaits)))
		awaits_end(awaits);
}

#endif
