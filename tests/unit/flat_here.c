/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* Whether a member that waits is in the way of one that shares its processor: members say where
 * they run, by any words. All are this process. */
#include <stdint.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

#define SIZE 4u

static struct boards b[SIZE];
static struct flat f[SIZE];
static const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};

static void meet(void)
{
	struct board *own[SIZE];
	int fd[SIZE];

	for (uint32_t r = 0; r < SIZE; r++) {
		CHECK(board_make(&own[r], &fd[r]) == 0, "no board");
		CHECK(boards_open(&b[r], own[r], SIZE, r) == 0, "no boards");
	}
	for (uint32_t r = 0; r < SIZE; r++) {
		for (uint32_t other = 0; other < SIZE; other++)
			if (other != r)
				CHECK(board_map(&b[r].of[other], fd[other]) == 0, "not mapped");
		boards_met(&b[r]);
	}
	for (uint32_t r = 0; r < SIZE; r++)
		close(fd[r]);
}

static int step(uint32_t r)
{
	if (!f[r].b || f[r].number == b[r].posted + 1 || f[r].next == f[r].last)
		CHECK(flat_begin(&f[r], &b[r], &barrier) == 0, "no memory");
	return flat_step(&f[r]);
}

/* One that is posted early looks as seldom as one that posts in its turn, and less often than one
 * whose bytes come piece by piece, as each does until it is posted. */
static void early(void)
{
	unsigned often;

	CHECK(step(0) == 0, "rank 0 does not wait");
	CHECK(flat_begin(&f[1], &b[1], &barrier) == 0, "no memory");
	often = f[1].between;
	flat_post_early(&f[1]);
	CHECK(f[1].posted && f[1].between == f[0].between, "%u turns between looks, not %u",
	      f[1].between, f[0].between);
	CHECK(often && f[1].between > often, "%u turns between looks, then %u", often,
	      f[1].between);
	CHECK(step(2) == 0, "rank 2 does not wait");
	CHECK(step(3) == 1, "rank 3 waits");
	for (uint32_t r = 0; r < 3; r++)
		CHECK(step(r) == 1, "rank %u waits", r);
}

static void here(bool wanted, const char *why)
{
	CHECK(step(0) == 0, "rank 0 does not wait: %s", why);
	CHECK(flat_waits_here(&f[0]) == wanted, "%s", why);
}

static void broadcast(void)
{
	int64_t value = 0;
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = SLMPM_COLL_BROADCAST,
				     .type = SLMPM_INT64,
				     .count = 1,
				     .to = &value,
				     .root = 3};

	CHECK(flat_begin(&f[0], &b[0], &c) == 0, "no memory");
	CHECK(flat_step(&f[0]) == 0, "rank 0 does not wait for the root");
	CHECK(!flat_waits_here(&f[0]), "the root runs elsewhere");
	boards_run_on(&b[3], 6);
	CHECK(flat_waits_here(&f[0]), "the root shares its processor");
}

/* Of more members than processors those that share it come first. */
static void first(void)
{
	b[0].crowded = true;
	boards_run_on(&b[1], 7);
	boards_run_on(&b[3], 7);
	CHECK(step(0) == 0 && f[0].waits_for == 2, "waits for rank %u, not 2", f[0].waits_for);
	CHECK(step(2) == 0, "rank 2 does not wait");
	CHECK(step(0) == 0 && f[0].waits_for == 1, "then for rank %u, not 1", f[0].waits_for);
	CHECK(step(1) == 0 && step(3) == 1, "rank 1 does not wait, or rank 3 does");
	for (uint32_t r = 0; r < 3; r++)
		CHECK(step(r) == 1, "rank %u waits", r);
	b[0].crowded = false;
}

int main(void)
{
	meet();
	early();
	here(true, "its own processor is not known");
	boards_run_on(&b[0], 6);
	here(false, "the others' are not known");
	boards_run_on(&b[1], 7);
	boards_run_on(&b[2], 6);
	boards_run_on(&b[3], 7);
	here(true, "rank 2, behind rank 1, is missing");
	CHECK(step(2) == 0, "rank 2 does not wait");
	here(false, "rank 2 has posted");
	boards_run_on(&b[1], -1);
	here(false, "rank 1 does not say where it runs");
	boards_run_on(&b[1], 6);
	here(true, "rank 1 has come to its processor");
	CHECK(step(1) == 0, "rank 1 does not wait");
	here(false, "rank 3 alone is missing, elsewhere");
	CHECK(step(3) == 1, "rank 3 waits");
	CHECK(step(0) == 1, "rank 0 waits");
	CHECK(step(1) == 1 && step(2) == 1, "rank 1 or 2 waits");
	first();
	broadcast();
	for (uint32_t r = 0; r < SIZE; r++)
		boards_close(&b[r]);
	return 0;
}
