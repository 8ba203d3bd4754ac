/* SPDX-License-Identifier: BSD-3-Clause */
/* When the reader of a ring publishes its total, out of the settings: the same over every fabric. */
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

/* P of N, as far as that goes; and pieces of at least so many segments: of the reader's half of a connection. */
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

#endif
