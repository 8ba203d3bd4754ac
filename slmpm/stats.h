/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics: counters with one writer, in memory that other processes can map read-only. */
#ifndef SLMPM_STATS_H
#define SLMPM_STATS_H

#include "slmpm/endpoint.h"
#include "slmpm/mode/mode.h"

/* Of an endpoint, beside what stands in ep->stats. */
struct figures {
	struct slmpm_stats own;     /* ep->stats, where the context's page has no room */
	struct totals_peer *totals; /* lifetime totals (monitor/totals.h) */
	uint64_t puts, put_bytes, gets, get_bytes; /* begun as requests, not done at once */
	uint64_t pieces_read; /* of the peer's memory: stretches, shares, messages in its areas */
	uint64_t arrived;     /* messages, the first ones: read for certain (link/watermark.c) */
	uint64_t received;    /* messages: by the program, as the peer says */
	struct mode_tally modes;
	uint64_t taken;    /* segments, by the peer, as far as was known ... */
	uint32_t switches; /* ... by so many of ctx->switches */
};

/* The context's page. Without one (no memory) figures stay inside the process. */
void stats_open(struct context *ctx);
void stats_close(struct context *ctx);
/* Gives the endpoint its entry. */
void stats_assign(struct endpoint *ep);
/* A place for a work queue, from 1; 0: there is none. What is there now; and it is free again. */
uint32_t stats_queue_take(struct context *ctx);
void stats_queue_fill(struct context *ctx, uint32_t place, const struct slmpm_stats_queue *now);
void stats_queue_drop(struct context *ctx, uint32_t place);
/* Descriptors of process PID, their NUMBERS there: up to N memfds named LABEL..., behind the first
 * SKIP. How many; or -errno of its /proc entry. PID may be this process: open none meanwhile. */
int stats_find(int pid, const char *label, int skip, int *numbers, int n);
/* A descriptor of what NUMBER is there; -1. */
int stats_open_found(int pid, int number);
/* FD, which is closed, mapped read-only: *SIZE bytes, sealed against shrinking. NULL: these are
 * fewer than LEAST, or it cannot be mapped. */
void *stats_map(int fd, size_t least, size_t *size);
/* Of a text from there one line of visible ASCII, whatever it was. */
void stats_tame(char *text, size_t size);
void stats_violation(const char *rule);
void stats_forked(void);

#endif
