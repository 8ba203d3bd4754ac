/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms above the core do in the life of contexts and peers. The core knows none of them: it goes by lists of
 * functions, each with a NULL behind the last, which are called in their order. parts.c fills them in.
 */
#ifndef SLMPM_PART_H
#define SLMPM_PART_H

#include <stdint.h>

struct context;
struct endpoint;

struct parts {
	/* A context has several threads from now on, or may have. */
	void (*const *to_threads)(struct context *ctx);
	/* A context closes: it has no peers any more, its descriptors are still open. */
	void (*const *shut)(struct context *ctx);
	/* Does what is due by NOW, and says when something is due next: ns of clock_now, UINT64_MAX never. */
	uint64_t (*const *deadlines)(struct context *ctx, uint64_t now);
	/* A peer has just ended, ep->error says with what: its requests fail, what it owes is dropped. */
	void (*const *end)(struct endpoint *ep);
	/* A peer is closed: first what needs its link, then, without one, the rest. */
	void (*const *leave)(struct endpoint *ep);
	void (*const *free)(struct endpoint *ep);
	/* In a child of fork: its copies of a peer's and of a context's descriptors are closed, and nobody is told. */
	void (*const *fork_peer)(struct endpoint *ep);
	void (*const *fork_context)(struct context *ctx);
	/* What belongs to the process is as new, handles of the parent's are stale. */
	void (*const *fork)(void);
};

extern const struct parts parts;

#define PART_EACH(at, list) for (__typeof__(*(list)) *at = (list); *at; at++)

#endif
