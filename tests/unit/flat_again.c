/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* Of two members an operation as the one before, by flat_again: done at once where the other's post
 * is there, and else as usual. What the other posted instead, that it sleeps or has broken the
 * group is found. Both members are this process. */
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

enum { SIZE = 2, MANY = 5 * BOARD_SLOTS };

static struct boards b[SIZE];
static struct flat f[SIZE];
static double from[SIZE][5], to[SIZE][5];
static int bell[2];
static uint32_t at_once; /* so many were not kept as operations that wait */

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
	}
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, bell) == 0, "no sockets");
	b[0].bells[1] = bell[0];
	for (uint32_t r = 0; r < SIZE; r++)
		close(fd[r]);
}

static struct slmpm_coll operation(uint32_t kind, uint32_t r, uint64_t count, int root)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = kind,
				   .type = SLMPM_DOUBLE,
				   .op = kind == SLMPM_COLL_ALLREDUCE ? SLMPM_CALC_SUM : 0,
				   .root = root,
				   .from = from[r],
				   .to = to[r],
				   .count = count};
}

static int finish(uint32_t r)
{
	int rc = 0;

	for (int i = 0; i < 4 && rc == 0; i++)
		rc = flat_step(&f[r]);
	return rc;
}

static int first(uint32_t r, const struct slmpm_coll *c)
{
	CHECK(flat_begin(&f[r], &b[r], c) == 0, "no memory");
	return flat_step(&f[r]);
}

static void begin(uint32_t kind, uint64_t count)
{
	const struct slmpm_coll c[SIZE] = {operation(kind, 0, count, 0),
					   operation(kind, 1, count, 0)};

	for (uint32_t r = 0; r < SIZE; r++)
		(void)first(r, &c[r]);
	CHECK(finish(0) == 1 && finish(1) == 1, "kind %u: it is not done", kind);
}

/* As the one before; EARLY comes first, and WAITS or does not. */
static void repeat(struct slmpm_coll c[SIZE], uint32_t early, bool waits)
{
	const uint64_t number = b[0].posted + 1;

	for (uint32_t r = 0; r < SIZE; r++)
		CHECK(flat_repeats(&f[r], &b[r], &c[r]), "rank %u: it is another one", r);
	CHECK(flat_again(&f[early], &b[early], &c[early]) == !waits, "rank %u, first", early);
	CHECK(!waits || f[early].number == number, "it waits for %lu", (long)f[early].number);
	CHECK(flat_again(&f[1 - early], &b[1 - early], &c[1 - early]) == 1, "who comes last waits");
	CHECK(!waits || finish(early) == 1, "rank %u still waits", early);
	at_once += f[1 - early].number != number;
	CHECK(b[0].posted == number && b[1].posted == number, "posts");
	CHECK(b[0].history == b[1].history, "histories");
}

static void give(uint32_t r, double value)
{
	for (int i = 0; i < 5; i++) {
		from[r][i] = value + i;
		to[r][i] = -1;
	}
}

static void check(uint32_t r, uint64_t count, double value, double step)
{
	for (uint64_t i = 0; i < count; i++) {
		double wanted = value + step * (double)i;

		CHECK(to[r][i] <= wanted && to[r][i] >= wanted, "rank %u: %g, not %g", r, to[r][i],
		      wanted);
	}
}

static void barriers(void)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_BARRIER, 0, 0, 0),
				     operation(SLMPM_COLL_BARRIER, 1, 0, 0)};

	begin(SLMPM_COLL_BARRIER, 0);
	for (uint32_t i = 0; i < MANY; i++)
		repeat(c, i % 2, true);
}

static void sums(uint64_t count)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_ALLREDUCE, 0, count, 0),
				     operation(SLMPM_COLL_ALLREDUCE, 1, count, 0)};

	begin(SLMPM_COLL_ALLREDUCE, count);
	for (uint32_t i = 0; i < MANY; i++) {
		give(0, i);
		give(1, 100);
		repeat(c, i % 2, true);
		check(0, count, 100 + i, 2);
		check(1, count, 100 + i, 2);
	}
}

/* With roots in turn: who comes first, root or not. */
static void broadcasts(uint64_t count)
{
	begin(SLMPM_COLL_BROADCAST, count);
	for (uint32_t i = 0; i < MANY; i++) {
		const uint32_t root = i % 2, early = i / 2 % 2;
		struct slmpm_coll c[SIZE];

		for (uint32_t r = 0; r < SIZE; r++) {
			c[r] = operation(SLMPM_COLL_BROADCAST, r, count, (int)root);
			give(r, i + 10.0 * r);
		}
		repeat(c, early, early != root);
		check(1 - root, count, i + 10.0 * root, 1);
	}
}

static int again(uint32_t r, const struct slmpm_coll *c)
{
	return flat_again(&f[r], &b[r], c);
}

/* A root is ahead of one that has not posted, by as many as there are slots and no more. */
static void ahead(void)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_BROADCAST, 0, 1, 0),
				     operation(SLMPM_COLL_BROADCAST, 1, 1, 0)};
	uint32_t n = 0;

	while (n < 2 * BOARD_SLOTS && again(0, &c[0]) == 1)
		n++;
	CHECK(n < BOARD_SLOTS, "it is %u ahead", n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(again(1, &c[1]) == 1, "%u behind", n - i);
	CHECK(finish(0) == 1, "it still waits");
	CHECK(again(1, &c[1]) == 1, "the last one");
}

static void asleep(void)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_BARRIER, 0, 0, 0),
				     operation(SLMPM_COLL_BARRIER, 1, 0, 0)};
	struct pollfd rings = {.fd = bell[1], .events = POLLIN};
	char byte[8];

	begin(SLMPM_COLL_BARRIER, 0);
	CHECK(again(1, &c[1]) == 0, "it does not wait");
	(void)boards_announce(&b[1], 0);
	CHECK(poll(&rings, 1, 0) == 0, "it rings early");
	CHECK(again(0, &c[0]) == 1, "it waits");
	CHECK(poll(&rings, 1, 0) == 1, "no bell rings");
	CHECK(recv(bell[1], byte, sizeof(byte), 0) > 0, "an empty bell");
	boards_awake(&b[1]);
	CHECK(finish(1) == 1, "it still waits");
}

/* Another may have broken the group, but has not. */
static void in_vain(void)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_BARRIER, 0, 0, 0),
				     operation(SLMPM_COLL_BARRIER, 1, 0, 0)};

	begin(SLMPM_COLL_BARRIER, 0);
	CHECK(again(1, &c[1]) == 0, "it does not wait");
	b[0].others_broke = true;
	CHECK(again(0, &c[0]) == 1, "it waits");
	CHECK(!b[0].others_broke, "it has not been found out");
	CHECK(finish(1) == 1, "it still waits");
}

/* The same of a sum in place, which is made once. */
static void in_vain_in_place(void)
{
	struct slmpm_coll c[SIZE] = {operation(SLMPM_COLL_ALLREDUCE, 0, 1, 0),
				     operation(SLMPM_COLL_ALLREDUCE, 1, 1, 0)};

	for (uint32_t r = 0; r < SIZE; r++) {
		c[r].from = SLMPM_IN_PLACE;
		to[r][0] = 1;
		(void)first(r, &c[r]);
	}
	CHECK(finish(0) == 1, "it still waits");
	for (uint32_t r = 0; r < SIZE; r++)
		to[r][0] = 10.0 + r;
	CHECK(again(1, &c[1]) == 0, "it does not wait");
	b[0].others_broke = true;
	CHECK(again(0, &c[0]) == 1, "it waits");
	check(0, 1, 21, 0);
	CHECK(finish(1) == 1, "it still waits");
	check(1, 1, 21, 0);
}

/* The other does another operation. */
static void differs(uint32_t kind)
{
	struct slmpm_coll c = operation(SLMPM_COLL_BARRIER, 0, 0, 0);
	struct slmpm_coll other = operation(kind, 1, 1, 0);

	begin(SLMPM_COLL_BARRIER, 0);
	(void)first(1, &other);
	CHECK(again(0, &c) == -SLMPM_EINVAL, "no error");
}

int main(void)
{
	meet();
	barriers();
	sums(1);
	sums(5);
	broadcasts(1);
	broadcasts(5);
	CHECK(at_once > 4 * MANY, "%u at once", at_once);
	begin(SLMPM_COLL_BARRIER, 0);
	broadcasts(1);
	ahead();
	asleep();
	in_vain();
	in_vain_in_place();
	differs(SLMPM_COLL_ALLREDUCE);
	for (uint32_t r = 0; r < SIZE; r++) {
		boards_close(&b[r]);
	}
	return 0;
}
