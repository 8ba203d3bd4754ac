/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other jobs' voices (means.h). What is heard of one job over several links, or a second time around a
 * circle, is the same voice: the youngest counts. One that nobody refreshes grows old wherever it
 * is told, and falls silent. So many are kept that no crowd takes more; and when all places are taken,
 * who speaks by a link of few voices takes one of the link that has most: no liars leave others none.
 */
#include <string.h>

#include "slmpm/monitor/means.h"
#include "slmpm/base/clock.h"

static struct voice voices[MEANS_VOICES];

static uint64_t age_most(void)
{
	return MEANS_AGE * (uint64_t)config_get()->monitor_ms * 1000000;
}

static bool is_silent(const struct voice *v, uint64_t ns)
{
	return ns - v->born > age_most();
}

static int count_by(const struct endpoint *via)
{
	int n = 0;

	for (const struct voice *v = voices; v < voices + MEANS_VOICES; v++)
		n += v->job && v->via == via;
	return n;
}

/* All are taken: the oldest of the link that has most, if it is left no fewer than one that has MINE has
 * then. Of links that have ended nobody speaks. */
static struct voice *take_over(int mine)
{
	struct voice *best = NULL;
	int most = mine + 1;

	for (struct voice *v = voices; v < voices + MEANS_VOICES; v++) {
		int n = v->via ? count_by(v->via) : MEANS_VOICES + 1;

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
static struct voice *find(const struct endpoint *ep, uint64_t job, uint64_t ns)
{
	struct voice *free = NULL;
	int via = 0;

	for (struct voice *v = voices; v < voices + MEANS_VOICES; v++) {
		if (v->job && is_silent(v, ns))
			v->job = 0;
		if (v->job == job)
			return v;
		via += v->job && v->via == ep;
		if (!v->job && !free)
			free = v;
	}
	if (via >= MEANS_VOICES / 2)
		return NULL;
	return free ? free : take_over(via);
}

struct means *voices_place(const struct endpoint *ep, uint64_t job, uint64_t born)
{
	uint64_t ns = clock_now();
	struct voice *v = ns - born > age_most() ? NULL : find(ep, job, ns);

	if (!v || (v->job && born < v->born))
		return NULL;
	if (!v->job)
		memset(&v->sum, 0, sizeof(v->sum));
	v->job = job;
	v->born = born;
	v->via = ep;
	return &v->sum;
}

uint32_t voices_add(struct means *sum, uint64_t ns)
{
	uint64_t own = means_job();
	uint32_t n = 0;

	for (const struct voice *v = voices; v < voices + MEANS_VOICES; v++)
		if (v->job && v->job != own && !is_silent(v, ns)) {
			means_add(sum, &v->sum);
			n++;
		}
	return n;
}

bool voices_next(const struct endpoint *ep, uint64_t ns, uint32_t *at, uint64_t *job, uint64_t *age,
		 struct means *sum)
{
	uint64_t own = means_job();

	for (int i = 0; i < MEANS_VOICES; i++) {
		const struct voice *v = &voices[(*at)++ % MEANS_VOICES];

		if (!v->job || v->job == own || v->via == ep || is_silent(v, ns))
			continue;
		*job = v->job;
		*age = (ns - v->born) / 1000000 + 1;
		*sum = v->sum;
		return true;
	}
	return false;
}

void voices_forget(const struct endpoint *ep)
{
	for (struct voice *v = voices; v < voices + MEANS_VOICES; v++) {
		if (!ep)
			v->job = 0;
		else if (v->via == ep)
			v->via = NULL; /* it may come by another link */
	}
}
