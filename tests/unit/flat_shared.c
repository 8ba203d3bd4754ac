/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Operations on memory of a group, where the other member is a liar: places that are not in its
 * part, memory that is not mapped, stages that it has not come to, what is taken back. Nothing but
 * an error that names it, a wait, or the ring.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define LEN    (2048u * 1024)
#define SHORT  1024u /* elements */
#define LONG   40000u
#define BYTES  (count * sizeof(int64_t))
#define THERE  UINT64_C(0x7000) /* where the other has its part, as it says */
#define ID     7u
#define ROUNDS 10000

static struct boards b;
static struct board *liar;
static int64_t *part[2];
static uint64_t count = SHORT;

/* Both boards and both parts are this process's. A page that cannot be touched follows each. */
static int64_t *part_new(void)
{
	unsigned char *at =
		mmap(NULL, LEN + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED && mprotect(at + LEN, 4096, PROT_NONE) == 0, "no memory");
	return (void *)at;
}

static void meet(void)
{
	struct board *own;
	struct shared *s;
	int fd;

	CHECK(board_make(&own, &fd) == 0, "no board");
	close(fd);
	CHECK(board_make(&liar, &fd) == 0, "no board");
	close(fd);
	CHECK(boards_open(&b, own, 2, 0) == 0, "no boards");
	b.of[1] = liar;
	boards_met(&b);
	s = shared_new(&b);
	CHECK(s, "no memory");
	for (int i = 0; i < 2; i++)
		part[i] = part_new();
	s->id = ID;
	s->part[0] = (struct shared_part){(void *)part[0], LEN, LEN, (uint64_t)(uintptr_t)part[0]};
	s->part[1] = (struct shared_part){(void *)part[1], LEN, LEN, THERE};
	shared_add(&b, s);
}

static struct slmpm_coll coll(uint32_t kind)
{
	return (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				   .kind = kind,
				   .type = SLMPM_INT64,
				   .op = flat_combines(kind) ? SLMPM_CALC_SUM : 0,
				   .root = flat_has_root(kind) ? 1 : 0,
				   .from = part[0],
				   .to = part[0] + 2 * LONG,
				   .count = count};
}

static void posts(uint32_t kind, uint64_t flags, uint64_t from, uint64_t to, uint64_t where)
{
	uint64_t number = b.posted + 1;
	struct slmpm_coll c = coll(kind);
	struct post *p = &liar->posts[number % BOARD_SLOTS];

	p->what = (b.history & POST_HISTORY) | post_lap(number) | kind |
		  (uint64_t)c.type << POST_TYPE | (uint64_t)c.op << POST_OP |
		  (uint64_t)(uint32_t)c.root << POST_ROOT | flags;
	p->count = count;
	p->at = 0;
	p->length = BYTES;
	p->from = from;
	p->to = to;
	p->present = where;
	p->number = number;
}

static int step(uint32_t kind, struct flat *f)
{
	static struct slmpm_coll c;

	c = coll(kind);
	CHECK(flat_check(&c, 2, 0) == 0, "%s", slmpm_error_detail());
	CHECK(flat_begin(f, &b, &c) == 0, "no memory");
	return flat_step(f);
}

static void ends(uint32_t kind, int want, const char *text)
{
	struct flat f;
	int rc = step(kind, &f);

	CHECK(rc == want, "kind %u: %d, not %d: %s", kind, rc, want, slmpm_error_detail());
	if (rc < 0)
		CHECK(strstr(slmpm_error_detail(), text) && f.culprit == 1, "%s: no %s, by %u",
		      slmpm_error_detail(), text, f.culprit);
	else if (!rc)
		CHECK(f.waits_for == 1, "waits for %u", f.waits_for);
	if (rc <= 0)
		flat_drop(&f);
}

static bool has_failed(void)
{
	return board_load(&b.own->failed) == b.posted;
}

static void come(uint64_t number, uint64_t stage)
{
	atomic_store(&liar->stage, number << 2 | stage);
}

/* ---- one by one ------------------------------------------------------------------------------ */

#define BOTH ((uint64_t)ID << 32 | ID)

static void places(void)
{
	const uint32_t all = SLMPM_COLL_ALLGATHER, sum = SLMPM_COLL_ALLREDUCE;
	const uint64_t end = THERE + LEN;

	posts(all, POST_SHARED, THERE, 0, ID);
	ends(all, 0, "");
	CHECK(!has_failed(), "it was not found");
	posts(all, POST_SHARED, end - BYTES, 0, ID);
	ends(all, 0, "");
	posts(all, POST_SHARED, end - BYTES + 1, 0, ID);
	ends(all, -SLMPM_EPROTO, "address");
	posts(all, POST_SHARED, THERE - 1, 0, ID);
	ends(all, -SLMPM_EPROTO, "address");
	posts(all, POST_SHARED, UINT64_MAX - BYTES * 2, 0, ID);
	ends(all, -SLMPM_EPROTO, "address");
	count = LONG;
	posts(sum, POST_SHARED, THERE, end - 8, BOTH);
	ends(sum, -SLMPM_EPROTO, "address");
	count = SHORT;
	/* What is not mapped here: this member says so. */
	posts(all, POST_SHARED, THERE, 0, ID + 1);
	ends(all, 0, "");
	CHECK(has_failed(), "it was found");
	posts(sum, POST_SHARED, THERE, THERE, (uint64_t)(ID + 1) << 32 | ID);
	ends(sum, 0, "");
	CHECK(has_failed(), "it was found");
	posts(sum, POST_SHARED, THERE, THERE, 0);
	ends(sum, 0, "");
	CHECK(has_failed(), "it was found");
	/* In place, but the others' results lie elsewhere. */
	posts(sum, POST_SHARED, THERE, THERE, ID);
	ends(sum, 0, "");
	CHECK(has_failed(), "it would be read while it changes");
	posts(all, POST_SHARED, THERE, 0, ID);
	liar->posts[(b.posted + 1) % BOARD_SLOTS].count = 5;
	ends(all, -SLMPM_EINVAL, "count 5");
}

/* By the ring: nothing of it is there yet. */
static void by_ring(void)
{
	struct flat f;

	posts(SLMPM_COLL_ALLGATHER, 0, THERE, 0, 0);
	CHECK(step(SLMPM_COLL_ALLGATHER, &f) == 0 && f.turn == flat_long_turn, "not by the ring");
	CHECK(reach_is_withdrawn(&b, 0, b.posted), "it still offers its memory");
	liar->written = BYTES;
	CHECK(flat_step(&f) == 1, "%s", slmpm_error_detail());
	liar->written = 0;
	/* The other has not found what is mapped: both by the ring. */
	posts(SLMPM_COLL_ALLGATHER, POST_SHARED, THERE, 0, ID);
	atomic_store(&liar->failed, b.posted + 1);
	come(b.posted + 1, 3);
	CHECK(step(SLMPM_COLL_ALLGATHER, &f) == 0 && f.turn == flat_long_turn, "not by the ring");
	flat_drop(&f);
}

static void done(uint32_t kind, uint64_t stage, int want)
{
	uint64_t before = b.in_shared;

	posts(kind, POST_SHARED, THERE, THERE + LONG * sizeof(int64_t), BOTH);
	come(b.posted + 1, stage);
	ends(kind, want, "");
	CHECK(b.in_shared - before == (want == 1), "counted %llu",
	      (unsigned long long)(b.in_shared - before));
}

static void stages(void)
{
	for (uint32_t i = 0; i < LONG; i++) {
		part[0][i] = i;
		part[1][i] = 1000;
		part[1][LONG + i] = 7;
	}
	for (uint64_t stage = 0; stage < 3; stage++) {
		count = stage & 1 ? LONG : SHORT;
		done(SLMPM_COLL_ALLREDUCE, stage, 0);
	}
	count = SHORT;
	done(SLMPM_COLL_ALLREDUCE, 3, 1);
	for (uint32_t i = 0; i < SHORT; i++)
		CHECK(part[0][2 * LONG + i] == i + 1000, "%lld at %u",
		      (long long)part[0][2 * LONG + i], i);
	count = LONG;
	done(SLMPM_COLL_ALLREDUCE, 3, 1);
	for (uint32_t i = 0; i < LONG; i++)
		CHECK(part[0][2 * LONG + i] == (i < LONG / 2 ? i + 1000 : 7), "%lld at %u",
		      (long long)part[0][2 * LONG + i], i);
	count = SHORT;
	done(SLMPM_COLL_BROADCAST, 3, 1);
	CHECK(part[0][2 * LONG] == 1000, "broadcast: %lld", (long long)part[0][2 * LONG]);
	/* What it has taken back since may have been anything. */
	atomic_store(&liar->withdrawn, b.posted + 1);
	done(SLMPM_COLL_BROADCAST, 3, 0);
}

/* ---- any words ------------------------------------------------------------------------------- */

static uint64_t any_place(struct rng *g)
{
	static const uint64_t edges[] = {0, THERE, THERE + LEN, UINT64_MAX, INT64_MAX};

	return edges[rng_below(g, 5)] + rng_below(g, 3 * SHORT * 8) - SHORT * 8;
}

static void any_words(void)
{
	static const uint32_t kinds[] = {SLMPM_COLL_ALLREDUCE, SLMPM_COLL_ALLGATHER,
					 SLMPM_COLL_ALLTOALL,  SLMPM_COLL_REDUCE_SCATTER,
					 SLMPM_COLL_SCATTER,   SLMPM_COLL_BROADCAST};
	struct rng g = {.state = rng_run_seed(1)};
	uint64_t ways[3] = {0};

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t kind = kinds[rng_below(&g, 6)];
		struct flat f;
		int rc;

		count = rng_one_in(&g, 50) ? LONG : SHORT;
		posts(kind, rng_one_in(&g, 9) ? 0 : POST_SHARED, any_place(&g), any_place(&g),
		      (uint64_t)(ID + rng_one_in(&g, 9)) << 32 | (ID + rng_one_in(&g, 9)));
		come(b.posted + rng_below(&g, 3), rng_below(&g, 4));
		rc = step(kind, &f);
		ways[rc < 0 ? 0 : rc > 0 ? 1 : 2]++;
		if (rc <= 0)
			flat_drop(&f);
	}
	printf("refused %llu, done %llu, waited %llu\n", (unsigned long long)ways[0],
	       (unsigned long long)ways[1], (unsigned long long)ways[2]);
	CHECK(ways[0] && ways[1] && ways[2], "not all ways");
}

int main(void)
{
	meet();
	places();
	by_ring();
	stages();
	any_words();
	return 0;
}
