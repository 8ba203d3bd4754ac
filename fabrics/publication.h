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

/* p of N, as far as that goes. */
static inline uint32_t publication_threshold(const struct ring_shape *shape, uint32_t longest,
					     const struct fabric_config *config)
{
	uint32_t part = (uint32_t)((uint64_t)shape->segments * config->threshold_permille / 1000);
	uint32_t live = publication_share(shape, longest);

	if (!config->threshold_permille)
		return 0;
	if (part > live)
		part = live;
	return part ? part : 1;
}

static inline uint32_t publication_batch(const struct ring_shape *shape, uint32_t longest,
					 const struct fabric_config *config)
{
	uint32_t batch = config->batch ? config->batch : shape->segments / 16;
	uint32_t live = publication_share(shape, longest);

	return batch < live ? batch : live;
}

#endif
