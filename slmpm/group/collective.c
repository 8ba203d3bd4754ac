/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations that a call waits for. The first passes are made without the rest of the
 * context, and without a struct collective: most are over by then.
 */
#include <sched.h>
#include <stdlib.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/board/layout.h"
#include "slmpm/context.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/tags.h"
#include "slmpm/link/idle.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define CALL    "slmpm_collective"
#define STOP_MS 10
#define ROUNDS  2   /* of yields, before the rest of the context has its turn */
#define LOOKS   100 /* between two: for some switches of the other processors */

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

/* ---- waiting --------------------------------------------------------------------------------- */

struct waiting {
	struct group *group;
	int result; /* 0, until it has ended */
};

static bool is_over(void *arg)
{
	struct waiting *w = arg;

	if (!w->result && group_is_broken(w->group)) {
		(void)operations_go_on(w->group);
		(void)tags_go_on(w->group);
	}
	return w->result;
}

/* A yield in which another computes takes a turn of the scheduler. Of what is known to be over no
 * clock is read again. */
static bool may_yield(struct context *ctx)
{
	if (!ctx->oversubscribed || ctx->multiple || ctx->wait == SLMPM_WAIT_BLOCK)
		return false;
	if (ctx->computed != ctx->preempted && ctx->preempted > clock_now())
		return false;
	ctx->computed = ctx->preempted;
	return true;
}

/* Those of this machine are waited for as by take_turns: for them no link has to be polled, each of
 * which asks the kernel. */
static void take_local_turns(struct group *g, const struct waiting *w)
{
	struct context *ctx = g->ctx;
	uint32_t turns = 0, most = ROUNDS * (ctx->sharers + 1);

	while (!w->result && turns < most && parts.machine->is_local(g) && may_yield(ctx)) {
		turns = yield_among(ctx) ? turns + 1 : most;
		(void)operations_go_on(g);
	}
}

/* C is under way already; or others are, behind which it waits for its turn; or it has a tag. */
static int wait_for(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	struct waiting w = {.group = g};
	struct collective op = {
		.group = g,
		.coll = c,
		.result = &w.result,
		.deadline = UINT64_MAX, /* this call's own */
		.kept = true,
	};

	if (UNLIKELY(c->tag))
		tags_hold(&op);
	else
		operation_append(&op);
	blocked_begin(g, &op);
	if (g->apart) { /* what it sends first goes before what has come is inspected */
		(void)operations_go_on(g);
		take_local_turns(g, &w);
	}
	if (UNLIKELY(g->ctx->away)) /* another thread, which scans links alone */
		context_wake(g->ctx);
	if (wait_until(g->ctx, is_over, &w, timeout_ms) < 0 && !w.result) {
		if (c->tag)
			tags_late(&op, timeout_ms);
		else
			operations_late(g, timeout_ms);
	}
	while (UNLIKELY(!w.result)) /* what is under way between machines has to end first */
		(void)wait_until(g->ctx, is_over, &w, STOP_MS);
	blocked_end(g);
	if (w.result < 0)
		return error_set(-w.result, "%s", g->detail);
	return w.result;
}

/* ---- the call -------------------------------------------------------------------------------- */

int collective_passes(const struct context *ctx)
{
	if (ctx->oversubscribed || ctx->wait == SLMPM_WAIT_BLOCK || ctx->multiple)
		return 1;
	return (int)ctx->scans;
}

/* More members than processors: those that share this one's post first; then the others are waited
 * for, which do the same meanwhile: they stay in step so. One that yielded would see their posts a
 * round later. As operation_step. */
static INLINE int take_turns(struct group *g)
{
	struct context *ctx = g->ctx;
	uint32_t turns = 0, most = ROUNDS * (ctx->sharers + 1), looks = 0;
	int rc = 0;

	if (!may_yield(ctx))
		return 0;
	ctx->collecting++;
	while (rc == 0 && turns < most) {
		if (!looks)
			boards_run_on(&g->boards, sched_getcpu());
		if (looks++ < LOOKS && !flat_waits_here(&g->flat)) {
			flat_between_looks(&g->flat);
		} else {
			boards_give_way(&g->boards);
			turns = yield_among(ctx) ? turns + 1 : most;
			looks = 0;
		}
		rc = operation_step(g);
	}
	if (!turns && !ctx->sharers)
		ctx->oversubscribed--;
	ctx->collecting--;
	return rc;
}

static COLD int no_time(const struct slmpm_coll *c, const char *call)
{
	return error_set(SLMPM_EAGAIN, "%s: a timeout of 0 is not enough for the others to answer",
			 operation_call(call, c->kind));
}

int operation_await(struct group *g, const struct slmpm_coll *c, const char *call, int timeout_ms)
{
	int rc = 0;

	if (!timeout_ms && g->boards.size > 1)
		rc = no_time(c, call);
	if (rc == 0 && c->tag)
		rc = tags_may_hold(g, c->tag);
	else if (rc == 0 && !g->under_way)
		rc = operation_begin(g, c);
	if (rc < 0)
		return rc;
	g->begun += !c->tag;
	rc = wait_for(g, c, timeout_ms);
	return rc < 0 ? rc : 0;
}

/* What others have said of it: what that runs may begin an operation. */
static void ask_others(const struct group *g)
{
	if (g->apart && !g->under_way)
		(void)progress_ask(g->ctx);
}

/* They have been asked. */
static int collect_asked(struct group *g, const struct slmpm_coll *c, const char *call,
			 int timeout_ms)
{
	struct collective *op;
	int rc = 0;

	if (UNLIKELY(g->ctx->handling))
		rc = context_in_handler(operation_call(call, c->kind));
	if (rc == 0)
		rc = operation_check(g, c, call);
	if (rc == 0 && !c->combine)
		return operation_await(g, c, call, timeout_ms);
	if (rc == 0)
		rc = operation_new(g, c, call, &op);
	if (rc < 0)
		return rc;
	rc = operation_await(g, op->coll, call, timeout_ms);
	free(op);
	return rc;
}

int collective_await(struct group *g, const struct slmpm_coll *c, const char *call, int timeout_ms)
{
	ask_others(g);
	return collect_asked(g, c, call, timeout_ms);
}

/* That of the operation which is begun next, behind those that wait. */
static uint64_t step_number(const struct group *g)
{
	if (!g->under_way)
		return g->boards.posted + 1;
	return (g->apart ? g->boards.posted : g->flat.number) + g->begun - g->done;
}

static void step_begins(struct group *g, enum board_call call)
{
	g->boards.call = call;
	g->boards.step = step_number(g);
}

static int step_ends(struct group *g, int rc)
{
	g->boards.call = BOARD_CALL_NONE;
	return rc;
}

int step_may_begin(struct group *g, uint32_t kind, enum board_call call)
{
	const enum board_call other = g->boards.call; /* another thread's, which may wait yet */
	const uint64_t step = g->boards.step;
	int rc;

	step_begins(g, call);
	rc = operation_may_begin(g, kind, boards_call_name(call));
	g->boards.call = other;
	g->boards.step = step;
	return rc;
}

int step_await(struct group *g, const struct slmpm_coll *c, enum board_call call, int timeout_ms)
{
	ask_others(g);
	step_begins(g, call);
	return step_ends(g, collect_asked(g, c, boards_call_name(call), timeout_ms));
}

/* The call is over, with RC. */
static INLINE int collected(struct context *ctx, int rc)
{
	context_unlock(ctx);
	return rc < 0 ? rc : 0;
}

/* C, which is under way, needs others. A switch costs the processor what it knows of the calls to
 * return to: so this one is called last, and leaves no frame of the library's behind itself. */
static NOINLINE int collect_with_others(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	struct context *ctx = g->ctx;
	int rc = take_turns(g);

	if (UNLIKELY(rc == 0))
		rc = wait_for(g, c, timeout_ms);
	else
		g->done++;
	return collected(ctx, rc);
}

static NOINLINE int collect_in_order(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	struct context *ctx = g->ctx;

	return collected(ctx, collective_await(g, c, NULL, timeout_ms));
}

/* C is under way: RC of its first step. */
static INLINE int collect_on(struct group *g, const struct slmpm_coll *c, int timeout_ms, int rc)
{
	struct context *ctx = g->ctx;
	int passes = collective_passes(ctx);

	g->begun++;
	rc = operation_stepped(g, rc);
	while (rc == 0 && --passes > 0) {
		flat_between_looks(&g->flat);
		rc = operation_step(g);
	}
	if (UNLIKELY(rc == 0))
		return collect_with_others(g, c, timeout_ms);
	g->done++;
	return collected(ctx, rc);
}

/* As the one before, and not done at once. */
static NOINLINE HOT int collect_rest(struct group *g, const struct slmpm_coll *c, int timeout_ms,
				     int rc)
{
	return collect_on(g, c, timeout_ms, rc);
}

/* C is not as the one before. */
static NOINLINE int collect_other(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	int rc = flat_check(c, g->boards.size, g->boards.rank);

	if (UNLIKELY(rc == 0 && !timeout_ms && g->boards.size > 1))
		rc = no_time(c, NULL);
	if (UNLIKELY(rc < 0))
		return collected(g->ctx, operation_refused(c, NULL, rc));
	rc = operation_begin_flat(g, c);
	if (UNLIKELY(rc < 0))
		return collected(g->ctx, rc);
	return collect_on(g, c, timeout_ms, flat_step(&g->flat));
}

/* Apart, so that what is done most needs no registers of the caller's. */
static NOINLINE int collected_locked(struct context *ctx)
{
	return collected(ctx, 0);
}

static INLINE int collect(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	struct context *ctx = g->ctx;
	int rc;

	if (UNLIKELY(g->apart | ctx->handling | !g->boards.own | g->error | g->under_way |
		     g->serves | (c->combine != NULL) | (c->tag != 0) | (c->reserved != 0)) ||
	    group_is_broken(g))
		return collect_in_order(g, c, timeout_ms);
	if (!timeout_ms || !flat_repeats(&g->flat, &g->boards, c))
		return collect_other(g, c, timeout_ms);
	rc = flat_again(&g->flat, &g->boards, c);
	if (UNLIKELY(rc != 1))
		return collect_rest(g, c, timeout_ms, rc);
	g->begun++;
	g->done++;
	return UNLIKELY(ctx->multiple) ? collected_locked(ctx) : 0;
}

/* C is of another size. */
static COLD int collect_full(struct group *g, const struct slmpm_coll *c, int timeout_ms)
{
	struct slmpm_coll full;
	int rc = sized_take(CALL, &full, c, sizeof(full));

	return rc < 0 ? collected(g->ctx, rc) : collect(g, &full, timeout_ms);
}

/* Of a context that several threads use, a C of another size, or a handle of no group. */
static NOINLINE int collect_locked(slmpm_group group, const struct slmpm_coll *c, int timeout_ms)
{
	int rc = 0;
	struct group *g = CONTEXT_LOCK_OBJECT(&group_table, struct group, group.id, &rc);

	if (!g)
		return error_name_call(
			c && c->size == sizeof(*c) ? operation_call(NULL, c->kind) : CALL, rc);
	if (!c || c->size != sizeof(*c))
		return collect_full(g, c, timeout_ms);
	return collect(g, c, timeout_ms);
}

HOT int slmpm_collective(slmpm_group group, const struct slmpm_coll *coll, int timeout_ms)
{
	struct group *g = handle_get_sized(&group_table, group.id, sizeof(struct group));

	if (UNLIKELY(!g || __atomic_load_n(&g->ctx, __ATOMIC_RELAXED)->multiple || !coll ||
		     coll->size != sizeof(*coll)))
		return collect_locked(group, coll, timeout_ms);
	return collect(g, coll, timeout_ms);
}
