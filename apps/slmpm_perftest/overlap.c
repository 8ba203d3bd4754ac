/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a put hides behind a computation: the put alone, a computation that lasts as long,
 * then the computation between the put's beginning and its end.
 */
#include "apps/slmpm_perftest/perftest.h"

#define STEPS 1000 /* of the computation, in one unit */

static volatile uint64_t sink;

/* In registers only, so that it and the transfer do not compete for memory. */
void compute(uint64_t units)
{
	uint64_t x = units | 1;

	for (uint64_t i = 0; i < units * STEPS; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	sink = x;
}

double compute_unit_ns(void)
{
	enum { UNITS = 1000 };
	uint64_t begin = now_ns();

	compute(UNITS);
	return (double)(now_ns() - begin) / UNITS;
}

/* A put that is done once the target has it; UNITS of computation between beginning and end. */
static int put(struct pair *p, const struct job *j, uint64_t units, double *ns)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	struct slmpm_done done;
	uint64_t begin = now_ns();
	slmpm_req req;
	int rc = slmpm_put(p->region.remote, 0, p->tx, j->size, &how, &req);

	if (rc >= 0 && units)
		compute(units);
	if (rc >= 0)
		rc = slmpm_wait(&req, 1, &done, -1);
	*ns = (double)(now_ns() - begin);
	return rc < 0 ? rc : done.status;
}

static int lead(struct pair *p, const struct job *j, struct hist *stamps)
{
	double alone = 0, computing = 0, both = 0, a, b = 0, unit = compute_unit_ns();
	uint64_t units, begin;
	int rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = put(p, j, 0, &a);
		units = (uint64_t)(a / unit) + 1;
		begin = now_ns();
		compute(units);
		computing += (double)(now_ns() - begin);
		if (rc >= 0)
			rc = put(p, j, units, &b);
		alone += a;
		both += b;
		if (stamps)
			hist_add(stamps, (uint64_t)a);
	}
	a = alone < computing ? alone : computing;
	p->extra.hidden = (alone + computing - both) / (a > 0 ? a : 1);
	if (p->extra.hidden < 0)
		p->extra.hidden = 0;
	p->extra.each_ns = alone / (double)j->count;
	return rc;
}

int loop_overlap(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc;

	if (p->side)
		return pair_signaled(p);
	rc = lead(p, j, stamps);
	return rc < 0 ? rc : pair_signal(p);
}
