/* SPDX-License-Identifier: BSD-3-Clause */
/* What the selector's tests have in common: thresholds, a letter for each way, a link. */
#ifndef TESTS_UNIT_MODE_LIMITS_H
#define TESTS_UNIT_MODE_LIMITS_H

#include "slmpm/mode/mode.h"

#define K *1024u

static const struct mode_limits limits = {
	.ring = 75,
	.light = 25,
	.queue = 16,
	.dma = 8,
	.bulk = 16 K,
	.small = 1024 K,
	.fetch = 64 K,
	.share = 64 K,
	.engine = 64 K,
	.ask = 128 K,
};

#define P (1u << MODE_PACKETS)
#define F (1u << MODE_FETCHED)
#define C (1u << MODE_COPY)
#define S (1u << MODE_SHARED)
#define E (1u << MODE_ENGINE)
#define A (1u << MODE_ASKED)
#define R (1u << MODE_REQUEST)

#define LINK(...)                                                                                  \
	{                                                                                          \
		.up = true, .view.segments = 1000, .ways = __VA_ARGS__                             \
	}

#endif
