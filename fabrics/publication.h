/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of a link's rings, the same over every fabric: when they are published, what is
 * counted. */
#ifndef FABRICS_PUBLICATION_H
#define FABRICS_PUBLICATION_H

#include "fabrics/fabric.h"
#include "shm/ring.h"

/*
 * So much is read and not published by a writer that waits for the longest packet's room, less what
 * the core may hold back while it gathers releases, and what the writer leaves free. LONGEST: that
 * packet's segments.
 */
static inline uint32_t publication_share(const struct ring_shape *shape, uint32_t longest)
{
	return shape->segments - longest + 1 - FABRIC_DUE(shape->segments) -
	       FABRIC_HOLD_MAX(shape->segments);
}

/* Of the reader's half of a connection: P of N, as far as that goes, in pieces of so many
 * segments. */
static inline void publication_set(struct ring_setup *setup, uint32_t longest,
				   const struct fabric_config *config)
{
	uint32_t segments = setup->shape.segments;
	uint32_t part = (uint32_t)((uint64_t)segments * config->threshold_permille / 1000);
	uint32_t batch = config->batch ? config->batch : segments / 16;
	uint32_t live = publication_share(&setup->shape, longest);

	part = part < live ? part : live;
	setup->threshold = config->threshold_permille && !part ? 1 : part;
	setup->batch = batch < live ? batch : live;
}

/* FABRIC_HOLD_BACK. */
static inline int publication_hold_back(struct ring_writer *w, uint32_t segments)
{
	if (segments > FABRIC_HOLD_MAX(w->mask + 1))
		return -EINVAL;
	ring_hold_back(w, segments);
	return 1;
}

/* What totals say. */
static inline void publication_count(struct fabric_link *link, const struct ring_writer *w,
				     const struct ring_reader *r)
{
	struct fabric_counts *c = &link->counts;
	uint64_t start = link->domain->config.start;

	c->produced = w->produced - start;
	c->consumed_seen = w->consumed + w->held_back - start;
	c->out_segments = w->mask + 1;
	c->read = r->read - link->start_in;
	c->consumed = r->consumed - link->start_in;
	c->in_segments = r->mask + 1;
	for (int i = 0; i < RING_CAUSES; i++)
		c->publications[i] = r->publications[i];
}

#endif
