/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages after a pause: both sides are left alone for a while, then a burst comes. Steady figures
 * hide what its first messages cost, for a side that sleeps has to be woken.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <endian.h>
#include <string.h>

/* When the 10th and the 100th message of a burst were there, and all of them: ns since the first
 * was. */
enum { TO_10, TO_100, TO_ALL, MARKS };

struct marks {
	uint64_t ns[MARKS];
};

static struct hist firsts,
	behind[MARKS]; /* of side 0: the first message, and those behind it, ns each */

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

typedef int step_fn(struct pair *p, const struct job *j);

/* The whole burst, and when its messages were there; *FIRST: the time when the first was. */
static int burst(struct pair *p, const struct job *j, step_fn *step, uint64_t *first,
		 struct marks *m)
{
	int rc = step(p, j);

	*first = now_ns();
	*m = (struct marks){0};
	for (uint64_t i = 2; i <= j->burst && rc >= 0; i++) {
		rc = step(p, j);
		if (i == 10)
			m->ns[TO_10] = now_ns() - *first;
		else if (i == 100)
			m->ns[TO_100] = now_ns() - *first;
	}
	m->ns[TO_ALL] = now_ns() - *first;
	return rc;
}

/* A round trip has WAYS 2. Marks that a burst is too short for are 0. */
static void note(const struct job *j, uint64_t first_ns, const struct marks *m, unsigned ways)
{
	const uint64_t number[MARKS] = {10, 100, j->burst};

	hist_add(&firsts, first_ns / 2);
	for (int i = 0; i < MARKS; i++)
		if (j->burst >= number[i] && number[i] > 1)
			hist_add(&behind[i], m->ns[i] / (number[i] - 1) / ways);
}

static int round_trips(struct pair *p, const struct job *j)
{
	uint64_t begin = now_ns(), first;
	struct marks m;
	int rc = burst(p, j, exchange, &first, &m);

	if (p->side == 0)
		note(j, first - begin, &m, 2);
	return rc;
}

/* The receiver's marks travel in its answer; what is left of the time is the first message's and
 * the answer's. */
static int answer(struct pair *p, struct marks *m)
{
	struct marks wire;
	int64_t len;

	if (p->side) {
		for (int i = 0; i < MARKS; i++)
			wire.ns[i] = htole64(m->ns[i]);
		return slmpm_send(p->peer, STREAM_DATA, &wire, sizeof(wire), -1);
	}
	len = slmpm_recv(p->peer, STREAM_DATA, &wire, sizeof(wire), NULL, -1);
	if (len != (int64_t)sizeof(wire))
		return len < 0 ? (int)len : -SLMPM_EPROTO;
	for (int i = 0; i < MARKS; i++)
		m->ns[i] = le64toh(wire.ns[i]);
	return 0;
}

static int one_way(struct pair *p, const struct job *j)
{
	uint64_t begin = now_ns(), first, all;
	struct marks m;
	int rc = burst(p, j, p->side == 0 ? say : hear, &first, &m);

	if (rc >= 0)
		rc = answer(p, &m);
	all = now_ns() - begin;
	if (rc >= 0 && p->side == 0)
		note(j, all > m.ns[TO_ALL] ? all - m.ns[TO_ALL] : 0, &m, 1);
	return rc;
}

static double median_of(const struct hist *h)
{
	return h->count ? hist_quantile(h, 0.5) : -1;
}

static int after_pauses(struct pair *p, const struct job *j, step_fn *bursts)
{
	int rc = 0;

	hist_clear(&firsts);
	for (int i = 0; i < MARKS; i++)
		hist_clear(&behind[i]);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		if (p->side == 0)
			rest_for(j->idle_us);
		rc = bursts(p, j);
	}
	p->extra.first_ns = median_of(&firsts);
	p->extra.to10_ns = median_of(&behind[TO_10]);
	p->extra.to100_ns = median_of(&behind[TO_100]);
	p->extra.rest_ns = median_of(behind[TO_ALL].count ? &behind[TO_ALL] : &firsts);
	return rc;
}

int loop_pause_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return after_pauses(p, j, round_trips);
}

int loop_pause_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return after_pauses(p, j, one_way);
}
