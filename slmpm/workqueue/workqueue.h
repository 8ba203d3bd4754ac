/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: work requests (work.h) that wait their turn, begin in order and end in order. Only
 * when is decided here.
 *
 * A queue's operations are told to a completion queue of its own, where nobody polls: what is put
 * there comes back to it (`work_ended`), and goes to the application's when its turn has come.
 */
#ifndef SLMPM_WORKQUEUE_H
#define SLMPM_WORKQUEUE_H

#include "slmpm/completion/queue.h"
#include "slmpm/workqueue/work.h"

struct workqueue {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's */
	slmpm_peer peer;     /* as all know it; ... */
	uint32_t hint;       /* ... the link of the handle that it was made with: flags, or 0 */
	struct queue *queue; /* the application's */
	struct queue inner;  /* its pass_on is `work_ended` */
	uint32_t flags, depth, used;
	enum work_kind kind; /* of those that have begun */
	struct list waiting, begun, idle;
	struct work *work; /* `depth` of them */
};

extern struct handle_table workqueue_table;

/* Begins what may on EP now: how many. */
int workqueue_advance(struct endpoint *ep);
/* EP has ended: what waits ends with its error. */
void workqueue_fail(struct endpoint *ep);
/* The context's, when it ends. */
void workqueue_shut(struct context *ctx);

#endif
