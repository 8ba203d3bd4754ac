/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of a group: begun, advanced by whichever thread makes progress in the
 * context, and what ends them: done, the deadline, a member that has died or left or does another
 * operation. The first passes are made without the rest of the context: most are over by then.
 */
#include "slmpm/group/group.h"

#include <stdio.h>

#include "slmpm/base/sized.h"
#include "slmpm/completion/late.h"
#include "slmpm/context.h"
#include "slmpm/link/wait.h"

#define CALL "slmpm_collective"

/* By name, for other languages. */
extern inline int slmpm_collect(slmpm_group group, uint32_t kind, const void *from, void *to,
				uint64_t count, uint32_t type, uint32_t op, int root,
				int timeout_ms);
extern inline int slmpm_barrier(slmpm_group group, int timeout_ms);
extern inline int slmpm_broadcast(slmpm_group group, void *buffer, uint64_t count, uint32_t type,
				  int root, int timeout_ms);
extern inline int slmpm_reduce(slmpm_group group, const void *from, void *to, uint64_t count,
			       uint32_t type, uint32_t op, int root, int timeout_ms);
extern inline int slmpm_allreduce(slmpm_group group, const void *from, void *to, uint64_t count,
				  uint32_t type, uint32_t op, int timeout_ms);
extern inline int slmpm_scatter(slmpm_group group, const void *from, void *to, uint64_t count,
				uint32_t type, int root, int timeout_ms);
extern inline int slmpm_gather(slmpm_group group, const void *from, void *to, uint64_t count,
			       uint32_t type, int root, int timeout_ms);
extern inline int slmpm_allgather(slmpm_group group, const void *from, void *to, uint64_t count,
				  uint32_t type, int timeout_ms);
extern inline int slmpm_alltoall(slmpm_group group, const void *from, void *to, uint64_t count,
				 uint32_t type, int timeout_ms);
extern inline int slmpm_reduce_scatter(slmpm_group group, const void *from, void *to,
				       uint64_t count, uint32_t type, uint32_t op, int timeout_ms);
extern inline int slmpm_scan(slmpm_group group, const void *from, void *to, uint64_t count,
			     uint32_t type, uint32_t op, int timeout_ms);
extern inline int slmpm_exscan(slmpm_group group, const void *from, void *to, uint64_t count,
			       uint32_t type, uint32_t op, int timeout_ms);

/* ---- ends ------------------------------------------------------------------------------------ */

/* The group is broken by what the thread's detail says: the others learn it, asleep or not. */
static COLD int break_by(struct group *g, int error, uint32_t culprit)
{
	uint32_t theirs;
	int first;

	(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
	/* The words of the first one are those of all. */
	first = boards_broken(&g->boards, &theirs);
	if (first && g->status && g->status != first)
		first = 0; /* this process knows better */
	if (first) {
		(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
		error = first;
		culprit = theirs;
	}
	g->error = error;
	group_break(g, error, culprit < g->boards.size ? (int32_t)culprit : -1);
	boards_end(&g->boards, error, culprit, first ? NULL : g->detail);
	return error_set(-error, "%s", g->detail);
}

/* It had been broken by then, as operation NUMBER, of KIND, was under way or begun. */
static COLD int break_as_is(struct group *g, uint64_t number, uint32_t kind)
{
	uint32_t r = (uint32_t)g->culprit;

	if (g->culprit < 0)
		(void)boards_error(&g->boards, -g->status, number, kind, "it is broken");
	else if (g->status == -SLMPM_EDEAD)
		(void)boards_error(&g->boards, SLMPM_EDEAD, number, kind, BOARD_MEMBER " has died",
				   BOARD_MEMBER_OF(&g->boards, r));
	else
		(void)boards_error(&g->boards, -g->status, number, kind,
				   "it is broken, by " BOARD_MEMBER,
				   BOARD_MEMBER_OF(&g->boards, r));
	return break_by(g, g->status, r);
}

/* A member that has left has done its part in all that it was needed for, or flat_step says that
 * it has not. */
static bool is_broken(const struct group *g)
{
	return UNLIKELY(g->status) && g->status != -SLMPM_ECLOSED;
}

/* As flat_step; negative: the group is broken. */
static int step(struct group *g)
{
	int rc = flat_step(&g->flat);

	if (LIKELY(rc > 0))
		return rc;
	if (rc < 0)
		rc = break_by(g, rc, g->flat.culprit);
	else if (is_broken(g))
		rc = break_as_is(g, g->flat.number, g->flat.coll->kind);
	if (rc < 0)
		flat_drop(&g->flat);
	return rc;
}

#define NAMED 4 /* ranks of those that are waited for */

/* Which of those that are waited for is suspect, and of what; NULL: none. */
static COLD const char *suspicion_of(const struct group *g, uint32_t *r)
{
	for (*r = 0; *r < g->boards.size; ++*r) {
		const char *why = flat_waits_for(&g->flat, *r) ? member_suspicion(g, *r) : NULL;

		if (why)
			return why;
	}
	return NULL;
}

static COLD int late(struct group *g, int timeout_ms)
{
	uint32_t first = BOARD_NONE, n = 0, suspect;
	const char *why = suspicion_of(g, &suspect);
	char ranks[NAMED * 32] = "", which[32] = "";
	size_t at = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!flat_waits_for(&g->flat, r))
			continue;
		first = n++ ? first : r;
		if (n <= NAMED)
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u (process %d)",
					       n > 1 ? ", " : "", r, g->boards.processes[r]);
	}
	if (why && n > 1)
		(void)snprintf(which, sizeof(which), " is rank %u", suspect);
	(void)boards_error(&g->boards, late_code(timeout_ms), g->flat.number, g->flat.coll->kind,
			   "nothing yet from %s%s%s%s%s%s%s", n > 1 ? "ranks " : "rank ", ranks,
			   n > NAMED ? " and others" : "", why ? ", suspect" : "", which,
			   why ? ": " : "", why ? why : "");
	flat_drop(&g->flat);
	return break_by(g, -SLMPM_ETIMEOUT, why ? suspect : first);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void settle(struct group *g, int result)
{
	g->under_way = false;
	g->result = result;
	g->ctx->collecting--;
	if (g->announced) {
		g->announced = false;
		boards_awake(&g->boards);
	}
}

int group_advance(struct context *ctx)
{
	int n = 0;

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		int rc = g->under_way ? step(g) : 0;

		if (rc)
			settle(g, rc);
		/* It has gone on, and waits for another one, which would not ring. */
		n += rc || (g->announced && g->announced_to != g->flat.waits_for);
	}
	return n;
}

void group_arm(struct context *ctx, bool asleep)
{
	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		if (!g->under_way || g->announced == asleep)
			continue;
		g->announced = asleep;
		g->announced_to = g->flat.waits_for;
		if (asleep)
			boards_announce(&g->boards, g->announced_to);
		else
			boards_awake(&g->boards);
	}
}

static bool is_over(void *arg)
{
	struct group *g = arg;

	if (g->under_way && is_broken(g))
		(void)group_advance(g->ctx);
	return !g->under_way;
}

static int wait_for(struct group *g, int timeout_ms)
{
	g->under_way = true;
	g->ctx->collecting++;
	if (UNLIKELY(g->ctx->sleeping)) /* another thread, until it is rung for this one, too */
		group_arm(g->ctx, true);
	else if (UNLIKELY(g->ctx->away)) /* it scans links alone */
		context_wake(g->ctx);
	if (wait_until(g->ctx, is_over, g, timeout_ms) < 0 && g->under_way)
		settle(g, late(g, timeout_ms));
	if (g->result < 0)
		return error_set(-g->result, "%s", g->detail);
	return g->result;
}

/* ---- the call -------------------------------------------------------------------------------- */

static int passes_of(const struct context *ctx)
{
	if (ctx->oversubscribed || ctx->wait == SLMPM_WAIT_BLOCK || ctx->multiple)
		return 1;
	return (int)ctx->scans;
}

static COLD int forbidden(struct group *g, uint32_t kind)
{
	if (g->ctx->handling)
		return context_forbids(g->ctx, CALL);
	if (!g->boards.own)
		return error_set(SLMPM_ESTATE,
				 CALL ": this process has founded the group and is no member");
	if (g->error)
		return error_set(-g->error, "%s", g->detail);
	if (is_broken(g))
		return break_as_is(g, g->begun + 1, kind);
	return error_set(SLMPM_EBUSY, CALL ": another thread has an operation of the group "
					   "under way");
}

static int collect(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	int passes = passes_of(g->ctx), rc;

	if (UNLIKELY(g->ctx->handling | !g->boards.own | g->error | g->under_way) || is_broken(g))
		return forbidden(g, c->kind);
	rc = flat_check(c, g->boards.size, g->boards.rank);
	if (UNLIKELY(rc < 0))
		return rc;
	if (UNLIKELY(!timeout_ms && g->boards.size > 1))
		return error_set(SLMPM_EAGAIN, CALL ": a timeout of 0 is not enough for the others "
						    "to answer");
	rc = flat_begin(&g->flat, &g->boards, c);
	if (UNLIKELY(rc < 0))
		return error_set(SLMPM_ENOMEM, "%s: for its result", flat_kind_name(c->kind));
	g->begun++;
	while ((rc = step(g)) == 0 && --passes > 0)
		clock_between_polls();
	if (UNLIKELY(rc == 0))
		rc = wait_for(g, timeout_ms);
	g->done++;
	return rc < 0 ? rc : 0;
}

int slmpm_collective(slmpm_group group, const struct slmpm_coll *coll, int timeout_ms)
{
	int rc = 0;
	struct group *g = CONTEXT_LOCK_OBJECT(&group_table, struct group, group.id, &rc);
	struct slmpm_coll full;
	struct context *ctx;

	if (UNLIKELY(!g))
		return rc;
	ctx = g->ctx;
	if (UNLIKELY(!coll || coll->size != sizeof(*coll))) {
		rc = sized_take(CALL, &full, coll, sizeof(full));
		coll = &full;
	}
	if (LIKELY(rc == 0))
		rc = collect(g, coll, timeout_ms);
	context_unlock(ctx);
	return rc;
}
