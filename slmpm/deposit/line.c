/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of members along which a put to many goes, and what is to be sent to each of these. */
#include "slmpm/deposit/deposit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "slmpm/board/agree.h"
#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"
#include "slmpm/part.h"

#define TURN    32                 /* packets of a peer, before others have theirs */
#define TICK_NS UINT64_C(10000000) /* members that go without a connection are noticed by then */

/* ---- ranks ----------------------------------------------------------------------------------- */

uint32_t line_after(const struct line *l, const struct ranks *s, uint32_t rank)
{
	const uint32_t size = line_size(l);
	uint64_t at = rank + 1, r;

	if (l->order)
		return order_after(l, s, rank);
	if (rank >= l->origin) {
		r = bits_find(s->bits, at, size, 0);
		if (r < size)
			return (uint32_t)r;
		at = 0;
	}
	r = bits_find(s->bits, at, l->origin, 0);
	return r < l->origin ? (uint32_t)r : BOARD_NONE;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct deposits *deposits_of(struct group *g)
{
	struct deposits *d = g->deposits;

	if (d)
		return d;
	d = g->deposits = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->group = g;
	list_init(&d->puts);
	list_init(&d->lines);
	list_init(&d->early);
	list_init(&d->routes);
	return d;
}

struct line *line_new(struct deposits *d, struct list *list, uint32_t origin)
{
	struct line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->of = d;
	l->origin = origin;
	list_init(&l->flows);
	list_append(list, &l->node);
	d->due = 0; /* it may have a deadline */
	d->group->ctx->depositing = true;
	return l;
}

/* Their connection has something to send, or not any more. */
static void rank_inspect(const struct group *g, uint32_t rank)
{
	struct endpoint *ep = pair_endpoint(g, rank);

	if (ep)
		endpoint_block(ep, BLOCK_DEPOSIT, deposit_has_work(ep));
}

void flow_end(struct line *l, struct flow *f)
{
	struct group *g = l->of->group;
	uint32_t rank = f->rank;

	list_remove(&f->node);
	free(f);
	pair_unwant(member_of(g, rank));
	rank_inspect(g, rank);
}

void line_cut(struct line *l)
{
	LIST_EACH_ENTRY(struct flow, f, &l->flows, node) {
		f->feeds = false;
		f->due = 0;
		rank_inspect(l->of->group, f->rank);
	}
}

void line_free(struct line *l)
{
	LIST_EACH_ENTRY(struct flow, f, &l->flows, node)
		flow_end(l, f);
	list_remove(&l->node);
	free(l->order);
	free(l);
}

void line_refuse(struct line *l, int error, uint32_t culprit, const char *format, ...)
{
	va_list args;

	if (l->refusal.error)
		return;
	l->refusal.error = error;
	l->refusal.culprit = culprit;
	va_start(args, format);
	(void)vsnprintf(l->refusal.text, sizeof(l->refusal.text), format, args);
	va_end(args);
}

void callback_begin(struct group *g)
{
	g->waits++; /* it stays */
	g->ctx->handling = true;
	g->ctx->posted_count++; /* no receive takes the fast path past what is being handled */
}

void callback_end(struct group *g)
{
	g->ctx->posted_count--;
	g->ctx->handling = false;
	g->waits--;
}

/* ---- flows ----------------------------------------------------------------------------------- */

static bool flow_has_work(const struct line *l, const struct flow *f)
{
	return f->due || (f->feeds && f->sent < l->got);
}

struct flow *line_flow(const struct line *l, uint32_t rank)
{
	LIST_EACH_ENTRY(struct flow, f, &l->flows, node)
		if (f->rank == rank)
			return f;
	return NULL;
}

void flow_due(const struct line *l, const struct flow *f)
{
	struct deposits *d = l->of;

	d->due = d->due == UINT64_MAX ? 0 : d->due;
	d->group->ctx->depositing = true;
	rank_inspect(l->of->group, f->rank);
}

struct flow *line_send(struct line *l, uint32_t rank, enum deposit_word word)
{
	struct flow *f = line_flow(l, rank);

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f)
			return NULL;
		f->rank = rank;
		list_append(&l->flows, &f->node);
		pair_want(member_of(l->of->group, rank));
	}
	f->due |= 1u << word;
	flow_due(l, f);
	return f;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* L is not sent anything by RANK any more, nor does that take anything. */
static void line_lost(struct line *l, uint32_t rank, int error)
{
	if (l->origin == line_self(l))
		put_lost(l, rank, error, line_broken_by(l, rank, error));
	else
		target_lost(l, rank, error);
}

/* Of one line: packets; *ROOM: the link takes more. */
static int line_push(struct line *l, uint32_t rank, struct endpoint *ep, bool *room)
{
	struct flow *f = line_flow(l, rank);
	int n = 0, rc = 1;

	while (f && n < TURN && flow_has_work(l, f) && (rc = flow_post(l, f, ep)) == 1)
		n++;
	*room = rc == 1 || rc == -SLMPM_ELIMIT;
	if (rc == -SLMPM_ELIMIT) {
		flow_end(l, f);
		line_lost(l, rank, rc);
	}
	if (n && l->origin != line_self(l))
		target_inspect(l);
	return n;
}

static int lines_push(struct list *lines, uint32_t rank, struct endpoint *ep, bool *room)
{
	int n = 0;

	LIST_EACH_ENTRY(struct line, l, lines, node)
		if (*room)
			n += line_push(l, rank, ep, room);
	return n;
}

static bool lines_have_work(const struct list *lines, uint32_t rank)
{
	LIST_EACH_ENTRY(const struct line, l, lines, node) {
		const struct flow *f = line_flow(l, rank);

		if (f && flow_has_work(l, f))
			return true;
	}
	return false;
}

bool deposit_has_work(const struct endpoint *ep)
{
	const struct member *m = pair_member(ep);
	const struct deposits *d = m ? m->group->deposits : NULL;

	return d && ep->state == SLMPM_PEER_UP &&
	       (lines_have_work(&d->puts, pair_rank(m)) ||
		lines_have_work(&d->lines, pair_rank(m)));
}

int deposit_push(struct endpoint *ep)
{
	const struct member *m = pair_member(ep);
	struct deposits *d = m ? m->group->deposits : NULL;
	bool room = true;
	int n = 0;

	if (!endpoint_is_blocked(ep, BLOCK_DEPOSIT))
		return 0;
	if (d && ep->state == SLMPM_PEER_UP && !ep->life->sent_end) {
		n = lines_push(&d->puts, pair_rank(m), ep, &room);
		n += lines_push(&d->lines, pair_rank(m), ep, &room);
	}
	endpoint_block(ep, BLOCK_DEPOSIT, deposit_has_work(ep));
	return n;
}

void deposit_up(struct endpoint *ep)
{
	endpoint_block(ep, BLOCK_DEPOSIT, deposit_has_work(ep));
}

/* ---- members that go ------------------------------------------------------------------------- */

static void lines_lost(struct list *lines, uint32_t rank, int error)
{
	LIST_EACH_ENTRY(struct line, l, lines, node) {
		struct flow *f = line_flow(l, rank);

		if (f)
			flow_end(l, f);
		line_lost(l, rank, error);
	}
}

void deposit_ended(struct endpoint *ep)
{
	struct member *m = pair_member(ep);
	struct deposits *d = m ? m->group->deposits : NULL;
	int error = m && member_is_dead(m) ? -SLMPM_EDEAD : -ep->life->error;

	endpoint_block(ep, BLOCK_DEPOSIT, false);
	early_ended(ep);
	/* One that never was is made again. */
	if (!d || !ep->life->was_up)
		return;
	lines_lost(&d->puts, pair_rank(m), error);
	lines_lost(&d->lines, pair_rank(m), error);
}

uint32_t line_broken_by(const struct line *l, uint32_t rank, int error)
{
	struct group *g = l->of->group;

	if (error != -SLMPM_ECLOSED || pair_gone(g, rank))
		return rank;
	group_inspect(g);
	return g->status == -SLMPM_EDEAD && g->culprit >= 0 ? (uint32_t)g->culprit : rank;
}

void line_refuse_left(struct line *l, int error, uint32_t rank, uint32_t by)
{
	const bool died = error == -SLMPM_EDEAD || by != rank;

	line_refuse(l, died ? -SLMPM_EDEAD : error, by, "rank %" PRIu32 " of the group %s", by,
		    died ? "has died" : "has left the line");
}

/* Those that the line sends to or needs, and that have gone. */
static void line_inspect(struct line *l)
{
	struct group *g = l->of->group;

	for (uint32_t r = 0; r < line_size(l); r++) {
		struct flow *f;
		int error;

		if (r == line_self(l))
			continue;
		f = line_flow(l, r);
		if (!f && r != l->origin && !ranks_have(&l->ranks, r))
			continue;
		error = pair_gone(g, r);
		/* In slmpm_group_shrink it waits for this member: it has left all lines. */
		if (!error && agree_has_begun(&g->boards, r))
			error = -SLMPM_ECLOSED;
		if (!error)
			continue;
		if (f)
			flow_end(l, f);
		line_lost(l, r, error);
	}
}

/* It takes part in nothing any more, and all has been sent. */
static bool line_rests(struct line *l)
{
	if (l->state < LINE_HAS_ALL || (l->state == LINE_HAS_ALL && !l->target.passed))
		return false;
	LIST_EACH_ENTRY(const struct flow, f, &l->flows, node)
		if (flow_has_work(l, f))
			return false;
	LIST_EACH_ENTRY(struct flow, f, &l->flows, node)
		flow_end(l, f);
	return true;
}

static uint64_t deposits_inspect(struct deposits *d, uint64_t now)
{
	uint64_t next = UINT64_MAX, due;

	LIST_EACH_ENTRY(struct line, l, &d->lines, node) {
		if (line_rests(l))
			continue;
		line_inspect(l);
		next = now + TICK_NS;
	}
	LIST_EACH_ENTRY(struct line, l, &d->puts, node) {
		if (line_rests(l)) {
			line_free(l);
			continue;
		}
		if (l->state != LINE_WAITS)
			line_inspect(l);
		due = put_tick(l, now);
		next = due < next ? due : next;
		next = now + TICK_NS < next ? now + TICK_NS : next;
	}
	return next;
}

static uint64_t deposits_tick(struct deposits *d, uint64_t now)
{
	if (now >= d->due) {
		d->due = UINT64_MAX;
		d->due = deposits_inspect(d, now);
	}
	return d->due;
}

uint64_t deposit_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!ctx->depositing)
		return next;
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		uint64_t at = g->deposits ? deposits_tick(g->deposits, now) : next;

		next = at < next ? at : next;
	}
	ctx->depositing = next != UINT64_MAX;
	return next;
}

/* What is left to be said still is, where there is room. */
static void line_flush(const struct line *l)
{
	LIST_EACH_ENTRY(const struct flow, f, &l->flows, node) {
		struct endpoint *ep = pair_endpoint(l->of->group, f->rank);

		if (ep)
			(void)deposit_push(ep);
	}
}

void deposit_leave(struct group *g, bool goes)
{
	struct deposits *d = g->deposits;

	if (!d)
		return;
	LIST_EACH_ENTRY(const struct line, l, &d->lines, node)
		line_flush(l);
	LIST_EACH_ENTRY(struct line, l, &d->puts, node) {
		line_refuse(l, -SLMPM_ECLOSED, BOARD_NONE, "the context has been closed");
		put_end(l, -SLMPM_ECLOSED);
		line_free(l);
	}
	if (goes) /* nothing of it is called any more */
		d->how = (struct slmpm_deposits){.size = 0};
	LIST_EACH_ENTRY(struct line, l, &d->lines, node) {
		target_end(l, -SLMPM_ECLOSED);
		line_free(l);
	}
	routes_free(d); /* ranks are others then */
	free(d->hosts);
	d->hosts = NULL;
	if (!goes)
		return;
	early_forget(d);
	if (d->queue)
		d->queue->users--;
	g->deposits = NULL;
	free(d);
}
