/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels of aggregates (aggregate.h): their words, little-endian, in parts of a packet each;
 * the first says which others follow. What is received is bounded to what sums can hold.
 */
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/packet.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/clock.h"

/* Of a packet: word 0 is the part's number and, of part 0, a bit for each that follows, from
 * PART_BITS on; word 1 the job's (0: the sender's side of the receiver's own), word 2 the age in
 * ms; of the own job's part 0 its number, as far as known. */
#define PART_WORDS 8
#define PART_BITS  8
#define PARTS      (sizeof(struct aggregate) / sizeof(struct wire_part))

struct wire_part {
	uint64_t words[PART_WORDS];
};
_Static_assert(sizeof(struct aggregate) % sizeof(struct wire_part) == 0 && PARTS == 24,
	       "wire layout");

/* ---- sending --------------------------------------------------------------------------------- */

/* False: it is empty. */
static bool part_of(const struct aggregate *m, size_t part, struct wire_part *w)
{
	const uint64_t *words = (const uint64_t *)(const void *)m + part * PART_WORDS;
	bool any = false;

	for (int i = 0; i < PART_WORDS; i++) {
		w->words[i] = LITTLE_64(words[i]);
		any |= words[i];
	}
	return any;
}

static void aggregate_wire_send(struct endpoint *ep, const struct aggregate *m, uint64_t job,
				uint64_t last)
{
	struct wire_part w;
	uint64_t has = 0;

	for (size_t part = 1; part < PARTS; part++)
		has |= (uint64_t)part_of(m, part, &w) << (PART_BITS + part);
	(void)part_of(m, 0, &w);
	link_control_whole(ep, WIRE_AGGREGATE, has, job, last, &w, sizeof(w));
	for (size_t part = 1; part < PARTS; part++)
		if (part_of(m, part, &w))
			link_control_whole(ep, WIRE_AGGREGATE, part, job, job ? last : 0, &w,
					   sizeof(w));
}

void aggregate_send(struct endpoint *ep)
{
	uint32_t *turn = &ep->rooms->monitor->aggregate.turn, begun = *turn;
	uint64_t job = aggregate_job, age;
	struct aggregate m;

	if (!ep->rooms->monitor->aggregate.agreed)
		return;
	if (aggregate_is_kin(ep)) {
		aggregate_of_job(ep, &m);
		ep->rooms->monitor->aggregate.busy = aggregate_busy(&m);
		aggregate_wire_send(ep, &m, 0, ep->life->is_parent ? 0 : job);
	} else if (job) {
		aggregate_of_job(NULL, &m);
		ep->rooms->monitor->aggregate.busy = aggregate_busy(&m);
		aggregate_wire_send(ep, &m, job, 0);
	}
	for (int i = 0; i < AGGREGATE_SENT; i++) {
		if (!aggregate_next_contributor(ep, turn, &job, &age, &m) ||
		    *turn - begun > AGGREGATE_CONTRIBUTORS)
			return; /* each once */
		aggregate_wire_send(ep, &m, job, age);
	}
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void bound(uint64_t *value, uint64_t most)
{
	*value = *value < most ? *value : most;
}

/* No more instances than there are, and no time that nothing takes. */
static void bound_cell(struct aggregate_cell *c, uint64_t instances)
{
	uint64_t mean = aggregate_mean(c);

	bound(&c->count, mean && mean <= AGGREGATE_LATENCY ? instances : 0);
	c->ns = mean * c->count;
}

/* A word of visible ASCII, whatever it was. */
static uint64_t tame(uint64_t name)
{
	uint64_t tamed = 0;

	for (int shift = 0; shift < 56 && name >> shift & 255; shift += 8) {
		uint64_t letter = name >> shift & 255;

		tamed |= (letter > ' ' && letter <= '~' ? letter : '?') << shift;
	}
	return tamed;
}

static void bound_fabric(struct aggregate_fabric *f, const struct aggregate *m)
{
	f->name = tame(f->name);
	bound(&f->links, SLMPM_MONITOR_PATHS * m->links);
	bound(&f->busy, f->links);
	bound(&f->load, 1000 * f->busy);
	bound(&f->queue, UINT32_MAX);
	bound(&f->out, 1000 * f->links);
	bound(&f->in, 1000 * f->links);
	bound_cell(&f->echo, m->instances);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		bound_cell(&f->latency[p], m->instances);
}

static void bound_all(struct aggregate *m)
{
	bound(&m->instances, AGGREGATE_INSTANCES);
	bound(&m->links, AGGREGATE_INSTANCES * UINT64_C(64));
	bound(&m->queue, UINT32_MAX);
	bound(&m->out, 1000 * m->links);
	bound(&m->in, 1000 * m->links);
	memset(m->zero, 0, sizeof(m->zero));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			bound_cell(&m->cells[p][s], m->instances);
	for (int i = 0; i < AGGREGATE_FABRICS; i++)
		bound_fabric(&m->fabrics[i], m);
}

/* A part; and, with the first, nothing of those that do not follow. */
static void take_part(struct aggregate *m, size_t part, uint64_t has, const void *data)
{
	uint64_t *words = (uint64_t *)(void *)m + part * PART_WORDS;
	struct wire_part w;

	memcpy(&w, data, sizeof(w));
	for (int i = 0; i < PART_WORDS; i++)
		words[i] = LITTLE_64(w.words[i]);
	for (size_t other = 1; !part && other < PARTS; other++)
		if (!(has >> other & 1))
			memset((struct wire_part *)(void *)m + other, 0, sizeof(w));
	bound_all(m);
}

void aggregate_received(struct endpoint *ep, const struct head *h)
{
	uint64_t job = h->stream | (uint64_t)h->imm << 32, last = h->extent & WIRE_LENGTH_MASK;
	uint64_t part = h->seq & ((1 << PART_BITS) - 1), has = h->seq >> PART_BITS;
	struct aggregate *m = NULL;

	if (h->damaged || !ep->rooms->monitor)
		return;
	if (PEER_FAULT(part >= PARTS || has >> (part ? 0 : PARTS) || h->flags & ~WIRE_FLAG_CHECK ||
		       h->length != sizeof(struct wire_part) || job > WIRE_LENGTH_MASK)) {
		endpoint_poison(ep, "aggregate");
		return;
	}
	if (!job && !aggregate_is_kin(ep)) /* it is none of ours */
		return;
	if (!job && ep->life->is_parent && !part && last)
		aggregate_job = last;
	if (job != aggregate_job || !job)
		m = aggregate_change(ep, job, clock_now() - last * 1000000);
	if (!m)
		return;
	take_part(m, part, has, h->data);
	aggregate_changed();
}
