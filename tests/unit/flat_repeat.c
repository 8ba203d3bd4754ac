/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* An operation as the one before begins by less: its result is its own, and what differs in
 * anything, or comes behind another, is no such one. All members are this process. */
#include <stdint.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

enum { SIZE = 3, MANY = 5 * BOARD_SLOTS, LONG = 100 };

static struct boards b[SIZE];
static struct flat f[SIZE];
static double from[SIZE][LONG], to[SIZE][LONG];

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

static struct slmpm_coll sum(uint32_t r, uint64_t count)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = SLMPM_COLL_ALLREDUCE,
				   .type = SLMPM_DOUBLE,
				   .op = SLMPM_CALC_SUM,
				   .from = from[r],
				   .to = to[r],
				   .count = count};
}

/* Of all members: does it begin AGAIN? */
static void operate(struct slmpm_coll c[SIZE], bool again, const char *what)
{
	int done[SIZE] = {0};

	for (uint32_t r = 0; r < SIZE; r++) {
		CHECK(flat_repeats(&f[r], &b[r], &c[r]) == again, "rank %u, %s: %s", r, what,
		      again ? "it is not the same" : "it is the same");
		if (again)
			flat_repeat(&f[r], &b[r], &c[r]);
		else
			CHECK(flat_begin(&f[r], &b[r], &c[r]) == 0, "no memory");
	}
	for (int turn = 0; turn < 4; turn++)
		for (uint32_t r = 0; r < SIZE; r++)
			done[r] = done[r] ? done[r] : flat_step(&f[r]);
	for (uint32_t r = 0; r < SIZE; r++)
		CHECK(done[r] == 1, "rank %u, %s: %d", r, what, done[r]);
}

static void add(uint64_t count, double value, bool again, const char *what)
{
	struct slmpm_coll c[SIZE];

	for (uint32_t r = 0; r < SIZE; r++) {
		c[r] = sum(r, count);
		for (uint64_t i = 0; i < count; i++)
			from[r][i] = value + r + (double)i;
	}
	operate(c, again, what);
	for (uint32_t r = 0; r < SIZE; r++)
		for (uint64_t i = 0; i < count; i++) {
			double wanted = 3 * (value + (double)i) + 3;

			CHECK(to[r][i] <= wanted && to[r][i] >= wanted, "rank %u, %s: %g, not %g",
			      r, what, to[r][i], wanted);
		}
}

/* With roots in turn from FIRST on, MANY times. */
static void broadcast(uint32_t first, int many, bool again, const char *what)
{
	struct slmpm_coll c[SIZE];

	for (int i = 0; i < many; i++) {
		uint32_t root = (first + (uint32_t)i) % SIZE;

		for (uint32_t r = 0; r < SIZE; r++) {
			c[r] = sum(r, 1);
			c[r].kind = SLMPM_COLL_BROADCAST;
			c[r].op = 0;
			c[r].root = (int32_t)root;
			from[r][0] = 100.0 * i + r + 1;
			to[r][0] = 0;
		}
		operate(c, again || i, what);
		for (uint32_t r = 0; r < SIZE; r++) {
			double wanted = r == root ? 0 : from[root][0];

			CHECK(to[r][0] <= wanted && to[r][0] >= wanted, "rank %u of root %u: %g", r,
			      root, to[r][0]);
		}
	}
}

/* Behind a broadcast. */
static void differ(void)
{
	struct slmpm_coll c = sum(0, 1);

	c.kind = SLMPM_COLL_BROADCAST;
	c.op = 0;
	CHECK(flat_repeats(&f[0], &b[0], &c), "it is the same");
	c.root = SIZE;
	CHECK(!flat_repeats(&f[0], &b[0], &c), "of no rank");
	c.root = -1;
	CHECK(!flat_repeats(&f[0], &b[0], &c), "of a negative rank");
	c.root = 0;
	c.flags = 1;
	CHECK(!flat_repeats(&f[0], &b[0], &c), "with flags");
	c.flags = 0;
	c.counts = &c.count;
	CHECK(!flat_repeats(&f[0], &b[0], &c), "with counts");
	c.counts = NULL;
	c.to = NULL;
	CHECK(!flat_repeats(&f[0], &b[0], &c), "to nowhere");
}

/* Its root may leave `to` NULL: by another root it would not do. */
static void to_nowhere(void)
{
	struct slmpm_coll c[SIZE];

	for (int i = 0; i < 2; i++) {
		for (uint32_t r = 0; r < SIZE; r++) {
			c[r] = sum(r, 1);
			c[r].kind = SLMPM_COLL_BROADCAST;
			c[r].op = 0;
			c[r].to = r ? to[r] : NULL;
		}
		for (uint32_t r = 0; r < SIZE; r++)
			CHECK(flat_repeats(&f[r], &b[r], &c[r]) == (r && i), "rank %u", r);
		for (uint32_t r = 0; r < SIZE; r++)
			CHECK(flat_begin(&f[r], &b[r], &c[r]) == 0, "no memory");
		for (uint32_t r = 0; r < SIZE; r++)
			CHECK(flat_step(&f[r]) == 1, "rank %u waits", r);
	}
}

int main(void)
{
	meet();
	add(1, 5, false, "the first one");
	for (int i = 0; i < MANY; i++)
		add(1, i, true, "one element");
	add(2, 7, false, "two elements");
	add(2, 8, true, "two again");
	add(LONG, 9, false, "a long one");
	add(LONG, 9, false, "the same long one");
	add(1, 3, false, "behind a long one");
	broadcast(1, MANY, false, "broadcasts");
	differ();
	add(1, 4, false, "behind a broadcast");
	broadcast(2, 1, false, "behind a sum");
	broadcast(0, 2, true, "another root");
	add(1, 4, false, "behind a broadcast again");
	to_nowhere();
	add(1, 4, false, "behind one to nowhere");
	for (uint32_t r = 0; r < SIZE; r++)
		b[r].generation++;
	add(1, 6, false, "the next generation");
	add(1, 7, true, "again there");
	for (uint32_t r = 0; r < SIZE; r++)
		boards_close(&b[r]);
	return 0;
}
