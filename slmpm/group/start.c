/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective operations that are started, and end by a request, a counter or a queue. */
#include <stdlib.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/engine/engine.h"
#include "slmpm/group/tags.h"
#include "slmpm/link/wait.h"

#define CALL "slmpm_collective_start"

/* ---- starting -------------------------------------------------------------------------------- */

/* OP begins, or waits for its turn, or for the others. */
static int submit(struct collective *op, int timeout_ms)
{
	struct group *g = op->group;
	uint32_t tag = op->coll->tag;
	int rc = 0;

	if (tag)
		rc = tags_may_hold(g, tag);
	else if (!g->under_way)
		rc = operation_begin(g, op->coll);
	if (rc < 0)
		return rc;
	op->deadline = timeout_ms > 0 ? clock_deadline(timeout_ms) : UINT64_MAX;
	op->timeout_ms = timeout_ms;
	if (tag) {
		tags_hold(op);
		return 0;
	}
	g->begun++;
	operation_append(op);
	(void)operations_go_on(g);
	return 0;
}

void operation_leave(struct context *ctx, bool wakes)
{
	if (ctx->parked)
		engine_come_in(ctx);
	/* Another thread is away: it scans links alone, or knows of no such deadline, or of nothing
	 * that it is to inspect unrung. */
	else if (ctx->away && (!ctx->sleeping || wakes))
		context_wake(ctx);
	/* As does one that waits on the descriptor. */
	else if (ctx->armed && !ctx->sleeping && ctx->collecting)
		(void)alarm_set(ctx, operations_deadlines(ctx, clock_now()) | 1); /* 0: at once */
}

/* One that sleeps has been announced to the others by now (operations_go_on), and is woken by them:
 * but not for what is due before it wakes by itself. */
static bool sleeper_is_late(struct group *g)
{
	bool passed = false;

	return group_next_deadline(g, clock_now(), &passed) < g->ctx->wakes_at || passed;
}

static struct request *request_for(const struct collective *op)
{
	struct context *ctx = op->group->ctx;
	struct request *r = request_new(ctx);

	if (!r)
		return NULL;
	(void)request_init(r, REQUEST_COLLECTIVE, ctx, NULL, 0, NULL, 0);
	r->result.stream = op->coll->kind;
	return r;
}

/* OP ends by a request, of which REQ becomes the handle. */
static int submit_requested(struct collective *op, int timeout_ms, slmpm_req *req)
{
	struct request *r = request_for(op);
	uint64_t id;
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	id = handle_id(r);
	op->request = r;
	rc = submit(op, timeout_ms);
	if (rc < 0) {
		op->request = NULL;
		request_drop(r);
		return rc;
	}
	req->id = id;
	return 0;
}

static int submit_notified(struct collective *op, const struct slmpm_how *how, const slmpm_req *req)
{
	int rc = completion_open(&op->notified, op->group->ctx, how, req);

	if (rc == 0)
		rc = submit(op, how->timeout_ms);
	if (rc < 0)
		completion_undo(&op->notified);
	return rc;
}

int operation_start(struct collective *op, const struct slmpm_how *how, slmpm_req *req)
{
	struct group *g = op->group;
	int rc = engine_stand_by(g->ctx);

	if (rc < 0)
		return rc;
	rc = completion_wanted(how) ? submit_notified(op, how, req) :
				      submit_requested(op, how->timeout_ms, req);
	if (rc < 0)
		return rc;
	if (g->under_way || tags_wait(g))
		operation_leave(g->ctx, g->ctx->sleeping && sleeper_is_late(g));
	return 0;
}

static int start_once(struct group *g, const struct slmpm_coll *c, const struct slmpm_how *how,
		      slmpm_req *req)
{
	struct collective *op = NULL;
	int rc = operation_check(g, c, CALL);

	if (rc == 0)
		rc = operation_new(g, c, CALL, &op);
	if (rc == 0)
		rc = operation_start(op, how, req);
	if (rc < 0)
		free(op);
	return rc;
}

int slmpm_collective_start(slmpm_group group, const struct slmpm_coll *coll,
			   const struct slmpm_how *how, slmpm_req *req)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);
	struct slmpm_coll full;
	struct slmpm_how all;

	if (!g)
		return rc;
	if (UNLIKELY(!coll || coll->size != sizeof(*coll))) {
		rc = sized_take(CALL, &full, coll, sizeof(full));
		coll = &full;
	}
	if (rc == 0)
		rc = how_take(CALL, &all, how, 0);
	if (rc == 0 && completion_blocks(&all, req))
		rc = collective_await(g, coll, CALL, all.timeout_ms);
	else if (rc == 0)
		rc = start_once(g, coll, &all, req);
	context_unlock(ctx);
	return rc;
}
