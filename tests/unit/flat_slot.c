/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* A slot that is just being written again, for a later operation: others take no word of it for
 * the operation before. Both members are this process, one of them in the middle of a post. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

#define AHEAD (BOARD_SLOTS + BOARD_SLOTS / 2) /* its slot is that of operation BOARD_SLOTS / 2 */

static struct boards b[2];
static struct flat f[2];
static struct slmpm_coll colls[2];
static int64_t value[2], sum;

static void meet(void)
{
	struct board *own[2];
	int fd[2];

	for (uint32_t r = 0; r < 2; r++) {
		CHECK(board_make(&own[r], &fd[r]) == 0, "no board");
		CHECK(boards_open(&b[r], own[r], 2, r) == 0, "no boards");
	}
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(board_map(&b[r].of[!r], fd[!r]) == 0, "cannot be mapped");
		boards_met(&b[r]);
	}
	for (uint32_t r = 0; r < 2; r++)
		close(fd[r]);
}

static void begin(uint32_t r, uint32_t kind)
{
	bool sends = kind == SLMPM_COLL_REDUCE || r == 0;

	colls[r] = (struct slmpm_coll){.size = sizeof(struct slmpm_coll), .kind = kind};
	if (kind != SLMPM_COLL_BARRIER) {
		colls[r].type = SLMPM_INT64;
		colls[r].op = flat_combines(kind) ? SLMPM_CALC_SUM : 0;
		colls[r].count = 1;
		colls[r].from = sends ? &value[r] : NULL;
		colls[r].to = sends ? &sum : &value[r];
	}
	CHECK(flat_begin(&f[r], &b[r], &colls[r]) == 0, "no memory");
}

static void in_step(uint32_t kind)
{
	int done[2] = {0};

	begin(1, kind);
	begin(0, kind);
	while (!done[0] || !done[1])
		for (uint32_t r = 0; r < 2; r++) {
			if (!done[r])
				done[r] = flat_step(&f[r]);
			CHECK(done[r] >= 0, "rank %u: %s", r, slmpm_error_detail());
		}
}

int main(void)
{
	int rc;

	meet();
	for (uint32_t i = 1; i < BOARD_SLOTS; i++)
		in_step(i == 5 ? SLMPM_COLL_REDUCE : SLMPM_COLL_BROADCAST);
	for (uint32_t i = BOARD_SLOTS; i < AHEAD; i++) {
		begin(0, SLMPM_COLL_BROADCAST);
		CHECK(flat_step(&f[0]) == 1, "the root waits at operation %u", i);
	}
	begin(0, SLMPM_COLL_BROADCAST);
	CHECK(flat_may_post(&f[0], &f[0].waits_for) == 1, "the root cannot post");
	boards_say(boards_slot(&b[0]), f[0].what, f[0].count); /* and no more yet */

	begin(1, SLMPM_COLL_BROADCAST);
	rc = flat_step(&f[1]);
	CHECK(rc == 1, "%d: %s", rc, slmpm_error_detail());
	begin(1, SLMPM_COLL_BARRIER);
	rc = flat_step(&f[1]);
	CHECK(rc == -SLMPM_EINVAL && strstr(slmpm_error_detail(), "operation 33,"), "%d: %s", rc,
	      slmpm_error_detail());
	for (uint32_t r = 0; r < 2; r++)
		boards_close(&b[r]);
	return 0;
}
