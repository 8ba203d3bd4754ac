/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries that wait for a total, and what entries name. A relative WAIT's value is fixed when it is
 * posted: so much beyond what the queue's earlier ones on the same total take. What came before it
 * is reached is not waited for again.
 */
#include "slmpm/workqueue/intake.h"

#include <stdlib.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"

/* ---- what is named ----------------------------------------------------------------------- */

static int not_of(const char *noun)
{
	return error_set(SLMPM_EINVAL, "slmpm_post: the %s belongs to another context", noun);
}

static int hold_counter(struct workqueue *wq, struct work *w)
{
	struct counter *c = handle_get(&counter_table, w->wr.ctr.id);

	if (!c)
		return handle_error(&counter_table, w->wr.ctr.id);
	if (c->ctx != wq->ctx)
		return not_of("counter");
	w->users = &c->users;
	w->total = &c->done;
	w->awaits = &c->awaits;
	return 0;
}

static int hold_queue(struct workqueue *wq, struct work *w)
{
	struct queue *q = handle_get(&queue_table, w->wr.cq.id);

	if (!q)
		return handle_error(&queue_table, w->wr.cq.id);
	if (q->ctx != wq->ctx)
		return not_of("completion queue");
	w->users = &q->users;
	w->total = &q->tail;
	w->awaits = &q->awaits;
	return 0;
}

/* Of a queue that is not managed all that are posted are enabled. */
static const uint64_t *index_of(const struct workqueue *t, uint32_t index)
{
	switch (index) {
	case SLMPM_WQ_POSTED: return &t->posted;
	case SLMPM_WQ_ENABLED: return t->flags & SLMPM_WQ_MANAGED ? &t->enabled : &t->posted;
	case SLMPM_WQ_BEGUN: return &t->begun;
	default: return &t->done;
	}
}

static int hold_workqueue(struct workqueue *wq, struct work *w)
{
	struct workqueue *t = handle_get(&workqueue_table, w->wr.wq.id);

	if (!t)
		return handle_error(&workqueue_table, w->wr.wq.id);
	if (t->ctx != wq->ctx)
		return not_of("work queue");
	if (w->wr.op == SLMPM_OP_ENABLE && !(t->flags & SLMPM_WQ_MANAGED))
		return error_set(SLMPM_EINVAL, "slmpm_post: the work queue to enable is not "
					       "SLMPM_WQ_MANAGED");
	w->users = &t->users;
	w->total = index_of(t, w->wr.index);
	w->awaits = &t->awaits;
	return 0;
}

/* ---- what relative ones have taken --------------------------------------------------------- */

/* That of W's total. Where the total was another owner's before, nothing of that has an entry. */
static struct subject *subject_of(struct workqueue *wq, const struct work *w)
{
	uint64_t owner = w->wr.ctr.id + w->wr.cq.id + w->wr.wq.id; /* two are 0 */
	struct subject *mine = NULL;

	LIST_EACH_ENTRY(struct subject, s, &wq->subjects, node)
		if (s->total == w->total)
			mine = s;
	if (mine && mine->owner == owner)
		return mine;
	if (!mine && !(mine = calloc(1, sizeof(*mine))))
		return NULL;
	if (!mine->total)
		list_append(&wq->subjects, &mine->node);
	mine->total = w->total;
	mine->owner = owner;
	mine->base = *w->total - wait_start(wq, w);
	mine->taken = 0;
	mine->posted = 0;
	return mine;
}

static int take_relative(struct workqueue *wq, struct work *w)
{
	struct subject *s = subject_of(wq, w);

	if (!s)
		return error_set(SLMPM_ENOMEM, "for a work request");
	s->entries++;
	s->posted++;
	w->before = s->taken;
	s->taken = total_plus(s->taken, w->value);
	w->value = s->taken;
	w->subject = s;
	return 0;
}

int work_hold_named(struct workqueue *wq, struct work *w)
{
	int rc;

	w->awaits = NULL;
	if (w->wr.rctr.id && work_names(w->wr.op)) /* a COUNT, of no total here */
		return 0;
	rc = work_names(w->wr.op) && w->wr.wq.id ? hold_workqueue(wq, w) :
	     w->wr.cq.id                         ? hold_queue(wq, w) :
						   hold_counter(wq, w);
	if (rc == 0 && w->wr.op == SLMPM_OP_WAIT && w->wr.flags & SLMPM_RELATIVE)
		rc = take_relative(wq, w);
	if (rc == 0)
		++*w->users;
	else
		w->users = NULL;
	return rc;
}

void work_take_back(struct work *w)
{
	struct subject *s = w->subject;

	work_drop(w);
	if (!s)
		return;
	s->taken = w->before;
	if (--s->posted)
		return;
	list_remove(&s->node);
	free(s);
}

void wait_rearm(struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct subject, s, &wq->subjects, node)
		s->base = total_plus(s->base, s->taken);
}

void wait_forget(struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct subject, s, &wq->subjects, node)
		if (!s->entries) {
			list_remove(&s->node);
			free(s);
		}
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void wait_over(struct await *a)
{
	channel_ready(LIST_ENTRY(a, struct channel, await));
}

static inline void set_deadline(struct channel *ch, int timeout_ms)
{
	ch->deadline = 0;
	if (UNLIKELY(timeout_ms > 0)) {
		ch->deadline = clock_deadline(timeout_ms);
		list_append(&ch->wq->ctx->timed, &ch->timed);
		context_changed(ch->wq->ctx); /* a sleeper does not know of it */
	}
}

bool wait_entry(struct channel *ch, struct work *w, struct endpoint *ep)
{
	struct binding *b = w->wr.op == SLMPM_OP_SEND && ep ? binding_of(ep, w->wr.stream) : NULL;

	if (!b || binding_allows(b))
		return false;
	if (!w->waited)
		set_deadline(ch, w->wr.timeout_ms);
	w->waited = true;
	if (ch->deadline && clock_now() >= ch->deadline) {
		w->refused = true;
		return true;
	}
	ch->await.over = wait_over;
	binding_wait(b, &ch->await);
	return true;
}

void wait_reach(struct channel *ch, struct work *w)
{
	struct workqueue *wq = ch->wq;

	w->state = WORK_BEGUN;
	ch->await.total = w->total;
	ch->await.start = wait_start(wq, w);
	ch->await.value = wait_target(w);
	ch->await.over = wait_over;
	set_deadline(ch, w->wr.timeout_ms);
	wq->begun++;
	await_inspect(&wq->awaits);
}

/* A waits for more entries than can still come. */
static bool is_stranded(const struct workqueue *t, const struct await *a)
{
	uint64_t most = a->total == &t->done  ? t->posted - t->failed :
			a->total == &t->begun ? t->posted - t->flushed :
						UINT64_MAX;

	return t->stopped && a->value > most;
}

static int why_stranded(struct work *w, const struct await *a, uint64_t *len)
{
	const struct workqueue *t = handle_get(&workqueue_table, w->wr.wq.id);
	const struct channel *first = t && is_stranded(t, a) ? channel_first_stopped(t) : NULL;

	if (!first)
		return 0;
	*len = first->failed;
	return first->status;
}

int wait_on(struct channel *ch, struct work *w, uint64_t *len)
{
	struct await *a = &ch->await;
	int status = 0;

	if (w->wr.wq.id)
		status = why_stranded(w, a, len);
	if (!status && ch->deadline && clock_now() >= ch->deadline)
		status = -SLMPM_ETIMEOUT;
	if (status)
		return status;
	list_append(w->awaits, &a->node);
	fetch_ahead(w->next, WORK_TURN); /* it goes as soon as this is over */
	return 0;
}

void wait_strand(struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct await, a, &wq->awaits, node)
		if (is_stranded(wq, a))
			a->over(a);
	intake_strand(wq);
}

uint64_t channel_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH_ENTRY(struct channel, ch, &ctx->timed, timed) {
		if (now >= ch->deadline) { /* told once: it may have to wait for others */
			list_remove(&ch->timed);
			channel_ready(ch);
			next = 0;
		}
		next = ch->deadline < next ? ch->deadline : next;
	}
	return next;
}
