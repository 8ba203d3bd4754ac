/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other jobs' contributors (aggregate.h). What is heard of one job over several links, or a second time around a
 * circle, is the same contributor: the youngest counts. One that nobody refreshes grows old wherever it
 * is told, and falls silent. So many are kept that no crowd takes more; and when all places are taken,
 * who speaks by a link of few contributors takes one of the link that has most: no liars leave others none.
 */
#include <string.h>

#include "slmpm/monitor/aggregate.h"
#include "slmpm/base/clock.h"

static struct contributor contributors[AGGREGATE_CONTRIBUTORS];

static uint64_t age_most(void)
{
	return AGGREGATE_AGE * (uint64_t)config_get()->monitor_ms * 1000000;
}

static bool contributors_is_silent(const struct contributor *v, uint64_t ns)
{
	return ns - v->born > age_most();
}

static int count_by(const struct endpoint *via)
{
	int n = 0;

	for (const struct contributor *v = contributors; v < contributors + AGGREGATE_CONTRIBUTORS;
	     v++)
		n += v->job && v->via == via;
	return n;
}

/* All are taken: the oldest of the link that has most, if it is left no fewer than one that has MINE has
 * then. Of links that have ended nobody speaks. */
static struct contributor *take_over(int mine)
{
	struct contributor *best = NULL;
	int most = mine + 1;

	for (struct contributor *v = contributors; v < contributors + AGGREGATE_CONTRIBUTORS; v++) {
		int n = v->via ? count_by(v->via) : AGGREGATE_CONTRIBUTORS + 1;

		if (n > most || (best && n == most && v->born < best->born)) {
			best = v;
			most = n;
		}
	}
	if (best)
		best->job = 0;
	return best;
}

/* Its place; or a free one, where the link may have more. */
static struct contributor *contributors_find(const struct endpoint *ep, uint64_t job, uint64_t ns)
{
	struct contributor *free = NULL;
	int via = 0;

	for (struct contributor *v = contributors; v < contributors + AGGREGATE_CONTRIBUTORS; v++) {
		if (v->job && contributors_is_silent(v, ns))
			v->job = 0;
		if (v->job == job)
			return v;
		via += v->job && v->via == ep;
		if (!v->job && !free)
			free = v;
	}
	if (via >= AGGREGATE_CONTRIBUTORS / 2)
		return NULL;
	return free ? free : take_over(via);
}

struct aggregate *contributors_place(const struct endpoint *ep, uint64_t job, uint64_t born)
{
	uint64_t ns = clock_now();
	struct contributor *v = ns - born > age_most() ? NULL : contributors_find(ep, job, ns);

	if (!v || (v->job && born < v->born))
		return NULL;
	if (!v->job)
		memset(&v->sum, 0, sizeof(v->sum));
	v->job = job;
	v->born = born;
	v->via = ep;
	return &v->sum;
}

uint32_t contributors_add(struct aggregate *sum, uint64_t ns)
{
	uint64_t own = aggregate_job();
	uint32_t n = 0;

	for (const struct contributor *v = contributors; v < contributors + AGGREGATE_CONTRIBUTORS;
	     v++)
		if (v->job && v->job != own && !contributors_is_silent(v, ns)) {
			aggregate_add(sum, &v->sum);
			n++;
		}
	return n;
}

bool contributors_next(const struct endpoint *ep, uint64_t ns, uint32_t *at, uint64_t *job,
		       uint64_t *age, struct aggregate *sum)
{
	uint64_t own = aggregate_job();

	for (int i = 0; i < AGGREGATE_CONTRIBUTORS; i++) {
		const struct contributor *v = &contributors[(*at)++ % AGGREGATE_CONTRIBUTORS];

		if (!v->job || v->job == own || v->via == ep || contributors_is_silent(v, ns))
			continue;
		*job = v->job;
		*age = (ns - v->born) / 1000000 + 1;
		*sum = v->sum;
		return true;
	}
	return false;
}

void contributors_forget(const struct endpoint *ep)
{
	for (struct contributor *v = contributors; v < contributors + AGGREGATE_CONTRIBUTORS; v++) {
		if (!ep)
			v->job = 0;
		else if (v->via == ep)
			v->via = NULL; /* it may come by another link */
	}
}
