/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CALC entries whose operands are not all here: they wait for arguments that are messages
 * (arrival.c), and their results go to peers. A piece of the result is put to all of them as soon
 * as it is there: from a target in this process, if one has the same bytes, else from one of a few
 * places that are used in turn. A piece is calculated only when the puts of its place have ended,
 * so a slow peer holds up the calculation. As in pipe.c the ends of puts are only noted; what
 * follows is begun by the channel's next turn.
 */
#include "slmpm/workqueue/arrival.h"

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
	uint32_t flags;  /* as given */
	enum order order;
	struct request *requests[PIECES]; /* under way, or NULL */
};

struct exchange {
	struct queue inner; /* its pass_on is put_ended */
	struct channel *ch;
	struct work *work;
	struct calc_job *job;
	struct arrivals *arrivals; /* or NULL */
	struct source sources[ORDERS];
	uint64_t width, piece_bytes;
	uint32_t pieces, piece; /* places; that of the next piece */
	uint32_t under_way[PIECES];
	uint64_t bytes;     /* of an operand */
	bool alone;         /* there is but one argument */
	bool gathered;      /* the arguments are there */
	bool more;          /* than has been calculated */
	bool busy;          /* handlers may run that would make it go on */
	int32_t status;     /* it fails: why, ... */
	slmpm_peer culprit; /* ... by whom, ... */
	uint64_t len;       /* ... and what its completion says besides */
	uint32_t stream;
	uint32_t count;
	struct far_target far[]; /* `count`; behind them the arrivals, the job, the places */
};

/* ---- taking ---------------------------------------------------------------------------------- */

static int exchange_check_target(const struct workqueue *wq, const struct slmpm_operand *o, int k,
				 uint64_t bytes)
{
	const struct remote *remote = remote_get(o->rmem);

	if (!remote)
		return handle_error(&remote_table, o->rmem.id);
	if (remote->ep->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: target %d is a region of another context", k);
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
	for (int k = 0; k < c->arg_count && rc == 0; k++) {
		if (!calc_arrives(&c->args[k]))
			continue;
		w->exchanges = true;
		rc = arrival_check(wq, &c->args[k], k);
	}
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

/* Those of C in this process, and one for pieces in each order of bytes in which none of them is,
 * in PLACES; how many, and *STAGED of these. */
static int choose_sources(struct source *sources, const struct slmpm_calc *c,
			  struct slmpm_operand *targets, unsigned char *places, uint64_t room,
			  uint64_t *staged)
{
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
			sources[order] = (struct source){(uint32_t)n, false, o->at};
			found[order] = true;
		}
		targets[n++] = *o;
	}
	*staged = 0;
	for (uint32_t order = OWN; order < ORDERS; order++) {
		unsigned char *place = places + *staged * room;

		if (!wanted[order] || found[order])
			continue;
		sources[order] = (struct source){(uint32_t)n, true, place};
		targets[n++] = (struct slmpm_operand){
			.at = place,
			.flags = order == FOREIGN ? CALC_FOREIGN_FLAG : 0,
		};
		++*staged;
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
				.flags = o->flags,
				.order = order_of(o),
			};
	}
}

static void take_arrivals(struct arrivals *all, const struct slmpm_calc *c)
{
	all->count = 0;
	for (int k = 0; k < c->arg_count; k++)
		if (calc_arrives(&c->args[k]))
			arrival_init(&all->each[all->count++], &c->args[k], (uint32_t)k);
}

static size_t line_up(size_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

/* What lies behind one another in its memory. */
struct layout {
	size_t head, arrivals, job, places;
};

static struct layout layout_of(const struct slmpm_calc *c, bool arrive, size_t places)
{
	size_t args = (size_t)c->arg_count, targets = (size_t)c->target_count;
	size_t arrivals = sizeof(struct arrivals) + args * sizeof(struct arrival);

	return (struct layout){
		.head = line_up(sizeof(struct exchange) + targets * sizeof(struct far_target)),
		.arrivals = arrive ? line_up(arrivals) : 0,
		.job = line_up(calc_job_size(c) + ORDERS * sizeof(struct calc_operand)),
		.places = places,
	};
}

static bool has_arriving(const struct slmpm_calc *c)
{
	for (int k = 0; k < c->arg_count; k++)
		if (calc_arrives(&c->args[k]))
			return true;
	return false;
}

bool exchange_keep(struct work *w, const struct slmpm_calc *c)
{
	struct slmpm_operand targets[SLMPM_CALC_TARGETS_MAX];
	struct source sources[ORDERS];
	struct slmpm_calc here = *c;
	struct calc_shape shape;
	uint64_t bytes, piece, pieces, staged;
	bool arrive = has_arriving(c);
	struct layout l;
	struct exchange *s;

	(void)calc_shape_of(&shape, c);
	bytes = shape.total * shape.width;
	piece = least_of(bytes, CALC_STEP);
	pieces = least_of((bytes + piece - 1) / piece, PIECES);
	(void)choose_sources(sources, c, targets, NULL, 0, &staged);
	l = layout_of(c, arrive, staged * pieces * piece);
	s = malloc(l.head + l.arrivals + l.job + l.places);
	if (!s)
		return false;
	memset(s, 0, l.head);
	s->job = (void *)((unsigned char *)s + l.head + l.arrivals);
	s->width = shape.width;
	s->bytes = bytes;
	s->piece_bytes = piece;
	s->pieces = (uint32_t)pieces;
	s->alone = c->arg_count == 1;
	take_far_targets(s, c);
	if (arrive) {
		s->arrivals = (void *)((unsigned char *)s + l.head);
		take_arrivals(s->arrivals, c);
	}
	here.targets = targets;
	here.target_count = choose_sources(s->sources, c, targets, (unsigned char *)s->job + l.job,
					   pieces * piece, &staged);
	calc_begin(s->job, &here);
	w->owned = s;
	return true;
}

/* ---- arguments that come ------------------------------------------------------------------- */

static void fail_at_argument(struct exchange *s, int status, const struct arrival *a)
{
	if (s->status)
		return;
	s->status = status;
	s->culprit = a->peer;
	s->stream = a->stream;
	s->len = a->len;
}

static void read_arrivals(struct exchange *s)
{
	for (uint32_t i = 0; i < s->arrivals->count; i++) {
		const struct arrival *a = &s->arrivals->each[i];

		calc_read(s->job, a->number, arrival_data(a));
		if (s->alone) /* it is combined with itself */
			calc_read(s->job, 1, arrival_data(a));
	}
	s->gathered = true;
}

/* All arguments are there, still: who sent one may have been closed. */
static bool gather(struct exchange *s)
{
	const struct arrival *which = NULL;
	int rc;

	if (s->arrivals && !s->gathered)
		arrivals_go_on(s->arrivals);
	rc = s->arrivals ? arrivals_inspect(s->arrivals, s->bytes, &which) : 1;
	if (rc < 0)
		fail_at_argument(s, rc, which);
	else if (rc && s->arrivals && !s->gathered)
		read_arrivals(s);
	return rc > 0;
}

/* ---- puts ------------------------------------------------------------------------------------ */

static void fail_at_target(struct exchange *s, int status, const struct far_target *at)
{
	if (s->status)
		return;
	s->status = status;
	s->culprit = at->peer;
	s->len = at->number;
}

static void put_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done)
{
	struct exchange *s = LIST_ENTRY(inner, struct exchange, inner);
	struct far_target *at = &s->far[cookie / PIECES];
	uint64_t piece = cookie % PIECES;

	at->requests[piece] = NULL;
	s->under_way[piece]--;
	if (done->status < 0)
		fail_at_target(s, done->status, at);
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
	rc = endpoint_of(at->peer) ? slmpm_putv(at->rmem, &span, 1, &piece, 1, &how, NULL) :
				     -SLMPM_ECLOSED;
	if (rc >= 0)
		return;
	at->requests[s->piece] = NULL;
	s->under_way[s->piece]--;
	fail_at_target(s, rc, at);
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
	if (s->arrivals)
		arrivals_take_back(s->arrivals);
	s->busy = busy;
}

/* ---- the entry ------------------------------------------------------------------------------- */

static bool exchange_is_quiet(const struct exchange *s)
{
	return !s->inner.in_flight && (!s->arrivals || !s->arrivals->inner.in_flight);
}

void exchange_begin(struct channel *ch, struct work *w)
{
	struct exchange *s = w->owned;

	s->inner = (struct queue){
		.ctx = ch->wq->ctx,
		.pass_on = put_ended,
		.bound = put_bound,
	};
	s->ch = ch;
	s->work = w;
	s->more = true;
	s->gathered = false;
	s->piece = 0;
	s->status = 0;
	s->culprit = (slmpm_peer){0};
	s->len = 0;
	s->stream = 0;
	calc_again(s->job);
	if (s->arrivals)
		arrivals_begin(s->arrivals, ch);
	(void)exchange_advance(ch);
}

/* With that it is gone, or ready for the next run. */
static void exchange_end(struct exchange *s)
{
	struct workqueue *wq = s->ch->wq;
	const struct slmpm_done done = {
		.status = s->status,
		.op = SLMPM_OP_CALC,
		.stream = s->stream,
		.peer = s->culprit,
		.len = s->len,
	};

	if (s->arrivals)
		arrivals_give_back(s->arrivals);
	s->ch->amidst = NULL;
	entry_ended(&wq->inner, (uint64_t)(s->work - wq->work), &done);
}

/* May the next piece be calculated? */
static bool may_step(const struct exchange *s)
{
	return !s->status && s->more && !s->under_way[s->piece];
}

int exchange_advance(struct channel *ch)
{
	struct exchange *s = ch->amidst->owned;
	int n = 0;

	if (s->busy || ch->wq->ctx->begins) { /* inside a call that goes on with it */
		channel_ready(ch);
		return 0;
	}
	s->busy = true;
	if (may_step(s) && gather(s)) {
		exchange_step(s);
		n = 1;
	}
	if (s->status)
		exchange_take_back(s);
	s->busy = false;
	if (exchange_is_quiet(s) && (s->status || !s->more)) {
		exchange_end(s);
		return n + 1;
	}
	if (n && may_step(s)) {
		ch->wq->ctx->laboured = true;
		channel_ready(ch);
	}
	return n;
}

bool exchange_cancel(struct work *w)
{
	struct exchange *s = w->owned;

	if (!s->status)
		s->status = -SLMPM_ECANCELED;
	if (!s->busy)
		exchange_take_back(s);
	channel_ready(s->ch);
	return exchange_is_quiet(s);
}

bool exchange_names(const struct work *w, uint64_t peer)
{
	const struct exchange *s = w->owned;
	bool any = false;

	for (uint32_t i = 0; i < s->count; i++)
		any |= s->far[i].peer.id == peer;
	for (uint32_t i = 0; s->arrivals && i < s->arrivals->count; i++)
		any |= s->arrivals->each[i].from.id == peer;
	return any;
}

/* ---- what was given -------------------------------------------------------------------------- */

/* Whether target K of the job is a place for pieces, and none of the caller's. */
static bool is_staging(const struct exchange *s, uint32_t k)
{
	for (uint32_t order = OWN; order < ORDERS; order++)
		if (s->sources[order].staged && s->sources[order].target == k)
			return true;
	return false;
}

void exchange_given(const struct work *w, struct slmpm_calc *c,
		    struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX])
{
	struct slmpm_operand *targets = &operands[SLMPM_CALC_ARGS_MAX], own[SLMPM_CALC_TARGETS_MAX];
	const struct exchange *s = w->owned;
	uint32_t n = 0, far = 0;

	calc_given(s->job, c, operands);
	for (uint32_t i = 0; s->arrivals && i < s->arrivals->count; i++) {
		const struct arrival *a = &s->arrivals->each[i];

		operands[a->number].at = NULL;
		operands[a->number].wq = a->source.queue;
		if (a->source.queue.id)
			continue;
		operands[a->number].peer = a->from;
		operands[a->number].stream = a->stream;
	}
	for (int k = 0; k < c->target_count; k++)
		if (!is_staging(s, (uint32_t)k))
			own[n++] = targets[k];
	c->target_count = (int32_t)(n + s->count);
	n = 0;
	for (uint32_t k = 0; k < (uint32_t)c->target_count; k++) {
		if (far == s->count || s->far[far].number != k) {
			targets[k] = own[n++];
			continue;
		}
		targets[k] = (struct slmpm_operand){
			.flags = s->far[far].flags,
			.rmem = s->far[far].rmem,
			.offset = s->far[far].offset,
		};
		far++;
	}
}
