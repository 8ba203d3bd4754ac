/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts to many at their origin: begun in their order, answered, moved, ended. */
#include "slmpm/deposit/deposit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"

#define CALL     "slmpm_put_all"
#define NAMED    8   /* ranks of those in doubt */
#define ASKED_MS 200 /* for those of a line to answer */

/* ---- ends ------------------------------------------------------------------------------------ */

/* Who has not answered, or has perhaps not all of it: into TEXT; how many. */
static uint32_t put_missing(const struct line *l, char *text, size_t size)
{
	const struct ranks *done = l->state == LINE_MOVES ? &l->have : &l->put.answered;
	char ranks[NAMED * 12] = "";
	uint32_t n = 0;
	size_t at = 0;

	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r)) {
		if (ranks_have(done, r))
			continue;
		if (n++ < NAMED)
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%" PRIu32,
					       n > 1 ? ", " : "", r);
	}
	(void)snprintf(text, size, "rank%s %s%s", n > 1 ? "s" : "", ranks,
		       n > NAMED ? " and others" : "");
	return n;
}

/* Which of them may not answer, and why: into TEXT; BOARD_NONE, "": none is known. */
static uint32_t put_suspect(const struct line *l, char *text, size_t size)
{
	const struct ranks *done = l->state == LINE_MOVES ? &l->have : &l->put.answered;

	text[0] = 0;
	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r)) {
		const char *why = ranks_have(done, r) ? NULL : member_suspicion(l->of->group, r);

		if (!why)
			continue;
		(void)snprintf(text, size, ", suspect is rank %" PRIu32 ": %s", r, why);
		return r;
	}
	return BOARD_NONE;
}

/* The first of the line that has been asked in vain; BOARD_NONE: none. */
static COLD uint32_t put_silent(const struct line *l)
{
	const struct ranks *done = l->state == LINE_MOVES ? &l->have : &l->put.answered;
	uint32_t r = l->put.asks ? line_after(l, &l->ranks, l->origin) : BOARD_NONE;

	while (r != BOARD_NONE && (ranks_have(done, r) || ranks_have(&l->alive, r)))
		r = line_after(l, &l->ranks, r);
	return r;
}

/* The detail of its error. */
static char *put_text(const struct line *l)
{
	char text[ERROR_DETAIL], ranks[NAMED * 12 + 32];
	const bool doubt = l->state == LINE_MOVES && put_missing(l, ranks, sizeof(ranks));

	(void)snprintf(text, sizeof(text), CALL ": %s%s%s", l->refusal.text,
		       doubt ? "; in doubt: " : "", doubt ? ranks : "");
	return strdup(text);
}

/* It is not to come any more: to those that may wait for it. */
static void put_stop(struct line *l)
{
	struct group *g = l->of->group;

	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r)) {
		if (pair_endpoint(g, r))
			(void)line_send(l, r, l->forwards ? WORD_STOP : WORD_LEAVE);
		if (l->forwards)
			return;
	}
}

/* STATUS of what is over; a death breaks the group, so that it can be shrunk at once. */
static void put_finish(struct line *l, int status)
{
	struct request *r = l->put.request;

	r->result.len = l->len;
	r->result.flags = l->state == LINE_WAITS ? 0 : route_flags(l);
	r->result.imm = status < 0 ? l->refusal.culprit : UINT32_MAX;
	if (status < 0)
		r->owned = put_text(l); /* the group may be gone when it is wanted */
	if (status == -SLMPM_EDEAD && l->refusal.culprit < line_size(l))
		group_break(l->of->group, status, (int32_t)l->refusal.culprit);
	l->put.request = NULL;
	l->state = LINE_IS_OVER;
	request_finish(r, status);
}

static void put_begin(struct line *l);

void put_next(struct deposits *d)
{
	if (d->beginning || d->group->shut)
		return;
	d->beginning = true;
	LIST_EACH_ENTRY(struct line, l, &d->puts, node) {
		if (l->state == LINE_WAITS)
			put_begin(l);
		if (l->state != LINE_IS_OVER)
			break;
	}
	d->beginning = false;
}

void put_end(struct line *l, int status)
{
	struct group *g = l->of->group;
	const bool begun = l->state != LINE_WAITS;

	if (l->state == LINE_IS_OVER)
		return;
	line_cut(l);
	if (l->put.answers)
		l->put.answers->in_flight -= l->put.awaited;
	if (status < 0 && begun)
		put_stop(l);
	put_finish(l, status);
	g->waits--;
	g->ctx->news = true;
	context_changed(g->ctx);
	put_next(l->of);
}

static COLD void put_no_memory(struct line *l)
{
	line_refuse(l, -SLMPM_ENOMEM, BOARD_NONE, "no memory");
	put_end(l, -SLMPM_ENOMEM);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* From RANK on, whose bytes come from here: from where on, it says itself where it is AGAIN. */
static void put_feed(struct line *l, uint32_t rank, bool again)
{
	struct flow *f = line_send(l, rank, WORD_BEGIN);

	if (!f) {
		put_no_memory(l);
		return;
	}
	f->again = again;
	f->feeds = !again;
	if (l->put.asks) /* from now on no other asks it (is_asked) */
		(void)line_send(l, rank, WORD_LATE);
	flow_due(l, f);
}

/* Its bytes come from here. */
static bool is_fed(const struct line *l, uint32_t rank)
{
	const struct flow *f = line_flow(l, rank);

	return f && (f->feeds || f->again);
}

static void put_inspect(struct line *l)
{
	for (uint32_t i = 0; i < RANK_WORDS; i++)
		if (l->ranks.bits[i] & ~l->have.bits[i])
			return;
	route_moved(l);
	put_end(l, l->refusal.error);
}

static void put_move(struct line *l)
{
	uint32_t r;

	l->ranks = l->agreed;
	l->state = LINE_MOVES;
	route_move(l);
	r = line_after(l, &l->ranks, l->origin);
	if (r == BOARD_NONE) {
		put_end(l, l->refusal.error);
		return;
	}
	do {
		put_feed(l, r, false);
		r = line_after(l, &l->ranks, r);
	} while (l->direct && r != BOARD_NONE && l->state == LINE_MOVES);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int put_is_ready(struct line *l)
{
	const struct refusal before = l->refusal;
	int rc;

	if (!l->put.ready)
		return 0;
	callback_begin(l->of->group);
	rc = l->put.ready(l->put.arg);
	callback_end(l->of->group);
	if (rc >= 0)
		return 0;
	l->refusal.error = 0; /* its own ends it */
	line_refuse(l, rc, BOARD_NONE, "the origin does not begin it%s%s", before.error ? "; " : "",
		    before.error ? before.text : "");
	return rc;
}

/* Perhaps all have answered. */
static void put_count(struct line *l)
{
	int rc;

	if (l->put.awaited || l->state != LINE_ASKS)
		return;
	if (l->refusal.error && !l->put.anyway) {
		put_end(l, l->refusal.error);
		return;
	}
	route_answered(l);
	rc = put_is_ready(l);
	if (rc < 0)
		put_end(l, rc);
	else
		put_move(l);
}

/* RANK's check-in: the first counts. */
static void put_check_in(struct line *l, uint32_t rank, int status)
{
	const struct slmpm_done done = {
		.op = SLMPM_OP_ANSWER,
		.status = status,
		.stream = l->space,
		.imm = rank,
		.len = l->len,
	};

	ranks_add(&l->put.answered, rank);
	l->put.awaited--;
	if (status == 0)
		ranks_add(&l->agreed, rank);
	if (l->put.answers)
		queue_put(l->put.answers, &done);
}

static bool put_awaits(const struct line *l, uint32_t rank)
{
	return l->state == LINE_ASKS && ranks_have(&l->ranks, rank) &&
	       !ranks_have(&l->put.answered, rank);
}

static int word_status(const struct wire_deposit *w)
{
	return w->error ? wire_status(w->error) : -SLMPM_EACCES;
}

/* Its own alone, by whom it has come from. */
static void put_answer(struct line *l, uint32_t rank, const struct wire_deposit *w,
		       const struct ranks *agreed)
{
	const int status = ranks_have(agreed, rank) ? 0 : word_status(w);

	if (!put_awaits(l, rank))
		return;
	if (status < 0)
		line_refuse(l, status, rank, "rank %" PRIu32 ": %s", rank, w->text);
	put_check_in(l, rank, status);
}

/* All that are left, by the last of the line. */
static void put_answer_all(struct line *l, uint32_t rank, const struct wire_deposit *w,
			   const struct ranks *agreed)
{
	if (!ranks_have(&l->ranks, rank) || line_after(l, &l->ranks, rank) != BOARD_NONE)
		return;
	if (w->error)
		line_refuse(l, wire_status(w->error), w->culprit, "rank %" PRIu32 ": %s",
			    w->culprit, w->text);
	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r)) {
		const int status = ranks_have(agreed, r) ? 0 : word_status(w);

		if (!put_awaits(l, r))
			continue;
		if (status < 0) /* where the word has no refusal */
			line_refuse(l, status, r, "rank %" PRIu32 " has not agreed", r);
		put_check_in(l, r, status);
	}
}

static void put_resume(struct line *l, uint32_t rank, uint64_t from)
{
	struct flow *f = line_flow(l, rank);

	if (l->state != LINE_MOVES || !f || !f->again || f->feeds || from > l->len)
		return;
	f->sent = from;
	f->feeds = true;
	flow_due(l, f);
}

/* RANK speaks for itself and for those behind it, as far as they get the bytes by it. */
static void put_have(struct line *l, uint32_t rank, const struct ranks *have)
{
	uint32_t r = rank;

	if (l->state != LINE_MOVES || !is_fed(l, rank))
		return;
	do {
		if (ranks_have(have, r))
			ranks_add(&l->have, r);
		r = line_after(l, &l->ranks, r);
	} while (r != BOARD_NONE && !is_fed(l, r));
	put_inspect(l);
}

/* Of those of a line that are asked who answers; the others are so by the one before them. */
static COLD bool is_asked(const struct line *l, uint32_t rank)
{
	return rank == line_after(l, &l->ranks, l->origin) || is_fed(l, rank);
}

/* RANK, which has been asked, speaks for itself and for those that it has asked. */
static COLD void put_alive(struct line *l, uint32_t rank, const struct ranks *alive)
{
	uint32_t r = rank;

	if (!l->put.asks || !is_asked(l, rank))
		return;
	do {
		if (ranks_have(alive, r))
			ranks_add(&l->alive, r);
		r = line_after(l, &l->ranks, r);
	} while (r != BOARD_NONE && !is_asked(l, r));
}

/* Of a death that the target has seen before this member. */
static void put_word_lost(struct line *l, const struct wire_deposit *w)
{
	const int error = w->error ? wire_status(w->error) : -SLMPM_ECLOSED;
	const uint32_t by = w->imm - 1; /* 0: it has not said */
	const bool seen = w->imm && by != w->culprit && by != l->origin;

	put_lost(l, w->culprit, error, seen ? by : line_broken_by(l, w->culprit, error));
}

void put_word(struct line *l, uint32_t rank, const struct wire_deposit *w,
	      const struct ranks *agreed)
{
	switch (w->word) {
	case WORD_ANSWER:
		if (l->forwards)
			put_answer_all(l, rank, w, agreed);
		else
			put_answer(l, rank, w, agreed);
		put_count(l);
		break;
	case WORD_LOST:
		if (ranks_have(&l->ranks, rank))
			put_word_lost(l, w);
		break;
	case WORD_RESUME: put_resume(l, rank, w->offset); break;
	case WORD_HAVE: put_have(l, rank, agreed); break;
	case WORD_ALIVE: put_alive(l, rank, agreed); break;
	default:;
	}
}

/* ---- members that go ------------------------------------------------------------------------- */

/* The request goes to those behind RANK, to which that has perhaps not handed it on. */
static void put_ask_on(struct line *l, uint32_t rank)
{
	uint32_t to = line_after(l, &l->ranks, l->forwards ? l->origin : rank);

	if (to == BOARD_NONE || (!l->forwards && ranks_have(&l->put.answered, to)))
		return;
	if (!line_send(l, to, WORD_REQUEST))
		put_no_memory(l);
}

/* The members before RANK have not begun: the BEGIN that is to go leaves it out. */
static bool has_yet_to_begin(const struct line *l, uint32_t rank)
{
	const struct flow *last = NULL;

	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE && r != rank;
	     r = line_after(l, &l->ranks, r))
		if (is_fed(l, r))
			last = line_flow(l, r);
	return last && last->due >> WORD_BEGIN & 1;
}

void put_lost(struct line *l, uint32_t rank, int error, uint32_t by)
{
	const bool asks = l->state == LINE_ASKS;
	bool joined;
	uint32_t next;

	if ((!asks && l->state != LINE_MOVES) || !ranks_have(&l->ranks, rank))
		return;
	joined = has_yet_to_begin(l, rank);
	line_refuse_left(l, error, rank, by);
	if (put_awaits(l, rank))
		put_check_in(l, rank, error);
	next = line_after(l, &l->ranks, rank);
	ranks_drop(&l->ranks, rank);
	ranks_drop(&l->agreed, rank);
	if (pair_gone(l->of->group, rank) == 0 && pair_endpoint(l->of->group, rank))
		(void)line_send(l, rank, WORD_LEAVE);
	if (asks) {
		if (l->put.awaited)
			put_ask_on(l, rank);
		put_count(l);
		return;
	}
	if (next != BOARD_NONE && !ranks_have(&l->have, next) && !is_fed(l, next) && !joined)
		put_feed(l, next, true);
	if (l->state == LINE_MOVES)
		put_inspect(l);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Of a line that waits for one another, none of which is suspect, each says whether it answers. */
static COLD bool put_asks(struct line *l)
{
	char text[NAMED * 12 + 32];

	if (l->put.asks || l->state == LINE_WAITS || (l->direct && l->state == LINE_MOVES) ||
	    put_missing(l, text, sizeof(text)) < 2 ||
	    put_suspect(l, text, sizeof(text)) != BOARD_NONE)
		return false;
	l->put.asks = true;
	l->put.deadline = clock_deadline(ASKED_MS);
	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r))
		if (is_asked(l, r))
			(void)line_send(l, r, WORD_LATE);
	return true;
}

/* Its deadline has passed. */
static COLD void put_late(struct line *l)
{
	const struct refusal before = l->refusal;
	char ranks[NAMED * 12 + 32], why[SLMPM_REFUSAL];
	uint32_t suspect, missing;

	if (put_asks(l))
		return;
	suspect = put_silent(l);
	why[0] = 0;
	missing = put_missing(l, ranks, sizeof(ranks));
	if (suspect != BOARD_NONE)
		(void)snprintf(ranks, sizeof(ranks), "rank %" PRIu32, suspect);
	else
		suspect = put_suspect(l, why, sizeof(why));
	l->refusal.error = 0;
	if (l->state == LINE_WAITS)
		line_refuse(l, -SLMPM_ETIMEOUT, BOARD_NONE, "one before it has not ended");
	else if (missing)
		line_refuse(l, -SLMPM_ETIMEOUT, suspect, "nothing yet from %s%s%s%s", ranks, why,
			    before.error ? "; " : "", before.error ? before.text : "");
	put_end(l, -SLMPM_ETIMEOUT);
}

uint64_t put_tick(struct line *l, uint64_t now)
{
	if (l->state == LINE_IS_OVER)
		return UINT64_MAX;
	if (now >= l->put.deadline)
		put_late(l);
	return l->put.deadline;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void put_begin(struct line *l)
{
	uint32_t first = line_after(l, &l->ranks, l->origin);

	l->state = LINE_ASKS;
	route_ask(l);
	if (first != BOARD_NONE && !line_send(l, first, WORD_REQUEST))
		put_no_memory(l);
	else
		put_count(l);
}
