/* SPDX-License-Identifier: BSD-3-Clause */
/* The thresholds: from the settings, once. */
#include <pthread.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/mode/mode.h"

static struct mode_limits limits;
static pthread_once_t once = PTHREAD_ONCE_INIT;

bool mode_is_auto(const char *fabric)
{
	return !strcmp(fabric, "auto");
}

/* Percent of a ring that may seem unread though all of it is read: its reader publishes from a
 * share of the ring on, by batches. */
static uint32_t unpublished(const struct config *config)
{
	int64_t share = config->publish_permille / 10;
	int64_t batch = 100 / 16; /* SLMPM_PUBLISH_BATCH=0: a sixteenth */

	if (config->publish_batch && config->ring_segments > 0)
		batch = config->publish_batch * 100 / config->ring_segments;
	return (uint32_t)(share + batch < 100 ? share + batch + 1 : 100);
}

static void read_limits(void)
{
	const struct config *config = config_get();
	bool defaults = !mode_is_auto(config->default_smt) || !mode_is_auto(config->default_put) ||
			!mode_is_auto(config->default_rget);

	limits = (struct mode_limits){
		.force = (enum mode_force)config->mode,
		.chooses = config->mode != MODE_AUTO || defaults,
		.defaults = defaults,
		.leave = (enum mode_leave)config->mode_link,
		.own_ring = config->own_ring,
		.own_queue = config->own_queue,
		.own_dma = config->own_dma,
		.ring = (uint32_t)config->mode_ring,
		.light = (uint32_t)config->mode_light,
		.unpublished = unpublished(config),
		.queue = (uint64_t)config->mode_queue,
		.dma = (uint64_t)config->mode_dma,
		.bulk = (uint64_t)config->mode_bulk,
		.small = (uint64_t)config->mode_small,
		.fetch = (uint64_t)config->fetch_min,
		.share = (uint64_t)config->share_min,
		.engine = (uint64_t)config->engine_min,
		.ask = (uint64_t)config->ask_min,
	};
}

const struct mode_limits *mode_limits(void)
{
	pthread_once(&once, read_limits);
	return &limits;
}
