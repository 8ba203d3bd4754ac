/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregates over all instances of a job, and over the jobs around it.
 *
 * A job is a process and those it has started (slmpm_spawn), and so on: a tree. Each link of it
 * carries the sum of its sender's side, and each process adds its own to what it receives. Jobs
 * that are joined by slmpm_connect form any graph: there each job is a contributor with a number,
 * is passed on from job to job, and counts once, by the youngest figures received.
 */
#ifndef SLMPM_AGGREGATE_H
#define SLMPM_AGGREGATE_H

#include <slmpm.h>

#include "slmpm/endpoint.h"
#include "slmpm/base/list.h"

#define AGGREGATE_FABRICS      SLMPM_AGGREGATE_FABRICS
#define AGGREGATE_INSTANCES    65536                /* in one peer's sum, at most */
#define AGGREGATE_LATENCY      UINT64_C(4000000000) /* ns: beyond it is none */
#define AGGREGATE_CONTRIBUTORS 32 /* jobs that are kept; half of them by one link */
#define AGGREGATE_SENT         8  /* of these over a link at a time */
#define AGGREGATE_AGE          10 /* periods after which a contributor has fallen silent */

struct head;
struct monitor_load;

/* Words throughout, as they travel (aggregate_wire.c). */
struct aggregate_cell { /* sum over so many instances */
	uint64_t ns, count;
};

struct aggregate_fabric {
	uint64_t name; /* its first 7 characters, the first in the lowest byte; 0: a free place */
	uint64_t requests, links;
	uint64_t queue, busy; /* requests queued; links that have much to do, ... */
	uint64_t load;        /* ... and the sum of these rings' thousandths */
	uint64_t out, in;     /* sums of the links' thousandths */
	struct aggregate_cell echo, latency[SLMPM_PROTOCOLS];
};

struct aggregate {
	uint64_t instances, links, queue;
	uint64_t out, in;
	uint64_t zero[7];
	struct aggregate_cell cells[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES];
	struct aggregate_fabric fabrics[AGGREGATE_FABRICS];
};

struct aggregate_part { /* a context's own, or what is received over a link of the job */
	struct list node;
	struct aggregate sum;
};

/* ---- sums (aggregate_sum.c) ------------------------------------------------------------------ */

uint64_t aggregate_name(const char *fabric);
void aggregate_add(struct aggregate *to, const struct aggregate *m);
/* Links that have much to do. */
uint64_t aggregate_busy(const struct aggregate *m);
/* 0: nothing has been measured. */
uint64_t aggregate_mean(const struct aggregate_cell *c);
/* What the context's links show. */
void aggregate_of_links(struct context *ctx, struct aggregate *sum);

/* ---- a job's (aggregate.c) ------------------------------------------------------------------- */

/* The context's own, once in a period. */
void aggregate_inspect(struct context *ctx, uint64_t ns);
void aggregate_shut(struct context *ctx);
void aggregate_forked(void);
/* What has been agreed (WIRE_FEATURE_*); and the peer's end. */
void aggregate_agreed(struct endpoint *ep, uint64_t features);
void aggregate_end(struct endpoint *ep);
/* The peer is of this process's job. */
static inline bool aggregate_is_kin(const struct endpoint *ep)
{
	return ep->life->is_parent || ep->rooms->process;
}
/* The job's number; 0: not known yet. Its first process gives it. */
extern _Atomic uint64_t aggregate_job;
/* Of the job, but for what was received over EP; NULL: all of it. */
void aggregate_of_job(const struct endpoint *ep, struct aggregate *sum);
/* What EP has sent of its side of the job (JOB 0), or of another, to be changed; or NULL. */
struct aggregate *aggregate_change(struct endpoint *ep, uint64_t job, uint64_t born);
void aggregate_changed(void);
/* From place *AT on the next contributor for EP: its job, age in ms, sum; false: none. */
bool aggregate_next_contributor(const struct endpoint *ep, uint32_t *at, uint64_t *job,
				uint64_t *age, struct aggregate *sum);
uint32_t aggregate_instances(void);
/* Some fabric has much to do, as far as known here. */
bool aggregate_is_busy(void);
/* Into OTHERS what all instances see of a fabric, less the share of OWN, a link over it, and what
 * they measure of such an operation. Returns how many of the links have much to do. */
uint64_t aggregate_inspect_fabric(const char *name, const struct monitor_load *own,
				  const struct mode_ask *ask, struct mode_others *others);
/* For others than the program itself. */
void aggregate_take(struct slmpm_aggregate *out);

/* ---- the wire (aggregate_wire.c) ------------------------------------------------------------- */

/* Sends the peer what it is to know. */
void aggregate_send(struct endpoint *ep);
void aggregate_received(struct endpoint *ep, const struct head *h);
#endif
