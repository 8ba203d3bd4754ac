/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* libs: -Wl,--wrap=offload_came,--wrap=tags_number,--wrap=tags_have,--wrap=operations_fail */
/* libs: -Wl,--wrap=flat_waits_for */
/*
 * slmpm/group/blocked.c as it is, at rank 0 of two members: rank 1 shows that it blocks in an
 * operation of tag 5. Which of this member's wait for that one, what is said then, and what a
 * packet that shows it changes.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/group/operation.h"
#include "tests/lib/test.h"
#include "tests/unit/distant.h"
#include "tests/unit/stands.h"

#define TAG 5

static struct group *const g = &distant_group;
static struct board board;
static int failed;

uint64_t __wrap_tags_number(const struct group *of);
bool __wrap_tags_have(const struct group *of, uint32_t tag);
bool __wrap_flat_waits_for(const struct flat *f, uint32_t r);
void __wrap_operations_fail(struct group *of, int error, uint32_t culprit);

uint64_t __wrap_tags_number(const struct group *of)
{
	(void)of;
	return 0;
}

/* Meanwhile rank 1 shows another word. */
bool __wrap_tags_have(const struct group *of, uint32_t tag)
{
	(void)of;
	board.blocked = 0;
	return tag != TAG;
}

bool __wrap_flat_waits_for(const struct flat *f, uint32_t r)
{
	(void)f;
	return r == 1;
}

void __wrap_operations_fail(struct group *of, int error, uint32_t culprit)
{
	(void)of;
	CHECK(error == -SLMPM_EINVAL && culprit == 1, "error %d, by %u", error, culprit);
	CHECK(strstr(group_detail(), "an operation of tag 5"), "%s", group_detail());
	failed++;
}

/* The first inspection of an operation of KIND, without a tag: how many fail. */
static int inspect(uint32_t kind)
{
	const struct slmpm_coll c = {.size = sizeof(c), .kind = kind};
	struct collective op = {.group = g, .coll = &c};

	failed = 0;
	list_append(&g->operations, &op.node);
	g->under_way = true;
	blocked_begin(g, &op);
	blocked_inspect(g, 1);
	list_remove(&op.node);
	return failed;
}

/* ---- by messages ----------------------------------------------------------------------------- */

static void comes(struct wire_group packet)
{
	packet.step = GROUP_STANDS;
	packet.what |= WIRE_GROUP_LANE;
	CHECK(stalled_said(&distant_ep, &packet) == 0, "STANDS");
}

/* Rank 1 has begun none without a tag. */
static void blocks(void)
{
	comes((struct wire_group){.what = WIRE_GROUP_BLOCKS, .blocked = TAG});
}

static int waits(uint32_t kind, uint64_t come)
{
	distant_set_up();
	blocks();
	stands_begin(g, kind, come);
	return inspect(kind);
}

static void sends_and_receives(void)
{
	CHECK(!waits(SLMPM_COLL_BROADCAST, 0), "what is sent to rank 1 does not wait for it");
	CHECK(waits(SLMPM_COLL_REDUCE, 0) == 1, "what is to come of rank 1 waits for it");
	CHECK(!waits(SLMPM_COLL_REDUCE, 1), "what has come of rank 1 does not wait for it");
}

/* ---- in memory ------------------------------------------------------------------------------- */

static void shows_another(void)
{
	const struct board *of[] = {&board, &board};

	distant_set_up();
	g->apart = false;
	g->boards.of = of;
	g->flat.number = 1;
	board.blocked = (uint64_t)TAG << 32;
	CHECK(inspect(SLMPM_COLL_BARRIER) == 1, "both wait");
}

/* ---- who starts more meanwhile --------------------------------------------------------------- */

static void has_functions(void)
{
	const struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	const struct collective op = {.group = g, .coll = &c};

	distant_set_up();
	blocked_begin(g, &op);
	CHECK(g->blocked.in == &op, "it starts nothing else");
	g->ctx->calls_back = true;
	blocked_begin(g, &op);
	g->ctx->calls_back = false;
	CHECK(!g->blocked.in, "a function that puts of any group call may start more");
}

/* ---- what a packet says that blocks ---------------------------------------------------------- */

static void says_no_count(void)
{
	struct stand before, s;

	distant_set_up();
	blocks();
	CHECK(!stands_said(g).any, "it says where it is");
	comes((struct wire_group){
		.operation = 4, .rank = 1, .within = 1000, .about = 4, .elements = 9});
	before = stands_said(g);
	blocks();
	s = stands_said(g);
	CHECK(s.any && s.number == 4 && s.suspect == 1 && s.until == before.until && s.about == 4 &&
		      s.said.count == 9,
	      "operation %llu, %llu elements", (unsigned long long)s.number,
	      (unsigned long long)s.said.count);
}

int main(void)
{
	sends_and_receives();
	shows_another();
	has_functions();
	says_no_count();
	return 0;
}
