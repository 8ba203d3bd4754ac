/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations as programs: a plan's steps become entries of a work queue, which
 * progresses them while the application is elsewhere; with SLMPM_ENGINE=thread all its threads may
 * sleep. Members are peers by rank. Of one struct offload the calls are made by one thread at a
 * time.
 */
#ifndef SLMPM_OFFLOAD_H
#define SLMPM_OFFLOAD_H

#include <slmpm_group.h>

#include "slmpm/plan/plan.h"

#define OFFLOAD_RUNS 4 /* at a time */

struct offload;

struct offload_options {
	slmpm_ctx ctx;
	const slmpm_peer *peers; /* by rank, copied; that of `rank` is not looked at */
	uint32_t size, rank;
	/* The first of OFFLOAD_RUNS streams, the same at all members and left to this. */
	uint32_t stream;
	uint32_t depth; /* entries of all runs at a time; 0: 1024 */
};

/* Negative with the detail set. */
int offload_open(struct offload **o, const struct offload_options *options);
/* -SLMPM_EBUSY: runs have not ended; after offload_break offload_poll sees to that. */
int offload_close(struct offload *o);

struct offload_run {
	/* size, rank are the members', but where it has `members`; algorithm: PLAN_AUTO is as plan_choose
	 * says. The arrays are read in offload_start alone. */
	struct plan_spec spec;
	uint32_t type, op; /* enum slmpm_type, enum slmpm_calc_op; not of a barrier */
	const void *from;
	void *to;
	uint64_t cookie;
	slmpm_ctr ctr; /* counts its end; or {0} */
	/* Not 0: goes with all its messages, and those that come have the same, and the lengths of
	 * this member's plan; or it fails as -SLMPM_EINVAL, of one that is longer -SLMPM_ETRUNC. */
	uint32_t mark;
	/* In place of type and op, or NULL: called by offload_fold. The arrays are then read until the
	 * run has ended. */
	const struct slmpm_combine *combine;
};

/*
 * Begins a run; all members begin the same ones in the same order. Never blocks. -SLMPM_EAGAIN:
 * as many as may be are under way. -SLMPM_ELIMIT: it has more steps than there are entries. The
 * status of the first run that failed: no other begins after that.
 */
int offload_start(struct offload *o, const struct offload_run *run);

/* A run that others begin, and this member has no part in. */
void offload_pass(struct offload *o);

struct offload_end {
	uint64_t cookie;
	int32_t status;
	int32_t culprit; /* the rank of the member by which it failed, or -1 */
};

/* Runs that have ended, up to N, in any order; makes progress. How many. */
int offload_poll(struct offload *o, struct offload_end *ends, int n);
/* The same without progress. */
int offload_take(struct offload *o, struct offload_end *ends, int n);
/* A run waits for its function: offload_fold calls that, and nothing of the library's; the next
 * offload_take or offload_poll goes on with the run. */
bool offload_awaits_fold(const struct offload *o);
void offload_fold(struct offload *o);
/* Blocks until one has; or -SLMPM_ETIMEOUT, and what else slmpm_cq_wait returns. */
int offload_wait(struct offload *o, struct offload_end *ends, int n, int timeout_ms);
/* All runs fail with STATUS, a negative error, by rank CULPRIT or -1; none begins any more. */
void offload_break(struct offload *o, int status, int culprit);

/* RANK is PEER from now on: before a run that needs it. */
void offload_peer(struct offload *o, uint32_t rank, slmpm_peer peer);
/* Messages of marked runs that have come from RANK so far. */
uint64_t offload_came(const struct offload *o, uint32_t rank);
/* The mark of the culprit's message, where that is why a run has failed; or 0. */
uint32_t offload_mark(const struct offload *o);
/* Elements of that message, and in DUE those of what was to come. */
uint64_t offload_sent(const struct offload *o, uint64_t *due);
/* By which stream the messages of the run go that has been begun last. */
uint32_t offload_stream(const struct offload *o);
/* Its context has gone, and the handles with it. */
void offload_forget(struct offload *o);

/* Where the entries of all runs are, those of the Nth in channel N % OFFLOAD_RUNS: to be shown. */
slmpm_wq offload_queue(const struct offload *o);

#endif
