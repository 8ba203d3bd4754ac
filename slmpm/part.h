/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms above the core do in the life of contexts, peers and requests: lists of functions,
 * called in order up to a NULL, and single functions where there is but one room. parts.c fills
 * them in.
 */
#ifndef SLMPM_PART_H
#define SLMPM_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slmpm/context.h"

struct counter;
struct endpoint;
struct group;
struct machine_ops;
struct head;
struct operation;
struct remote;
struct request;
struct notified;
struct wire_group;

#define PART_PUSHES 6

struct parts {
	/* ---- of a context */

	/* Opens a room's part of an open context. 0, or negative with the detail set. */
	int (*const *open)(struct context *ctx);
	/* This thread is to have a peer in it, over FABRIC. 0, or negative with the detail set. */
	int (*attend)(struct context *ctx, const struct fabric *fabric);
	/* The context has several threads from now on, or may have. */
	void (*const *to_threads)(struct context *ctx);
	/* Does what is due by NOW: when more is, in ns of clock_now; UINT64_MAX: never. */
	uint64_t (*const *deadlines)(struct context *ctx, uint64_t now);
	/* Work queues go on: entries begun, or ended without a peer. */
	int (*advance)(struct context *ctx);
	/* Operations of groups go on: how many have ended. */
	int (*collect)(struct context *ctx);
	/* ... and while it is ASLEEP it is rung for them. True: barrier_all is to follow. */
	bool (*collect_arm)(struct context *ctx, bool asleep);
	/* Some entries of work queues have yet to end. */
	bool (*pending)(const struct context *ctx);
	/* It is to close, or its thread ends: the library's threads leave it. Not locked. */
	void (*retreat)(struct context *ctx);
	/* It closes: no other connects to it any more, nor does it. */
	void (*const *unlisten)(struct context *ctx);
	/* It closes: it has no peers any more, its descriptors are still open. */
	void (*const *shut)(struct context *ctx);

	/* ---- of waiting in it */

	/* The links are inspected; TICKS is now. */
	void (*inspect)(struct context *ctx, uint64_t ticks);
	/* Its work queues are shown to others as they are now. */
	void (*publish)(struct context *ctx);
	/* So are its groups. */
	void (*collect_publish)(struct context *ctx);
	/* Others see how things are. */
	bool (*is_shown)(const struct context *ctx);
	/* The application makes progress itself, and WAITS: the library's thread pauses. */
	void (*step_aside)(struct context *ctx, bool waits);
	/* That thread has found something: it is shown where the application polls. */
	void (*show)(struct context *ctx);
	/* Failed unauthenticated connections are forgotten. */
	void (*forget_refused)(struct context *ctx);
	/* A fabric that could not say yet whether its links are connected may know now. */
	void (*ask_again)(struct context *ctx);

	/* ---- of a peer */

	/* Puts functions of its own before those of a copy of the fabric's table: true. */
	bool (*const *before)(struct fabric *table);
	/* What all rooms keep of a peer, all zero: its size; false, there is no memory. */
	size_t peer_size;
	bool (*make)(struct endpoint *ep);
	/* A peer comes to be. */
	void (*const *begin)(struct endpoint *ep);
	/* Ends the process where ep->blocked is wrong. NULL but in builds with a sanitizer. */
	void (*compare)(const struct endpoint *ep);
	/* It is connected: ep->state is UP. */
	void (*const *up)(struct endpoint *ep);
	/* Runs active messages that were kept, before anything sent behind them: how many. */
	int (*run_kept)(struct endpoint *ep);
	/* What has been begun with it goes on for one turn: how many things happened. */
	int (*const *step)(struct endpoint *ep);
	/* What waits to be sent to it, as a bit of ep->blocked says, goes out as far as there is
	 * room: packets. */
	struct {
		uint32_t block; /* enum endpoint_block */
		int (*push)(struct endpoint *ep);
	} pushes[PART_PUSHES];
	/* Its link is lost. */
	void (*lost)(struct endpoint *ep);
	/* Of EP, which has fetched messages: the peer has some yet to fetch. */
	bool (*fetches_out)(const struct endpoint *ep);
	/* It is about to end: its link is inspected a last time. */
	void (*const *ending)(struct endpoint *ep);
	/* It has just ended (ep->life->error): its requests fail, answers to it are dropped. */
	void (*const *end)(struct endpoint *ep);
	/* By its control connection: an area of loans, a region; TYPE is of enum wire_control, FD
	 * its memory's or -1. 0, -ENOTSUP where there are no descriptors, or negative. */
	int (*offer)(struct endpoint *ep, void *packet, size_t length, uint32_t type, int fd);
	/* What has come by that, but for its end, is taken now. */
	void (*read_ahead)(struct endpoint *ep);
	/* A PACKET of a group that forms, with N descriptors at FDS: those taken are -1 then. LOST:
	 * it had some, which could not be received. 0, -SLMPM_EPROTO: the peer breaks the protocol,
	 * or -SLMPM_ENOMEM. */
	int (*grouped)(struct endpoint *ep, const struct wire_group *packet, int *fds, int n,
		       bool lost);
	/* It has come to a listener of a group's, and has said PROOF: 0, and its secret is known, or a
	 * negative error: -SLMPM_EACCES: it is no member. */
	int (*admit)(struct endpoint *ep, const unsigned char *proof);
	/* G GOES, or its ranks become others: so does what the rooms above have of them. */
	void (*ungrouped)(struct group *g, bool goes);
	/* They have become others. */
	void (*regrouped)(struct group *g);
	/* What groups between machines do within each. */
	const struct machine_ops *machine;
	/* Its control connection takes packets again. */
	void (*room)(struct endpoint *ep);
	/* How the process of an accelerator has ended: into TEXT; true: normally. */
	bool (*process_describe)(struct endpoint *ep, char *text, size_t size);
	/* It is told that it has ended here, and why. */
	void (*hang_up)(struct endpoint *ep, const char *why);
	/* It has ended, and its handle stays: what nobody uses is given back. */
	void (*const *reclaim)(struct endpoint *ep);
	/* The program closes it: what is queued, then end of stream. */
	int (*close)(struct endpoint *ep, int timeout_ms);
	/* The peer goes; its link is still there. */
	void (*const *leave)(struct endpoint *ep);
	/* The peer goes; its link has gone. */
	void (*const *free)(struct endpoint *ep);

	/* ---- of a request */

	/* R, with a tag, ends with STATUS. True: not yet, an answer is awaited. */
	bool (*awaits)(struct request *r, int status);
	/* An engine is through with R's bytes: 0, or negative as of the fabric. */
	void (*moved)(struct request *r, int rc);
	/* R ends, r->result.status says how. */
	void (*const *finishes)(struct request *r);
	/* R has ended, r->result says how: an active message; one that is bound. */
	void (*active_finished)(struct request *r);
	void (*deliver)(struct request *r);
	/* The completion target of a dropped request is not notified. */
	void (*unnotify)(struct notified *notified);

	/* The peer knows WHICH of the streams that end in receive queues, and has so many messages
	 * for it on their way or WAITING to go. */
	void (*stream_known)(struct endpoint *ep, uint64_t which, uint64_t waiting);
	/* Of one of any peer's it claims entries; HOW: enum wire_claim. */
	void (*stream_claimed)(struct endpoint *ep, uint32_t stream, uint64_t total, uint64_t how);

	/* ---- of messages of the library's own */

	/* An entry of a FIFO (fifo.h). */
	void (*fifo_arrived)(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
			     unsigned char *memory, uint64_t charge);
	/* An active message to a handler of the library's own. */
	void (*handle)(struct endpoint *ep, const struct slmpm_am *am);
	/* One-sided operations as such: one came damaged; one matched by tag. */
	void (*emulated_damaged)(struct endpoint *ep, uint16_t id);
	void (*emulated_tagged)(struct endpoint *ep, const struct head *h);

	/* ---- of memory */

	/* COUNTER ends, which peers count by its region. */
	void (*uncounted)(struct counter *counter);
	/* Mirrors lie in N bytes at AT. */
	bool (*mirrored)(const struct context *ctx, const void *at, uint64_t n);
	/* Where a range of GRANT begins: in the peer's memory, by a key open here; in this
	 * process's, by what it granted. False: unknown. */
	bool (*address_there)(struct endpoint *ep, uint32_t grant, uint64_t *address);
	bool (*address_here)(struct endpoint *ep, uint32_t grant, uint64_t *address);
	/* GRANT is taken back: what this process does there in the peer's name goes no further. */
	void (*revoked)(struct endpoint *ep, uint32_t grant);
	/* Number of the peer's last request taken in: those behind it find a grant that is revoked
	 * now gone; so on the other side REMOTE's fail at once. */
	uint64_t (*received)(const struct endpoint *ep);
	void (*refused)(struct remote *remote, uint64_t received);
	/* A put into a FIFO: what the call returns. */
	int (*fifo_put)(const struct operation *o);
	/* The library has written N bytes at AT. */
	void (*landed)(struct context *ctx, const void *at, uint64_t n);
	/* A system call that writes there would fail, as the pages are protected. */
	bool (*guards)(const struct context *ctx, const void *at, uint64_t n);
	/* One did: protected pages there become writable. False: there are none. From any
	 * thread. */
	bool (*unprotect)(void *at, uint64_t n);

	/* ---- in a child of fork */

	/* Its copies of a peer's and of a context's descriptors are closed, and nobody is told. */
	void (*const *fork_peer)(struct endpoint *ep);
	void (*const *fork_context)(struct context *ctx);
	/* What belongs to the process is as new, handles of the parent's are stale. */
	void (*const *fork)(void);
};

extern const struct parts parts;

#define PART_EACH(at, list) for (__typeof__(*(list)) *at = (list); *at; at++)

static inline void part_landed(struct context *ctx, const void *at, uint64_t n)
{
	if (UNLIKELY(!list_empty(&ctx->mirrors)))
		parts.landed(ctx, at, n);
}

#endif
