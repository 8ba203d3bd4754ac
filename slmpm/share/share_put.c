/* SPDX-License-Identifier: BSD-3-Clause */
/* The origin of a put that both sides copy: its share, and whether it pays (share.h). */
#include <sched.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/base/config.h"
#include "slmpm/rma/rma.h"
#include "slmpm/share/share.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/completion/late.h"
#include "slmpm/stats.h"

#define PAGE     4096
#define LAG      8192 /* so much later does it begin */
#define TAIL     64   /* bytes that come last: who polls for the end finds the rest */
#define BRIEF    32   /* looks in a row, ... */
#define PATIENCE 256  /* ... looks before others may run, and the descriptors are looked at */
#define LEAST_MS 100  /* whoever has less does not wait for another's copy */

struct job { /* a put */
	struct remote *to;
	const unsigned char *from;
	uint64_t offset, length, claim; /* ours, from CLAIM on */
	int timeout_ms;
	uint64_t deadline; /* 0: the clock has not been looked at yet */
};

static void share_put_copy(const struct job *j, uint64_t from, uint64_t to)
{
	if (to > from)
		copy_bytes((unsigned char *)j->to->memory.base + j->offset + from, j->from + from,
			   to - from);
}

static bool share_put_offer(struct job *j)
{
	struct endpoint *ep = j->to->ep;
	uint64_t offset = 0;
	const struct grant *g = share_grant(ep, j->from, j->length, SLMPM_READ, &offset);
	struct wire_share w = {.offset = LITTLE_64(offset)};

	if (!g)
		return false;
	j->claim = (j->length / 2 - LAG) & ~(uint64_t)(PAGE - 1);
	w.target = rma_target(j->to, j->offset, j->claim);
	w.grant = LITTLE_32(g->id);
	return share_offer(ep, &w);
}

/* By the segment held back: but for the piece that the target is at, all is ours again. */
static void take_all_back(struct job *j)
{
	struct endpoint *ep = j->to->ep;
	struct share *s = ep->rooms->share;

	if (!share_take_back(ep) || s->over)
		return;
	share_put_copy(j, s->upto, j->claim);
	j->claim = s->upto;
}

/* Some of the offer is to be ours again: false, the target's end is to be waited for. */
static bool claim_back(struct job *j)
{
	struct endpoint *ep = j->to->ep;
	struct share *s = ep->rooms->share;
	uint64_t claim =
		s->upto ? s->upto + (((j->claim - s->upto) / 2) & ~(uint64_t)(PAGE - 1)) : 0;
	struct packet give = {.opcode = WIRE_SHARE_GIVE, .seq = s->id, .extent = claim};

	if (!split_notify(ep, &give, NULL)) {
		take_all_back(j);
		return false;
	}
	/* Also if all has not come for want of memory here: a later claim might ask for less. */
	if (!split_catch_up(ep) || s->upto > claim)
		return s->over;
	share_put_copy(j, claim, j->claim);
	j->claim = claim;
	return true;
}

/* Between two looks: false, the call's time is over. */
static bool await_target(struct job *j, uint32_t scans)
{
	if (scans < BRIEF)
		return true;
	if (scans % PATIENCE) {
		clock_relax(50);
		return true;
	}
	(void)sched_yield();
	(void)wait_inspect(j->to->ep->ctx);
	if (!j->deadline)
		j->deadline = clock_deadline(j->timeout_ms);
	return clock_now() < j->deadline;
}

/* What remains of the front part: true, it is in place, whoever has copied it. */
static bool finish(struct job *j)
{
	struct endpoint *ep = j->to->ep;
	struct share *s = ep->rooms->share;
	bool waits = false, late = false;

	for (uint32_t scans = 1;
	     (split_catch_up(ep) || ep->state == SLMPM_PEER_UP) && !s->over && j->claim && !late;
	     scans++) {
		if (!waits && (!s->upto || j->claim > s->upto + 2 * SHARE_PIECE))
			waits = !claim_back(j);
		else
			late = !await_target(j, scans);
	}
	if (late)
		take_all_back(j);
	if (late && ep->state == SLMPM_PEER_UP && !s->over && j->claim)
		return false;
	if (j->claim)
		share_put_copy(j, s->over ? s->done : 0, j->claim);
	return true;
}

/* 1; 0: not shared; negative with the detail set. */
static int share_it(struct job *j)
{
	struct remote *to = j->to;
	struct endpoint *ep = to->ep;
	bool done;

	if (!share_put_offer(j))
		return 0;
	to->copying++; /* the mapping stays */
	to->active++;
	share_put_copy(j, j->claim, j->length - TAIL);
	done = finish(j);
	if (done) {
		atomic_thread_fence(memory_order_release);
		share_put_copy(j, j->length - TAIL, j->length);
	} else {
		ep->rma->holds |= RMA_BEHIND; /* nothing may be overtaken by what it still copies */
	}
	if (done && ep->rooms->share->over && ep->rooms->share->done) {
		ep->stats->shared_puts++;
		ep->stats->shared_bytes += ep->rooms->share->done;
	}
	to->active--;
	memory_copied(to);
	return done ? 1 : late_from(ep->ctx, ep, -1, "slmpm_put: no end of the share of");
}

static bool may_share(const struct endpoint *ep, uint64_t len, int timeout_ms)
{
	struct context *ctx = ep->ctx;

	if (!ep->rooms->share || config_get()->share == WHEN_NEVER ||
	    len < (uint64_t)config_get()->share_min || ep->blocked || ep->bundle.count ||
	    ctx->handling || ctx->polling || ctx->armed || ctx->wait == SLMPM_WAIT_BLOCK ||
	    (timeout_ms >= 0 && timeout_ms < LEAST_MS))
		return false;
	/* It was when somebody waited: who only puts never does. */
	if (ctx->oversubscribed && config_get()->share != WHEN_ALWAYS) {
		ctx->oversubscribed--;
		return false;
	}
	return true;
}

static void note_time(struct endpoint *ep, const struct job *j, bool shared, uint64_t began)
{
	struct share *s = ep->rooms->share;
	enum choice_note note = choice_taken(choice_of(s->choices, j->length), shared);
	uint64_t took;

	if (!note)
		return;
	took = clock_ticks() - began;
	s->last = (struct choice_last){
		.of = choice_of(s->choices, j->length),
		.note = note,
		.other = shared,
		.length = j->length,
		.took = took,
		.since = began + took,
	};
	monitor_timed(ep, SLMPM_BY_PUT, j->length, j->from, took, took);
}

/* Only what it costs counts here: the link need not be looked at. */
static struct mode share_put_choose(uint64_t len, struct choice *c)
{
	const struct mode_ask ask = {
		.op = MODE_PUT,
		.waits = true,
		.always = config_get()->share == WHEN_ALWAYS,
		.size = len,
	};
	struct mode_link link = {.up = true, .ways = 1u << MODE_COPY | 1u << MODE_SHARED};
	struct mode mode = choice_decided(c, 0);

	if (mode.way)
		return mode;
	choice_view(c, &link.view);
	mode = mode_select(&ask, &link, 1, 0, mode_limits());
	choice_decide(c, 0, mode);
	return mode;
}

int share_put(struct remote *to, uint64_t offset, const void *from, uint64_t len,
	      const struct slmpm_how *how)
{
	struct job j = {
		.to = to,
		.from = from,
		.offset = offset,
		.length = len,
		.claim = len,
		.timeout_ms = how ? how->timeout_ms : -1,
	};
	struct endpoint *ep = to->ep;
	struct mode mode;
	struct choice *c;
	uint64_t began;
	bool shared;
	int rc = 0;

	if (!may_share(ep, len, j.timeout_ms))
		return 0;
	if (ep->rooms->share->out && !ep->rooms->share->over) {
		share_put_copy(&j, 0, len);
		(void)progress_inspect(ep); /* the answer to the last offer may have come */
		return 1;
	}
	began = clock_ticks(); /* the clock would take longer, and costs are compared, nothing else */
	choice_conclude(&ep->rooms->share->last, began);
	c = choice_of(ep->rooms->share->choices, len);
	mode = share_put_choose(len, c);
	shared = mode.way == MODE_SHARED;
	if (shared)
		rc = share_it(&j);
	if (shared && rc <= 0)
		return rc;
	mode_count(&ep->rooms->figures->modes, MODE_PUT, mode);
	if (!shared)
		share_put_copy(&j, 0, len);
	if (config_get()->share == WHEN_AUTO)
		note_time(ep, &j, shared, began);
	return 1;
}
