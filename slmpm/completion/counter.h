/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: how many of the operations that name one are done, and what the first failure was. */
#ifndef SLMPM_COUNTER_H
#define SLMPM_COUNTER_H

#include "slmpm/context.h"

struct counter {
	struct handle handle;
	struct context *ctx;   /* stays: another thread may look just as it is freed */
	struct list node;      /* of the context's */
	struct list in_flight; /* struct notified, in posting order */
	uint64_t posted, done, failed;
	uint32_t users; /* regions that notify it */
	int32_t status; /* of the first that failed since it was last asked, or 0 */
};

extern struct handle_table counter_table;

/* The context's, when it ends. */
void counter_free(struct counter *c);

#endif
