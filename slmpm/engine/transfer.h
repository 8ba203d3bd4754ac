/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's descriptors, and what its files ask of one another. */
#ifndef SLMPM_TRANSFER_H
#define SLMPM_TRANSFER_H

#include <pthread.h>
#include <stdatomic.h>

#include "slmpm/endpoint.h"
#include "slmpm/watch.h"

/*
 * A descriptor. While the thread has it in hand, all but `gone` and `node` are the thread's;
 * otherwise it is in one of the FIFOs and belongs to whoever holds the engine's lock. The request
 * and the remote region stay as they are until it has come back.
 */
struct transfer {
	struct list node; /* injection, reception; or alone, in hand */
	struct engine_port *port;
	struct endpoint *ep;
	struct remote *remote; /* the peer's region; or NULL, all of its memory, or ... */
	unsigned char *to;     /* ... a store here, to this place */
	struct request *r;
	struct fabric_memory memory; /* a copy: the fabric may write to it */
	enum fabric_op op;
	bool gone; /* forgotten while it was in hand */
	bool own; /* this side's put or get, or an entry that it stores: not what the peer asked for */
	int status;
	int span;             /* what goes next: in the spans ... */
	uint64_t in_span, at; /* ... and in the request's bytes */
	uint64_t helped;      /* of these, moved by who called in */
};

struct engine_port { /* a context's side of the engine */
	struct context *ctx;
	struct list landed;  /* the reception FIFO; engine.lock */
	struct list waiting; /* inline: the injection FIFO; the context's */
	atomic_bool any;     /* something has landed */
	struct watch watch;  /* an eventfd that says so */
	pthread_t server;
	/* The context's lock. The server: there is one; it is to end; it begins to wait; it waits, or polls;
	 * the application has made progress itself since the server last looked. */
	bool served, stop, enters, polls, aside;
	bool attends; /* a context that was opened for one thread */
	/* Of the application's own loop: the context's descriptor, and an eventfd; -1: nobody has asked. */
	int front, news;
	bool shown; /* the eventfd says so */
};

/* Up to a piece: 1 there are more, 0 that was all, or negative as of the fabric. */
int transfer_move(struct transfer *t);

/* ---- engine_thread.c ------------------------------------------------------------------------ */

/* A thread that takes no signal of the application's. */
int engine_start_thread(pthread_t *thread, void *(*body)(void *), void *arg);
/* One port more, or less, that may use the engine's thread; it ends with the last. */
void engine_enter(void);
void engine_leave(void);
/* It runs from the first transfer on. False: it cannot. */
bool engine_thread_runs(void);
/* Into the injection FIFO. */
void engine_inject(struct transfer *t);
/* Out of it: the next, if it is of PORT; or NULL. */
struct transfer *engine_take_back(const struct engine_port *port);
/* Out of the reception FIFO, or NULL. */
struct transfer *engine_take_landed(struct engine_port *port);
/* Out of wherever it is; waits for the piece in hand. */
void engine_recall(struct transfer *t);

#endif
