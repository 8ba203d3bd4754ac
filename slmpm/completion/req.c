/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller's request, its slmpm_req: looked at, waited for, taken back. */
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/request.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/link/idle.h"
#include "slmpm/completion/completion.h"

static struct request *request_get(const slmpm_req *req)
{
	struct request *r = handle_get(&request_table, req->id);

	return r && !r->bound ? r : NULL;
}

static bool may_conclude(const struct request *r)
{
	return r->done && !r->leaving;
}

/* Reports a finished request and frees it. */
static void req_conclude(struct request *r, slmpm_req *req, struct slmpm_done *done)
{
	(void)request_explain(r);
	if (done)
		completion_copy(done, &r->result);
	request_drop(r);
	req->id = 0;
}

int slmpm_test(slmpm_req *req, struct slmpm_done *done)
{
	struct request *r;
	struct context *ctx;
	int rc;

	if (!req)
		return error_set(SLMPM_EINVAL, "slmpm_test: no request");
	r = request_get(req);
	if (!r)
		return handle_error(&request_table, req->id);
	rc = 0;
	ctx = r->ctx;
	context_lock(ctx);
	if (request_get(req) != r) /* another thread was first */
		rc = handle_error(&request_table, req->id);
	else if (!r->done)
		(void)progress_context(ctx);
	if (rc == 0 && may_conclude(r)) {
		req_conclude(r, req, done);
		rc = 1;
	} else if (rc == 0) {
		yield_poll(ctx);
	}
	context_unlock(ctx);
	return rc;
}

struct some {
	slmpm_req *req;
	int n, index;
};

static bool any_done(void *arg)
{
	struct some *s = arg;

	for (int i = 0; i < s->n; i++) {
		struct request *r = s->req[i].id ? request_get(&s->req[i]) : NULL;

		if (r && may_conclude(r)) {
			s->index = i;
			return true;
		}
		if (!r && s->req[i].id) /* another thread was first */
			return true;
	}
	return false;
}

/* None of S has ended: of several the first says for whom it waits. */
static COLD int wait_is_late(struct context *ctx, const struct some *s, int timeout_ms)
{
	const struct request *first = NULL;
	char what[96] = "slmpm_wait: still waiting for";
	int n = 0;

	for (int i = 0; i < s->n; i++) {
		const struct request *r = s->req[i].id ? request_get(&s->req[i]) : NULL;

		first = first ? first : r;
		n += r != NULL;
	}
	if (n > 1)
		(void)snprintf(what, sizeof(what),
			       "slmpm_wait: none of %d requests has ended, the first waits for", n);
	if (first && request_ops[first->kind].late)
		return request_ops[first->kind].late(first, timeout_ms, what);
	return late_from(ctx, first ? first->ep : NULL, timeout_ms, what);
}

int slmpm_wait(slmpm_req *req, int n, struct slmpm_done *done, int timeout_ms)
{
	struct some s = {req, n, -1};
	struct context *ctx = NULL;
	struct request *r;
	int rc;

	if (!req || n <= 0)
		return error_set(SLMPM_EINVAL, "slmpm_wait: no requests");
	for (int i = 0; i < n; i++) {
		if (!req[i].id)
			continue;
		r = request_get(&req[i]);
		if (!r)
			return handle_error(&request_table, req[i].id);
		if (ctx && r->ctx != ctx)
			return error_set(SLMPM_EINVAL, "slmpm_wait: requests of two contexts");
		ctx = r->ctx;
	}
	if (!ctx)
		return error_set(SLMPM_EINVAL, "slmpm_wait: every request is zero");
	context_lock(ctx);
	rc = wait_until(ctx, any_done, &s, timeout_ms);
	if (s.index >= 0) {
		rc = s.index;
		req_conclude(request_get(&req[s.index]), &req[s.index], done);
	} else if (rc == 0) {
		rc = error_set(SLMPM_EHANDLE, "slmpm_wait: another thread has one of the requests");
	} else if (!context_forbids(ctx, "slmpm_wait")) {
		rc = wait_is_late(ctx, &s, timeout_ms);
	}
	context_unlock(ctx);
	return rc;
}

/* Taking it back may take in what the peer has said, and so run handlers. */
static bool req_leave(struct request *r)
{
	bool left;

	if (r->leaving) /* by the call in which this handler runs */
		return false;
	r->leaving = true;
	left = request_take_back(r);
	r->leaving = false;
	return left;
}

int request_cancel(struct request *r)
{
	if (r->kind == REQUEST_COLLECTIVE && !r->done)
		return error_set(SLMPM_EBUSY, "a collective operation is not taken back: the other "
					      "members do it, too");
	if (r->kind == REQUEST_OVERLAY && !r->done)
		return error_set(SLMPM_EBUSY, "what is sent over a network is not taken back");
	if (r->done || (request_is_one_sided(r) && r->numbered) || !req_leave(r))
		return error_set(SLMPM_EBUSY, "the request has gone too far");
	request_finish(r, -SLMPM_ECANCELED);
	return 0;
}

int slmpm_cancel(slmpm_req req)
{
	struct request *r = request_get(&req);
	struct context *ctx;
	int rc = 0;

	if (!r)
		return handle_error(&request_table, req.id);
	ctx = r->ctx;
	context_lock(ctx);
	if (request_get(&req) != r)
		rc = handle_error(&request_table, req.id);
	else
		rc = request_cancel(r);
	context_unlock(ctx);
	return rc;
}
