/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: moves the bytes of puts and gets while the application computes. Descriptors go into
 * an injection FIFO and come back through the reception FIFO of their context, whose progress ends
 * the requests. SLMPM_ENGINE says who executes them: `thread`, one thread of the process, asleep
 * while there is nothing to do, and besides it whoever waits, in a context of one thread; `inline`,
 * the context's own progress, a piece at a time; `none`: there is no engine, and the call copies.
 *
 * With `thread`, a context of several threads is also progressed by a thread of its own, so that
 * what its peers ask for is done while the application is busy. One of a single thread becomes such
 * a context when it is to have a peer over a fabric that maps no memory: what that peer puts here
 * is otherwise not stored before the application calls; or when it leaves entries of work queues.
 */
#ifndef SLMPM_ENGINE_H
#define SLMPM_ENGINE_H

#include "slmpm/context.h"

struct request;

/* Is there one, which takes a transfer of so many bytes that is meant for it? */
bool engine_takes(uint64_t length);
/* Is a transfer of so many bytes, which nobody waits for, the engine's though nobody says so? */
bool engine_wants(uint64_t length);
/* R, a put or get within direct reach or a store of a FIFO's entry here, has its turn; parts.moved
 * goes on with it. MEMORY: the peer's, which is copied; NULL: r->rma.to. ACCESS: a word of its
 * owner's that takes the right to it back; or NULL. Negative: it has not begun. */
int engine_start(struct request *r, const struct fabric_memory *memory,
		 const _Atomic unsigned char *access);
/* Moves R, a put or get of one span, from the byte FROM on, here and now: what `moved` is given. */
int engine_copy(struct request *r, const struct fabric_memory *memory,
		const _Atomic unsigned char *access, uint64_t from);
/* Its memory is not looked at any more; so many bytes have been moved. */
uint64_t engine_stop(struct request *r);
/* While EP has something to be moved: the context's reception FIFO, and inline the next piece. */
int engine_step(struct endpoint *ep);
/* A context is open; its own thread, if it has one, ends before it closes; it has ended. */
int engine_open(struct context *ctx);
/* The calling thread's CTX is to have a peer over FABRIC. 0, or negative with the detail set. */
int engine_attend(struct context *ctx, const struct fabric *fabric);
/* It is to have work queues: its thread is there from then on, and comes in with engine_come_in, at
 * the end of a call that leaves entries behind. */
int engine_stand_by(struct context *ctx);
COLD void engine_come_in(struct context *ctx);
/* The application is to have handlers of active messages: where it did not ask for threads these
 * run in its own calls alone, and nobody else makes progress for it. */
void engine_leave_handlers(struct context *ctx);
/* The application makes progress itself, and WAITS: the server leaves that to it for a while. */
void engine_step_aside(struct context *ctx, bool waits);
/* The descriptor for the application's own loop, where the server takes what the context's own
 * shows; what that has found is shown there; until the application comes, which it does now. */
int engine_descriptor(struct context *ctx);
void engine_show(struct context *ctx);
void engine_seen(struct context *ctx);
void engine_stop_serving(struct context *ctx);
void engine_close(struct context *ctx);
/* In the child after fork. */
void engine_forked(struct context *ctx);
void engine_fork(void);

#endif
