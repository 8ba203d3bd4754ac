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
	uint64_t value;
	void (*over)(struct await *a); /* it is, and in no list; begins nothing here and now */
};

static inline bool await_is_over(const struct await *a)
{
	return (int64_t)(*a->total - a->value) >= 0;
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
