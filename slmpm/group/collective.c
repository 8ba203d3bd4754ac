/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of a group: begun, advanced by whichever thread makes progress in the
 * context, and what ends them: done, the deadline, a member that has died or left or does another
 * operation. The first passes are made without the rest of the context: most are over by then.
 */
#include "slmpm/group/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	bool known = culprit < g->boards.size;
	const char *detail = slmpm_error_detail(), *code = slmpm_strerror(error);
	size_t prefix = strlen(code);

	if (strncmp(detail, code, prefix) == 0 && strncmp(detail + prefix, ": ", 2) == 0)
		detail += prefix + 2; /* error_set puts it there again */
	g->error = error;
	(void)snprintf(g->detail, sizeof(g->detail), "%s", detail);
	group_break(g, error, known ? (int32_t)culprit : -1);
	boards_end(&g->boards, error, culprit);
	return error;
}

/* It had been broken by then. */
static COLD int break_as_is(struct group *g)
{
	uint32_t r = (uint32_t)g->culprit;

	if (g->culprit >= 0 && g->status == -SLMPM_EDEAD)
		(void)error_set(SLMPM_EDEAD, CALL ": rank %u of the group, process %d, has died", r,
				g->members[r].pid);
	else if (g->culprit >= 0)
		(void)error_set(-g->status, CALL ": the group is broken, by rank %u: %s", r,
				slmpm_strerror(g->status));
	else
		(void)error_set(-g->status, CALL ": the group is broken: %s",
				slmpm_strerror(g->status));
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
		rc = break_as_is(g);
	if (rc < 0)
		flat_drop(&g->flat);
	return rc;
}

#define NAMED 8 /* ranks of those that are waited for */

static COLD int late(struct group *g, int timeout_ms)
{
	uint32_t first = BOARD_NONE, n = 0;
	char ranks[NAMED * 24] = "";
	size_t at = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!flat_waits_for(&g->flat, r))
			continue;
		first = n++ ? first : r;
		if (n <= NAMED)
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u (process %d)",
					       n > 1 ? ", " : "", r, g->members[r].pid);
	}
	(void)late_error(g->ctx, NULL, timeout_ms,
			 "operation %" PRIu64 " of the group, %s: nothing yet from %s%s%s",
			 g->flat.number, flat_kind_name(g->flat.coll->kind),
			 n > 1 ? "ranks " : "rank ", ranks, n > NAMED ? " and others" : "");
	flat_drop(&g->flat);
	return break_by(g, -SLMPM_ETIMEOUT, first);
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

static COLD int forbidden(struct group *g)
{
	if (g->ctx->handling)
		return context_forbids(g->ctx, CALL);
	if (!g->boards.own)
		return error_set(SLMPM_ESTATE,
				 CALL ": this process has founded the group and is no member");
	if (g->error)
		return error_set(-g->error, "%s", g->detail);
	if (is_broken(g))
		return break_as_is(g);
	return error_set(SLMPM_EBUSY, CALL ": another thread has an operation of the group "
					   "under way");
}

static int collect(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	int passes = passes_of(g->ctx), rc;

	if (UNLIKELY(g->ctx->handling | !g->boards.own | g->error | g->under_way) || is_broken(g))
		return forbidden(g);
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
