/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of puts and gets. A put's ping-pong ends where the target sees the put's last byte,
 * which it polls for: nothing tells it, as nothing is told by a put that does not notify.
 */
#include "apps/slmpm_perftest/perftest.h"

#define SHARED_FROM 131072 /* of a put so long the target may copy a part, if it calls in */
#define AT_ONCE     64     /* puts under way, at most, where a burst is larger */

/* ---- put: ping-pong, side 0 begins ---- */

static ALWAYS_INLINE int await_put(struct pair *p, const struct job *j, unsigned char want)
{
	const unsigned char *last = (unsigned char *)p->region.base + j->size - 1;
	uint64_t spins = 0;
	int rc;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != want) {
		if (p->region.serves || j->size >= SHARED_FROM)
			slmpm_progress(p->ctx);
		rc = pair_idle(p, &spins);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static ALWAYS_INLINE int ping(struct pair *p, const struct job *j, struct hist *stamps, bool touch)
{
	uint64_t before, now;
	unsigned char mark = 0;
	int rc;

	/* No byte of an earlier put must look like the first one's. */
	p->region.base[j->size - 1] = 0;
	rc = p->side ? pair_signal(p) : pair_signaled(p);
	before = stamps ? now_ns() : 0;
	for (uint64_t i = 0; i < 2 * j->count && rc >= 0; i++) {
		mark = mark % 251 + 1; /* what lies there is another one */
		if ((i & 1) == (uint64_t)p->side) {
			if (touch)
				fill(p->region.source, j->size, mark);
			p->region.source[j->size - 1] = (char)mark;
			rc = slmpm_put(p->region.remote, 0, p->region.source, j->size, NULL, NULL);
		} else {
			rc = await_put(p, j, mark);
			if (touch)
				consume(p->region.base, j->size);
		}
		if (stamps && (i & 1)) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return rc;
}

int loop_put_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	if (stamps)
		return j->touch ? ping(p, j, stamps, true) : ping(p, j, stamps, false);
	return j->touch ? ping(p, j, NULL, true) : ping(p, j, NULL, false);
}

/* ---- streams: side 0 is at work, side 1 waits for the end ---- */

static ALWAYS_INLINE int one(struct pair *p, const struct job *j, uint64_t i, bool get,
			     const struct slmpm_how *how)
{
	if (get)
		return slmpm_get(p->region.remote, 0, p->rx, j->size, how, NULL);
	if (j->touch)
		fill(p->region.source, j->size, i);
	return slmpm_put(p->region.remote, 0, p->region.source, j->size, how, NULL);
}

/* So many at a time; the next ones begin when half of them are done. */
static int in_bursts(struct pair *p, const struct job *j, bool get)
{
	const struct slmpm_how how = {.size = sizeof(how), .ctr = p->region.ctr, .timeout_ms = -1};
	uint64_t most = j->burst < AT_ONCE ? j->burst : AT_ONCE;
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	uint64_t in_flight = 0;
	int rc = slmpm_ctr_query(p->region.ctr, &info);

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = one(p, j, i, get, &how);
		if (rc >= 0 && ++in_flight == most) {
			in_flight = most / 2;
			rc = slmpm_ctr_wait(p->region.ctr, info.posted + i + 1 - in_flight, -1);
		}
	}
	return rc < 0 ? rc : slmpm_ctr_wait(p->region.ctr, SLMPM_ALL, -1);
}

static ALWAYS_INLINE int stream(struct pair *p, const struct job *j, bool get)
{
	int rc = 0;

	if (p->side)
		return pair_signaled(p);
	if (j->burst > 1)
		rc = in_bursts(p, j, get);
	else
		for (uint64_t i = 0; i < j->count && rc >= 0; i++)
			rc = one(p, j, i, get, NULL);
	if (rc >= 0 && !get)
		rc = slmpm_flush(p->peer, -1);
	return rc < 0 ? rc : pair_signal(p);
}

int loop_put_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return stream(p, j, false);
}

int loop_get_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return stream(p, j, true);
}

/* ---- get: one after the other ---- */

int loop_get_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t before = stamps ? now_ns() : 0, now;
	int rc = 0;

	if (p->side)
		return pair_signaled(p);
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = one(p, j, i, true, NULL);
		if (j->touch)
			consume(p->rx, j->size);
		if (stamps) {
			now = now_ns();
			hist_add(stamps, now - before);
			before = now;
		}
	}
	return rc < 0 ? rc : pair_signal(p);
}
