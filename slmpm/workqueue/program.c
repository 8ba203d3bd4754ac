/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of several queues, posted together or not at all. All that can refuse one comes first;
 * what is held and taken until then is given back.
 */
#include "slmpm/workqueue/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"

/* The context of the first is locked. */
static struct workqueue *program_queue(const struct context *ctx, slmpm_wq handle, int *rc)
{
	struct workqueue *wq = handle_get(&workqueue_table, handle.id);

	if (!wq)
		*rc = handle_error(&workqueue_table, handle.id);
	else if (wq->ctx != ctx)
		*rc = error_set(SLMPM_EINVAL,
				"its work queue is of another context than the first one's");
	else
		return wq;
	return NULL;
}

static int program_room(const struct workqueue *wq)
{
	if (wq->used + wq->held < wq->depth)
		return 0;
	if (wq->held == wq->depth)
		return error_set(SLMPM_ELIMIT,
				 "the queue has a depth of %u, and the program more entries for it",
				 wq->depth);
	return error_set(SLMPM_EAGAIN, "no room for it now: %u of at most %u entries under way",
			 wq->used, wq->depth);
}

/* One more of P's entries; or nothing is held. */
static int program_hold(struct program *p, struct workqueue *wq, const struct slmpm_wr *given,
			uint32_t size)
{
	struct work *w;
	int rc = program_room(wq);

	if (rc < 0)
		return rc;
	w = workqueue_idle(wq);
	rc = workqueue_fill(wq, w, given, size);
	if (rc < 0)
		return rc;
	if (!work_keep(w) || !queue_take_room(wq->queue)) {
		work_take_back(w);
		free(w->owned);
		w->owned = NULL;
		return error_set(SLMPM_ENOMEM, "for a work request");
	}
	list_remove(&w->node);
	wq->held++;
	p->entries[p->n++] = (struct program_entry){wq, w, wq->posted + wq->held};
	return 0;
}

static void program_give_back(struct program *p)
{
	while (p->n) {
		struct program_entry *e = &p->entries[--p->n];

		work_take_back(e->work);
		free(e->work->owned);
		e->work->owned = NULL;
		e->wq->queue->in_flight--;
		e->wq->held--;
		list_prepend(&e->wq->idle, &e->work->node);
	}
}

static void program_begin(struct program *p)
{
	for (int i = 0; i < p->n; i++) {
		struct program_entry *e = &p->entries[i];
		struct channel *ch = &e->wq->channels[e->work->wr.channel];

		workqueue_number(e->wq, e->work);
		e->wq->held--;
		channel_append(ch, e->work);
	}
	for (int i = 0; i < p->n; i++)
		await_inspect(&p->entries[i].wq->awaits);
}

int program_blame(int rc, const char *whom)
{
	const char *said = slmpm_error_detail(), *const heads[] = {slmpm_strerror(rc),
								   "slmpm_post"};
	char text[256];

	for (int i = 0; i < 2; i++) {
		size_t n = strlen(heads[i]);

		if (!strncmp(said, heads[i], n) && !strncmp(said + n, ": ", 2))
			said += n + 2;
	}
	snprintf(text, sizeof(text), "%s", said);
	return error_set(-rc, "%s: %s", whom, text);
}

static int program_take(struct program *p, struct context *ctx, const slmpm_wq *queues,
			const struct slmpm_wr *wr, int n)
{
	int rc = 0;

	while (rc == 0 && p->n < n) {
		const void *next = (const char *)wr + (size_t)p->n * wr->size;
		struct workqueue *wq = program_queue(ctx, queues[p->n], &rc);

		if (rc == 0)
			rc = program_hold(p, wq, next, wr->size);
	}
	return rc;
}

int program_enter(const slmpm_wq *queues, const struct slmpm_wr *wr, int n, bool closed, int *at)
{
	struct program p = {.entries = calloc((size_t)n, sizeof(*p.entries))};
	struct workqueue *first = NULL;
	struct context *ctx;
	int rc = 0;

	*at = -1;
	if (!p.entries)
		return error_set(SLMPM_ENOMEM, "for a program");
	first = workqueue_lock(queues[0], &rc);
	if (!first) {
		free(p.entries);
		*at = 0;
		return rc;
	}
	ctx = first->ctx;
	rc = program_take(&p, ctx, queues, wr, n);
	*at = p.n;
	if (rc == 0 && closed)
		rc = program_simulate(&p, at);
	if (rc == 0)
		program_begin(&p);
	else
		program_give_back(&p);
	(void)workqueue_advance(ctx);
	if (UNLIKELY(ctx->parked) && workqueue_pending(ctx))
		engine_come_in(ctx);
	context_unlock(ctx);
	free(p.entries);
	return rc;
}

int slmpm_program_post(const slmpm_wq *queues, const struct slmpm_wr *wr, int n)
{
	char whom[64];
	int at, rc;

	if (n <= 0)
		return error_set(SLMPM_EINVAL, "slmpm_program_post: %d work requests, at least 1",
				 n);
	if (!queues || !wr)
		return error_set(SLMPM_EINVAL, "slmpm_program_post: the %s are NULL",
				 queues ? "work requests" : "queues");
	rc = program_enter(queues, wr, n, true, &at);
	if (rc == 0 || at < 0)
		return rc;
	snprintf(whom, sizeof(whom), "slmpm_program_post: entry %d", at);
	return program_blame(rc, whom);
}
