/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages after a pause: both sides are left alone for a while, then a burst comes. Steady figures hide what
 * its first messages cost, for a side that sleeps has to be woken.
 */
#include "apps/slmpm_perftest/perftest.h"

static struct hist firsts, rests; /* of side 0, ns */

static void rest_for(uint64_t us)
{
	const struct timespec rest = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	nanosleep(&rest, NULL);
}

static int say(struct pair *p, const struct job *j)
{
	return slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
}

static int hear(struct pair *p, const struct job *j)
{
	int64_t len = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);

	return len < 0 ? (int)len : 0;
}

static int exchange(struct pair *p, const struct job *j)
{
	int rc = p->side == 0 ? say(p, j) : hear(p, j);

	if (rc < 0)
		return rc;
	return p->side == 0 ? hear(p, j) : say(p, j);
}

/* One way of the first message, and of those behind it on average. */
static int burst_of_round_trips(struct pair *p, const struct job *j)
{
	uint64_t begin = now_ns(), first;
	int rc = exchange(p, j);

	first = now_ns();
	for (uint64_t i = 1; i < j->burst && rc >= 0; i++)
		rc = exchange(p, j);
	if (p->side)
		return rc;
	hist_add(&firsts, (first - begin) / 2);
	if (j->burst > 1)
		hist_add(&rests, (now_ns() - first) / (j->burst - 1) / 2);
	return rc;
}

/* A burst one way, until its receiver has answered. */
static int burst_one_way(struct pair *p, const struct job *j)
{
	uint64_t begin = now_ns();
	int rc = 0;

	for (uint64_t i = 0; i < j->burst && rc >= 0; i++)
		rc = p->side == 0 ? say(p, j) : hear(p, j);
	if (rc >= 0)
		rc = p->side == 0 ? hear(p, j) : say(p, j);
	if (p->side == 0)
		hist_add(&rests, (now_ns() - begin) / j->burst);
	return rc;
}

typedef int burst_fn(struct pair *p, const struct job *j);

static int after_pauses(struct pair *p, const struct job *j, burst_fn *burst)
{
	int rc = 0;

	hist_clear(&firsts);
	hist_clear(&rests);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		if (p->side == 0)
			rest_for(j->idle_us);
		rc = burst(p, j);
	}
	if (firsts.count)
		p->extra.first_ns = hist_quantile(&firsts, 0.5);
	p->extra.rest_ns = hist_quantile(rests.count ? &rests : &firsts, 0.5);
	return rc;
}

int loop_pause_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return after_pauses(p, j, burst_of_round_trips);
}

int loop_pause_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return after_pauses(p, j, burst_one_way);
}
