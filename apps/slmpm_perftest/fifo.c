/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of puts into a FIFO: the target takes each and stores it where it was meant to go. */
#include "apps/slmpm_perftest/perftest.h"

static ALWAYS_INLINE int put(struct pair *p, const struct job *j, uint64_t i)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_FIFO, .timeout_ms = -1};

	if (j->touch)
		fill(p->region.source, j->size, i);
	return slmpm_put(p->region.remote, 0, p->region.source, j->size, &how, NULL);
}

static ALWAYS_INLINE int store_next(struct pair *p, const struct job *j)
{
	struct slmpm_fifo e;
	int rc = slmpm_fifo_take(p->peer, &e, -1);

	if (rc >= 0)
		rc = slmpm_fifo_store(&e, e.mem, e.offset, NULL, NULL);
	if (j->touch)
		consume(p->region.base, j->size);
	return rc;
}

int loop_fifo_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t before = stamps ? now_ns() : 0, now;
	int rc = 0;

	for (uint64_t i = 0; i < 2 * j->count && rc >= 0; i++) {
		rc = (i & 1) == (uint64_t)p->side ? put(p, j, i) : store_next(p, j);
		if (stamps && (i & 1)) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return rc;
}

int loop_fifo_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc = 0;

	(void)stamps;
	for (uint64_t i = 0; i < j->count && rc >= 0; i++)
		rc = p->side ? store_next(p, j) : put(p, j, i);
	if (rc < 0)
		return rc;
	return p->side ? pair_signal(p) : pair_signaled(p);
}
