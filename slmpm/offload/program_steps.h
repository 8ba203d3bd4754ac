/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run's entries are made from: the steps of its plan, some at a time. */
#ifndef SLMPM_PROGRAM_STEPS_H
#define SLMPM_PROGRAM_STEPS_H

#include "slmpm/calc/calc.h"
#include "slmpm/offload/offload.h"

#define STEPS_AT_ONCE 24

struct own_run;

struct offload_slot {
	slmpm_ctr lane[PLAN_LANES];
	uint64_t waited[PLAN_LANES]; /* the lane's total, when all its WAITs so far are over */
	void *scratch;
	uint64_t scratch_len;
	uint64_t cookie;
	uint32_t mark, width;
	bool busy;             /* its run's end has not been polled */
	bool ended;            /* all its entries have */
	bool differs;          /* a message of another mark or length has come for it */
	struct own_run *own;   /* with a function of the program's own; or NULL */
	unsigned char nothing; /* what its last entry calculates */
};

struct offload {
	slmpm_wq wq;
	slmpm_cq cq; /* the ends of runs, and what has failed of them */
	slmpm_peer *peers;
	uint32_t size, rank, stream, depth;
	uint64_t begun; /* runs */
	int32_t status; /* of what failed first, or 0 */
	int32_t culprit;
	uint32_t mark;      /* of its message, ... */
	uint64_t sent, due; /* ... whose elements, and those that were to come */
	uint64_t *came;     /* by rank */
	struct offload_slot slot[OFFLOAD_RUNS];
};

struct steps {
	struct plan *plan;
	const struct offload_run *run;
	struct offload *offload;
	unsigned char *area[PLAN_SCRATCH + 1];
	uint32_t slot, width;
	uint64_t waited[PLAN_LANES]; /* the slot's, once all entries have been taken */
	bool stands;                 /* at an entry behind which `fold` is to be done */
	struct plan_step fold;
	uint64_t posted; /* entries that have been taken, all of them but the last ones */
	int count;       /* those made now */
	slmpm_wq queues[STEPS_AT_ONCE];
	struct slmpm_wr wr[STEPS_AT_ONCE];
	struct slmpm_iov iov[STEPS_AT_ONCE];
	struct slmpm_calc calc[STEPS_AT_ONCE];
	struct slmpm_operand operand[STEPS_AT_ONCE][3];
};

/* Its entries go as far as its next fold at a time: behind them that is done by offload_fold. */
struct own_run {
	struct offload_run run;
	struct plan plan;
	struct steps steps;
	bool folds, goes_on; /* it waits for the function; that has been called */
};

/* Of a receive of SLOT that is compared, which is to get LEN bytes; others have OFFLOAD_RUNS, or
 * less. */
static inline uint64_t message_cookie(uint32_t slot, uint64_t len)
{
	return len * OFFLOAD_RUNS + slot + OFFLOAD_RUNS + 1;
}

static inline uint32_t message_slot(uint64_t cookie)
{
	return (uint32_t)((cookie - OFFLOAD_RUNS - 1) % OFFLOAD_RUNS);
}

static inline uint64_t message_len(uint64_t cookie)
{
	return (cookie - OFFLOAD_RUNS - 1) / OFFLOAD_RUNS;
}

/* Bytes of an element. */
static inline uint32_t run_width(const struct offload_run *run)
{
	if (run->combine)
		return (uint32_t)run->combine->width;
	return run->spec.kind == PLAN_BARRIER ? 1 : calc_width(run->type);
}

/* The entries of all that is left of P, which is at its end then. */
uint64_t steps_count(struct plan *p);
void steps_begin(struct steps *s, struct offload *o, uint32_t slot, const struct offload_run *run,
		 struct plan *p);
/* Makes the next entries, in s->wr: how many; 0: there are no more. */
int steps_take(struct steps *s);
/* Calls the function, where S stands. */
void steps_fold(struct steps *s);

#endif
