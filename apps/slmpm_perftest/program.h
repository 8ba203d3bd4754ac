/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of work queues share: a queue whose entries are kept as a program, and the rounds
 * in which one side runs it while the other one sends, receives and takes the time (program.c).
 *
 * Where the engine's thread is to run it, the application stays out of the library meanwhile: each
 * of its calls would make the progress itself, and keep the thread aside for a while.
 */
#ifndef PERFTEST_PROGRAM_H
#define PERFTEST_PROGRAM_H

#include "apps/slmpm_perftest/perftest.h"

/* Channels, and counters of what a program brings about itself. */
enum { CHANNEL_MAIN, CHANNEL_RECEIVES, CHANNEL_OTHER };

struct program {
	struct pair *pair;
	slmpm_wq wq;
	slmpm_cq cq;
	slmpm_ctr came, there, back; /* messages that have come; from one channel to the other */
	struct slmpm_iov out, in;    /* what it sends, and where messages come */
	int rc;                      /* of the first entry that could not be posted, or 0 */
	bool posted;
};

/* So many entries at most. */
int program_make(struct program *g, struct pair *p, uint64_t size, uint64_t depth, uint32_t flags);
void program_end(struct program *g);

/* One more entry each; errors are g->rc's. */
void program_send(struct program *g);
void program_send_counted(struct program *g);          /* in `there`, when it is done */
void program_mark(struct program *g, uint32_t stream); /* a message without bytes */
void program_receive(struct program *g);
void program_wait(struct program *g, uint32_t channel, slmpm_ctr ctr);
void program_count(struct program *g, uint32_t channel, slmpm_ctr ctr);

/* Until all its entries have ended. */
int program_finish(struct program *g);
/* Entries that the engine's thread has begun, of all: 0 to 1. */
double program_by_engine(const struct program *g);
/* Is the engine's thread to run it? And then: until it does, after a call of the application's. */
bool program_has_thread(const struct pair *p);
void program_rest(void);

/* ---- rounds: side 1 runs a program, or does the same by hand; side 0 takes the time ---- */

/* It is ready, and what the application has to do in the round. */
struct round {
	bool thread;      /* it stays out of the library */
	double by_engine; /* so far */
};
int round_say(struct pair *p, const struct round *r);
int round_hear(struct pair *p, struct round *r);
/* What side 0 does: N messages, each answered, of which the last is in rx. Its time. */
int round_trips(struct pair *p, const struct job *j, uint64_t n, double *ns);
/* What side 1 does by hand. */
int round_relay(struct pair *p, const struct job *j, uint64_t n);

#endif
