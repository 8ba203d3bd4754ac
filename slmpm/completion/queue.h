/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion targets. Counters: how many of the operations that name one are done, and what the
 * first failure was. Completion queues: a ring of completions that grows; room is taken before an
 * operation starts, so that its end never lacks it.
 */
#ifndef SLMPM_QUEUE_H
#define SLMPM_QUEUE_H

#include "slmpm/base/await.h"
#include "slmpm/context.h"

struct region;
struct request;

struct counter {
	struct handle handle;
	struct context *ctx;   /* stays: another thread may look just as it is freed */
	struct list node;      /* of the context's */
	struct list in_flight; /* struct notified, in posting order */
	uint64_t posted, done, failed;
	uint64_t tickets;      /* given to those: setting the totals moves them not */
	struct list awaits;    /* struct await, of `done` */
	uint32_t users;        /* regions that notify it, entries of work queues */
	int32_t status;        /* of the first that failed since it was last asked, or 0 */
	struct region *region; /* by which peers count, or NULL */
};

extern struct handle_table counter_table;

/* One of those posted has ended with STATUS. */
static inline void counter_end(struct counter *c, int32_t status)
{
	c->done++;
	if (status < 0) {
		c->failed++;
		c->status = c->status ? c->status : status;
	}
	await_inspect(&c->awaits);
}
/* As many as VALUE are done. */
void counter_set(struct counter *c, uint64_t value);
/* By a peer: enum slmpm_atomic_op on `done`, and what that was. */
uint64_t counter_operate(struct counter *c, int op, uint64_t operand, uint64_t compare);
/* The context's, when it ends. */
void counter_free(struct counter *c);

struct queue {
	struct handle handle;
	struct context *ctx;     /* stays: another thread may look just as it is freed */
	struct list node;        /* of the context's */
	struct slmpm_done *ring; /* a power of two of them, or NULL */
	uint64_t size, head, tail;
	uint64_t in_flight; /* operations that have taken room */
	struct list awaits; /* struct await, of `tail` */
	uint32_t users;     /* regions that notify it, work queues that end here, their entries */
	/* Of a work queue's own, which has no handle: takes each completion at once, of the operation
	 * with COOKIE; learns which request brings that. Or NULL. */
	void (*pass_on)(struct queue *q, uint64_t cookie, const struct slmpm_done *done);
	void (*bound)(struct queue *q, uint64_t cookie, struct request *r);
	struct list details; /* struct queue_detail: of those in the ring that have one, in order */
};

/* In .op of one that lies in the ring: more is to be done as it is taken. */
#define QUEUE_ASIDE UINT32_C(0x80000000)

extern struct handle_table queue_table;

/* In how.cq of an operation: ctx->begins. */
#define QUEUE_THAT_BEGINS UINT64_MAX

/* Takes room for N more completions; false: no memory. */
bool queue_take_rooms(struct queue *q, uint64_t n);
static inline bool queue_take_room(struct queue *q)
{
	if (UNLIKELY(q->tail - q->head + q->in_flight >= q->size))
		return queue_take_rooms(q, 1);
	q->in_flight++;
	return true;
}
/* The room taken, of which all but `reserved` is to be filled: then its completion has come. */
static inline struct slmpm_done *queue_next(struct queue *q)
{
	q->in_flight--;
	return &q->ring[q->tail++ & (q->size - 1)];
}
/* Those that have come, up to N, without progress: how many; negative. */
int queue_take_come(slmpm_cq cq, struct slmpm_done *done, int n);
/* Into the room taken. */
void queue_put(struct queue *q, const struct slmpm_done *done);
/* The thread's detail, for the next one put, which then has QUEUE_ASIDE: who takes that has it.
 * False: there is no memory for it. */
COLD bool queue_put_detail(struct queue *q);
/* The context's, when it ends. */
void queue_free(struct queue *q);

#endif
