/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts to many at their targets: prepared or refused, stored, handed on, ended. */
#include "slmpm/deposit/deposit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"
#include "slmpm/part.h"

#define UNREAD 4096 /* completions: beyond those an origin is refused */

struct line *target_line(const struct deposits *d, uint32_t origin)
{
	LIST_EACH_ENTRY(struct line, l, &d->lines, node)
		if (l->origin == origin)
			return l;
	return NULL;
}

/* This member has agreed to it. */
static bool has_agreed(const struct line *l)
{
	return ranks_have(&l->agreed, line_self(l));
}

static void target_send(struct line *l, uint32_t rank, enum deposit_word word)
{
	struct endpoint *ep = pair_endpoint(l->of->group, l->target.before);

	if (!line_send(l, rank, word) && ep)
		endpoint_no_memory(ep); /* the origin learns that it is not reached */
}

/* ---- ends ------------------------------------------------------------------------------------ */

static struct slmpm_deposit as_deposit(const struct line *l)
{
	return (struct slmpm_deposit){
		.origin = (int32_t)l->origin,
		.space = l->space,
		.imm = l->imm,
		.offset = l->offset,
		.len = l->len,
		.base = l->target.base,
	};
}

static void target_notify(struct line *l, int status)
{
	const struct slmpm_deposits *how = &l->of->how;
	struct context *ctx = l->of->group->ctx;
	const struct slmpm_deposit d = as_deposit(l);
	const struct slmpm_done done = {
		.op = SLMPM_OP_DEPOSIT,
		.status = status,
		.len = l->len,
		.stream = l->space,
		.imm = l->imm,
		.cookie = l->offset,
		.flags = l->origin,
	};

	if (l->target.queue)
		queue_put(l->target.queue, &done);
	l->target.queue = NULL;
	ctx->news = true;
	context_told(ctx);
	if (!how->done || how->done != l->target.done)
		return;
	callback_begin(l->of->group);
	how->done(&d, status, how->arg);
	callback_end(l->of->group);
}

void target_end(struct line *l, int status)
{
	if (l->state != LINE_ASKS && l->state != LINE_MOVES)
		return;
	l->state = status < 0 ? LINE_IS_OVER : LINE_HAS_ALL;
	if (status < 0)
		line_cut(l);
	if (l->target.used)
		l->target.used->users--;
	l->target.used = NULL;
	target_notify(l, status);
}

/* The origin learns that all from here on have it. */
static void target_tell(struct line *l)
{
	if (l->state != LINE_HAS_ALL || !l->target.passed)
		return;
	ranks_add(&l->have, line_self(l));
	target_send(l, l->target.before, WORD_HAVE);
}

void target_inspect(struct line *l)
{
	const struct flow *f = l->target.next == BOARD_NONE ? NULL : line_flow(l, l->target.next);

	if (l->state != LINE_MOVES || l->got != l->len || (f && (f->due || f->sent != l->len)))
		return;
	target_end(l, 0);
	target_tell(l);
}

/* ---- prepared -------------------------------------------------------------------------------- */

/* By the table. */
static int prepare_by_table(struct line *l, const struct space *s)
{
	if (!s) {
		line_refuse(l, -SLMPM_ENOENT, line_self(l), "no space %" PRIu32, l->space);
		return -SLMPM_ENOENT;
	}
	if (!space_at(s, l->offset, l->len)) {
		line_refuse(l, -SLMPM_ELIMIT, line_self(l),
			    "space %" PRIu32 " has %" PRIu64 " bytes", l->space, s->len);
		return -SLMPM_ELIMIT;
	}
	return 0;
}

/* By the application, which is given what the table has. */
static int prepare_by_call(struct line *l)
{
	const struct slmpm_deposits *how = &l->of->how;
	struct slmpm_deposit d = as_deposit(l);
	char text[SLMPM_REFUSAL] = "";
	int rc;

	callback_begin(l->of->group);
	rc = how->prepare(&d, text, how->arg);
	callback_end(l->of->group);
	text[sizeof(text) - 1] = '\0';
	if (rc >= 0 && d.base) {
		l->target.base = d.base;
		return 0;
	}
	rc = rc < 0 ? rc : -SLMPM_ENOENT;
	line_refuse(l, rc, line_self(l), "%s", text[0] ? text : slmpm_strerror(rc));
	return rc;
}

static int prepare_completion(struct line *l)
{
	struct queue *q = l->of->queue;

	if (!q)
		return 0;
	if (q->tail - q->head + q->in_flight >= UNREAD) {
		line_refuse(l, -SLMPM_EAGAIN, line_self(l), "its completions are not read");
		return -SLMPM_EAGAIN;
	}
	if (!queue_take_room(q)) {
		line_refuse(l, -SLMPM_ENOMEM, line_self(l), "for a completion");
		return -SLMPM_ENOMEM;
	}
	l->target.queue = q;
	return 0;
}

/* Where it goes here; or it is refused. */
static void target_prepare(struct line *l)
{
	struct space *s = space_find(l->of->group, l->space);
	int rc;

	l->target.base = s ? s->base : NULL;
	rc = l->of->how.prepare ? prepare_by_call(l) : prepare_by_table(l, s);
	/* What the application has called may have changed it. */
	s = space_find(l->of->group, l->space);
	if (rc == 0 && s && s->base == l->target.base)
		rc = prepare_by_table(l, s);
	if (rc == 0)
		rc = prepare_completion(l);
	if (rc < 0) {
		l->state = LINE_IS_OVER;
		return;
	}
	ranks_add(&l->agreed, line_self(l));
	l->target.done = l->of->how.done;
	l->at = (unsigned char *)l->target.base + l->offset;
	if (!s || s->base != l->target.base)
		return;
	s->users++;
	l->target.used = s;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* To the next of the line, from the last to the origin. */
static void hand_on_request(struct line *l)
{
	if (l->target.next != BOARD_NONE)
		target_send(l, l->target.next, WORD_REQUEST);
	else if (l->forwards)
		target_send(l, l->origin, WORD_ANSWER);
}

/* Nothing keeps it here: what goes on at once is not behind what is done here. */
static void hand_on_at_once(struct line *l)
{
	struct endpoint *ep = NULL;

	hand_on_request(l);
	if (l->target.next != BOARD_NONE)
		ep = pair_endpoint(l->of->group, l->target.next);
	if (ep)
		(void)deposit_push(ep);
}

static void target_answer(struct line *l)
{
	if (l->forwards)
		hand_on_request(l);
	else
		target_send(l, l->origin, WORD_ANSWER);
}

static void target_set_line(struct line *l, uint32_t rank, const struct wire_deposit *w,
			    const struct ranks *ranks, const struct ranks *agreed)
{
	const bool own = has_agreed(l);

	l->ranks = *ranks;
	l->target.before = rank;
	l->target.next = line_after(l, ranks, line_self(l));
	if (!l->forwards)
		return;
	l->agreed = *agreed;
	if (own)
		ranks_add(&l->agreed, line_self(l));
	else
		ranks_drop(&l->agreed, line_self(l));
	if (w->error)
		line_refuse(l, wire_status(w->error), w->culprit, "%s", w->text);
}

static struct line *target_new(struct deposits *d, const struct wire_deposit *w,
			       const struct wire_order *order)
{
	struct line *l = target_line(d, w->origin);

	if (l) { /* the one before is over, by the origin's word */
		target_end(l, -SLMPM_ECANCELED);
		line_free(l);
	}
	l = line_new(d, &d->lines, w->origin);
	if (l && !order_take(l, order)) {
		line_free(l);
		l = NULL;
	}
	if (!l)
		return NULL;
	l->number = w->number;
	l->space = w->space;
	l->imm = w->imm;
	l->offset = w->offset;
	l->len = w->length;
	l->forwards = w->flags & DEPOSIT_FORWARD;
	l->state = LINE_ASKS;
	return l;
}

/* Once more: one that had it has died. */
static void asked_again(struct line *l, uint32_t rank, const struct wire_deposit *w,
			const struct ranks *ranks, const struct ranks *agreed)
{
	if (l->state != LINE_ASKS && has_agreed(l)) /* it has gone on, or has been stopped */
		return;
	target_set_line(l, rank, w, ranks, agreed);
	if (!l->forwards)
		hand_on_request(l);
	target_answer(l);
}

static void target_request(struct deposits *d, uint32_t rank, const struct wire_deposit *w,
			   const struct ranks *ranks, const struct ranks *agreed,
			   const struct wire_order *order)
{
	struct line *l = target_line(d, w->origin);
	struct endpoint *ep = pair_endpoint(d->group, rank);

	if (!ranks_have(ranks, d->group->boards.rank) || (l && w->number < l->number))
		return;
	if (l && w->number == l->number) {
		asked_again(l, rank, w, ranks, agreed);
		return;
	}
	l = target_new(d, w, order);
	if (!l) {
		if (ep)
			endpoint_no_memory(ep);
		return;
	}
	target_set_line(l, rank, w, ranks, agreed);
	if (!l->forwards)
		hand_on_at_once(l);
	target_prepare(l);
	target_answer(l);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Those before it have changed: the new one is to send what is missing. */
static void begin_again(struct line *l, uint32_t rank)
{
	l->target.before = rank;
	if (l->state == LINE_MOVES)
		target_send(l, rank, WORD_RESUME);
	else
		target_tell(l);
}

static void target_begin(struct line *l, uint32_t rank, const struct wire_deposit *w,
			 const struct ranks *ranks)
{
	const bool again = w->flags & DEPOSIT_AGAIN;
	struct flow *f;

	if (l->state == LINE_MOVES || l->state == LINE_HAS_ALL) {
		if (again && rank == l->origin)
			begin_again(l, rank);
		return;
	}
	if (l->state != LINE_ASKS || !ranks_have(ranks, line_self(l)))
		return;
	l->state = LINE_MOVES;
	l->ranks = *ranks;
	l->target.before = rank;
	l->target.next = line_after(l, ranks, line_self(l));
	l->target.passed = l->target.next == BOARD_NONE;
	if (!l->target.passed) {
		target_send(l, l->target.next, WORD_BEGIN);
		f = line_flow(l, l->target.next);
		if (f)
			f->feeds = true;
	}
	if (again)
		target_send(l, rank, WORD_RESUME);
	target_inspect(l);
}

bool target_data(struct line *l, uint32_t rank, uint64_t at, const void *data, uint64_t len)
{
	struct flow *f;

	if (l->state != LINE_MOVES || rank != l->target.before)
		return true;
	if (at != l->got || len > l->len - at)
		return false;
	copy_bytes(l->at + at, data, len);
	part_landed(l->of->group->ctx, l->at + at, len);
	l->got += len;
	f = l->target.next == BOARD_NONE ? NULL : line_flow(l, l->target.next);
	if (f)
		flow_due(l, f);
	target_inspect(l);
	return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void target_stop(struct line *l, const struct ranks *ranks)
{
	const uint32_t next = line_after(l, ranks, line_self(l));

	l->ranks = *ranks;
	line_cut(l);
	target_end(l, -SLMPM_ECANCELED);
	if (next != BOARD_NONE)
		target_send(l, next, WORD_STOP);
}

static void target_have(struct line *l, uint32_t rank, const struct ranks *have)
{
	if (rank != l->target.next || l->state < LINE_MOVES)
		return;
	l->target.passed = true;
	for (uint32_t i = 0; i < RANK_WORDS; i++)
		l->have.bits[i] |= have->bits[i];
	target_tell(l);
}

/* Those from here on answer, as far as is known. */
static void target_alive(struct line *l, const struct ranks *behind)
{
	ranks_add(&l->alive, line_self(l));
	for (uint32_t i = 0; i < RANK_WORDS; i++)
		l->alive.bits[i] |= behind->bits[i];
	target_send(l, l->target.before, WORD_ALIVE);
}

static void target_late(struct line *l)
{
	static const struct ranks none;

	if (l->target.next != BOARD_NONE)
		target_send(l, l->target.next, WORD_LATE);
	target_alive(l, &none);
}

void target_word(struct deposits *d, uint32_t rank, const struct wire_deposit *w,
		 const struct ranks *ranks, const struct ranks *agreed,
		 const struct wire_order *order)
{
	struct line *l = target_line(d, w->origin);

	if (w->word == WORD_REQUEST) {
		target_request(d, rank, w, ranks, agreed, order);
		return;
	}
	if (!l || l->number != w->number)
		return;
	switch (w->word) {
	case WORD_BEGIN: target_begin(l, rank, w, ranks); break;
	case WORD_HAVE: target_have(l, rank, agreed); break;
	case WORD_STOP:
	case WORD_LEAVE: target_stop(l, ranks); break;
	case WORD_LATE:
		if (rank == l->target.before)
			target_late(l);
		break;
	case WORD_ALIVE:
		if (rank == l->target.next)
			target_alive(l, agreed);
		break;
	default:;
	}
}

/* ---- members that go ------------------------------------------------------------------------- */

/* The line closes over RANK, which was the next. */
static void close_over(struct line *l, uint32_t rank, int error)
{
	ranks_drop(&l->ranks, rank);
	l->target.next = line_after(l, &l->ranks, rank);
	if (l->forwards) {
		ranks_drop(&l->agreed, rank);
		line_refuse_left(l, error, rank, l->target.lost_by);
	}
	hand_on_request(l);
}

/* What it had yet to hand on does not come: the origin says what is to be, or that it is over. */
static void ask_origin(struct line *l)
{
	l->target.before = l->origin;
	if (l->state == LINE_ASKS || l->state == LINE_MOVES)
		target_send(l, l->origin, WORD_ANSWER);
}

void target_lost(struct line *l, uint32_t rank, int error)
{
	if (rank == l->origin) {
		target_end(l, error);
		l->target.passed = true; /* none is left to be told */
		return;
	}
	if (rank == l->target.before && pair_gone(l->of->group, rank))
		ask_origin(l);
	if (rank != l->target.next)
		return;
	l->target.lost = rank;
	l->target.lost_for = error;
	l->target.lost_by = line_broken_by(l, rank, error);
	if (l->state == LINE_ASKS || !has_agreed(l)) {
		close_over(l, rank, error);
		target_send(l, l->origin, WORD_LOST);
	} else if (l->state < LINE_IS_OVER && !l->target.passed) {
		/* The origin sees to those behind. */
		l->target.next = BOARD_NONE;
		l->target.passed = true;
		target_send(l, l->origin, WORD_LOST);
		target_inspect(l);
		target_tell(l);
	}
}
