/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations at another's behest, at a member: what it agrees to, their beginning and their end. */
#include "slmpm/group/drive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/base/sized.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/queue.h"
#include "slmpm/engine/engine.h"
#include "slmpm/group/space.h"
#include "slmpm/group/tags.h"

#define CALL   "slmpm_group_serve"
#define UNREAD 4096               /* completions: beyond those it refuses */
#define MOST   (2 * SLMPM_DRIVES) /* of those that were stopped some may be here still */

struct driven {
	struct collective operation; /* first: it is found by that */
	struct list node;            /* of the group's, by number */
	struct slmpm_coll coll;
	struct drive_address which;
	struct space *from, *to; /* in use by it, or NULL */
	struct notified notified;
	uint32_t imm;
	bool begun;
};

/* ---- what the founder gets ------------------------------------------------------------------- */

static void send_word(struct endpoint *ep, const struct drive_address *which, enum drive_word word,
		      int status, uint32_t culprit, const char *text)
{
	struct wire_drive_word w = {
		.which = {.group = which->group, /* as they came */
			  .number = LITTLE_64(which->number),
			  .join = LITTLE_32(which->join),
			  .rank = which->rank},
		.word = LITTLE_32(word),
		.error = LITTLE_32(wire_error(status)),
		.culprit = LITTLE_32(culprit),
	};
	int rc;

	error_fit(w.text, sizeof(w.text), text);
	rc = am_answer(ep, DRIVE_WORD, &w, sizeof(w), NULL, 0);
	if (rc == -SLMPM_ELIMIT)
		endpoint_poison(ep, "number of operations under way");
	else if (rc < 0)
		endpoint_no_memory(ep);
}

/* To the founder of G, which may be this process, or gone. */
static void say(struct group *g, const struct drive_address *which, enum drive_word word,
		int status, uint32_t culprit, const char *text)
{
	struct endpoint *ep = g->founder ? endpoint_get((slmpm_peer){g->founder}) : NULL;

	if (!g->founder) {
		drive_answer(g, g->boards.rank, which->number, word, status, culprit, text);
		drives_settle(g);
	} else if (ep && ep->state == SLMPM_PEER_UP) {
		send_word(ep, which, word, status, culprit, text);
	}
}

/* By whom it ends with STATUS, where that is what has broken the group; else by this member. */
static uint32_t culprit_of(const struct group *g, int status)
{
	bool broken = status < 0 && (status == g->status || status == g->error);

	return broken && g->culprit >= 0 ? (uint32_t)g->culprit : UINT32_MAX;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void driven_free(struct driven *d)
{
	if (d->from)
		d->from->users--;
	if (d->to)
		d->to->users--;
	list_remove(&d->node);
	completion_undo(&d->notified);
	free(d);
}

static void driven_end(struct driven *d, int status)
{
	struct group *g = d->operation.group;
	const struct drive_address which = d->which;
	const struct slmpm_done done = {
		.op = SLMPM_OP_COLLECTIVE,
		.status = status,
		.stream = d->coll.kind,
		.imm = d->imm,
	};

	completion_done(g->ctx, &d->notified, &done);
	driven_free(d);
	say(g, &which, DRIVE_ENDED, status, culprit_of(g, status), status < 0 ? g->detail : "");
}

static void driven_ended(struct collective *op, int result)
{
	driven_end((struct driven *)(void *)op, result);
}

/* ---- asked ----------------------------------------------------------------------------------- */

/* NEED bytes at OFFSET of SPACE are *AT, where there are any, and *USED. */
static int driven_side(const struct group *g, uint32_t space, uint64_t offset, uint64_t need,
		       struct space **used, void **at)
{
	struct space *s;

	if (!need)
		return 0;
	s = space_find(g, space);
	if (!s)
		return error_set(SLMPM_ENOENT, "no space %" PRIu32, space);
	*at = space_at(s, offset, need);
	if (!*at)
		return error_set(SLMPM_ELIMIT,
				 "space %" PRIu32 " has %" PRIu64 " bytes, not %" PRIu64
				 " from %" PRIu64 " on",
				 space, s->len, need, offset);
	s->users++;
	*used = s;
	return 0;
}

/* Whether this member has it in place. */
static bool is_in_place(const struct group *g, const struct slmpm_coll *c, uint32_t flags)
{
	return flags & SLMPM_DRIVE_IN_PLACE &&
	       (!flat_has_root(c->kind) || c->root == (int32_t)g->boards.rank);
}

static int take_memory(struct driven *d, const struct wire_drive *w)
{
	const struct group *g = d->operation.group;
	struct slmpm_coll *c = &d->coll;
	uint64_t from_need, to_need;
	void *from = NULL;
	int rc;

	*c = (struct slmpm_coll){.size = sizeof(*c),
				 .kind = LITTLE_32(w->kind),
				 .type = LITTLE_32(w->type),
				 .op = LITTLE_32(w->op),
				 .root = (int32_t)LITTLE_32(w->root),
				 .count = LITTLE_64(w->count)};
	if (is_in_place(g, c, LITTLE_32(w->flags)))
		c->from = SLMPM_IN_PLACE;
	rc = flat_needs(c, g->boards.size, g->boards.rank, &from_need, &to_need);
	if (rc == 0)
		rc = driven_side(g, LITTLE_32(w->from_space), LITTLE_64(w->from), from_need,
				 &d->from, &from);
	if (rc == 0)
		rc = driven_side(g, LITTLE_32(w->to_space), LITTLE_64(w->to), to_need, &d->to,
				 &c->to);
	if (!c->from)
		c->from = from;
	return rc < 0 ? rc : flat_check(c, g->boards.size, g->boards.rank);
}

static int take_completion(struct driven *d)
{
	struct group *g = d->operation.group;
	int rc = completion_open(&d->notified, g->ctx, &g->serve, NULL);
	const struct queue *q = d->notified.queue;

	if (rc == 0 && q && q->tail - q->head + q->in_flight > UNREAD)
		rc = error_set(SLMPM_ELIMIT, "its completions are not read");
	return rc;
}

static uint32_t driven_count(const struct group *g)
{
	uint32_t n = 0;

	LIST_EACH(at, &g->driven)
		n++;
	return n;
}

static int driven_take(struct group *g, const struct drive_address *which,
		       const struct wire_drive *w)
{
	struct driven *d;
	int rc = operation_may_be_driven(g, LITTLE_32(w->kind), NULL);

	if (rc == 0)
		rc = drive_suits(g, CALL);
	if (rc < 0)
		return rc;
	if (!g->serves)
		return error_set(SLMPM_ESTATE, "it does not serve (" CALL ")");
	if (driven_count(g) >= MOST)
		return error_set(SLMPM_ELIMIT, "%d operations are outstanding", MOST);
	d = calloc(1, sizeof(*d));
	if (!d)
		return error_set(SLMPM_ENOMEM, "for an operation");
	d->operation = (struct collective){.group = g,
					   .coll = &d->coll,
					   .ended = driven_ended,
					   .deadline = UINT64_MAX,
					   .kept = true};
	list_init(&d->operation.node);
	list_append(&g->driven, &d->node);
	d->which = *which;
	d->imm = LITTLE_32(w->imm);
	rc = take_memory(d, w);
	if (rc == 0)
		rc = take_completion(d);
	if (rc < 0)
		driven_free(d);
	return rc;
}

static struct group *driven_group(const struct endpoint *ep, uint32_t join)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node)
		if (g->founder == handle_id(ep) && g->join == join)
			return g;
	return NULL;
}

/* Where there is no such group, it has been left, or is not known to have formed. */
void driven_prepare(struct endpoint *ep, const struct wire_drive *w)
{
	const struct drive_address which = {.group = w->which.group,
					    .number = LITTLE_64(w->which.number),
					    .join = LITTLE_32(w->which.join),
					    .rank = w->which.rank};
	struct group *g = ep ? driven_group(ep, which.join) : handle_get(&group_table, which.group);
	int rc;

	if (!g) {
		send_word(ep, &which, DRIVE_ENDED, -SLMPM_ESTATE, UINT32_MAX,
			  "it does not serve (" CALL ")");
		return;
	}
	if (ep && endpoint_broke(ep, "order of operations", which.number <= g->driven_last))
		return;
	if (ep)
		g->driven_last = which.number;
	rc = driven_take(g, &which, w);
	say(g, &which, rc < 0 ? DRIVE_ENDED : DRIVE_AGREED, rc, culprit_of(g, rc),
	    rc < 0 ? group_detail() : "");
}

/* ---- begun, or not --------------------------------------------------------------------------- */

static struct driven *driven_find(struct group *g, uint64_t number)
{
	LIST_EACH_ENTRY(struct driven, d, &g->driven, node)
		if (d->which.number == number)
			return d;
	return NULL;
}

static const struct driven *driven_next(struct group *g)
{
	LIST_EACH_ENTRY(struct driven, d, &g->driven, node)
		if (!d->begun)
			return d;
	return NULL;
}

/* It is not to be any more: where it has begun, and perhaps ended, the group breaks. */
static void driven_stop(struct group *g, uint64_t number, int status, uint32_t culprit,
			const char *text)
{
	struct driven *d = driven_find(g, number);

	if (d && !d->begun)
		driven_free(d);
	if (number > g->driven_begun ||
	    g->boards.generation) /* refused; or of an earlier generation */
		return;
	if (g->error || group_is_broken(g)) /* the first error stays */
		return;
	(void)error_set(-status, "%s", text);
	operations_fail(g, status, culprit < g->boards.size ? culprit : BOARD_NONE);
}

bool driven_word(struct group *g, uint64_t number, enum drive_word word, int status,
		 uint32_t culprit, const char *text)
{
	struct driven *d = driven_find(g, number);

	if (word == DRIVE_STOP) {
		driven_stop(g, number, status < 0 ? status : -SLMPM_ECANCELED, culprit, text);
		return true;
	}
	if (word == DRIVE_LATE) {
		if (d && d->begun)
			say(g, &d->which, DRIVE_AWAITS, 0, operations_suspect(g), "");
		return true;
	}
	if (!d || d != driven_next(g))
		return false;
	d->begun = true;
	g->driven_begun = number;
	g->ctx->news = true;
	operation_go(&d->operation);
	return true;
}

/* What has not begun here may have begun at others. */
void driven_orphaned(struct group *g, struct endpoint *ep)
{
	int error = ep->life->error ? ep->life->error : SLMPM_ECLOSED;

	if (!driven_next(g))
		return;
	(void)error_set(error, "group %u: %s, which drives it, has ended: %s", g->tag,
			ep->life->name,
			ep->life->reason[0] ? ep->life->reason : "it has been closed");
	operations_break(g, -error);
	LIST_EACH_ENTRY(struct driven, d, &g->driven, node)
		if (!operation_is_outstanding(&d->operation)) /* else that ends it */
			driven_end(d, g->error);
}

void driven_leave(struct group *g)
{
	while (!list_empty(&g->driven)) { /* its founder may end meanwhile, and they with it */
		struct driven *d = LIST_ENTRY(g->driven.next, struct driven, node);
		const struct drive_address which = d->which;

		driven_free(d);
		if (g->founder)
			say(g, &which, DRIVE_ENDED, -SLMPM_ECLOSED, UINT32_MAX,
			    "it has left the group");
	}
}

/* ---- the call -------------------------------------------------------------------------------- */

static int serve_no_more(struct group *g)
{
	if (!g->boards.own)
		return founder_refused(CALL);
	if (!list_empty(&g->driven))
		return error_set(SLMPM_EBUSY, CALL ": a driven operation is under way");
	g->serves = false;
	return 0;
}

static int serve_from_now(struct group *g, const struct slmpm_how *how)
{
	struct context *ctx = g->ctx;
	struct counter *counter;
	struct queue *queue;
	int rc = operation_may_be_driven(g, SLMPM_COLL_BARRIER, CALL);

	if (rc == 0)
		rc = drive_suits(g, CALL);
	if (rc == 0 && !g->serves && (g->begun != g->done || tags_wait(g)))
		rc = error_set(SLMPM_EBUSY, CALL ": an operation of this process's is under way");
	if (rc == 0 && how->ctr.id && how->cq.id)
		rc = error_set(SLMPM_EINVAL, CALL ": only one of a counter and a queue");
	if (rc == 0)
		rc = completion_find(ctx, how->ctr, how->cq, &counter, &queue);
	if (rc == 0)
		rc = engine_stand_by(ctx);
	if (rc < 0)
		return rc;
	g->serve = *how;
	g->serves = true;
	operation_leave(ctx, false);
	return 0;
}

int slmpm_group_serve(slmpm_group group, const struct slmpm_how *how)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);
	struct slmpm_how all;

	if (!g)
		return rc;
	if (how)
		rc = how_take(CALL, &all, how, 0);
	if (rc == 0)
		rc = how ? serve_from_now(g, &all) : serve_no_more(g);
	context_unlock(ctx);
	return rc;
}
