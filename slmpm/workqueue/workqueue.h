/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: work requests (work.c) that wait their turn, begin in order and end in order. Only
 * when is decided here.
 *
 * A queue's operations are told to a completion queue of its own, where nobody polls: what is put
 * there comes back to it (`work_ended`), and goes to the application's when its turn has come.
 */
#ifndef SLMPM_WORKQUEUE_H
#define SLMPM_WORKQUEUE_H

#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"

/* Work of one kind may be under way together, for it keeps its order on the way; what follows of
 * another kind waits for its end. */
enum work_kind { WORK_MESSAGE, WORK_GET, WORK_PUT, WORK_REMOTE_PUT, WORK_ATOMIC, WORK_ALONE };

struct work {             /* a work request that was taken */
	struct list node; /* of those that wait or have begun, or idle; a receive is in none */
	struct slmpm_wr wr;
	void *owned; /* of one that waits: its pieces and its head */
	bool ended;
	struct slmpm_done done; /* ended, but not those in front of it */
};

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

/* ---- work.c: a work request by itself ---- */

/* -SLMPM_E*, the detail set, when it cannot be posted to PEER's queue. */
int work_check(const struct slmpm_wr *wr, slmpm_peer peer);
/* Begins it, its end told to ctx->begins with COOKIE, perhaps before this returns. */
int work_begin(const struct slmpm_wr *wr, slmpm_peer peer, uint64_t cookie);
enum work_kind work_kind_of(const struct slmpm_wr *wr);
/* It waits: what the caller's array and head say is kept. False: no memory. */
bool work_keep(struct work *w);

#endif
