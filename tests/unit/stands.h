/* SPDX-License-Identifier: BSD-3-Clause */
/* What one of two members has under way by messages, and what the other says of itself. The
 * program is linked with --wrap=offload_came. */
#ifndef TESTS_UNIT_STANDS_H
#define TESTS_UNIT_STANDS_H

#include <string.h>

#include "slmpm/group/messages.h"
#include "tests/lib/test.h"

static uint64_t stands_came; /* messages of the other */

uint64_t __wrap_offload_came(const struct offload *o, uint32_t rank);

uint64_t __wrap_offload_came(const struct offload *o, uint32_t rank)
{
	(void)o, (void)rank;
	return stands_came;
}

/* In G, of 8 bytes and KIND; so many messages have COME of the other by then. */
static void stands_begin(struct group *g, uint32_t kind, uint64_t come)
{
	static uint64_t counts[3][2];
	static unsigned char needs[2];
	static struct messages m;

	m = (struct messages){
		.before = counts[0],
		.expected = counts[1],
		.walked = counts[2],
		.needs = needs,
		.stage = RUNS,
		.number = 1,
		.run.spec = {.kind = kind, .size = 2, .algorithm = PLAN_BINOMIAL, .count = 1}};
	g->messages = &m;
	g->boards.posted = 1;
	stands_came = 0;
	CHECK(needs_find(g, &m.run) == 0, "no plan");
	stands_came = come;
}

/* What rank 1 has said, of the lane. */
static struct stand stands_said(const struct group *g)
{
	const struct group lane = {
		.main = (struct group *)(uintptr_t)g, .members = g->members, .boards = g->boards};
	const struct stand *s = stalled_stand(&lane, 1);

	return s ? *s : (struct stand){.any = false};
}

#endif
