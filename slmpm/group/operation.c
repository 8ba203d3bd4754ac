/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that wait (operation.h), advanced by whichever thread makes progress in the context,
 * and what ends them: done, a deadline, a member that has died or left or does another operation.
 */
#include "slmpm/group/operation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/barrier.h"
#include "slmpm/base/clock.h"
#include "slmpm/board/layout.h"
#include "slmpm/completion/late.h"
#include "slmpm/engine/engine.h"
#include "slmpm/group/page.h"
#include "slmpm/group/tags.h"
#include "slmpm/plan/plan.h"
#include "slmpm/request.h"

#define TURN  64  /* operations that end before the links have their turn; ... */
#define STEPS 256 /* ... of these, and looks for them */
#define LOOKS 32  /* for the next of several, before the links' turn */
#define VAIN  2   /* times in a row that these found nothing, where threads share processors */
#define NAMED 4   /* ranks of those that are waited for */

/* ---- what breaks a group --------------------------------------------------------------------- */

/* The group is broken by what the thread's detail says: the others learn it, asleep or not. */
static COLD int break_by(struct group *of, int error, uint32_t culprit)
{
	struct group *g = group_main(of);
	uint32_t theirs;
	int first;

	if (g->apart)
		return messages_break(of, error, (int)culprit);
	if (g->error) /* as the other lane has found */
		return error_set(-g->error, "%s", g->detail);
	(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
	/* The words of the first one are those of all. */
	first = boards_broken(&g->boards, &theirs);
	if (first && group_is_broken(g) && g->status != first)
		first = 0; /* this process knows better */
	if (first) {
		(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
		error = first;
		culprit = theirs;
	}
	g->error = error;
	group_break(g, error, (int32_t)culprit);
	boards_end(&g->boards, error, culprit, first ? NULL : g->detail);
	lane_broken(g);
	return error_set(-error, "%s", g->detail);
}

/* It had been broken by then, as operation NUMBER, of KIND, was under way or begun. */
static COLD int break_as_is(struct group *g, uint64_t number, uint32_t kind)
{
	return break_by(g, group_broken_error(g, number, kind), (uint32_t)g->culprit);
}

COLD void operation_warn(struct group *g, const struct group *by)
{
	const size_t at = strlen(g->detail);
	char text[128];

	if (!by->writer)
		return;
	(void)snprintf(text, sizeof(text),
		       "; " BOARD_MEMBER " is stopped as it writes to this member's buffers: "
		       "it may do so until it ends",
		       BOARD_MEMBER_OF(&by->boards, by->writer - 1));
	if (!strstr(g->detail, text))
		(void)snprintf(g->detail + at, sizeof(g->detail) - at, "%s", text);
}

/* No more of the one that is under way: the group is broken. */
static COLD void operation_drop(struct group *g)
{
	const uint32_t r = g->apart ? BOARD_NONE : flat_drop(&g->flat);

	if (r == BOARD_NONE)
		return;
	g->writer = r + 1;
	operation_warn(g, g);
	if (g->main) /* by which all later calls fail */
		memcpy(g->main->detail, g->detail, sizeof(g->detail));
}

int operation_broken(struct group *g, int rc)
{
	rc = rc < 0 ? break_by(g, rc, g->flat.culprit) :
		      break_as_is(g, g->flat.number, g->flat.coll->kind);
	operation_drop(g);
	return error_set(-rc, "%s", g->detail);
}

/* Those that this member waits for may wait as well: all wait for the ones that have not posted
 * what this returns; 0: for those that flat_waits_for knows. */
COLD uint64_t operations_behind(const struct group *g)
{
	uint64_t least = g->flat.number, awaited = UINT64_MAX;
	struct board_step step;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (r == g->boards.rank)
			continue;
		boards_step(&g->boards, r, &step);
		least = least_of(least, step.number);
		if (flat_waits_for(&g->flat, r))
			awaited = least_of(awaited, step.number);
	}
	/* It has not begun this one, and is none of them. */
	return awaited != UINT64_MAX && least < awaited && least < g->flat.number ? least + 1 : 0;
}

COLD bool operations_await(const struct group *g, uint32_t r, uint64_t behind)
{
	return behind ? r != g->boards.rank && !boards_has(&g->boards, r, behind) :
			flat_waits_for(&g->flat, r);
}

/* Which of those that are waited for is suspect, and of what; NULL: none. */
static COLD const char *suspicion_of(const struct group *g, uint64_t behind, uint32_t *r)
{
	for (*r = 0; *r < g->boards.size; ++*r) {
		const char *why = operations_await(g, *r, behind) ? member_suspicion(g, *r) : NULL;

		if (why)
			return why;
	}
	return NULL;
}

COLD uint32_t operations_suspect(struct group *g)
{
	uint64_t behind;
	uint32_t r;

	if (!g->under_way || g->apart)
		return g->under_way ? (uint32_t)messages_suspect(g) : BOARD_NONE;
	behind = operations_behind(g);
	if (suspicion_of(g, behind, &r))
		return r;
	for (r = 0; r < g->boards.size && !operations_await(g, r, behind); r++)
		continue;
	return r < g->boards.size ? r : BOARD_NONE;
}

static COLD void late(struct group *g, int timeout_ms)
{
	uint64_t behind = operations_behind(g);
	uint32_t first = BOARD_NONE, n = 0, suspect;
	const char *why = suspicion_of(g, behind, &suspect);
	char ranks[NAMED * sizeof(", 1023 (process -2147483648)")] = "", which[32] = "";
	char waited[GROUP_WAITED], steps[GROUP_STEPS];
	size_t at = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!operations_await(g, r, behind))
			continue;
		first = n++ ? first : r;
		if (n <= NAMED)
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u (process %d)",
					       n > 1 ? ", " : "", r, g->boards.processes[r]);
	}
	group_page_waited(g, timeout_ms, waited);
	group_page_steps(g, steps);
	if (why && n > 1)
		(void)snprintf(which, sizeof(which), " is rank %u", suspect);
	(void)boards_error(&g->boards, late_code(timeout_ms), g->flat.number, g->flat.coll->kind,
			   "nothing yet from %s%s%s%s%s%s%s%s%s", n > 1 ? "ranks " : "rank ", ranks,
			   n > NAMED ? " and others" : "", waited, why ? ", suspect" : "", which,
			   why ? ": " : "", why ? why : "", steps);
	(void)break_by(g, -SLMPM_ETIMEOUT, why ? suspect : first);
	operation_drop(g);
}

/* ---- beginning ------------------------------------------------------------------------------- */

int operation_may_be_driven(struct group *g, uint32_t kind, const char *call)
{
	int rc = group_is_joined(g, operation_call(call, kind));

	if (rc < 0)
		return rc;
	if (g->error)
		rc = error_set(-g->error, "%s", g->detail);
	else if (group_is_broken(g))
		rc = break_as_is(g, g->begun + 1, kind);
	return rc < 0 && call ? error_name_call(call, rc) : rc;
}

int operation_may_begin(struct group *g, uint32_t kind, const char *call)
{
	if (g->serves)
		return error_of_call(
			SLMPM_ESTATE, operation_call(call, kind),
			"the group is driven by who has founded it (slmpm_group_serve)");
	return operation_may_be_driven(g, kind, call);
}

int operation_check(struct group *g, const struct slmpm_coll *c, const char *call)
{
	int rc = operation_may_begin(g, c->kind, call);

	if (rc == 0 && c->reserved)
		rc = error_set(SLMPM_EINVAL, "%s: .reserved is not zero",
			       operation_call(call, c->kind));
	if (rc < 0)
		return rc;
	rc = flat_check(c, g->boards.size, g->boards.rank);
	return UNLIKELY(rc < 0) ? operation_refused(c, call, rc) : 0;
}

int operation_lacks_memory(const struct slmpm_coll *c)
{
	return error_set(SLMPM_ENOMEM, "%s: for its result, or what it sends",
			 plan_kind_name(c->kind));
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* In a completion with an error: by which rank. */
static uint32_t culprit_imm(const struct group *g)
{
	return g->culprit < 0 ? UINT32_MAX : (uint32_t)g->culprit;
}

static void operation_finish(const struct group *g, struct request *r, int status)
{
	if (status < 0) {
		r->result.imm = culprit_imm(g);
		r->owned = strdup(g->detail); /* the group may be gone when it is wanted */
	}
	request_finish(r, status);
}

static void operation_notify(const struct group *g, struct collective *op, int status)
{
	struct slmpm_done done = {
		.status = status, .op = SLMPM_OP_COLLECTIVE, .stream = op->coll->kind};

	g->ctx->finished = true;
	if (LIKELY(status == 0)) {
		completion_done(g->ctx, &op->notified, &done);
		return;
	}
	done.imm = culprit_imm(g);
	completion_failed(g->ctx, &op->notified, &done, g->detail);
}

void operation_end(struct collective *op, int result)
{
	struct group *g = op->group;
	struct request *r = op->request;
	void (*ended)(struct collective *, int) = op->ended;

	list_remove(&op->node);
	op->group = group_main(g);
	op->request = NULL;
	g->done++;
	if (op->result)
		*op->result = result;
	if (completion_notified(&op->notified))
		operation_notify(g, op, result < 0 ? result : 0);
	if (!op->kept)
		operation_free(op);
	if (r)
		operation_finish(g, r, result < 0 ? result : 0);
	if (ended)
		ended(op, result < 0 ? result : 0);
	g->ctx->news = true;
	context_changed(g->ctx);
}

static struct collective *first_of(const struct group *g)
{
	return LIST_ENTRY(g->operations.next, struct collective, node);
}

static uint32_t meeting_awaits(const struct group *g)
{
	return g->under_way ? BOARD_ANY : g->meeting.next;
}

/* One more shows, of a shrink, or who begins the next round of a lane: whichever. */
static bool group_awaits_any(const struct group *g)
{
	return g->shrinking || (g->holds && !g->under_way);
}

bool group_is_announced(const struct group *g)
{
	if (!g->announced)
		return false;
	if (group_awaits_any(g))
		return g->announced_to == BOARD_ANY;
	if (g->meeting.waits)
		return g->announced_to == meeting_awaits(g);
	return g->announced_to < g->boards.size ? flat_waits_for(&g->flat, g->announced_to) :
						  g->announced_to == g->flat.waits_for;
}

bool group_announce_unfenced(struct group *g)
{
	g->announced = true;
	if (group_awaits_any(g))
		g->announced_to = BOARD_ANY;
	else
		g->announced_to = g->meeting.waits ? meeting_awaits(g) : flat_woken_by(&g->flat);
	return boards_announce(&g->boards, g->announced_to);
}

void group_announce(struct group *g)
{
	if (group_announce_unfenced(g))
		barrier_all();
}

void group_announce_no_more(struct group *g)
{
	if (!g->announced || group_waits(g))
		return;
	g->announced = false;
	boards_awake(&g->boards);
}

static void settle(struct group *g)
{
	g->under_way = false;
	g->ctx->collecting--;
	group_announce_no_more(g);
}

/* By the group's error, as soon as nothing is under way any more. */
static COLD int end_all(struct group *g)
{
	int n = 0;

	if (g->apart && !messages_have_stopped(g))
		return 0;

	for (; !list_empty(&g->operations); n++)
		operation_end(first_of(g), g->error);
	settle(g);
	return n;
}

void operations_fail(struct group *g, int error, uint32_t culprit)
{
	(void)break_by(g, error, culprit);
	if (!g->under_way)
		return;
	operation_drop(g);
	(void)end_all(g);
}

void operations_break(struct group *g, int error)
{
	operations_fail(g, error, BOARD_NONE);
}

void operations_late(struct group *g, int timeout_ms)
{
	if (g->apart && !g->error)
		(void)messages_late(g, timeout_ms);
	else if (!g->apart)
		late(g, timeout_ms);
	(void)end_all(g);
}

void operations_shut(struct group *g)
{
	if (!g->under_way)
		return;
	messages_drop(g);
	g->error = -SLMPM_ECLOSED;
	(void)snprintf(g->detail, sizeof(g->detail), "the context has been closed");
	operation_drop(g);
	(void)end_all(g);
}

int operation_failed(const struct request *r)
{
	return error_set(-r->result.status, "%s",
			 r->owned ? (const char *)r->owned : "a collective operation");
}

static bool has_request(const struct group *g, const struct request *r)
{
	LIST_EACH_ENTRY(const struct collective, op, &g->operations, node)
		if (op->request == r)
			return true;
	return false;
}

/* The group, or lane, whose operation R is; NULL: none yet (tags.c), or it is a founder's. */
static struct group *group_of(const struct request *r)
{
	LIST_EACH_ENTRY(struct group, g, &r->ctx->groups, node) {
		if (has_request(g, r))
			return g;
		if (g->lane && has_request(g->lane, r))
			return g->lane;
	}
	return NULL;
}

/* As group_of, of one with a tag that not all are known to have started; *TAG is that. */
static COLD struct group *group_that_holds(const struct request *r, uint32_t *tag)
{
	LIST_EACH_ENTRY(struct group, g, &r->ctx->groups, node) {
		const struct collective *op;

		for (uint32_t i = 0; (op = tags_at(g, i)); i++)
			if (op->request == r) {
				*tag = op->coll->tag;
				return g;
			}
	}
	return NULL;
}

/* The first member that those with tags wait for. */
static COLD uint32_t tags_suspect(const struct group *g)
{
	uint32_t r = g->apart ? operations_suspect(g->lane) : BOARD_NONE;

	if (r != BOARD_NONE)
		return r;
	r = 0;
	while (r < g->boards.size && !tags_await(g, r))
		r++;
	return r < g->boards.size ? r : BOARD_NONE;
}

COLD int operation_late(const struct request *r, int timeout_ms, const char *what)
{
	uint32_t tag = 0, rank = BOARD_NONE;
	struct group *g = group_that_holds(r, &tag);
	char which[32] = "";
	const char *why;

	if (g) {
		rank = tags_suspect(g);
		(void)snprintf(which, sizeof(which), ", tag %u", tag);
	} else if ((g = group_of(r))) {
		rank = operations_suspect(g);
	}
	if (rank == BOARD_NONE)
		return late_from(r->ctx, NULL, timeout_ms, what);
	why = member_suspicion(g, rank);
	return error_set(late_code(timeout_ms), "%s " BOARD_MEMBER " of group %u%s%s%s", what,
			 BOARD_MEMBER_OF(&g->boards, rank), g->tag, which, why ? ", suspect: " : "",
			 why ? why : "");
}

/* ---- going on -------------------------------------------------------------------------------- */

/* Negative: there is no memory for it, and the group is broken. */
static int begin_next(struct group *g)
{
	int rc = operation_begin(g, first_of(g)->coll);

	if (rc < 0)
		return break_by(g, rc, g->boards.rank);
	if (!g->apart)
		flat_post_early(&g->flat);
	if (g->operations.next->next != &g->operations)
		operation_claim(LIST_ENTRY(g->operations.next->next, struct collective, node));
	return 0;
}

/* The first one has been done: the next begins, and the others get its post while the first one
 * ends. Negative: the group is broken. */
static int pass_on(struct group *g)
{
	struct collective *op = first_of(g);
	bool last;
	int rc = 0;

	list_remove(&op->node);
	g->announced_to = BOARD_NONE; /* what it is to be rung for has been */
	last = list_empty(&g->operations);
	if (!last)
		rc = begin_next(g);
	operation_end(op, 1);
	if (last && list_empty(&g->operations)) {
		settle(g);
		return 0;
	}
	if (last)
		rc = begin_next(g);
	return rc;
}

int operation_combine(struct group *g, const struct slmpm_combine *own,
		      int (*step)(struct group *g))
{
	struct context *ctx = g->ctx;
	const bool handling = ctx->handling;
	int rc;

	if (!(own->flags & SLMPM_COLL_SAFE) && context_is_server(ctx)) {
		if (ctx->waiting)
			engine_step_aside(ctx, false);
		g->flat.waits_for = BOARD_ANY; /* each bell is shown to the application */
		return 0;
	}
	ctx->handling = true;
	rc = step(g);
	ctx->handling = handling;
	return rc;
}

static int step_flat(struct group *g)
{
	return operation_step(g);
}

static int step_first(struct group *g)
{
	const struct slmpm_combine *own;

	if (g->apart)
		return messages_step(g);
	own = g->flat.coll->combine;
	return UNLIKELY(own != NULL) ? operation_combine(g, own, step_flat) : operation_step(g);
}

/* A yield, in which others could need the processor, takes longer than all looks do: those come
 * first, as long as they find something. */
static bool looks_pay(const struct group *g)
{
	return !g->ctx->oversubscribed || (!g->boards.crowded && g->vain < VAIN);
}

/* Behind one that has just ended the others are about to come to the next one, too. */
static bool is_close_behind(struct group *g, int ended, int *looks)
{
	if (!ended || g->apart || g->ctx->armed || !looks_pay(g))
		return false;
	if (++*looks > LOOKS) {
		if (g->vain < VAIN)
			g->vain++;
		return false;
	}
	flat_between_looks(&g->flat);
	return true;
}

/* N have ended. In memory the links of all members have their turn behind the same operation: at
 * different ones each member would wait for the turns of all. */
static bool is_turn(const struct group *g, int n)
{
	return g->apart ? n >= TURN : g->flat.number % TURN == 0;
}

int operations_go_on(struct group *g)
{
	int n = 0, looks = 0;

	for (int steps = 0; g->under_way && steps < STEPS; steps++) {
		int rc = step_first(g);

		if (rc > 0) {
			n++;
			if (looks)
				g->vain = 0;
			looks = 0;
			rc = pass_on(g);
			/* While a thread sleeps the next one is announced first. */
			if (rc == 0 && is_turn(g, n) && !g->ctx->armed) {
				g->vain = 0; /* once more */
				break;
			}
		} else if (rc == 0 && !is_close_behind(g, n, &looks)) {
			g->ctx->moved |= g->flat.moved;
			g->flat.moved = false;
			/* While a thread sleeps, or the application on the descriptor, what came
			 * before it was announced has rung no bell: once more. */
			if (!g->ctx->armed || g->apart || group_is_announced(g))
				break;
			group_announce(g);
		}
		if (rc < 0)
			n += end_all(g);
	}
	return n;
}

void operation_append(struct collective *op)
{
	struct group *g = op->group;

	list_append(&g->operations, &op->node);
	if (op->deadline < g->due || !g->under_way)
		g->due = op->deadline;
	if (g->under_way)
		return;
	g->under_way = true;
	g->announced_to = BOARD_NONE;
	g->ctx->collecting++;
}

void operation_go(struct collective *op)
{
	struct group *g = op->group;
	int rc = g->under_way ? 0 : operation_may_be_driven(g, op->coll->kind, NULL);

	if (rc == 0 && !g->under_way && operation_begin(g, op->coll) < 0)
		rc = break_by(g, -SLMPM_ENOMEM, g->boards.rank);
	g->begun++;
	operation_append(op);
	if (rc < 0)
		(void)end_all(g);
}

bool operation_arm(struct group *g, bool asleep)
{
	if (!group_waits(g) || g->announced == asleep || g->apart)
		return false;
	if (asleep)
		return group_announce_unfenced(g);
	g->announced = false;
	boards_awake(&g->boards);
	return false;
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Some may have passed. */
static COLD bool expire(struct group *g, uint64_t now)
{
	g->due = UINT64_MAX;
	LIST_EACH_ENTRY(struct collective, op, &g->operations, node) {
		if (op->deadline <= now) {
			operations_late(g, op->timeout_ms);
			return true;
		}
		g->due = op->deadline < g->due ? op->deadline : g->due;
	}
	return false;
}

uint64_t operation_deadlines(struct group *g, uint64_t now, bool *passed)
{
	uint64_t next = UINT64_MAX;

	if (!g->under_way)
		return next;
	if (g->apart)
		next = messages_due(g);
	*passed |= g->due <= now && expire(g, now);
	return g->under_way ? least_of(next, g->due) : next;
}
