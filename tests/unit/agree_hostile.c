/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a member may do by its board to the others that agree on who is gone: an error that names
 * it, or a wait. Sayings that cannot be, one by one; then any words at all, at any time.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/agree.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define MOST   130 /* members: more than two words have bits for */
#define ROUNDS 40000

static struct boards b;
static bool dead[MOST]; /* by seat */
static struct agreement a;

static bool is_dead(void *unused, uint32_t rank)
{
	(void)unused;
	CHECK(rank < b.size && rank != b.rank, "rank %u is asked for", rank);
	return dead[b.seats[rank]];
}

static void leaves(void *unused, uint32_t rank)
{
	(void)unused;
	CHECK(rank < b.size && rank != b.rank, "rank %u leaves", rank);
}

/* All boards are this process's, which is RANK of SIZE: the test writes the others. */
static void meet(uint32_t size, uint32_t rank)
{
	struct board *own;
	int fd;

	CHECK(board_make(&own, &fd) == 0, "no board");
	close(fd);
	CHECK(boards_open(&b, own, size, rank) == 0, "no boards");
	memset(dead, 0, sizeof(dead));
	for (uint32_t r = 0; r < size; r++) {
		if (r == rank)
			continue;
		CHECK(board_make(&own, &fd) == 0, "no board");
		close(fd);
		b.of[r] = own;
	}
	boards_met(&b);
	agree_begin(&a, &b, is_dead, leaves, NULL);
}

/* R's board. */
static struct board *of(uint32_t r)
{
	return (struct board *)(uintptr_t)b.of[r];
}

/* R shows what this member knows, but for one more, or BOARD_NONE. */
static void shows(uint32_t r, uint32_t more)
{
	struct view *v = &of(r)->view;

	v->generation = b.generation + 1;
	v->posted = b.posted;
	for (uint32_t w = 0; w < BOARD_RANKS; w++)
		v->gone[w] = a.gone[w];
	if (more != BOARD_NONE)
		v->gone[more / 64] |= UINT64_C(1) << more % 64;
	v->version = 2;
}

static void decides(uint32_t r, uint32_t gone, uint64_t base)
{
	struct verdict *v = &of(r)->verdict;

	memset(v, 0, sizeof(*v));
	if (gone != BOARD_NONE)
		v->gone[gone / 64] = UINT64_C(1) << gone % 64;
	v->base = base;
	v->generation = b.generation + 1;
}

static void ends(int want, const char *text, uint32_t culprit)
{
	int rc = agree_step(&a);

	CHECK(rc == want, "%d, not %d: %s", rc, want, slmpm_error_detail());
	CHECK(rc >= 0 || (strstr(slmpm_error_detail(), text) && a.culprit == culprit),
	      "%s, by %u: no %s", slmpm_error_detail(), a.culprit, text);
}

static void one_by_one(void)
{
	meet(4, 1);
	ends(0, "", 0);
	CHECK(agree_waits_for(&a, 0) && agree_waits_for(&a, 3) && !agree_waits_for(&a, 1), "who?");
	shows(0, BOARD_NONE);
	shows(2, BOARD_NONE);
	shows(3, 2); /* which lives */
	ends(-SLMPM_EPROTO, "rank 3 of the group says that rank 2 is gone", 3);
	shows(3, 1);
	ends(-SLMPM_EPROTO, "this member", 3);
	shows(3, 4);
	ends(-SLMPM_EPROTO, "never been", 3);
	shows(3, BOARD_NONE);
	of(3)->view.posted = UINT64_MAX;
	ends(-SLMPM_EPROTO, "number of operations", 3);
	of(3)->view.version = 3; /* amidst a change */
	ends(0, "", 0);
	CHECK(agree_waits_for(&a, 3) && !agree_waits_for(&a, 0), "who?");
	shows(3, BOARD_NONE);
	of(3)->view.generation = 7;
	ends(0, "", 0);
	decides(2, 0, 5);
	ends(-SLMPM_EPROTO, "rank 2 of the group says that rank 0 is gone", 2);
	decides(2, 1, 5);
	ends(-SLMPM_EPROTO, "this member", 2);
	decides(2, BOARD_NONE, UINT64_MAX);
	ends(-SLMPM_EPROTO, "number of operations", 2);
	b.posted = 6;
	decides(2, BOARD_NONE, 5);
	ends(-SLMPM_EPROTO, "have been", 2);
	dead[2] = true; /* then it counts no more */
	agree_mark(&a, 2);
	shows(0, 2);
	ends(0, "", 0);
	shows(3, 2);
	ends(1, "", 0);
	CHECK(b.size == 3 && b.rank == 1 && b.seats[2] == 3 && b.posted == 6 && b.generation == 1,
	      "%u of %u", b.rank, b.size);
	boards_close(&b);
}

/* One that dies is learnt of by another's word; the one that lies is left out in the end. */
static void by_word(void)
{
	meet(MOST, 100);
	for (uint32_t r = 0; r < MOST; r++)
		if (r != 100)
			shows(r, BOARD_NONE);
	dead[0] = dead[127] = dead[128] = true;
	shows(129, 128);
	ends(0, "", 0);
	shows(1, 0);
	shows(2, 127);
	ends(0, "", 0);
	for (uint32_t r = 0; r < MOST; r++)
		if (r != 100)
			shows(r, BOARD_NONE);
	of(3)->view.posted = 77;
	ends(1, "", 0);
	CHECK(b.size == MOST - 3 && b.rank == 99 && b.posted == 77, "%u of %u", b.rank, b.size);
	CHECK(b.seats[0] == 1 && b.seats[125] == 126 && b.seats[126] == 129, "%u", b.seats[125]);
	boards_close(&b);
}

static void lie(struct rng *g, uint32_t r)
{
	uint64_t *words = (uint64_t *)(void *)&of(r)->view;
	uint32_t n = (uint32_t)(sizeof(struct view) + sizeof(struct verdict)) / 8;

	if (rng_one_in(g, 2)) {
		shows(r, rng_one_in(g, 4) ? rng_below(g, MOST) : BOARD_NONE);
		return;
	}
	if (rng_one_in(g, 4))
		decides(r, rng_below(g, MOST), b.posted + rng_below(g, 3));
	for (int i = 0; i < 3; i++)
		words[rng_below(g, n)] = rng_one_in(g, 2) ? rng_next(g) : rng_below(g, 4);
	of(r)->ended = rng_one_in(g, 20) ? rng_next(g) : 0;
}

static void any_words(struct rng *g)
{
	uint32_t errors = 0, waits = 0, done = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		int rc;

		if (!b.of || b.size < 2) {
			if (b.of)
				boards_close(&b);
			meet(2 + rng_below(g, 5), 0);
		}
		for (uint32_t r = 1; r < b.size; r++) {
			dead[b.seats[r]] |= rng_one_in(g, 100);
			if (dead[b.seats[r]] && rng_one_in(g, 3))
				agree_mark(&a, r);
			lie(g, r);
		}
		rc = agree_step(&a);
		errors += rc < 0;
		waits += rc == 0;
		done += rc > 0;
		CHECK(rc <= 1 && b.size && b.rank < b.size, "%d: rank %u of %u", rc, b.rank,
		      b.size);
		if (rc > 0)
			agree_begin(&a, &b, is_dead, leaves, NULL);
	}
	boards_close(&b);
	printf("%u errors, %u waits, %u done\n", errors, waits, done);
	CHECK(errors && waits && done, "some never");
}

int main(void)
{
	struct rng g = {rng_run_seed(11)};

	one_by_one();
	by_word();
	any_words(&g);
	return 0;
}
