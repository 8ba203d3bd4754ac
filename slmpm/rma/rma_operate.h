/* SPDX-License-Identifier: BSD-3-Clause */
/* A one-sided operation as a call asks for it: checked, its way chosen, done or begun. */
#ifndef SLMPM_RMA_OPERATE_H
#define SLMPM_RMA_OPERATE_H

#include "slmpm/region/memory.h"
#include "slmpm/request.h"

struct operation { /* what a call asks for */
	const char *call;
	slmpm_rmem rmem;
	int kind;        /* enum request_kind */
	uint32_t access; /* the rights that it needs */
	const struct slmpm_span *spans;
	int span_count;
	const struct slmpm_iov *pieces;
	int piece_count;
	struct fabric_atomic *atomic; /* or NULL */
	void *old;
	const struct slmpm_how *how;
	slmpm_req *req;
	/* set by rma_operate and its parts */
	struct remote *remote;
	struct slmpm_how full;
	uint64_t length;
	struct mode mode;
	bool routed; /* the mode's link was chosen, too */
};

/* Checks it, chooses its path and does it or begins it: what the call returns. */
int rma_operate(struct operation *o);

/* ---- parts of rma_operate --------------------------------------------------------------------- */

/* Is it sound, and allowed? Fills in what it asks for; the context is locked. */
int rma_check(struct operation *o);
/* Does it at once: 1; 0: not this way after all; negative with the detail set. */
int rma_reach(const struct operation *o);
static inline unsigned rma_fabric_op(const struct operation *o)
{
	return o->kind == REQUEST_PUT ? FABRIC_WRITE :
	       o->kind == REQUEST_GET ? FABRIC_READ :
					FABRIC_ATOMIC;
}

#endif
