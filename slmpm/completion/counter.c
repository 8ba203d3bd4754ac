/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of completions: made, waited for, looked at, and ended. */
#include "slmpm/completion/queue.h"

#include "slmpm/completion/completion.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/sized.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

struct handle_table counter_table = HANDLE_TABLE_FROM("counter", struct counter, node);

int slmpm_ctr_create(slmpm_ctx handle, slmpm_ctr *out)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);
	struct counter *c;

	if (!ctx)
		return rc;
	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_ctr_create: no place for the handle");
	c = handle_new(&counter_table);
	if (!c)
		return error_set(SLMPM_ENOMEM, "for a counter");
	context_lock(ctx);
	context_own(&c->ctx, ctx);
	list_init(&c->in_flight);
	list_init(&c->awaits);
	list_append(&ctx->counters, &c->node);
	out->id = handle_id(c);
	context_unlock(ctx);
	return 0;
}

void counter_set(struct counter *c, uint64_t value)
{
	c->posted += value - c->done;
	c->done = value;
	await_inspect(&c->awaits);
}

uint64_t counter_operate(struct counter *c, int op, uint64_t operand, uint64_t compare)
{
	uint64_t old = c->done;

	if (op == SLMPM_FETCH_ADD)
		counter_set(c, old + operand);
	else if (op == SLMPM_SWAP || old == compare)
		counter_set(c, operand);
	c->ctx->news = true;
	context_told(c->ctx);
	return old;
}

void counter_free(struct counter *c)
{
	list_remove(&c->node);
	handle_free(&counter_table, c);
}

struct counting {
	slmpm_ctr ctr;
	struct counter *counter; /* NULL: another thread has destroyed it */
	struct context *ctx;
	uint64_t value, posted;
	uint64_t ticket; /* of the last one that was posted by then */
	int ended;       /* nothing can come any more */
};

static bool has_counted(const struct counting *w)
{
	const struct counter *c = w->counter;
	const struct notified *oldest = LIST_ENTRY(c->in_flight.next, struct notified, node);

	if (w->value != SLMPM_ALL)
		return c->done >= w->value;
	return list_empty(&c->in_flight) || oldest->ticket > w->ticket;
}

static bool count_reached(void *arg)
{
	struct counting *w = arg;

	if (handle_get(&counter_table, w->ctr.id) != w->counter)
		w->counter = NULL;
	if (!w->counter || has_counted(w))
		return true;
	if (list_empty(&w->counter->in_flight))
		w->ended = completion_source_ended(w->ctx);
	return w->ended < 0;
}

/* The status of the first that failed, which is then forgotten. */
static int take_status(struct counter *c)
{
	int status = c->status;

	c->status = 0;
	return status ? error_set(-status, "an operation that the counter counts, the first that "
					   "failed") :
			0;
}

int slmpm_ctr_wait(slmpm_ctr ctr, uint64_t value, int timeout_ms)
{
	struct counting w = {.ctr = ctr, .value = value};
	int rc = 0;

	w.counter = context_lock_object(&counter_table, ctr.id, &rc);
	if (!w.counter)
		return rc;
	w.ctx = w.counter->ctx;
	w.posted = w.counter->posted;
	w.ticket = w.counter->tickets;
	rc = wait_until(w.ctx, count_reached, &w, timeout_ms);
	if (!w.counter)
		rc = handle_error(&counter_table, ctr.id);
	else if (has_counted(&w))
		rc = take_status(w.counter);
	else if (w.ended < 0)
		rc = completion_source_ended(w.ctx);
	else if (!context_forbids(w.ctx, "slmpm_ctr_wait"))
		rc = late_error(w.ctx, NULL, timeout_ms,
				"slmpm_ctr_wait: %llu of %llu operations are done",
				(unsigned long long)w.counter->done,
				(unsigned long long)(value == SLMPM_ALL ? w.posted : value));
	context_unlock(w.ctx);
	return rc;
}

int slmpm_ctr_query(slmpm_ctr ctr, struct slmpm_ctr_info *info)
{
	struct slmpm_ctr_info now;
	int rc = 0;
	struct counter *c = context_lock_object(&counter_table, ctr.id, &rc);

	if (!c)
		return rc;
	rc = sized_check_own("slmpm_ctr_query", info, sizeof(now));
	if (rc == 0) {
		now = (struct slmpm_ctr_info){
			.status = c->status,
			.posted = c->posted,
			.done = c->done,
			.failed = c->failed,
		};
		sized_give_own(info, &now, sizeof(now));
	}
	context_unlock(c->ctx);
	return rc;
}

int slmpm_ctr_destroy(slmpm_ctr ctr)
{
	int rc = 0;
	struct counter *c = context_lock_object(&counter_table, ctr.id, &rc);
	struct context *ctx;

	if (!c)
		return rc;
	ctx = c->ctx;
	if (!list_empty(&c->in_flight) || c->users)
		rc = error_set(SLMPM_EBUSY, "slmpm_ctr_destroy: %s",
			       c->users ? "a region or a work queue names it" :
					  "operations are under way");
	else {
		if (c->region)
			parts.uncounted(c);
		counter_free(c);
	}
	context_changed(ctx); /* who waits for it learns that it is gone */
	context_unlock(ctx);
	return rc;
}
