/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion targets of operations other than the call: counters and completion queues; and
 * work queues, which begin operations in order. A part of <slmpm.h>.
 */
#ifndef SLMPM_API_QUEUE_H
#define SLMPM_API_QUEUE_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Counters and completion queues --------------------------------------------------------- */

#define SLMPM_ALL UINT64_C(0xffffffffffffffff) /* slmpm_ctr_wait: as many as are posted */

struct slmpm_ctr_info {
	uint32_t size;
	int32_t status;                /* of the first operation that failed, or 0 */
	uint64_t posted, done, failed; /* operations; failed ones are done, too */
};

/* A counter of operations whose how->ctr names it (DaCS: a wid, libfabric: a counter). */
SLMPM_API int slmpm_ctr_create(slmpm_ctx ctx, slmpm_ctr *ctr);
/* Blocks until VALUE operations in all are done; SLMPM_ALL: all posted so far. 0, or the status
 * of the first that failed, which is then forgotten. SLMPM_ETIMEOUT; SLMPM_ECLOSED: nothing is
 * under way, and no peer is left that could do more. */
SLMPM_API int slmpm_ctr_wait(slmpm_ctr ctr, uint64_t value, int timeout_ms);
/* The counts now, without progress: cheap. */
SLMPM_API int slmpm_ctr_query(slmpm_ctr ctr, struct slmpm_ctr_info *info);
/* SLMPM_EBUSY while operations are under way or a region notifies it. */
SLMPM_API int slmpm_ctr_destroy(slmpm_ctr ctr);

/* A queue of completions: of operations whose how->cq names it, and of notifications. It holds as
 * many as there are; what peers may add is bounded by their credit, given back when polled. */
SLMPM_API int slmpm_cq_create(slmpm_ctx ctx, slmpm_cq *cq);
/* Takes up to N completions, in the order in which they came; makes progress when there are none.
 * Their number, 0 when there are none. Does not block. */
SLMPM_API int slmpm_cq_poll(slmpm_cq cq, struct slmpm_done *done, int n);
/* The same, waiting for the first. SLMPM_ETIMEOUT; SLMPM_ECLOSED as of a counter. */
SLMPM_API int slmpm_cq_wait(slmpm_cq cq, struct slmpm_done *done, int n, int timeout_ms);
/* SLMPM_EBUSY while operations are under way or a region notifies it; what was not polled is
 * dropped. */
SLMPM_API int slmpm_cq_destroy(slmpm_cq cq);

/* ---- Work queues ---------------------------------------------------------------------------- */

/* options.flags: requests that need no answer get none; errors at the target are counted there. */
#define SLMPM_WQ_UNACKNOWLEDGED 1u

struct slmpm_wq_options {
	uint32_t size;
	uint32_t flags;
	uint32_t depth;    /* requests under way at once; 0: 256; SLMPM_ELIMIT: over 65536 */
	uint32_t reserved; /* zero, or SLMPM_EINVAL */
	slmpm_cq cq;       /* where its completions go */
};

/* A work request; fields that an operation does not use stay zero. Arrays of them keep their
 * stride: what later releases add lies in `reserved`. */
struct slmpm_wr {
	uint32_t op;     /* enum slmpm_op: SEND RECV PUT GET ATOMIC AM */
	uint32_t flags;  /* SLMPM_MORE FENCE BARRIER REMOTE NOTIFY SILENT VIA ON_LINK STRICT */
	uint32_t stream; /* SEND, RECV; AM: the handler's number */
	uint32_t imm;
	uint64_t cookie; /* in its completion */
	slmpm_rmem rmem; /* PUT, GET, ATOMIC */
	uint64_t offset;
	const struct slmpm_iov *iov; /* pieces here; the array is copied */
	int32_t iov_count;
	uint32_t atomic; /* ATOMIC: enum slmpm_atomic_op */
	uint32_t bits;
	uint32_t head_len; /* AM */
	uint64_t operand, compare;
	void *old;
	const void *head;
	uint64_t reserved[4]; /* zero, or SLMPM_EINVAL */
};

/*
 * The send and receive queue of a pair: work requests to PEER, each with a completion in
 * options->cq. Receives are posted at once; all others begin in order and complete in order, and
 * each sees what those before it did: a message behind a put finds it there. A put is done when the
 * target has it or refused it, unless the queue is UNACKNOWLEDGED. With a handle by address all but
 * receives ask for its link, whatever their region was opened with. Source: the queue pairs of
 * channel adapters.
 */
SLMPM_API int slmpm_wq_create(slmpm_peer peer, const struct slmpm_wq_options *options,
			      slmpm_wq *wq);
/* Posts N work requests; how many were taken: fewer when the queue is full (none: SLMPM_EAGAIN)
 * or one is wrong (its error, when it is the first). One that turns out wrong when those before
 * it are done ends as a completion. Does not block. */
SLMPM_API int slmpm_post(slmpm_wq wq, const struct slmpm_wr *wr, int n);
/* SLMPM_EBUSY while requests are under way. */
SLMPM_API int slmpm_wq_destroy(slmpm_wq wq);

#ifdef __cplusplus
}
#endif

#endif
