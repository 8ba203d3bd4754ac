/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random programs over several work queues, and an interpreter of what they must come to: totals
 * only grow and nothing fails amidst others, so that the end does not depend on who was first.
 */
#ifndef TESTS_API_WORKQUEUE_MODEL_H
#define TESTS_API_WORKQUEUE_MODEL_H

#include <slmpm.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/random.h"

#define QUEUES    4
#define CHANNELS  4
#define ENTRIES   48
#define RUNS      3
#define INSTANCES (ENTRIES * RUNS)
#define COUNTERS  4
#define SUBJECTS  (COUNTERS + QUEUES + QUEUES) /* of relative WAITs: counters, cqs, `done` */

#define GATE 0u /* the counter that each channel of a gated program waits for first */
#define SETS 3u /* the counter that one channel alone sets, to more and more */

enum { NO_COUNTER = -1 };

struct entry {
	uint32_t op, flags; /* ... of struct slmpm_wr */
	uint32_t queue, channel;
	uint32_t which; /* COUNT, WAIT: the counter; WAIT: the completion queue; or the queue */
	uint32_t index; /* WAIT on a queue: of its totals */
	bool on_cq;     /* WAIT */
	uint64_t value;
	uint32_t stream; /* SEND and its RECV */
	bool reverse;    /* SEND, AM: by B to A */
	bool is_long;    /* SEND and its RECV: the one ends when the other has begun */
	bool bad;        /* PUT: outside */
	uint32_t word;   /* PUT, GET, ATOMIC */
	uint32_t source; /* GET: the PUT of its channel whose word it reads, and one more; or 0 */
	int counts;      /* a counter at its end; or NO_COUNTER */
	int rcounts;     /* the same, which its peer has granted */
	bool remote;     /* COUNT: one that a peer has granted */
	uint32_t chunk;  /* posted together with the others of that number */
	bool by_handler; /* posted by a handler */
	bool dropped;    /* in search of a shorter program */
};

struct program {
	uint64_t seed;
	uint32_t queues, count;
	uint32_t flags[QUEUES]; /* of struct slmpm_wq_options */
	uint32_t cq[QUEUES];    /* where it ends */
	uint64_t enable[QUEUES];
	bool by_one[QUEUES]; /* ENABLEs of it are relative, all */
	bool gated;          /* nothing runs before all is posted: entries may fail */
	bool asleep;         /* who waits makes no progress */
	struct entry e[ENTRIES];
};

struct instance { /* an entry in one run */
	const struct entry *e;
	uint64_t number;
	uint64_t target; /* WAIT: the total is to be so far */
	uint32_t turn;   /* SEND, RECV: the how many-th of its stream */
	bool begun, ended, told;
	int status;
	uint64_t blame; /* failed: the entry's number */
};

struct channel_state {
	int status;
	uint64_t failed;
};

struct subject_state {
	bool known;
	uint64_t base, taken;
};

struct model {
	const struct program *p;
	struct instance i[INSTANCES];
	uint32_t n;
	uint64_t posted[QUEUES], enabled[QUEUES], begun[QUEUES], done[QUEUES], failed[QUEUES];
	uint64_t never[QUEUES]; /* failed, and never begun */
	uint64_t counter[COUNTERS], total[QUEUES];
	uint64_t sent[ENTRIES], received[ENTRIES]; /* that have begun, by stream */
	uint64_t handled;
	struct channel_state channel[QUEUES][CHANNELS];
	struct subject_state subject[QUEUES][SUBJECTS];
	uint32_t first[QUEUES], size[QUEUES]; /* of the last run */
};

/* ---- programs ------------------------------------------------------------------------------ */

static inline bool is_relative(const struct entry *e)
{
	return e->flags & SLMPM_RELATIVE;
}

static inline uint32_t subject_of(const struct entry *e)
{
	return e->index ? COUNTERS + QUEUES + e->which : e->on_cq ? COUNTERS + e->which : e->which;
}

/* For entries of a queue in which one fails, perhaps for more than can come. */
static inline bool random_vain(struct program *p, struct entry *e, struct rng *g)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->e[i].bad && rng_one_in(g, 2)) {
			e->op = SLMPM_OP_WAIT;
			e->which = p->e[i].queue;
			e->index = SLMPM_WQ_BEGUN + rng_below(g, 2);
			e->value = CHANNELS + rng_below(g, 16);
			return true;
		}
	return false;
}

static inline void random_wait(struct program *p, struct entry *e, struct rng *g)
{
	if (random_vain(p, e, g))
		return;
	e->op = SLMPM_OP_WAIT;
	e->value = rng_below(g, 3);
	switch (rng_below(g, 3)) {
	case 0: e->which = 1 + rng_below(g, COUNTERS - 1); break;
	case 1:
		e->on_cq = true;
		e->which = rng_below(g, p->queues);
		e->value = rng_below(g, 8);
		break;
	default:
		e->which = rng_below(g, p->queues);
		e->index = SLMPM_WQ_POSTED + rng_below(g, 4);
		e->value = p->gated ? CHANNELS + rng_below(g, 12) : rng_below(g, 8);
	}
	if (rng_one_in(g, 3) && (!e->index || e->index == SLMPM_WQ_DONE)) {
		e->flags |= SLMPM_RELATIVE;
		e->value = rng_below(g, 3);
	}
}

static inline void random_signal(struct program *p, struct entry *e, struct rng *g)
{
	uint32_t target = rng_below(g, p->queues);

	if (p->flags[target] & SLMPM_WQ_MANAGED && rng_one_in(g, 2)) {
		e->op = SLMPM_OP_ENABLE;
		e->which = target;
		e->value = 1 + rng_below(g, p->by_one[target] ? 4 : 16);
		e->flags |= p->by_one[target] ? SLMPM_RELATIVE : 0;
		return;
	}
	e->op = SLMPM_OP_COUNT;
	e->which = 1 + rng_below(g, 2);
	e->value = 1 + rng_below(g, 2);
	e->flags |= SLMPM_RELATIVE;
	e->remote = rng_one_in(g, 2);
	e->reverse = rng_one_in(g, 2);
	if (e->queue == 0 && e->channel == 0 && !(p->flags[0] & SLMPM_WQ_KEPT)) {
		e->which = SETS;
		e->flags &= ~SLMPM_RELATIVE;
		e->value = p->count;
	}
}

/* A SEND and, in another place, its RECV. */
static inline void random_message(struct program *p, struct entry *e, struct rng *g)
{
	struct entry *r = &p->e[p->count + 1];

	e->op = SLMPM_OP_SEND;
	e->stream = p->count;
	e->reverse = rng_one_in(g, 4);
	e->is_long = rng_one_in(g, 4);
	if (p->count + 1 == ENTRIES)
		return;
	*r = *e;
	r->op = SLMPM_OP_RECV;
	r->rcounts = NO_COUNTER;
	r->flags &= SLMPM_SILENT;
	r->queue = rng_below(g, p->queues);
	r->channel = rng_below(g, CHANNELS);
	if (rng_one_in(g, 2)) { /* it is posted first */
		struct entry send = *e;

		*e = *r;
		*r = send;
	}
	p->count++;
}

static inline void random_one_sided(struct program *p, struct entry *e, struct rng *g)
{
	static const uint32_t ops[] = {SLMPM_OP_PUT, SLMPM_OP_GET, SLMPM_OP_ATOMIC};

	e->op = ops[rng_below(g, 3)];
	e->word = p->count;
	if (p->gated && rng_one_in(g, 3))
		e->op = SLMPM_OP_PUT;
	e->bad = p->gated && e->op == SLMPM_OP_PUT && !rng_one_in(g, 3);
	if (e->op == SLMPM_OP_ATOMIC)
		e->word = ENTRIES + rng_below(g, 4);
	for (uint32_t i = 0; e->op == SLMPM_OP_GET && i < p->count; i++)
		if (p->e[i].op == SLMPM_OP_PUT && p->e[i].queue == e->queue &&
		    p->e[i].channel == e->channel && !p->e[i].bad) {
			e->word = i;
			e->source = i + 1;
		}
}

static inline void random_entry(struct program *p, struct rng *g)
{
	struct entry *e = &p->e[p->count];

	*e = (struct entry){
		.queue = rng_below(g, p->queues),
		.channel = rng_below(g, CHANNELS),
		.flags = rng_one_in(g, 2) ? SLMPM_SILENT : 0,
		.counts = rng_one_in(g, 5) ? 1 + (int)rng_below(g, 2) : NO_COUNTER,
		.rcounts = rng_one_in(g, 4) ? 1 + (int)rng_below(g, 2) : NO_COUNTER,
	};
	switch (rng_below(g, 12)) {
	case 0:
	case 1:
	case 2: random_wait(p, e, g); break;
	case 3:
	case 4: random_signal(p, e, g); break;
	case 5:
	case 6:
	case 7: random_message(p, e, g); break;
	case 8:
		e->op = SLMPM_OP_AM;
		e->reverse = rng_one_in(g, 2);
		break;
	default: random_one_sided(p, e, g);
	}
	p->count++;
}

static inline void random_flags(struct entry *e, struct rng *g)
{
	if (e->op >= SLMPM_OP_WAIT) {
		e->counts = e->rcounts = NO_COUNTER;
		return;
	}
	if (e->op == SLMPM_OP_RECV)
		return;
	e->flags |= rng_one_in(g, 6) ? SLMPM_FENCE : 0;
	e->flags |= rng_one_in(g, 6) ? SLMPM_BARRIER : 0;
	e->flags |= e->op == SLMPM_OP_SEND && rng_one_in(g, 4) ? SLMPM_MORE : 0;
}

/* ENGINE: its thread is there, and begins what it can at any moment. */
static inline void program_make(struct program *p, uint64_t seed, bool engine)
{
	struct rng g = {seed};

	*p = (struct program){.seed = seed, .queues = 2 + rng_below(&g, QUEUES - 1)};
	p->gated = rng_one_in(&g, 2);
	p->asleep = engine && rng_one_in(&g, 2);
	for (uint32_t q = 0; q < p->queues; q++) {
		p->flags[q] = (rng_one_in(&g, 3) ? SLMPM_WQ_MANAGED : 0) |
			      (rng_one_in(&g, 3) ? SLMPM_WQ_KEPT : 0) |
			      (rng_one_in(&g, 3) ? SLMPM_WQ_UNACKNOWLEDGED : 0);
		p->cq[q] = rng_below(&g, p->queues);
		p->by_one[q] = rng_one_in(&g, 2);
		p->enable[q] = rng_one_in(&g, 4) ? rng_below(&g, 12) : ENTRIES;
		p->enable[q] = p->flags[q] & SLMPM_WQ_MANAGED && !p->by_one[q] ? p->enable[q] : 0;
	}
	for (uint32_t q = 0; p->gated && q < p->queues; q++)
		for (uint32_t c = 0; c < CHANNELS; c++)
			p->e[p->count++] = (struct entry){.op = SLMPM_OP_WAIT,
							  .queue = q,
							  .channel = c,
							  .which = GATE,
							  .value = 1,
							  .flags = SLMPM_SILENT,
							  .counts = NO_COUNTER,
							  .rcounts = NO_COUNTER};
	for (uint32_t last = p->count + 4 + rng_below(&g, 28); p->count < last;)
		random_entry(p, &g);
	for (uint32_t i = 0; i < p->count; i++) {
		struct entry *e = &p->e[i], *before = i ? e - 1 : e;

		random_flags(e, &g);
		e->chunk = before->chunk + 1;
		e->by_handler = rng_one_in(&g, 4);
		if (i && before->queue == e->queue && rng_one_in(&g, 2)) {
			e->chunk = before->chunk;
			e->by_handler = before->by_handler;
		}
		/* What it counts from is known where it alone is posted, or before all begins. */
		if (e->op == SLMPM_OP_WAIT && is_relative(e) && !p->gated && engine)
			e->flags &= ~SLMPM_RELATIVE;
		if (e->op == SLMPM_OP_WAIT && is_relative(e) && !p->gated)
			e->chunk = before->chunk + 1;
	}
}

static inline const char *op_name(uint32_t op)
{
	static const char *const names[] = {
		[SLMPM_OP_SEND] = "SEND", [SLMPM_OP_RECV] = "RECV",     [SLMPM_OP_PUT] = "PUT",
		[SLMPM_OP_GET] = "GET",   [SLMPM_OP_ATOMIC] = "ATOMIC", [SLMPM_OP_AM] = "AM",
		[SLMPM_OP_WAIT] = "WAIT", [SLMPM_OP_ENABLE] = "ENABLE", [SLMPM_OP_COUNT] = "COUNT",
	};

	return op < sizeof(names) / sizeof(names[0]) && names[op] ? names[op] : "?";
}

static inline void program_print(const struct program *p)
{
	fprintf(stderr, "program %#llx:%s%s\n", (unsigned long long)p->seed,
		p->gated ? " gated" : "", p->asleep ? " asleep" : "");
	for (uint32_t q = 0; q < p->queues; q++)
		fprintf(stderr, "  queue %u: flags %u, cq %u, enable %llu%s\n", q, p->flags[q],
			p->cq[q], (unsigned long long)p->enable[q], p->by_one[q] ? " by one" : "");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct entry *e = &p->e[i];

		if (e->dropped)
			continue;
		fprintf(stderr,
			"  %2u: queue %u channel %u %-6s flags %#x which %u%s index %u value %llu "
			"stream %u%s%s%s%s word %u counts %d, there %d chunk %u%s\n",
			i, e->queue, e->channel, op_name(e->op), e->flags, e->which,
			e->on_cq ? " (cq)" : "", e->index, (unsigned long long)e->value, e->stream,
			e->reverse ? " reverse" : "", e->is_long ? " long" : "",
			e->bad ? " bad" : "", e->remote ? " there" : "", e->word, e->counts,
			e->rcounts, e->chunk, e->by_handler ? " by a handler" : "");
	}
}

/* ---- the interpreter ----------------------------------------------------------------------- */

static inline uint64_t model_enabled(const struct model *m, uint32_t q)
{
	return m->p->flags[q] & SLMPM_WQ_MANAGED ? m->enabled[q] : m->posted[q];
}

static inline uint64_t model_total(const struct model *m, const struct entry *e)
{
	switch (e->index) {
	case SLMPM_WQ_POSTED: return m->posted[e->which];
	case SLMPM_WQ_ENABLED: return model_enabled(m, e->which);
	case SLMPM_WQ_BEGUN: return m->begun[e->which];
	case SLMPM_WQ_DONE: return m->done[e->which];
	default: return e->on_cq ? m->total[e->which] : m->counter[e->which];
	}
}

/* One more, posted; BASE: the total that a relative WAIT found. */
static inline void model_add(struct model *m, const struct entry *e, uint64_t base)
{
	struct subject_state *s = &m->subject[e->queue][subject_of(e)];
	struct instance *i = &m->i[m->n++];

	*i = (struct instance){
		.e = e, .number = ++m->posted[e->queue], .target = e->value, .turn = 1};
	for (const struct instance *o = m->i; o < i; o++)
		i->turn += o->e == e;
	if (e->op != SLMPM_OP_WAIT || !is_relative(e))
		return;
	if (!s->known)
		*s = (struct subject_state){.known = true, .base = base};
	s->taken += e->value;
	i->target = s->base + s->taken;
}

static inline bool same_channel(const struct instance *one, const struct instance *o)
{
	return one->e->queue == o->e->queue && one->e->channel == o->e->channel;
}

/* One with others under way. A counted one begins behind such once their counts are on their way,
 * which is so in the end where their ends are. */
static inline bool is_message(const struct entry *e)
{
	return (e->op == SLMPM_OP_SEND || e->op == SLMPM_OP_AM) && e->rcounts == NO_COUNTER &&
	       !(e->flags & (SLMPM_FENCE | SLMPM_BARRIER));
}

/* Of those before I in its channel: have all but receives been told? *LAST: of those that have not,
 * the last that is an operation. */
static inline bool all_told(const struct model *m, const struct instance *i,
			    const struct instance **last)
{
	bool all = true;

	*last = NULL;
	for (const struct instance *o = m->i; o < i; o++) {
		if (!same_channel(o, i) || o->e->op == SLMPM_OP_RECV || o->told)
			continue;
		all = false;
		if (o->e->op != SLMPM_OP_WAIT)
			*last = o;
	}
	return all;
}

static inline bool model_may_begin(const struct model *m, const struct instance *i)
{
	const struct instance *last;

	if (i->number > model_enabled(m, i->e->queue))
		return false;
	if (all_told(m, i, &last))
		return true;
	if (i->e->op == SLMPM_OP_RECV)
		return !last || !(last->e->flags & SLMPM_BARRIER);
	return last && is_message(i->e) && is_message(last->e) && i->e->reverse == last->e->reverse;
}

static inline void model_fail(struct model *m, struct instance *i, int status, uint64_t blame)
{
	struct channel_state *c = &m->channel[i->e->queue][i->e->channel];

	if (!i->begun)
		m->never[i->e->queue]++;
	i->begun = i->ended = true;
	i->status = status;
	i->blame = blame;
	if (!c->status)
		*c = (struct channel_state){status, i->number};
}

static inline const struct channel_state *model_stopped(const struct model *m, uint32_t q)
{
	const struct channel_state *first = NULL;

	for (uint32_t c = 0; c < CHANNELS; c++) {
		const struct channel_state *s = &m->channel[q][c];

		if (s->status && (!first || s->failed < first->failed))
			first = s;
	}
	return first;
}

static inline void model_wait(struct model *m, struct instance *i)
{
	const struct channel_state *s = i->e->index ? model_stopped(m, i->e->which) : NULL;
	uint32_t q = i->e->which;
	uint64_t most = i->e->index == SLMPM_WQ_DONE  ? m->posted[q] - m->failed[q] :
			i->e->index == SLMPM_WQ_BEGUN ? m->posted[q] - m->never[q] :
							UINT64_MAX;

	if (!i->begun)
		m->begun[i->e->queue]++;
	i->begun = true;
	i->ended = model_total(m, i->e) >= i->target;
	if (!i->ended && s && i->target > most)
		model_fail(m, i, s->status, s->failed);
}

static inline void model_begin(struct model *m, struct instance *i)
{
	const struct entry *e = i->e;

	if (e->bad) {
		model_fail(m, i, -SLMPM_EINVAL, 0);
		return;
	}
	i->begun = true;
	m->begun[e->queue]++;
	i->ended = e->op != SLMPM_OP_RECV && !(e->op == SLMPM_OP_SEND && e->is_long);
	m->sent[e->stream] += e->op == SLMPM_OP_SEND;
	m->received[e->stream] += e->op == SLMPM_OP_RECV;
	m->handled += e->op == SLMPM_OP_AM;
	if (e->op == SLMPM_OP_COUNT)
		m->counter[e->which] = e->value + (is_relative(e) ? m->counter[e->which] : 0);
	if (e->op == SLMPM_OP_ENABLE) {
		uint64_t to = e->value + (is_relative(e) ? m->enabled[e->which] : 0);

		m->enabled[e->which] = to > m->enabled[e->which] ? to : m->enabled[e->which];
	}
}

static inline void model_tell(struct model *m, struct instance *i)
{
	const struct entry *e = i->e;

	i->told = true;
	if (i->status < 0)
		m->failed[e->queue]++;
	else
		m->done[e->queue]++;
	if (e->counts != NO_COUNTER)
		m->counter[e->counts]++;
	if (e->rcounts != NO_COUNTER && i->status >= 0)
		m->counter[e->rcounts]++;
	if (!(e->flags & SLMPM_SILENT) || i->status < 0)
		m->total[m->p->cq[e->queue]]++;
}

/* All before it have begun: it goes on. */
static inline bool model_step(struct model *m, struct instance *i)
{
	struct channel_state *c = &m->channel[i->e->queue][i->e->channel];
	bool was = i->begun, had = i->ended;
	const struct instance *last;

	if (c->status && !i->ended && !(i->begun && i->e->op != SLMPM_OP_WAIT)) {
		if (all_told(m, i, &last))
			model_fail(m, i, -SLMPM_ECANCELED, c->failed);
	} else if (i->e->op == SLMPM_OP_WAIT && !i->ended) {
		if (i->number <= model_enabled(m, i->e->queue))
			model_wait(m, i);
	} else if (!i->begun && model_may_begin(m, i)) {
		model_begin(m, i);
	}
	if (i->begun && !i->ended && i->e->op == SLMPM_OP_SEND)
		i->ended = m->received[i->e->stream] >= i->turn;
	if (i->begun && !i->ended && i->e->op == SLMPM_OP_RECV)
		i->ended = m->sent[i->e->stream] >= i->turn;
	if (i->ended && !i->told && (i->e->op == SLMPM_OP_RECV || all_told(m, i, &last))) {
		model_tell(m, i);
		return true;
	}
	return was != i->begun || had != i->ended;
}

/* Its turn has come: all before it in its channel have begun, and WAITs have ended. */
static inline bool is_reached(const struct model *m, const struct instance *i)
{
	for (const struct instance *o = m->i; o < i; o++)
		if (same_channel(o, i) && (!o->begun || (o->e->op == SLMPM_OP_WAIT && !o->ended)))
			return false;
	return true;
}

static inline void model_run(struct model *m)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < m->n; i++)
			if (!m->i[i].told && is_reached(m, &m->i[i]))
				more |= model_step(m, &m->i[i]);
	}
}

static inline bool has_ended(const struct model *m, uint32_t q)
{
	return m->posted[q] == m->done[q] + m->failed[q];
}

/* A kept queue's entries once more. */
static inline void model_arm(struct model *m, uint32_t q)
{
	for (uint32_t e = 0; e < m->p->count; e++)
		if (m->p->e[e].queue == q && !m->p->e[e].dropped)
			model_add(m, &m->p->e[e], 0);
}

#endif
