/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Long blocks that members copy straight from and to each other's buffers: that they do; that they
 * take the ring where one refuses, or its memory cannot be reached; and that nothing is written to
 * a buffer that its owner has taken back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/members.h"

#define BLOCK (300u * 1024 + 8)
#define MOST  4 /* members */

struct meeting {
	_Atomic uint32_t step;
	_Atomic bool unreached; /* there is memory that the kernel does not reach */
};

static unsigned char to[MOST * BLOCK], own[MOST * BLOCK], *from = own;

static unsigned char byte_of(uint64_t round, uint32_t giver, uint32_t taker, uint64_t i)
{
	return (unsigned char)(round * 31 + giver * 7 + taker * 3 + i * 5 + (i >> 9));
}

static bool gives_each(uint32_t kind)
{
	return kind == SLMPM_COLL_ALLTOALL || kind == SLMPM_COLL_SCATTER;
}

static bool takes_each(uint32_t kind)
{
	return kind == SLMPM_COLL_ALLTOALL || kind == SLMPM_COLL_ALLGATHER ||
	       kind == SLMPM_COLL_GATHER;
}

static void draw(const struct boards *b, uint32_t kind, uint64_t round)
{
	for (uint32_t r = 0; r < (gives_each(kind) ? b->size : 1); r++)
		for (uint64_t i = 0; i < BLOCK; i++)
			from[r * BLOCK + i] =
				byte_of(round, b->rank, gives_each(kind) ? r : MOST, i);
	memset(to, 0x77, sizeof(to));
}

static void check_block(const struct boards *b, uint32_t kind, uint64_t round, uint32_t giver,
			const unsigned char *at)
{
	uint32_t taker = gives_each(kind) ? b->rank : MOST;

	for (uint64_t i = 0; i < BLOCK; i++)
		CHECK(at[i] == byte_of(round, giver, taker, i), "kind %u: byte %llu of %u at %u",
		      kind, (unsigned long long)i, giver, b->rank);
}

static void check(const struct boards *b, uint32_t kind, uint64_t round, uint32_t root)
{
	if (kind == SLMPM_COLL_GATHER && b->rank != root)
		return;
	if (kind == SLMPM_COLL_BROADCAST && b->rank == root)
		return;
	if (!takes_each(kind))
		check_block(b, kind, round, root, to);
	for (uint32_t r = 0; takes_each(kind) && r < b->size; r++)
		check_block(b, kind, round, r, to + r * BLOCK);
}

static struct slmpm_coll coll_of(uint32_t kind, uint32_t root)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = kind,
				   .type = SLMPM_UINT8,
				   .root = (int32_t)root,
				   .from = from,
				   .to = to,
				   .count = BLOCK};
}

static void do_one(struct boards *b, uint32_t kind, uint32_t root, uint64_t round)
{
	struct slmpm_coll c = coll_of(kind, root);

	draw(b, kind, round);
	CHECK(members_do(b, &c) == 0, "kind %u: %s", kind, slmpm_error_detail());
	check(b, kind, round, root);
}

static bool was_direct(const struct boards *b)
{
	return board_load(&b->own->through) == b->posted;
}

static const uint32_t kinds[] = {SLMPM_COLL_BROADCAST, SLMPM_COLL_SCATTER, SLMPM_COLL_GATHER,
				 SLMPM_COLL_ALLGATHER, SLMPM_COLL_ALLTOALL};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- each kind ------------------------------------------------------------------------------- */

static void each_kind(struct boards *b, void *arg)
{
	bool works;

	(void)arg;
	do_one(b, SLMPM_COLL_ALLTOALL, 0, 99);
	works = was_direct(b);
	if (!works)
		printf("no cross-memory attach here\n");
	for (uint32_t k = 0; k < 3 * KINDS; k++) {
		uint32_t kind = kinds[k % KINDS];

		do_one(b, kind, k / KINDS % b->size, k);
		if (b->size == 2 || kind == SLMPM_COLL_ALLTOALL)
			CHECK(was_direct(b) == works, "kind %u: by the ring", kind);
	}
}

/* ---- one cannot, or will not ----------------------------------------------------------------- */

static void one_refuses(struct boards *b, void *arg)
{
	struct slmpm_coll c;
	uint64_t counts[] = {BLOCK, BLOCK};

	(void)arg;
	do_one(b, SLMPM_COLL_ALLGATHER, 0, 1);
	/* Its counts are the same, and lie in places of its own, as far as others can know. */
	for (uint32_t k = 0; k < 4; k++) {
		c = coll_of(SLMPM_COLL_ALLGATHER, 0);
		c.counts = b->rank == k % 2 ? counts : NULL;
		draw(b, c.kind, k);
		CHECK(members_do(b, &c) == 0, "%s", slmpm_error_detail());
		check(b, c.kind, k, 0);
		CHECK(!was_direct(b), "without one");
	}
	if (b->rank)
		reach_refused(b);
	for (uint32_t k = 0; k < 2 * KINDS; k++) {
		do_one(b, kinds[k % KINDS], k % 2, k);
		CHECK(!was_direct(b), "without one");
	}
}

/* Memory of its own that the kernel shows no other process. */
static bool take_unreached(void)
{
#ifdef SYS_memfd_secret
	int fd = (int)syscall(SYS_memfd_secret, 0);
	void *at = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(own)) == 0)
		at = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		from = at;
	return at != MAP_FAILED;
#else
	return false;
#endif
}

static void one_is_unreached(struct boards *b, void *arg)
{
	struct meeting *m = arg;

	if (!b->rank)
		m->unreached = take_unreached();
	do_one(b, SLMPM_COLL_BROADCAST, 1, 0);
	if (!m->unreached) {
		printf("no memory that is not reached\n");
		return;
	}
	for (uint32_t k = 0; k < 2 * KINDS; k++) {
		do_one(b, kinds[k % KINDS], 0, k);
		/* What is only written from it its owner can. */
		if (was_direct(b) && kinds[k % KINDS] == SLMPM_COLL_BROADCAST)
			CHECK(board_load(&b->of[1]->failed) == b->posted, "it was reached");
	}
}

/* ---- taken back ------------------------------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void come_to(struct meeting *m, uint32_t step)
{
	while (m->step < step)
		members_nap();
}

static void given_up(struct boards *b, void *arg)
{
	struct slmpm_coll c = coll_of(SLMPM_COLL_ALLGATHER, 0);
	struct meeting *m = arg;
	struct flat f;

	do_one(b, SLMPM_COLL_ALLGATHER, 0, 1);
	if (!was_direct(b))
		return;
	CHECK(flat_begin(&f, b, &c) == 0, "no memory");
	if (!b->rank) {
		int64_t before;

		CHECK(flat_step(&f) == 0 && f.posted, "alone");
		m->step = 1;
		come_to(m, 2); /* the other is about to write */
		before = now_ms();
		flat_drop(&f);
		CHECK(now_ms() - before > 30, "it has not waited for a writer");
		memset(to, 0x33, sizeof(to));
		m->step = 4;
		come_to(m, 5);
		for (uint64_t i = 0; i < sizeof(to); i++)
			CHECK(to[i] == 0x33, "byte %llu is written", (unsigned long long)i);
		return;
	}
	come_to(m, 1);
	reach_claim(b, b->posted + 1);
	m->step = 2;
	for (int i = 0; i < 500; i++)
		members_nap();
	reach_release(b);
	come_to(m, 4);
	for (int i = 0; i < 10; i++)
		CHECK(flat_step(&f) == 0 && f.waits_for == 0, "done without the other");
	flat_drop(&f);
	m->step = 5;
}

int main(void)
{
	for (uint32_t n = 2; n <= MOST; n++)
		members_run(n, each_kind, NULL, 20);
	members_run(2, one_refuses, NULL, 20);
	members_run(2, one_is_unreached, child_common(sizeof(struct meeting)), 20);
	members_run(2, given_up, child_common(sizeof(struct meeting)), 20);
	return 0;
}
