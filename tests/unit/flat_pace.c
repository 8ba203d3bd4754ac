/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* Short operations where posted lines are demoted, and where they are not: how a member rests and
 * claims its next slot changes no result, and nothing that lies there. All are this process. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

enum { SIZE = 2, MANY = 3 * BOARD_SLOTS };

static struct boards b[SIZE];
static struct flat f[SIZE];
static int64_t from[SIZE], to[SIZE];

static void meet(void)
{
	struct board *own[SIZE];
	int fd[SIZE];

	for (uint32_t r = 0; r < SIZE; r++) {
		CHECK(board_make(&own[r], &fd[r]) == 0, "no board");
		CHECK(boards_open(&b[r], own[r], SIZE, r) == 0, "no boards");
	}
	for (uint32_t r = 0; r < SIZE; r++) {
		CHECK(board_map(&b[r].of[1 - r], fd[1 - r]) == 0, "not mapped");
		boards_met(&b[r]);
		CHECK(b[r].demotes == b[0].demotes, "two answers of one processor");
	}
	for (uint32_t r = 0; r < SIZE; r++)
		close(fd[r]);
}

static struct slmpm_coll operation(uint32_t kind, uint32_t r, int root)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = kind,
				   .type = SLMPM_INT64,
				   .op = SLMPM_CALC_SUM,
				   .root = root,
				   .from = &from[r],
				   .to = &to[r],
				   .count = 1};
}

/* Rank R has posted, and waits for the other one. */
static void wait_for_other(uint32_t r, const struct slmpm_coll *c)
{
	const struct post *next = board_post(b[r].own, b[r].posted + 2);
	const struct post *theirs = board_post(b[r].of[1 - r], b[r].posted + 1);
	unsigned char before[sizeof(*next)];

	memcpy(before, next, sizeof(before));
	CHECK(flat_begin(&f[r], &b[r], c) == 0, "no memory");
	CHECK(!f[r].awaited, "the post of the last one is awaited");
	CHECK(flat_step(&f[r]) == 0, "rank %u does not wait", r);
	CHECK(memcmp(before, next, sizeof(before)) == 0, "rank %u: its next slot has changed", r);
	CHECK(f[r].awaited == (b[r].demotes ? NULL : &theirs->number), "rank %u awaits another", r);
	flat_between_looks(&f[r]); /* it ends, though there is none */
	CHECK(flat_step(&f[r]) == 0, "rank %u does not wait any more", r);
}

static void operate(uint32_t kind, int i)
{
	/* A broadcast's root waits for none. */
	const uint32_t early = kind == SLMPM_COLL_BROADCAST && i % 2 == 0;
	struct slmpm_coll c[SIZE];
	int64_t wanted;

	for (uint32_t r = 0; r < SIZE; r++) {
		c[r] = operation(kind, r, i % 2);
		from[r] = INT64_C(10) * i + r;
		to[r] = -1;
	}
	wait_for_other(early, &c[early]);
	CHECK(flat_begin(&f[1 - early], &b[1 - early], &c[1 - early]) == 0, "no memory");
	CHECK(flat_step(&f[1 - early]) == 1, "who comes last waits");
	flat_between_looks(&f[early]);
	CHECK(flat_step(&f[early]) == 1, "rank %u waits for what is there", early);
	if (kind == SLMPM_COLL_BARRIER)
		return;
	wanted = kind == SLMPM_COLL_BROADCAST ? from[i % 2] : from[0] + from[1];
	CHECK(to[early] == wanted, "%ld, not %ld", (long)to[early], (long)wanted);
}

int main(void)
{
	static const uint32_t kinds[] = {SLMPM_COLL_BARRIER, SLMPM_COLL_ALLREDUCE,
					 SLMPM_COLL_BROADCAST};

	meet();
	for (int demotes = 0; demotes < 2; demotes++) {
		b[0].demotes = b[1].demotes = demotes;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			for (int i = 0; i < MANY; i++)
				operate(kinds[k], i);
	}
	for (uint32_t r = 0; r < SIZE; r++)
		boards_close(&b[r]);
	return 0;
}
