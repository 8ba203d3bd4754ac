/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels of aggregates (aggregate.h): parts, each a packet, of which the first says which others follow.
 * Nothing that comes is believed further than sums can bear.
 */
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/packet.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/clock.h"

/* ---- parts ------------------------------------------------------------------------------------ */

enum {
	COUNTS,
	NAMES,
	TIMES,
	FABRICS = TIMES + SLMPM_PROTOCOLS,
	PARTS = FABRICS + AGGREGATE_FABRICS
};

/* Little-endian throughout; word 0 is the part's number, word 1 the job's (0: the sender's side of the
 * receiver's own), word 2 the age in ms; of the own job's COUNTS its number, as far as known. */
struct wire_counts {
	uint32_t instances, links, queue, out, in;
	uint32_t has; /* parts that follow, a bit each; the others are empty */
};
struct wire_names {
	struct {
		char name[8];
		uint64_t requests;
	} fabrics[AGGREGATE_FABRICS];
};
struct wire_times { /* of one protocol, by class: mean, and over how many instances */
	uint32_t ns[SLMPM_SIZE_CLASSES];
	uint16_t count[SLMPM_SIZE_CLASSES];
};
struct wire_fabric { /* of one; likewise by protocol, and then of echoes */
	uint32_t links, out, in, queue, busy, load;
	uint32_t ns[SLMPM_PROTOCOLS + 1];
	uint16_t count[SLMPM_PROTOCOLS + 1];
};
_Static_assert(sizeof(struct wire_counts) == 24 && sizeof(struct wire_names) == 64 &&
		       sizeof(struct wire_times) == 60 && sizeof(struct wire_fabric) == 60,
	       "wire layout");

union wire_aggregate {
	struct wire_counts counts;
	struct wire_names names;
	struct wire_times times;
	struct wire_fabric fabric;
};

static uint32_t aggregate_wire_length_of(uint64_t part)
{
	return part == COUNTS  ? sizeof(struct wire_counts) :
	       part == NAMES   ? sizeof(struct wire_names) :
	       part >= FABRICS ? sizeof(struct wire_fabric) :
				 sizeof(struct wire_times);
}

/* ---- telling ---------------------------------------------------------------------------------- */

static uint32_t aggregate_wire_cut32(uint64_t value)
{
	return LITTLE_32(value < UINT32_MAX ? (uint32_t)value : UINT32_MAX);
}

static bool put_cell(const struct aggregate_cell *c, uint32_t *ns, uint16_t *count)
{
	*ns = aggregate_wire_cut32(c->count ? c->ns / c->count : 0);
	*count = LITTLE_16((uint16_t)(c->count < UINT16_MAX ? c->count : UINT16_MAX));
	return c->count;
}

static bool put_names(const struct aggregate *m, struct wire_names *w)
{
	for (int i = 0; i < AGGREGATE_FABRICS; i++) {
		memcpy(w->fabrics[i].name, m->fabrics[i].name, sizeof(w->fabrics[i].name));
		w->fabrics[i].requests = LITTLE_64(m->fabrics[i].requests);
	}
	return m->fabrics[0].name[0];
}

static bool put_fabric(const struct aggregate_fabric *f, struct wire_fabric *w)
{
	w->links = aggregate_wire_cut32(f->links);
	w->out = aggregate_wire_cut32(f->out);
	w->in = aggregate_wire_cut32(f->in);
	w->queue = aggregate_wire_cut32(f->queue);
	w->busy = aggregate_wire_cut32(f->busy);
	w->load = aggregate_wire_cut32(f->load);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		(void)put_cell(&f->latency[p], &w->ns[p], &w->count[p]);
	(void)put_cell(&f->echo, &w->ns[SLMPM_PROTOCOLS], &w->count[SLMPM_PROTOCOLS]);
	return f->name[0];
}

/* One of those behind COUNTS; false: it is empty. */
static bool put_part(const struct aggregate *m, int part, union wire_aggregate *w)
{
	bool any = false;

	memset(w, 0, sizeof(*w));
	if (part == NAMES)
		return put_names(m, &w->names);
	if (part >= FABRICS)
		return put_fabric(&m->fabrics[part - FABRICS], &w->fabric);
	for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
		any |= put_cell(&m->cells[part - TIMES][s], &w->times.ns[s], &w->times.count[s]);
	return any;
}

static void aggregate_wire_tell(struct endpoint *ep, const struct aggregate *m, uint64_t job,
				uint64_t last)
{
	struct wire_counts c = {
		.instances = aggregate_wire_cut32(m->instances),
		.links = aggregate_wire_cut32(m->links),
		.queue = aggregate_wire_cut32(m->queue),
		.out = aggregate_wire_cut32(m->out),
		.in = aggregate_wire_cut32(m->in),
	};
	union wire_aggregate w;
	uint32_t has = 0;

	for (int part = NAMES; part < PARTS; part++)
		has |= (uint32_t)put_part(m, part, &w) << part;
	c.has = LITTLE_32(has);
	link_control_whole(ep, WIRE_AGGREGATE, COUNTS, job, last, &c, sizeof(c));
	for (int part = NAMES; part < PARTS; part++)
		if (put_part(m, part, &w))
			link_control_whole(ep, WIRE_AGGREGATE, (uint64_t)part, job, job ? last : 0,
					   &w, aggregate_wire_length_of((uint64_t)part));
}

void aggregate_send(struct endpoint *ep)
{
	uint32_t *turn = &ep->monitor->aggregate.turn, begun = *turn;
	uint64_t job = aggregate_job(), age;
	struct aggregate m;

	if (!ep->monitor->aggregate.agreed)
		return;
	if (aggregate_is_kin(ep)) {
		aggregate_of_job(ep, &m);
		ep->monitor->aggregate.busy = aggregate_busy(&m);
		aggregate_wire_tell(ep, &m, 0, ep->life->is_parent ? 0 : job);
	} else if (job) {
		aggregate_of_job(NULL, &m);
		ep->monitor->aggregate.busy = aggregate_busy(&m);
		aggregate_wire_tell(ep, &m, job, 0);
	}
	for (int i = 0; i < AGGREGATE_SENT; i++) {
		if (!aggregate_next_contributor(ep, turn, &job, &age, &m) ||
		    *turn - begun > AGGREGATE_CONTRIBUTORS)
			return; /* each once */
		aggregate_wire_tell(ep, &m, job, age);
	}
}

/* ---- hearing ---------------------------------------------------------------------------------- */

static uint64_t bounded(uint32_t value, uint64_t most)
{
	value = LITTLE_32(value);
	return value < most ? value : most;
}

/* No more instances than there are. */
static void take_cell(struct aggregate_cell *to, const struct aggregate *m, uint32_t ns,
		      uint16_t count)
{
	uint32_t n = LITTLE_16(count);

	*to = (struct aggregate_cell){.ns = 0};
	aggregate_add_cell(to, LITTLE_32(ns), n < m->instances ? n : (uint32_t)m->instances);
}

static void take_name(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = 0;
	for (; *to; to++)
		if (*to <= ' ' || *to > '~')
			*to = '?';
}

static void take_fabric(struct aggregate *m, int i, const struct wire_fabric *w)
{
	struct aggregate_fabric *f = &m->fabrics[i];

	f->links = bounded(w->links, SLMPM_MONITOR_PATHS * m->links);
	f->busy = bounded(w->busy, f->links);
	f->load = bounded(w->load, 1000 * f->busy);
	f->queue = bounded(w->queue, UINT32_MAX);
	f->out = bounded(w->out, 1000 * f->links);
	f->in = bounded(w->in, 1000 * f->links);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		take_cell(&f->latency[p], m, w->ns[p], w->count[p]);
	take_cell(&f->echo, m, w->ns[SLMPM_PROTOCOLS], w->count[SLMPM_PROTOCOLS]);
}

static void take_part(struct aggregate *m, int part, const union wire_aggregate *w)
{
	const struct wire_names *names = &w->names;

	for (int i = 0; part == NAMES && i < AGGREGATE_FABRICS; i++) {
		take_name(m->fabrics[i].name, names->fabrics[i].name, sizeof(m->fabrics[i].name));
		m->fabrics[i].requests = LITTLE_64(names->fabrics[i].requests);
	}
	for (int s = 0; part >= TIMES && part < FABRICS && s < SLMPM_SIZE_CLASSES; s++)
		take_cell(&m->cells[part - TIMES][s], m, w->times.ns[s], w->times.count[s]);
	if (part >= FABRICS)
		take_fabric(m, part - FABRICS, &w->fabric);
}

/* Counts, and nothing of the parts that do not follow. */
static void take_counts(struct aggregate *m, const struct wire_counts *c)
{
	static const union wire_aggregate nothing;

	m->instances = bounded(c->instances, AGGREGATE_INSTANCES);
	m->links = bounded(c->links, AGGREGATE_INSTANCES * UINT64_C(64));
	m->queue = bounded(c->queue, UINT32_MAX);
	m->out = bounded(c->out, 1000 * m->links);
	m->in = bounded(c->in, 1000 * m->links);
	for (int part = NAMES; part < PARTS; part++)
		if (!(LITTLE_32(c->has) >> part & 1))
			take_part(m, part, &nothing);
}

static void aggregate_wire_take(struct aggregate *m, const void *arg)
{
	const struct head *h = arg;
	union wire_aggregate w;

	memcpy(&w, h->data, h->length);
	if (h->seq == COUNTS)
		take_counts(m, &w.counts);
	else
		take_part(m, (int)h->seq, &w);
}

void aggregate_received(struct endpoint *ep, const struct head *h)
{
	uint64_t job = h->stream | (uint64_t)h->imm << 32, last = h->extent & WIRE_LENGTH_MASK;

	if (h->damaged || !ep->monitor)
		return;
	if (PEER_FAULT(h->seq >= PARTS || h->flags & ~WIRE_FLAG_CHECK ||
		       h->length != aggregate_wire_length_of(h->seq) || job > WIRE_LENGTH_MASK)) {
		endpoint_poison(ep, "aggregate");
		return;
	}
	if (!job && !aggregate_is_kin(ep)) /* it is none of ours */
		return;
	if (!job && ep->life->is_parent && h->seq == COUNTS && last)
		aggregate_set_job(last);
	if (job != aggregate_job() || !job)
		aggregate_change(ep, job, clock_now() - last * 1000000, aggregate_wire_take, h);
}
