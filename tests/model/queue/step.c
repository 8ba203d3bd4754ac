/* SPDX-License-Identifier: BSD-3-Clause */
/* What can happen next in a scene, and doing it (step.h). */
#include "tests/model/step.h"

#include <stdio.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/stats.h"
#include "slmpm/workqueue/workqueue.h"
#include "tests/model/queue/heap.h"
#include "tests/model/queue/scene.h"

#define SAVED_MAX   (1u << 20)
#define COMPLETIONS 16

const struct scene *scene;
struct side sides[SIDES];

static const char *fault;
static bool tracing;

static const char *const names[SIDES] = {"left", "right"};

void scene_require(bool right, const char *wrong)
{
	if (!right && !fault)
		fault = wrong;
}

/* ---- the state ------------------------------------------------------------------------------ */

static unsigned char *keep(unsigned char *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	return to + n;
}

static const unsigned char *fetch(void *to, const unsigned char *from, size_t n)
{
	memcpy(to, from, n);
	return from + n;
}

size_t step_size(const struct search *s)
{
	(void)s;
	return sizeof(cables) + sizeof(sides) + scene->play->size + heap_size();
}

void step_save(const struct search *s, void *to)
{
	unsigned char *at = to;

	(void)s;
	at = keep(at, &cables, sizeof(cables));
	at = keep(at, sides, sizeof(sides));
	at = keep(at, scene->play->state, scene->play->size);
	(void)heap_save(at);
}

void step_restore(const struct search *s, const void *from, size_t size)
{
	const unsigned char *at = from;

	(void)s;
	(void)size;
	at = fetch(&cables, at, sizeof(cables));
	at = fetch(sides, at, sizeof(sides));
	at = fetch(scene->play->state, at, scene->play->size);
	(void)heap_restore(at);
}

/* Entries that are free again lie in order, and as new; what they were is no state. */
static void forget_ended(struct workqueue *wq)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < wq->fresh; i++) {
		struct work *w = &wq->work[i];

		if (w->state != WORK_IDLE) {
			used = i + 1;
			continue;
		}
		list_remove(&w->node);
		memset(w, 0, sizeof(*w));
	}
	wq->fresh = used;
	for (uint32_t i = 0; i < used; i++)
		if (wq->work[i].state == WORK_IDLE)
			list_append(&wq->idle, &wq->work[i].node);
}

/* Requests that have ended are dropped now, and not when the next one begins; none is kept. */
static void forget_spent(struct context *ctx)
{
	LIST_EACH(at, &ctx->spent) {
		list_remove(at);
		request_drop(LIST_ENTRY(at, struct request, node));
	}
	requests_release(ctx);
}

/* All are judged. */
static void forget_completions(const struct side *s)
{
	struct queue *q = handle_get(&queue_table, s->cq.id);

	memset(q->ring, 0, q->size * sizeof(*q->ring));
}

/* Counts that decide nothing: states that differ in them alone are one. */
static void forget_counts(struct side *s)
{
	forget_spent(s->ctx);
	forget_completions(s);
	LIST_EACH_ENTRY(struct workqueue, wq, &s->ctx->work_queues, node)
		forget_ended(wq);
	s->ctx->idle = 0;
	s->ctx->news = s->ctx->finished = s->ctx->laboured = false;
	memset(&s->ctx->monitor, 0, sizeof(s->ctx->monitor));
	memset(s->ep->stats, 0, sizeof(*s->ep->stats));
	memset(&s->ep->rooms->figures->modes, 0, sizeof(s->ep->rooms->figures->modes));
	s->ep->rooms->figures->arrived = s->ep->rooms->figures->received = 0;
	if (s->ep->link.next == s->ep->link.end) {
		memset(s->ep->link.arrivals, 0, sizeof(s->ep->link.arrivals));
		s->ep->link.next = s->ep->link.end = s->ep->link.arrivals;
	}
	memset(&s->ep->link.vain, 0, sizeof(s->ep->link.vain));
	memset(s->ep->link.watermark, 0, sizeof(*s->ep->link.watermark));
	s->ep->link.run = s->ep->link.turn = 0;
	s->ep->link.changes = 0;
}

uint64_t step_hash(const struct search *s)
{
	uint64_t hash = heap_hash_bytes(1, &cables, sizeof(cables));

	(void)s;
	heap_enter();
	for (int i = 0; i < SIDES; i++)
		forget_counts(&sides[i]);
	heap_leave();
	heap_sort_requests();
	hash = heap_hash_bytes(hash, sides, sizeof(sides));
	hash = heap_hash_bytes(hash, scene->play->state, scene->play->size);
	return heap_hash(hash);
}

/* ---- progress ------------------------------------------------------------------------------- */

static bool is_awake(int side)
{
	const struct side *s = &sides[side];

	return !s->dead && (!s->ctx->sleeping || cable_waits(side) || cable_rings(side) ||
			    (cable_is_over(side) && s->ep->state == SLMPM_PEER_UP));
}

/* One that would sleep looks once more: what stayed in the ring for a moment is taken, too. */
static bool finds_work(struct context *ctx)
{
	bool found = progress_context(ctx);

	if (found)
		return true;
	ctx->armed = true;
	found = progress_context(ctx);
	ctx->armed = false;
	return found;
}

/* A pass of the library's thread, so many packets being there; it sleeps when it finds nothing. */
static void make_progress(int side, unsigned packets)
{
	struct context *ctx = sides[side].ctx;

	cable_show(side, packets);
	cable_hush(side);
	ctx->sleeping = false;
	heap_enter();
	/* In this order; what it finds to be due is done by the next pass. */
	ctx->sleeping = !finds_work(ctx) && channel_deadlines(ctx, clock_now()) &&
			claim_deadlines(ctx, clock_now()) && !cable_waits(side);
	ctx->ready_since = false;
	heap_leave();
}

/* At the end of a call: the thread that sleeps is woken for what the call leaves to it. */
static void rouse(struct context *ctx)
{
	heap_enter();
	if (context_leaves_work(ctx) && ctx->sleeping)
		context_wake(ctx);
	heap_leave();
}

void scene_rest(void)
{
	while (is_awake(LEFT) || is_awake(RIGHT))
		for (int i = 0; i < SIDES; i++)
			if (is_awake(i))
				make_progress(i, cable_waits(i));
}

/* What comes behind a count may begin as soon as that is out, and at the latest with its answer. */
static bool awaits_answer(const struct channel *ch)
{
	return ch->kind == WORK_COUNTED && !list_empty(&ch->begun);
}

/* Would anything go on, were it but tried? */
static bool has_work(const struct side *s)
{
	int n = 0;

	heap_enter();
	LIST_EACH_ENTRY(struct workqueue, wq, &s->ctx->work_queues, node)
		for (uint32_t i = 0; i < wq->channels_used; i++)
			n += awaits_answer(&wq->channels[i]) ? 0 :
							       channel_advance(&wq->channels[i]);
	if (s->ep->state == SLMPM_PEER_UP)
		n += link_push(s->ep);
	heap_leave();
	return n;
}

static bool sleeps(int side)
{
	return !sides[side].dead && !is_awake(side);
}

const char *scene_sleep(const struct search *search)
{
	static unsigned char saved[SAVED_MAX];
	size_t size = step_size(search);
	bool wrong;

	if (!sleeps(LEFT) && !sleeps(RIGHT))
		return NULL;
	if (size > sizeof(saved))
		return "the checker: a state is too large";
	step_save(search, saved);
	wrong = (sleeps(LEFT) && has_work(&sides[LEFT])) ||
		(sleeps(RIGHT) && has_work(&sides[RIGHT]));
	step_restore(search, saved, size);
	return wrong ? "asleep, and there is work" : NULL;
}

static void judge(int side)
{
	struct side *s = &sides[side];
	const struct queue *q = handle_get(&queue_table, s->cq.id);

	for (; q && s->judged != q->tail; s->judged++)
		scene->play->ended(side, &q->ring[s->judged & (q->size - 1)]);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static const char *letters(int side)
{
	const char *at = sides[side].dead ? NULL : scene->scripts[side][sides[side].step];

	return at ? at : "";
}

static unsigned passes(int side)
{
	return is_awake(side) ? 1 + (cable_waits(side) > 1) : 0;
}

static bool may_die(int side)
{
	return scene->dies[side] && !sides[side].dead;
}

static unsigned ways_of(int side)
{
	return (unsigned)strlen(letters(side)) + passes(side);
}

unsigned step_ways(const struct search *s)
{
	(void)s;
	return ways_of(LEFT) + ways_of(RIGHT) + may_die(LEFT) + may_die(RIGHT);
}

static void die(int side)
{
	sides[side].dead = true;
	cable_cut(side);
	if (tracing)
		printf("    %-6s is killed\n", names[side]);
}

/* Who has slept until a deadline wakes. */
static void let_time_pass(void)
{
	cables.now += 1000000000;
	for (int i = 0; i < SIDES; i++)
		if (!list_empty(&sides[i].ctx->timed) || !list_empty(&sides[i].ctx->unused))
			sides[i].ctx->sleeping = false;
}

static void call(int side, char letter)
{
	if (tracing)
		printf("    %-6s calls %c\n", names[side], letter);
	sides[side].step++;
	if (letter == '~')
		let_time_pass();
	else
		scene->play->act(side, letter);
	rouse(sides[side].ctx);
}

static void pass(int side, unsigned way)
{
	unsigned n = way ? 1 : cable_waits(side);

	if (tracing)
		printf("    %-6s progress, %u packets\n", names[side], n);
	make_progress(side, n);
}

static void take_way(int side, unsigned way)
{
	unsigned calls = (unsigned)strlen(letters(side));

	if (way < calls)
		call(side, letters(side)[way]);
	else
		pass(side, way - calls);
}

void step_take(const struct search *s, unsigned way)
{
	unsigned left = ways_of(LEFT), both = left + ways_of(RIGHT);

	if (way < left)
		take_way(LEFT, way);
	else if (way < both)
		take_way(RIGHT, way - left);
	else
		die(way == both && may_die(LEFT) ? LEFT : RIGHT);
	(void)s;
	for (int i = 0; i < SIDES; i++)
		judge(i);
	scene->play->step_over();
	if (!ways_of(LEFT) && !ways_of(RIGHT))
		scene->play->settled();
	scene_require(!cables.fault, cables.fault);
}

void step_show(const struct search *s, unsigned way)
{
	tracing = true;
	step_take(s, way);
	tracing = false;
}

static void open_side(int side)
{
	struct side *s = &sides[side];
	struct queue *q;

	s->handle.id = handle_id(s->ctx);
	s->peer.id = handle_id(s->ep);
	scene_require(slmpm_cq_create(s->handle, &s->cq) == 0, "the checker: no completion queue");
	/* Its memory is there at once. */
	q = handle_get(&queue_table, s->cq.id);
	scene_require(queue_take_rooms(q, COMPLETIONS), "the checker: no memory");
	q->in_flight -= COMPLETIONS;
}

void step_start(const struct search *s)
{
	struct context *ctx[SIDES];
	struct endpoint *ep[SIDES];

	(void)s;
	fault = NULL;
	heap_reset();
	memset(sides, 0, sizeof(sides));
	memset(scene->play->state, 0, scene->play->size);
	heap_enter();
	cable_set_up(ctx, ep, scene->room);
	for (int i = 0; i < SIDES; i++) {
		sides[i].ctx = ctx[i];
		sides[i].ep = ep[i];
		open_side(i);
	}
	scene->play->set_up();
	heap_leave();
	scene_rest();
}

const char *step_fault(void)
{
	return fault;
}
