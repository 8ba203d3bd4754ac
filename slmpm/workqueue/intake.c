/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed receive queues that a CALC or a PIPE takes messages of. Each message is an entry of the
 * queue's, with a number of its own: it begins when it is enabled and all before it have begun, and
 * ends when its message has come. Where the message goes is its taker's.
 */
#include "slmpm/workqueue/intake.h"

#include "slmpm/base/error.h"

static struct workqueue *queue_of(const struct intake *s)
{
	return handle_get(&workqueue_table, s->queue.id);
}

int intake_check(struct workqueue *wq, const char *what)
{
	if (!(wq->flags & SLMPM_WQ_RECEIVE))
		return error_set(SLMPM_EINVAL, "slmpm_post: %s: .wq is no receive queue", what);
	if (!(wq->flags & SLMPM_WQ_MANAGED))
		return 0;
	if (wq->flags & SLMPM_WQ_KEPT)
		return error_set(
			SLMPM_EINVAL,
			"slmpm_post: %s: .wq is SLMPM_WQ_KEPT, and numbers its own entries", what);
	wq->receive.is_source = true;
	return 1;
}

int intake_check_stream(const struct workqueue *wq, slmpm_peer peer, uint32_t stream,
			const char *what)
{
	const struct workqueue *t = receive_managed(wq->ctx, peer, stream);

	return t ? error_set(SLMPM_EINVAL,
			     "slmpm_post: %s would take messages of stream %u, which ends in a "
			     "managed receive queue: name that by .wq",
			     what, t->receive.stream) :
		   0;
}

static uint64_t count_list(const struct list *list, uint64_t number)
{
	uint64_t n = 0;

	LIST_EACH_ENTRY(struct intake, s, list, node)
		n += !number || s->number == number;
	return n;
}

uint64_t intake_count(const struct workqueue *wq, uint64_t number)
{
	return count_list(&wq->receive.takers, number) + count_list(&wq->receive.taking, number);
}

void intake_init(struct intake *s, slmpm_wq queue)
{
	*s = (struct intake){.queue = queue};
	list_init(&s->node);
	list_init(&s->await.node);
}

static void intake_over(struct await *a)
{
	channel_ready(LIST_ENTRY(a, struct intake, await)->ch);
}

static void intake_wait(struct workqueue *wq, struct intake *s, const uint64_t *total,
			uint64_t value)
{
	s->await.total = total;
	s->await.value = value;
	s->await.over = intake_over;
	list_append(&wq->awaits, &s->await.node);
}

static void intake_number(struct workqueue *wq, struct intake *s)
{
	s->number = ++wq->posted;
	list_append(&wq->receive.takers, &s->node);
	await_inspect(&wq->awaits);
}

/* All before S have begun, or never will. The totals do not say so: one behind S may have been
 * flushed. */
static bool is_first(const struct workqueue *wq, const struct intake *s)
{
	const struct work *next = wq->channels_used ? wq->channels[0].at : NULL;

	return wq->receive.takers.next == &s->node && (!next || work_number(wq, next) > s->number);
}

/* It is enabled, and the first: else it waits. */
static bool its_turn(struct workqueue *wq, struct intake *s)
{
	list_remove(&s->await.node);
	if (wq->enabled < s->number)
		intake_wait(wq, s, &wq->enabled, s->number);
	else if (!is_first(wq, s))
		intake_wait(wq, s, &wq->begun, wq->begun + 1);
	else
		return true;
	return false;
}

/* Its peer was closed, and what it had sent has gone with it. */
static bool has_no_source(const struct workqueue *wq)
{
	return !work_is_any(wq->receive.peer) && !endpoint_of(wq->receive.peer);
}

int intake_begin(struct intake *s, struct channel *ch)
{
	struct workqueue *wq = s->queue.id ? queue_of(s) : NULL;

	if (!s->queue.id)
		return 1;
	if (!wq)
		return -SLMPM_EHANDLE;
	s->ch = ch;
	if (wq->stopped)
		return channel_first_stopped(wq)->status;
	if (!s->number)
		intake_number(wq, s);
	if (!its_turn(wq, s))
		return has_no_source(wq) ? -SLMPM_ECLOSED : 0;
	s->begun = true;
	s->request = NULL;
	list_remove(&s->node);
	list_append(&wq->receive.taking, &s->node);
	wq->begun++;
	await_inspect(&wq->awaits);
	channels_ready(wq);
	return 1;
}

void intake_end(struct intake *s, int status, slmpm_peer peer)
{
	struct workqueue *wq = s->number ? queue_of(s) : NULL;

	if (!wq)
		return;
	list_remove(&s->node);
	list_remove(&s->await.node);
	if (status < 0)
		wq->failed++;
	else
		wq->done++;
	if (!s->begun) {
		wq->flushed++;
		intake_strand(wq); /* the next may be the first now */
	}
	receive_ended(wq, s->number, status, peer);
	s->number = 0;
	s->begun = false;
	s->request = NULL;
	await_inspect(&wq->awaits);
	if (UNLIKELY(wq->stopped))
		wait_strand(wq);
	channels_ready(wq);
	context_changed(wq->ctx);
}
