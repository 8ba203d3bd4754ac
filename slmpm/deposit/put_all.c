/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of puts to many. */
#include "slmpm/deposit/deposit.h"

#include <inttypes.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/queue.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/wait.h"

#define CALL     "slmpm_put_all"
#define DEPOSITS "slmpm_group_deposits"
#define FORMS    (SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_FORWARD)
#define WAYS     (SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_DIRECT)
#define FLAGS    (FORMS | WAYS | SLMPM_PUT_ALL_ANYWAY)

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_group(const struct group *g)
{
	int rc = group_is_joined(g, CALL);

	if (rc < 0)
		return rc;
	if (g->error)
		return error_set(-g->error, "%s", g->detail);
	if (g->status)
		return error_set(-g->status, CALL ": the group is broken, by rank %" PRId32,
				 g->culprit);
	return 0;
}

static int check_put(const struct slmpm_put_spec *p)
{
	if (p->flags & ~FLAGS)
		return error_set(SLMPM_EINVAL, CALL ": flags 0x%" PRIx32, p->flags);
	if ((p->flags & FORMS) == FORMS || (p->flags & WAYS) == WAYS)
		return error_set(SLMPM_EINVAL, CALL ": only one of SLMPM_PUT_ALL_%s",
				 (p->flags & FORMS) == FORMS ? "BROADCAST and _FORWARD" :
							       "LINE and _DIRECT");
	if (p->reserved)
		return error_set(SLMPM_EINVAL, CALL ": slmpm_put_spec.reserved is not zero");
	if (!p->space || p->space > SLMPM_GROUP_SPACES)
		return error_set(SLMPM_EINVAL, CALL ": space %" PRIu32 ", they are 1 to %d",
				 p->space, SLMPM_GROUP_SPACES);
	if (!p->from && p->len)
		return error_set(SLMPM_EINVAL,
				 CALL ": slmpm_put_spec.from is NULL, and .len is not 0");
	if (p->len > UINT64_MAX - p->offset)
		return error_set(SLMPM_EINVAL,
				 CALL ": %" PRIu64 " bytes at %" PRIu64 " end beyond 2^64", p->len,
				 p->offset);
	if (p->count < 0 || (!p->rank && p->count))
		return error_set(SLMPM_EINVAL, CALL ": slmpm_put_spec.count is %" PRId32 "%s",
				 p->count, p->count < 0 ? "" : ", and .rank is NULL");
	return 0;
}

/* The targets: how many, or negative. */
static int take_ranks(const struct group *g, const struct slmpm_put_spec *p, struct ranks *to)
{
	const int32_t self = (int32_t)g->boards.rank, size = (int32_t)g->boards.size;
	int32_t n = p->rank ? p->count : size;

	for (int32_t i = 0; i < n; i++) {
		const int32_t r = p->rank ? p->rank[i] : i;

		if (r == self && !p->rank)
			continue;
		if (r < 0 || r >= size || r == self || ranks_have(to, (uint32_t)r))
			return error_set(SLMPM_EINVAL, CALL ": rank %" PRId32 "%s", r,
					 r == self          ? " is this process" :
					 r < 0 || r >= size ? ", there is none" :
							      " twice");
		ranks_add(to, (uint32_t)r);
	}
	return p->rank ? n : n - 1;
}

/* ---- begun ----------------------------------------------------------------------------------- */

static void line_fill(struct line *l, const struct slmpm_put_spec *p, const struct ranks *to,
		      uint32_t n, const struct slmpm_how *how)
{
	l->number = ++l->of->last;
	l->space = p->space;
	l->imm = p->imm;
	l->offset = p->offset;
	l->len = l->got = p->len;
	l->at = (unsigned char *)(uintptr_t)p->from;
	l->ranks = *to;
	l->put.awaited = n;
	l->put.flags = p->flags;
	l->put.anyway = p->flags & SLMPM_PUT_ALL_ANYWAY;
	l->put.deadline = how->timeout_ms > 0 ? clock_deadline(how->timeout_ms) : UINT64_MAX;
	l->put.ready = p->ready;
	l->put.arg = p->arg;
}

/* Of those answers that are to come. */
static int take_answers(struct context *ctx, slmpm_cq cq, uint32_t n, struct queue **queue)
{
	struct counter *none;
	int rc = completion_find(ctx, (slmpm_ctr){0}, cq, &none, queue);

	if (rc == 0 && *queue && !queue_take_rooms(*queue, n))
		rc = error_set(SLMPM_ENOMEM, "for completions");
	if (rc == 0 && *queue)
		(*queue)->in_flight += n;
	return rc;
}

static struct line *put_new(struct group *g, const struct slmpm_put_spec *p,
			    const struct slmpm_how *how, int *rc)
{
	struct ranks to = {{0}};
	struct queue *answers = NULL;
	struct deposits *d = deposits_of(g);
	struct line *l;
	int n = take_ranks(g, p, &to);

	*rc = n < 0 ? n : !d ? error_set(SLMPM_ENOMEM, "for a put") : 0;
	if (*rc == 0)
		*rc = take_answers(g->ctx, p->answers, (uint32_t)n, &answers);
	if (*rc < 0)
		return NULL;
	l = line_new(d, &d->puts, g->boards.rank);
	if (!l) {
		if (answers)
			answers->in_flight -= (uint32_t)n;
		*rc = error_set(SLMPM_ENOMEM, "for a put");
		return NULL;
	}
	line_fill(l, p, &to, (uint32_t)n, how);
	line_order(l);
	l->put.answers = answers;
	return l;
}

/* What has been left to progress is its from now on, in whatever thread. */
static void leave_to_progress(struct context *ctx)
{
	if (ctx->parked)
		engine_come_in(ctx);
	else if (ctx->away)
		context_wake(ctx);
}

/* R, which ends with it; NULL with *RC. */
static struct line *put_start(struct group *g, const struct slmpm_put_spec *p,
			      const struct slmpm_how *how, slmpm_req *req, struct request *r,
			      int *rc)
{
	struct line *l = NULL;

	(void)request_init(r, REQUEST_COLLECTIVE, g->ctx, NULL, 0, NULL, 0);
	r->result.op = SLMPM_OP_PUT_ALL;
	r->result.stream = p->space;
	*rc = completion_blocks(how, req) ? 0 : completion_bind(r, how, req);
	if (*rc == 0)
		l = put_new(g, p, how, rc);
	if (!l)
		return NULL;
	l->put.request = r;
	g->waits++;
	put_next(l->of);
	return l;
}

static bool put_is_over(void *arg)
{
	const struct request *r = arg;

	return r->done;
}

static int put_await(struct request *r)
{
	struct context *ctx = r->ctx;
	int rc;

	if (ctx->away)
		context_wake(ctx);
	if (!r->done)
		(void)wait_until(ctx, put_is_over, r, -1); /* its deadline is its own */
	rc = request_explain(r);
	request_drop(r);
	return rc;
}

static int put_all_begin(struct group *g, const struct slmpm_put_spec *p,
			 const struct slmpm_how *how, slmpm_req *req)
{
	struct context *ctx = g->ctx;
	struct request *r = request_new(ctx);
	struct line *l;
	uint64_t id;
	bool bound;
	int rc = -SLMPM_ENOMEM;

	if (!r)
		return rc;
	id = handle_id(r);
	l = put_start(g, p, how, req, r, &rc);
	bound = l && !completion_blocks(how, req) && !req;
	if (!l) {
		request_drop(r);
		return rc;
	}
	if (completion_blocks(how, req))
		return put_await(r);
	if (!bound)
		req->id = id;
	leave_to_progress(ctx);
	return 0;
}

static int put_check_call(struct group *g, const struct slmpm_how *how, const slmpm_req *req)
{
	int rc = check_group(g);

	if (rc < 0 || !completion_blocks(how, req))
		return rc < 0 ? rc : engine_stand_by(g->ctx);
	if (!how->timeout_ms)
		return error_set(SLMPM_EAGAIN,
				 CALL ": a timeout of 0 is not enough for the others to answer");
	return context_forbids(g->ctx, CALL);
}

/* The application has functions that are run: in its own calls alone, unless it has threads. */
static int will_call_back(slmpm_group group, const char *call)
{
	struct group *g = handle_get(&group_table, group.id);

	if (!g)
		return error_name_call(call, handle_error(&group_table, group.id));
	engine_leave_handlers(g->ctx);
	g->ctx->calls_back = true;
	return 0;
}

int slmpm_put_all(slmpm_group group, const struct slmpm_put_spec *put, const struct slmpm_how *how,
		  slmpm_req *req)
{
	struct slmpm_put_spec full;
	struct slmpm_how all;
	struct group *g = NULL;
	struct context *ctx;
	int rc = sized_take(CALL, &full, put, sizeof(full));

	if (rc == 0)
		rc = how_take(CALL, &all, how, 0);
	if (rc == 0)
		rc = check_put(&full);
	if (rc == 0 && full.ready)
		rc = will_call_back(group, CALL);
	if (rc == 0)
		g = group_lock(group, CALL, &ctx, &rc);
	if (!g)
		return rc;
	rc = put_check_call(g, &all, req);
	if (rc == 0)
		rc = put_all_begin(g, &full, &all, req);
	context_unlock(ctx);
	return rc;
}

/* ---- of targets ------------------------------------------------------------------------------ */

static int set_deposits(struct group *g, const struct slmpm_deposits *how)
{
	struct deposits *d = deposits_of(g);
	struct counter *none;
	struct queue *queue;
	int rc;

	if (!d)
		return error_set(SLMPM_ENOMEM, DEPOSITS ": for those of a group");
	rc = completion_find(g->ctx, (slmpm_ctr){0}, how->cq, &none, &queue);
	if (rc < 0)
		return error_name_call(DEPOSITS, rc);
	if (queue)
		queue->users++;
	if (d->queue)
		d->queue->users--;
	d->queue = queue;
	d->how = *how;
	return 0;
}

int slmpm_group_deposits(slmpm_group group, const struct slmpm_deposits *deposits)
{
	struct slmpm_deposits full = {.size = sizeof(full)};
	struct group *g = NULL;
	struct context *ctx;
	int rc = deposits ? sized_take(DEPOSITS, &full, deposits, sizeof(full)) : 0;

	if (rc == 0 && full.reserved)
		rc = error_set(SLMPM_EINVAL, DEPOSITS ": slmpm_deposits.reserved is not zero");
	if (rc == 0 && (full.prepare || full.done))
		rc = will_call_back(group, DEPOSITS);
	if (rc == 0)
		g = group_lock(group, DEPOSITS, &ctx, &rc);
	if (!g)
		return rc;
	rc = g->boards.own ? set_deposits(g, &full) : founder_refused(DEPOSITS);
	context_unlock(ctx);
	return rc;
}
