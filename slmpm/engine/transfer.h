/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's descriptors, and what its files ask of one another. */
#ifndef SLMPM_TRANSFER_H
#define SLMPM_TRANSFER_H

#include <pthread.h>
#include <stdatomic.h>

#include "slmpm/endpoint.h"
#include "slmpm/watch.h"

/*
 * A descriptor. The thread and who waits move it a piece at a time, each a piece of its own: what
 * the last members say is under the engine's lock, the others do not change. The last piece begins
 * once all others are in place; while nobody moves it, all in front of `at` is. The request and the
 * remote region stay as they are until it has landed.
 */
struct transfer {
	struct list node; /* injection: a piece may be taken; reception; or alone */
	struct engine_port *port;
	struct endpoint *ep;
	const _Atomic unsigned char *access; /* as of engine_start */
	unsigned char *to;                   /* a store here, to this place; or NULL */
	struct request *r;
	struct fabric_memory memory; /* a copy: the fabric may write to it */
	enum fabric_op op;
	bool own; /* this side's put or get, or an entry that it stores: not what the peer asked for */
	bool gone;       /* forgotten while it was in hand */
	unsigned movers; /* threads that move a piece of it now */
	int status;
	int span;                   /* what goes next: in the spans ... */
	uint64_t in_span, at;       /* ... and in the request's bytes */
	uint64_t by_thread, helped; /* bytes moved by the thread, by calls that wait */
};

struct engine_port { /* a context's side of the engine */
	struct context *ctx;
	struct list landed; /* the reception FIFO; engine.lock */
	atomic_bool any;    /* something has landed */
	struct watch watch; /* an eventfd that says so */
	pthread_t server;
	/* Stored under the context's lock. The server: it is to end; the application has made
	 * progress itself since the server last looked. */
	atomic_bool stop, aside;
	/* The context's lock. The server: there is one; it begins to wait; it waits, or polls. */
	bool served, enters, polls;
	bool attends; /* a context that was opened for one thread */
	bool waits;   /* for engine_come_in */
	/* Of the application's own loop: its descriptor, an eventfd; -1: not asked for. */
	int front, news;
	bool shown; /* the eventfd says so */
};

/* Up to a piece: 1 there are more, 0 that was all, or negative as of the fabric. */
int transfer_move(struct transfer *t);
/* The next piece is another mover's. */
void transfer_skip(struct transfer *t);
/* What remains, in pieces: 0, 1, or 2, more than one. */
int transfer_pieces(const struct transfer *t);

/* ---- engine_thread.c --------------------------------------------------------------------- */

/* A thread that takes no signal of the application's. */
int engine_start_thread(pthread_t *thread, void *(*body)(void *), void *arg);
/* By it: where its starter is bound to one processor, it is not; LEAVE: it has the others. */
void engine_unbind(bool leave);
/* By it: short turns, so that it has one soon where another thread computes. */
void engine_shorten_turns(void);
/* One port more, or less, that may use the engine's thread; it ends with the last. */
void engine_enter(void);
void engine_leave(void);
/* It runs from the first transfer on. False: it cannot. */
bool engine_thread_runs(void);
/* Into the injection FIFO. */
void engine_inject(struct transfer *t);
/* Moves a piece of PORT's first in it, if it is this side's own or may be ANY: was there one? */
bool engine_move_one(const struct engine_port *port, bool any);
/* Out of the reception FIFO, or NULL. */
struct transfer *engine_take_landed(struct engine_port *port);
/* Out of wherever it is; waits for the piece in hand. */
void engine_recall(struct transfer *t);

#endif
