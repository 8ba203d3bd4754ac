/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether all of a program can run, before it is posted. Nothing else moves its totals, and totals
 * only grow, so what can run once still can whatever runs before it: going through it in any one
 * order finds all that ever runs.
 *
 * A lane is a channel: what is pending there, then the program's. A node, an entry, has up to two
 * gates: its number is enabled, and the total that a WAIT waits for is there. Gates are sorted by
 * how much their total must grow; each is passed once, so that the cost is that of sorting.
 */
#include "slmpm/workqueue/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "slmpm/base/error.h"

#define GROWTH_MAX (UINT64_C(1) << 32) /* of one entry: sums stay far from where totals wrap */
#define NONE       UINT32_MAX

struct gate {
	const uint64_t *total;
	uint64_t gap;  /* by which it has to grow */
	uint32_t node; /* that waits for it ... */
	bool enables;  /* ... as its number is to be enabled */
};

struct growth { /* of a total that somebody waits for */
	const uint64_t *total;
	uint64_t by;
	uint32_t next, end;      /* of its gates, those not yet passed */
	bool relative, absolute; /* ENABLEs of both kinds */
};

struct lane {
	struct channel *ch;
	uint32_t at, last; /* nodes, or NONE */
	bool ready;        /* on the stack */
};

struct node {
	struct work *work;
	struct workqueue *wq;
	uint64_t number;
	uint32_t lane, next;
	bool blocked; /* it will fail */
	bool enabled, begun, met, over;
};

struct simulation {
	const struct program *program;
	struct list queues; /* by workqueue.involved */
	struct node *nodes; /* the program's are the last */
	struct lane *lanes;
	struct gate *gates;
	struct growth *growths;
	uint32_t *stack; /* lanes */
	uint32_t node_count, lane_count, gate_count, growth_count, stacked;
};

/* ---- what is involved ----------------------------------------------------------------------- */

static void involve(struct simulation *s, struct workqueue *wq)
{
	if (list_empty(&wq->involved))
		list_append(&s->queues, &wq->involved);
}

static void involve_named(struct simulation *s, const struct work *w)
{
	struct workqueue *named = w->wr.wq.id ? handle_get(&workqueue_table, w->wr.wq.id) : NULL;

	if (named)
		involve(s, named);
}

/* Queues that the program is for, that it names, that what is pending in these names, and so on:
 * how many nodes they have at most. */
static size_t involve_all(struct simulation *s)
{
	size_t n = (size_t)s->program->n;

	for (int i = 0; i < s->program->n; i++) {
		involve(s, s->program->entries[i].wq);
		involve_named(s, s->program->entries[i].work);
	}
	for (struct list *at = s->queues.next; at != &s->queues; at = at->next) {
		struct workqueue *wq = LIST_ENTRY(at, struct workqueue, involved);

		n += wq->used;
		for (uint32_t i = 0; i < wq->channels_used; i++)
			for (struct work *w = wq->channels[i].at; w; w = w->next)
				involve_named(s, w);
	}
	return n;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static uint32_t lane_of(struct simulation *s, struct channel *ch)
{
	if (!ch->lane) {
		s->lanes[s->lane_count] = (struct lane){.ch = ch, .at = NONE, .last = NONE};
		ch->lane = ++s->lane_count;
	}
	return ch->lane - 1;
}

static void add_gate(struct simulation *s, const uint64_t *total, uint64_t gap, bool enables)
{
	s->gates[s->gate_count++] = (struct gate){total, gap, s->node_count, enables};
}

/* W waits for a counter that peers may move. */
static bool peers_count(const struct work *w)
{
	const struct counter *c = w->wr.ctr.id ? handle_get(&counter_table, w->wr.ctr.id) : NULL;

	return c && c->region;
}

/* W waits for an index of a queue whose entries CALCs and PIPEs take, too. */
static bool is_taken_from(const struct work *w)
{
	const struct workqueue *t = w->wr.wq.id ? handle_get(&workqueue_table, w->wr.wq.id) : NULL;

	return t && t->receive.is_source && w->wr.index != SLMPM_WQ_ENABLED;
}

static void gate_node(struct simulation *s, struct node *n)
{
	const struct workqueue *wq = n->wq;
	const struct work *w = n->work;
	uint64_t now;

	n->enabled = n->begun || !(wq->flags & SLMPM_WQ_MANAGED) || n->number <= wq->enabled;
	if (!n->enabled)
		add_gate(s, &wq->enabled, n->number - wq->enabled, true);
	n->met = w->wr.op != SLMPM_OP_WAIT || peers_count(w) || is_taken_from(w);
	if (n->met)
		return;
	now = *w->total - wait_start(wq, w);
	n->met = now >= wait_target(w);
	if (!n->met)
		add_gate(s, w->total, wait_target(w) - now, false);
}

static void add_node(struct simulation *s, struct node made)
{
	uint32_t lane = lane_of(s, &made.wq->channels[made.work->wr.channel]);
	struct lane *l = &s->lanes[lane];

	made.lane = lane;
	made.next = NONE;
	gate_node(s, &made);
	s->nodes[s->node_count] = made;
	if (l->last == NONE)
		l->at = s->node_count;
	else
		s->nodes[l->last].next = s->node_count;
	l->last = s->node_count++;
}

/* What has begun will end, so far as it has not failed. */
static void add_begun(struct simulation *s, struct workqueue *wq, const struct list *begun)
{
	LIST_EACH_ENTRY(struct work, w, begun, node)
		if (w->state != WORK_ENDED || w->done.status >= 0) {
			add_node(s, (struct node){.work = w, .wq = wq, .begun = true});
			s->nodes[s->node_count - 1].met = true;
		}
}

static void add_pending(struct simulation *s, struct workqueue *wq)
{
	add_begun(s, wq, &wq->receives);
	for (uint32_t i = 0; i < wq->channels_used; i++) {
		const struct channel *ch = &wq->channels[i];

		add_begun(s, wq, &ch->begun);
		for (struct work *w = ch->at; w; w = w->next)
			add_node(s, (struct node){.work = w,
						  .wq = wq,
						  .number = work_number(wq, w),
						  .begun = w->state == WORK_BEGUN,
						  .blocked = ch->status || w->cancelled});
	}
}

static void add_all(struct simulation *s)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &s->queues, involved)
		add_pending(s, wq);
	for (int i = 0; i < s->program->n; i++) {
		const struct program_entry *e = &s->program->entries[i];

		add_node(s, (struct node){.work = e->work, .wq = e->wq, .number = e->number});
	}
}

/* ---- totals --------------------------------------------------------------------------------- */

static int compare_gates(const void *left, const void *right)
{
	const struct gate *a = left, *b = right;

	if (a->total != b->total)
		return (uintptr_t)a->total < (uintptr_t)b->total ? -1 : 1;
	return a->gap < b->gap ? -1 : a->gap > b->gap;
}

static void sort_gates(struct simulation *s)
{
	qsort(s->gates, s->gate_count, sizeof(*s->gates), compare_gates);
	for (uint32_t i = 0; i < s->gate_count; i++) {
		if (!i || s->gates[i].total != s->gates[i - 1].total)
			s->growths[s->growth_count++] =
				(struct growth){.total = s->gates[i].total, .next = i};
		s->growths[s->growth_count - 1].end = i + 1;
	}
}

/* NULL: no entry waits for it. */
static struct growth *growth_of(const struct simulation *s, const uint64_t *total)
{
	uint32_t low = 0, high = s->growth_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((uintptr_t)s->growths[middle].total < (uintptr_t)total)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->growth_count && s->growths[low].total == total ? &s->growths[low] : NULL;
}

static void push_lane(struct simulation *s, uint32_t lane)
{
	if (!s->lanes[lane].ready)
		s->stack[s->stacked++] = lane;
	s->lanes[lane].ready = true;
}

static void grow(struct simulation *s, const uint64_t *total, uint64_t by)
{
	struct growth *g = growth_of(s, total);

	if (!g)
		return;
	g->by = total_plus(g->by, by);
	while (g->next < g->end && s->gates[g->next].gap <= g->by) {
		const struct gate *passed = &s->gates[g->next++];
		struct node *n = &s->nodes[passed->node];

		if (passed->enables)
			n->enabled = true;
		else
			n->met = true;
		push_lane(s, n->lane);
	}
}

/* That a COUNT or ENABLE moves. */
static const uint64_t *total_moved(const struct work *w)
{
	const struct workqueue *t;

	if (w->wr.op == SLMPM_OP_COUNT)
		return w->total;
	t = handle_get(&workqueue_table, w->wr.wq.id);
	return &t->enabled;
}

/* ---- running -------------------------------------------------------------------------------- */

static void simulate_enable(struct simulation *s, const struct work *w)
{
	const uint64_t *enabled = total_moved(w);
	const struct growth *g = growth_of(s, enabled);
	uint64_t now, to;

	if (!g)
		return;
	now = *enabled + g->by;
	to = w->wr.flags & SLMPM_RELATIVE ? total_plus(now, w->wr.value) : w->wr.value;
	if (to > now)
		grow(s, enabled, to - now);
}

static void simulate_end(struct simulation *s, struct node *n)
{
	const struct work *w = n->work;

	if (w->wr.op == SLMPM_OP_ENABLE)
		simulate_enable(s, w);
	else if (w->wr.op == SLMPM_OP_COUNT && w->wr.flags & SLMPM_RELATIVE)
		grow(s, w->total, w->wr.value);
	else if (w->wr.op != SLMPM_OP_COUNT && w->wr.op != SLMPM_OP_WAIT && w->wr.ctr.id)
		grow(s, &((struct counter *)handle_get(&counter_table, w->wr.ctr.id))->done, 1);
	if (!(w->wr.flags & SLMPM_SILENT))
		grow(s, &n->wq->queue->tail, 1);
	grow(s, &n->wq->done, 1);
	n->over = true;
}

static bool simulate_node(struct simulation *s, struct node *n)
{
	if (n->blocked || !n->enabled)
		return false;
	if (!n->begun)
		grow(s, &n->wq->begun, 1);
	n->begun = true;
	if (!n->met)
		return false;
	simulate_end(s, n);
	return true;
}

static void simulate_lane(struct simulation *s, struct lane *l)
{
	while (l->at != NONE && simulate_node(s, &s->nodes[l->at]))
		l->at = s->nodes[l->at].next;
}

static void simulate(struct simulation *s)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &s->queues, involved)
		grow(s, &wq->posted, wq->held);
	for (uint32_t i = 0; i < s->lane_count; i++)
		push_lane(s, i);
	while (s->stacked) {
		struct lane *l = &s->lanes[s->stack[--s->stacked]];

		l->ready = false;
		simulate_lane(s, l);
	}
}

/* ---- verdicts ------------------------------------------------------------------------------- */

static int verdict_of_wait(const struct simulation *s, const struct node *n, const char *behind)
{
	static const char *const indices[] = {"", "posted", "enabled", "begun", "done"};
	const struct work *w = n->work;
	const struct growth *g = growth_of(s, w->total);
	uint64_t now = *w->total - wait_start(n->wq, w);

	return error_set(SLMPM_EINVAL,
			 "it can never run: %swaits until the %s%s is %llu, which will be %llu",
			 behind,
			 w->wr.ctr.id ? "counter" :
			 w->wr.cq.id  ? "completion queue's total" :
					"work queue's ",
			 w->wr.wq.id ? indices[w->wr.index] : "",
			 (unsigned long long)wait_target(w),
			 (unsigned long long)(now + (g ? g->by : 0)));
}

static int verdict(const struct simulation *s, const struct node *stuck)
{
	const struct node *n = &s->nodes[s->lanes[stuck->lane].at];
	const struct growth *g = growth_of(s, &n->wq->enabled);
	char behind[80] = "it ";

	if (n != stuck)
		snprintf(behind, sizeof(behind),
			 "entry %llu of its queue, before it in its channel, ",
			 (unsigned long long)n->number);
	if (n->blocked)
		return error_set(SLMPM_EINVAL, "it can never run: %sis cancelled", behind);
	if (n->enabled)
		return verdict_of_wait(s, n, behind);
	return error_set(SLMPM_EINVAL,
			 "it can never run: %sis number %llu of its queue, whose enabled will be "
			 "%llu",
			 behind, (unsigned long long)n->number,
			 (unsigned long long)(n->wq->enabled + (g ? g->by : 0)));
}

/* What the end depends on the order of. */
static int check_order(const struct simulation *s, const struct node *n)
{
	const struct work *w = n->work;
	bool relative = w->wr.flags & SLMPM_RELATIVE;
	struct growth *g;

	if (w->wr.op != SLMPM_OP_COUNT && w->wr.op != SLMPM_OP_ENABLE)
		return 0;
	if (relative && w->wr.value > GROWTH_MAX)
		return error_set(SLMPM_ELIMIT, "it is more than 2^32 at once: %llu",
				 (unsigned long long)w->wr.value);
	g = growth_of(s, total_moved(w));
	if (!g)
		return 0;
	if (w->wr.op == SLMPM_OP_COUNT)
		return relative ? 0 :
				  error_set(SLMPM_EINVAL, "it sets a counter that is waited for: "
							  "in a program they only grow");
	g->relative |= relative;
	g->absolute |= !relative;
	return g->relative && g->absolute ?
		       error_set(SLMPM_EINVAL, "the same queue is enabled up to a number and by "
					       "some more: it depends on which comes first") :
		       0;
}

/* Of what is pending, that is the first entry's fault, which waits for it. */
static int check_orders(const struct simulation *s, int *at)
{
	uint32_t first = s->node_count - (uint32_t)s->program->n;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->node_count; i++) {
		const struct node *n = &s->nodes[i];

		*at = i < first ? 0 : (int)(i - first);
		if (!n->begun)
			rc = check_order(s, n);
	}
	return rc;
}

static int simulation_judge(struct simulation *s, int *at)
{
	uint32_t first = s->node_count - (uint32_t)s->program->n;
	int rc = check_orders(s, at);

	if (rc < 0)
		return rc;
	simulate(s);
	for (uint32_t i = first; i < s->node_count; i++)
		if (!s->nodes[i].over) {
			*at = (int)(i - first);
			return verdict(s, &s->nodes[i]);
		}
	return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool make_room(struct simulation *s, size_t n)
{
	if (n >= NONE / 2)
		return false;
	s->nodes = calloc(n, sizeof(*s->nodes));
	s->lanes = calloc(n, sizeof(*s->lanes));
	s->stack = calloc(n, sizeof(*s->stack));
	s->gates = calloc(2 * n, sizeof(*s->gates));
	s->growths = calloc(2 * n, sizeof(*s->growths));
	return s->nodes && s->lanes && s->stack && s->gates && s->growths;
}

static void simulation_clear(struct simulation *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++)
		s->lanes[i].ch->lane = 0;
	LIST_EACH_ENTRY(struct workqueue, wq, &s->queues, involved)
		list_remove(&wq->involved);
	free(s->nodes);
	free(s->lanes);
	free(s->stack);
	free(s->gates);
	free(s->growths);
}

int program_simulate(const struct program *p, int *at)
{
	struct simulation s = {.program = p};
	int rc;

	*at = -1;
	list_init(&s.queues);
	if (make_room(&s, involve_all(&s))) {
		add_all(&s);
		sort_gates(&s);
		rc = simulation_judge(&s, at);
	} else {
		rc = error_set(SLMPM_ENOMEM, "for a program");
	}
	simulation_clear(&s);
	return rc;
}
