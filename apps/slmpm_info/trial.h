/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trial: a pair of processes that measures what each way of a message or a put takes, by size.
 * The settings are read once a process, so each set of them is a trial of its own, started again.
 */
#ifndef INFO_TRIAL_H
#define INFO_TRIAL_H

#include <stdio.h>

#define TRIAL_LEAST 4096
#define TRIAL_MOST  (1 << 20)
#define TRIAL_SIZES 9 /* powers of two between them */

#define TRIAL_SHARED_LEAST 32768 /* no shorter put is copied by both sides */
#define TRIAL_ASKED_LEAST                                                                          \
	262144 /* TRIAL_ASKED, TRIAL_NOT_ASKED: from there on, as many powers of two */

enum trial_of {
	/* A message and its empty answer, by packets and fetched; one of many on their way; and both
	 * with bytes just written that the reader reads. */
	TRIAL_SMT,
	TRIAL_RGET,
	TRIAL_SMT_STREAM,
	TRIAL_RGET_STREAM,
	TRIAL_SMT_TOUCHED,
	TRIAL_RGET_TOUCHED,
	TRIAL_COPY,      /* a put by the call, */
	TRIAL_SHARED,    /* by both sides, */
	TRIAL_REQUEST,   /* through the ring, until it is there, */
	TRIAL_ENGINE,    /* by the engine, until it is done; */
	TRIAL_HANDED,    /* or until it has been left to it */
	TRIAL_ASKED,     /* by the other side's engine, for want of one here, */
	TRIAL_NOT_ASKED, /* and by the call */
	TRIAL_CASES
};

enum trial_kind {
	TRIAL_WAYS,
	TRIAL_WITH_ENGINE,
	TRIAL_REQUESTS,
	TRIAL_SOCKETS,
	TRIAL_ASKING,
	TRIAL_COLLECTIVES
};

static inline unsigned long long trial_least(enum trial_kind kind)
{
	return kind == TRIAL_ASKING ? TRIAL_ASKED_LEAST : TRIAL_LEAST;
}

/* In place of a case: percent of the ring that seem unread though the reader keeps up; and its
 * bytes. */
#define TRIAL_RING_MEAN  (-1)
#define TRIAL_RING_MOST  (-2)
#define TRIAL_RING_BYTES (-3)

/* The measuring side: pinned to CPU[0], its peer to CPU[1], for about so many milliseconds. One
 * line "case size nanoseconds" for each figure to OUT. The exit status. */
int trial_drive(enum trial_kind kind, const int cpu[2], int ms, FILE *out);
/* The peer that it starts. */
int trial_follow(void);
#define TRIAL_FOLLOW "--calibrate-peer"

#endif
