/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor: what is measured on a link, and the page that shows it to others. Nothing of it lies
 * on a fast path: samples are taken on the slow paths, links inspected by calls that are no single
 * message's (link/inspect.h).
 */
#ifndef SLMPM_MONITOR_H
#define SLMPM_MONITOR_H

#include <slmpm.h>

#include "slmpm/endpoint.h"
#include "slmpm/request.h"
#include "slmpm/link/wait.h"

#define MONITOR_PASSES 32 /* short calls between two inspections; a power of two */

/* From so many bytes on each request is measured, where it is one anyway. */
#define MONITOR_LONG 16384

struct head;
struct monitor_entry;

struct monitor_time { /* in ticks: recent mean, least; 0: not measured */
	uint64_t mean, least;
};

struct monitor_cell { /* of one protocol, size class and warmth */
	uint64_t samples, bytes, busy;
	struct monitor_time latency;
};

union monitor_flow { /* what has gone over a link, or goes in a second */
	struct {
		uint64_t sent, sent_bytes, received, received_bytes; /* messages */
		uint64_t requests[SLMPM_PROTOCOLS], request_bytes[SLMPM_PROTOCOLS];
	};
	uint64_t all[4 + 2 * SLMPM_PROTOCOLS];
};

struct monitor_load {   /* of a link, as it was added to the aggregate */
	uint32_t queue; /* requests */
	uint32_t out;   /* thousandths of the ring; 0 unless the link is busy */
	bool busy;      /* much to do */
};

struct monitor { /* of an endpoint */
	uint64_t since;
	struct monitor_cell cells[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES][SLMPM_WARMTH];
	const void *last[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES]; /* memory of the sample before */
	uint64_t puts, put_bytes, gets, get_bytes, atomics;    /* by SLMPM_BY_REQUEST */
	uint64_t carriers,
		carried; /* messages sent that are parts of such, or answers; their bytes */
	uint32_t out_share, in_share; /* of the rings, in 2^-16: recent means */
	struct {
		uint64_t ns; /* at the last look */
		union monitor_flow totals, rates;
	} flow;
	struct {
		bool agreed;      /* the peer answers */
		uint64_t id;      /* of the last one sent */
		uint64_t asked;   /* in ns; and in ticks: */
		uint64_t began;   /* 0: none is out */
		uint64_t traffic; /* messages and one-sided operations when it was sent */
		uint64_t count;
		struct monitor_time time; /* of both ways */
		uint32_t path;            /* that the last one was sent by, of several */
	} echo;
	struct { /* of each of several links */
		uint32_t out_share, in_share;
		struct monitor_time time; /* of echoes while it was in use */
	} paths[SLMPM_MONITOR_PATHS];
	struct monitor_load load[SLMPM_MONITOR_PATHS]; /* of the paths, or of the one link */
	struct {                /* a message of one packet, of whose arrival the peer tells */
		bool agreed;    /* it does */
		bool shut;      /* for the sake of one the fast paths are, which were open */
		uint64_t sent;  /* envelopes, at the last look */
		uint64_t asked; /* when one was wanted last, in ns */
		uint64_t seq;   /* of the last one; and when it went, in ticks: */
		uint64_t began; /* 0: none is out */
		struct monitor_cell *cell;
	} sample;
	struct {                   /* over the job, and the jobs around it */
		bool agreed;       /* the peer takes them */
		uint32_t turn;     /* whose are told next */
		uint64_t notified; /* when, in ns */
		uint64_t traffic;  /* of the whole context, when that was told */
		bool busy;         /* what was told last: some fabric has something to do */
		struct aggregate_part *received; /* of the job's others, over this link; or NULL */
	} aggregate;
	struct monitor_entry *entry; /* in a page; or NULL */
	bool *taken;                 /* it is, there */
};

/* SLMPM_MONITOR_MS in ns. */
static inline uint64_t monitor_period(void)
{
	return (uint64_t)config_get()->monitor_ms * 1000000;
}

/* What all links of the context have carried: messages and one-sided operations. */
uint64_t echo_traffic(const struct context *ctx);
/* Without memory for it the endpoint goes unwatched. */
void monitor_new(struct endpoint *ep);
/* What has been agreed: WIRE_FEATURE_*. */
void monitor_agreed(struct endpoint *ep, uint64_t features);
/* An ended peer's place in the pages is others' to take; its figures stay there until then. */
void monitor_leave_page(struct endpoint *ep);
/* Its last figures stay where they are, as long as there is room. */
void monitor_free(struct endpoint *ep);
/* The context's pages. Without memory for one nothing is shown to others. */
int monitor_open(struct context *ctx);
void monitor_shut(struct context *ctx);
void monitor_forked(struct context *ctx);

/* Inspects the links, if that is due. Not while a request is half posted. */
COLD void monitor_inspect(struct context *ctx, uint64_t ticks);
static inline void monitor_carrier(struct endpoint *ep, uint64_t bytes)
{
	if (!ep->rooms->monitor)
		return;
	ep->rooms->monitor->carriers++;
	ep->rooms->monitor->carried += bytes;
}

/* At the end of a short call that waits for nothing: a program may make no others. */
COLD void monitor_opportunistic(struct context *ctx);
static inline void monitor_pass(struct context *ctx)
{
	if (UNLIKELY(++ctx->monitor.passed >= MONITOR_PASSES))
		monitor_opportunistic(ctx);
}

/* A choice by what other instances report: the call's end inspects the links, where that is due. */
static inline void monitor_pass_next(struct context *ctx)
{
	ctx->monitor.passed = MONITOR_PASSES - 1;
}

/* Nothing has gone over the links of CTX since the last inspection. */
bool monitor_is_shown(const struct context *ctx);
/* An endpoint is up, or has ended: shows that, whatever the time. */
void monitor_up(struct endpoint *ep);
void monitor_ended(struct endpoint *ep);

/* ---- figures (monitor_take.c) ---------------------------------------------------------------- */

/* As they are now. */
void monitor_take(struct endpoint *ep, struct slmpm_monitor *m);
void monitor_totals(const struct endpoint *ep, union monitor_flow *t);

/* ---- samples, echoes (sample.c) -------------------------------------------------------------- */

/* VALUE is the latest. */
void monitor_time_add(struct monitor_time *t, uint64_t value);
/* LENGTH bytes from or into MEMORY have taken the caller BUSY ticks, and LATENCY until the peer had
 * them (0: that is not known). */
void monitor_timed(struct endpoint *ep, int protocol, uint64_t length, const void *memory,
		   uint64_t busy, uint64_t latency);
/* R, one-sided, is to go by requests or the engine; and ends. */
void monitor_requested(struct request *r);
void monitor_finished(struct request *r);
/* If one is due of a message in a packet: BLOCK_SAMPLE, until the next has gone the slow path. */
void sample_inspect(struct endpoint *ep, uint64_t ns);
/* In a handler nobody waits: true, the fast path is open again, and R is for that one. */
bool sample_gives_way(const struct request *r);
/* R has gone in a packet that asked for it: it was begun at BEGAN. */
void sample_sent(struct endpoint *ep, struct request *r, uint64_t began);
/* The peer's message asks. */
void sample_asked(struct endpoint *ep, const struct head *h);
/* Sends an echo, if one is due: true. */
bool echo_inspect(struct endpoint *ep, uint64_t ns);
/* The link has carried something since the last one. */
bool echo_has_traffic(const struct endpoint *ep);
void echo_asked(struct endpoint *ep, const struct head *h);
void echo_answered(struct endpoint *ep, const struct head *h);

/* ---- pages (monitor_page.c) ------------------------------------------------------------------ */

void monitor_page_assign(struct endpoint *ep);
void monitor_page_release(struct endpoint *ep);
/* Bytes of a peer's: what is measured, its place in a page, what is received of the job. */
uint64_t monitor_memory(void);
/* Shows them. */
void monitor_publish(struct endpoint *ep);
/* And the job's aggregate, in each page. */
void monitor_publish_aggregate(struct context *ctx);

#endif
