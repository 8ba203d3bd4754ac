/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Which route long blocks take: that the one that is not usual is tried, by all at once; that what
 * the member that measures has on its board is what all begin with; that all of it is right where
 * that changes at any moment; and that settings force it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/members.h"

#define BLOCK (48u * 1024 + 8)
#define KINDS 5

static unsigned char from[2 * BLOCK], to[2 * BLOCK];

static const uint32_t kinds[KINDS] = {SLMPM_COLL_BROADCAST, SLMPM_COLL_SCATTER, SLMPM_COLL_GATHER,
				      SLMPM_COLL_ALLGATHER, SLMPM_COLL_ALLTOALL};

static unsigned char byte_of(uint64_t round, uint32_t giver, uint64_t i)
{
	return (unsigned char)(round * 31 + giver * 7 + i * 5 + (i >> 9));
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

/* What comes of rank R at AT, of the block for this member. */
static void check_block(const struct boards *b, uint32_t kind, uint64_t round, uint32_t r,
			const unsigned char *at)
{
	uint64_t first = gives_each(kind) ? b->rank * BLOCK : 0;

	for (uint64_t i = 0; i < BLOCK; i++)
		CHECK(at[i] == byte_of(round, r, first + i), "kind %u, round %llu: byte %llu of %u",
		      kind, (unsigned long long)round, (unsigned long long)i, r);
}

static void do_one(struct boards *b, uint32_t kind, uint32_t root, uint64_t round)
{
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = kind,
			       .type = SLMPM_UINT8,
			       .root = (int32_t)root,
			       .from = from,
			       .to = to,
			       .count = BLOCK};
	bool takes = b->rank == root ? kind != SLMPM_COLL_BROADCAST : kind != SLMPM_COLL_GATHER;

	for (uint64_t i = 0; i < sizeof(from); i++)
		from[i] = byte_of(round, b->rank, i);
	memset(to, 0x77, sizeof(to));
	CHECK(members_do(b, &c) == 0, "kind %u: %s", kind, slmpm_error_detail());
	for (uint32_t r = 0; takes && takes_each(kind) && r < b->size; r++)
		check_block(b, kind, round, r, to + r * BLOCK);
	if (takes && !takes_each(kind))
		check_block(b, kind, round, root, to);
}

static bool was_direct(const struct boards *b)
{
	return board_load(&b->own->through) == b->posted;
}

/* All others have offered that as well, or none has. */
static bool was_offered(const struct boards *b, uint32_t r)
{
	return board_load(&board_post(b->of[r], b->posted)->what) & POST_DIRECT;
}

/* ---- what is not usual is tried -------------------------------------------------------------- */

static void both_are_taken(struct boards *b, void *arg)
{
	uint32_t direct = 0, ring = 0;

	(void)arg;
	do_one(b, SLMPM_COLL_ALLGATHER, 0, 0);
	if (!was_direct(b)) {
		printf("no cross-memory attach here\n");
		return;
	}
	for (uint32_t i = 1; i < 60; i++) {
		do_one(b, SLMPM_COLL_ALLGATHER, 0, i);
		if (was_direct(b))
			direct++;
		else
			ring++;
	}
	CHECK(direct && ring, "%u straight, %u by the ring", direct, ring);
}

/* ---- the word of the member that measures ---------------------------------------------------- */

static void word_counts(struct boards *b, void *arg)
{
	struct slmpm_coll meet = {.size = sizeof(meet), .kind = SLMPM_COLL_BARRIER};

	(void)arg;
	do_one(b, SLMPM_COLL_ALLGATHER, 0, 0);
	if (!was_direct(b))
		return;
	for (uint32_t i = 0; i < 4; i++) {
		bool by_ring = i % 2 == 0;

		if (!b->rank)
			board_store(&b->own->by_ring, by_ring ? UINT64_MAX : 0);
		CHECK(members_do(b, &meet) == 0, "barrier: %s", slmpm_error_detail());
		do_one(b, SLMPM_COLL_ALLGATHER, 0, i);
		CHECK(was_direct(b) != by_ring, "round %u", i);
		CHECK(was_offered(b, 0) != by_ring && was_offered(b, 1) != by_ring, "round %u", i);
		CHECK(members_do(b, &meet) == 0, "barrier: %s", slmpm_error_detail());
	}
}

static void word_changes(struct boards *b, void *arg)
{
	uint64_t draw = 99 + b->rank;

	(void)arg;
	for (uint32_t i = 0; i < 400; i++) {
		draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (draw >> 62)
			board_store(&b->own->by_ring, draw ^ draw >> 29);
		do_one(b, kinds[i % KINDS], i / KINDS % 2, i);
	}
}

/* ---- forced ---------------------------------------------------------------------------------- */

static void one_route(struct boards *b, void *arg)
{
	const bool *straight = arg;

	do_one(b, SLMPM_COLL_ALLTOALL, 0, 0);
	if (*straight && !was_direct(b))
		return; /* no cross-memory attach here */
	for (uint32_t i = 1; i < 60; i++) {
		board_store(&b->own->by_ring, i % 2 ? UINT64_MAX : 0);
		do_one(b, SLMPM_COLL_ALLTOALL, 0, i);
		CHECK(was_direct(b) == *straight, "round %u", i);
	}
}

int main(void)
{
	static bool straight;

	members_run(2, both_are_taken, NULL, 20);
	members_run(2, word_counts, NULL, 20);
	members_run(2, word_changes, NULL, 20);
	CHECK(setenv("SLMPM_FETCH", "never", 1) == 0, "setenv");
	members_run(2, one_route, &straight, 20);
	straight = true;
	CHECK(setenv("SLMPM_FETCH", "always", 1) == 0, "setenv");
	members_run(2, one_route, &straight, 20);
	return 0;
}
