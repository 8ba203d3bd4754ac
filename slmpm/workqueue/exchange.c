/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CALC entries whose results go to peers. A piece of the result is put to all of them as soon as it
 * is there: from a target in this process, if one has the same bytes, else from one of a few places
 * that are used in turn. A piece is calculated only when the puts of its place have ended, so a
 * slow peer holds up the calculation. As in pipe.c the ends of puts are only noted; what follows is
 * begun by the channel's next turn.
 */
#include "slmpm/workqueue/workqueue.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/region/memory.h"

#define PIECES 4 /* under way at a time, at most */
#define LINE   64

enum order { OWN, FOREIGN, ORDERS };

struct source {            /* of what is put in one order of bytes */
	uint32_t target;   /* of the job */
	bool staged;       /* it is a place for each piece; else memory of the caller's */
	unsigned char *at; /* of the first piece, or the first element */
};

struct far_target {
	slmpm_rmem rmem;
	slmpm_peer peer;
	uint64_t offset;
	uint32_t number; /* among all targets */
	enum order order;
	struct request *requests[PIECES]; /* under way, or NULL */
};

struct exchange {
	struct queue inner; /* its pass_on is put_ended */
	struct channel *ch;
	struct work *work;
	struct calc_job *job;
	struct source sources[ORDERS];
	uint64_t width, piece_bytes;
	uint32_t pieces, piece; /* places; that of the next piece */
	uint32_t under_way[PIECES];
	bool more;          /* than has been calculated */
	bool busy;          /* handlers may run that would make it go on */
	int32_t status;     /* it fails: why, ... */
	slmpm_peer culprit; /* ... by whom, ... */
	uint32_t number;    /* ... and at which target */
	uint32_t count;
	struct far_target far[]; /* `count` of them; behind them the job, and the places */
};

/* ---- taking ---------------------------------------------------------------------------------- */

static int exchange_check_target(const struct workqueue *wq, const struct slmpm_operand *o, int k,
				 uint64_t bytes)
{
	const struct remote *remote = remote_get(o->rmem);

	if (!remote)
		return handle_error(&remote_table, o->rmem.id);
	if (remote->ep->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: target %d is in another context", k);
	if (endpoint_has_ended(remote->ep))
		return endpoint_error(remote->ep);
	if (o->offset > remote->memory.size || bytes > remote->memory.size - o->offset)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: target %d: %llu bytes at %llu of a region of %llu", k,
				 (unsigned long long)bytes, (unsigned long long)o->offset,
				 (unsigned long long)remote->memory.size);
	return 0;
}

int exchange_take(const struct workqueue *wq, struct work *w)
{
	const struct slmpm_calc *c = w->wr.calc;
	struct calc_shape shape;
	int rc = 0;

	w->exchanges = false;
	(void)calc_shape_of(&shape, c);
	for (int k = 0; k < c->target_count && rc == 0; k++) {
		if (!c->targets[k].rmem.id)
			continue;
		w->exchanges = true;
		rc = exchange_check_target(wq, &c->targets[k], k, shape.total * shape.width);
	}
	return rc;
}

static enum order order_of(const struct slmpm_operand *o)
{
	return calc_is_foreign(o->flags) ? FOREIGN : OWN;
}

/* Those of C in this process, and a place for pieces in each order of bytes in which none of them
 * is: how many. */
static int choose_sources(struct exchange *s, const struct slmpm_calc *c,
			  struct slmpm_operand *targets, unsigned char *places)
{
	uint64_t room = s->pieces * s->piece_bytes;
	bool wanted[ORDERS] = {false}, found[ORDERS] = {false};
	int n = 0;

	for (int k = 0; k < c->target_count; k++) {
		const struct slmpm_operand *o = &c->targets[k];
		enum order order = order_of(o);

		if (o->rmem.id) {
			wanted[order] = true;
			continue;
		}
		if (calc_is_packed(o) && !found[order]) {
			s->sources[order] = (struct source){(uint32_t)n, false, o->at};
			found[order] = true;
		}
		targets[n++] = *o;
	}
	for (uint32_t order = OWN; order < ORDERS; order++) {
		if (!wanted[order] || found[order])
			continue;
		s->sources[order] = (struct source){(uint32_t)n, true, places + order * room};
		targets[n++] = (struct slmpm_operand){
			.at = places + order * room,
			.flags = order == FOREIGN ? CALC_FOREIGN_FLAG : 0,
		};
	}
	return n;
}

static void take_far_targets(struct exchange *s, const struct slmpm_calc *c)
{
	for (int k = 0; k < c->target_count; k++) {
		const struct slmpm_operand *o = &c->targets[k];
		const struct remote *remote = o->rmem.id ? remote_get(o->rmem) : NULL;

		if (o->rmem.id)
			s->far[s->count++] = (struct far_target){
				.rmem = o->rmem,
				.peer = {remote ? handle_id(remote->ep) : 0},
				.offset = o->offset,
				.number = (uint32_t)k,
				.order = order_of(o),
			};
	}
}

static size_t line_up(size_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

bool exchange_keep(struct work *w, const struct slmpm_calc *c)
{
	struct slmpm_operand targets[SLMPM_CALC_TARGETS_MAX];
	struct slmpm_calc here = *c;
	struct calc_shape shape;
	uint64_t bytes, piece, pieces;
	size_t head = line_up(sizeof(struct exchange) +
			      (size_t)c->target_count * sizeof(struct far_target));
	size_t job = line_up(calc_job_size(c) + ORDERS * sizeof(struct calc_operand));
	struct exchange *s;

	(void)calc_shape_of(&shape, c);
	bytes = shape.total * shape.width;
	piece = least_of(bytes, CALC_STEP);
	pieces = least_of((bytes + piece - 1) / piece, PIECES);
	s = malloc(head + job + ORDERS * pieces * piece + LINE);
	if (!s)
		return false;
	memset(s, 0, head);
	s->job = (void *)((unsigned char *)s + head);
	s->width = shape.width;
	s->piece_bytes = piece;
	s->pieces = (uint32_t)pieces;
	take_far_targets(s, c);
	here.targets = targets;
	here.target_count = choose_sources(s, c, targets, (unsigned char *)s + head + job);
	calc_begin(s->job, &here);
	w->owned = s;
	return true;
}

/* ---- puts ------------------------------------------------------------------------------------ */

static void exchange_fail(struct exchange *s, int status, const struct far_target *at)
{
	if (s->status)
		return;
	s->status = status;
	s->culprit = at ? at->peer : (slmpm_peer){0};
	s->number = at ? at->number : 0;
}

static void put_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done)
{
	struct exchange *s = LIST_ENTRY(inner, struct exchange, inner);
	struct far_target *at = &s->far[cookie / PIECES];
	uint64_t piece = cookie % PIECES;

	at->requests[piece] = NULL;
	s->under_way[piece]--;
	if (done->status < 0)
		exchange_fail(s, done->status, at);
	if (!s->busy)
		channel_ready(s->ch);
}

static void put_bound(struct queue *inner, uint64_t cookie, struct request *r)
{
	LIST_ENTRY(inner, struct exchange, inner)->far[cookie / PIECES].requests[cookie % PIECES] =
		r;
}

/* N elements from the FIRST on. */
static void put_piece(struct exchange *s, uint32_t i, uint64_t first, uint64_t n)
{
	struct far_target *at = &s->far[i];
	const struct source *from = &s->sources[at->order];
	bool answered = !(s->ch->wq->flags & SLMPM_WQ_UNACKNOWLEDGED);
	uint64_t offset = from->staged ? s->piece * s->piece_bytes : first * s->width;
	const struct slmpm_iov piece = {from->at + offset, n * s->width};
	const struct slmpm_span span = {at->offset + first * s->width, n * s->width};
	const struct slmpm_how how = {
		.size = sizeof(how),
		.flags = answered ? SLMPM_REMOTE : 0,
		.cq = {QUEUE_THAT_BEGINS},
		.cookie = (uint64_t)i * PIECES + s->piece,
	};
	int rc;

	s->under_way[s->piece]++;
	rc = slmpm_putv(at->rmem, &span, 1, &piece, 1, &how, NULL);
	if (rc >= 0)
		return;
	at->requests[s->piece] = NULL;
	s->under_way[s->piece]--;
	exchange_fail(s, rc, at);
}

/* The next piece, to where nothing is read any more. */
static void exchange_step(struct exchange *s)
{
	struct context *ctx = s->ch->wq->ctx;
	uint64_t first = s->job->done;

	for (uint32_t order = OWN; order < ORDERS; order++) {
		const struct source *to = &s->sources[order];

		if (to->staged)
			calc_aim(s->job, to->target, to->at + s->piece * s->piece_bytes);
	}
	s->more = calc_step(s->job);
	ctx->begins = &s->inner; /* nothing begins another meanwhile */
	for (uint32_t i = 0; i < s->count && !s->status; i++)
		put_piece(s, i, first, s->job->done - first);
	ctx->begins = NULL;
	s->piece = s->piece + 1 == s->pieces ? 0 : s->piece + 1;
}

static void exchange_take_back(struct exchange *s)
{
	bool busy = s->busy;

	s->busy = true;
	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t k = 0; k < s->pieces; k++)
			if (s->far[i].requests[k])
				(void)request_cancel(s->far[i].requests[k]);
	s->busy = busy;
}

/* ---- the entry ------------------------------------------------------------------------------- */

void exchange_begin(struct channel *ch, struct work *w)
{
	struct exchange *s = w->owned;

	memset(&s->inner, 0, sizeof(s->inner));
	s->inner.ctx = ch->wq->ctx;
	s->inner.pass_on = put_ended;
	s->inner.bound = put_bound;
	s->ch = ch;
	s->work = w;
	s->more = true;
	s->piece = 0;
	s->status = 0;
	s->number = 0;
	calc_again(s->job);
	(void)exchange_advance(ch);
}

/* With that it is gone, or ready for the next run. */
static void exchange_end(struct exchange *s)
{
	struct workqueue *wq = s->ch->wq;
	const struct slmpm_done done = {
		.status = s->status,
		.op = SLMPM_OP_CALC,
		.peer = s->culprit,
		.len = s->number,
	};

	entry_ended(&wq->inner, (uint64_t)(s->work - wq->work), &done);
}

int exchange_advance(struct channel *ch)
{
	struct exchange *s = LIST_ENTRY(ch->begun.next, struct work, node)->owned;
	int n = 0;

	if (s->busy || ch->wq->ctx->begins) { /* inside a call that goes on with it */
		channel_ready(ch);
		return 0;
	}
	s->busy = true;
	if (!s->status && s->more && !s->under_way[s->piece]) {
		exchange_step(s);
		n = 1;
	}
	if (s->status)
		exchange_take_back(s);
	s->busy = false;
	if (!s->inner.in_flight && (s->status || !s->more)) {
		exchange_end(s);
		return n + 1;
	}
	if (!s->status && s->more && !s->under_way[s->piece]) {
		ch->wq->ctx->laboured = true;
		channel_ready(ch);
	}
	return n;
}

bool exchange_cancel(struct work *w)
{
	struct exchange *s = w->owned;

	exchange_fail(s, -SLMPM_ECANCELED, NULL);
	if (!s->busy)
		exchange_take_back(s);
	channel_ready(s->ch);
	return !s->inner.in_flight;
}
