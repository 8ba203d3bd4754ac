/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Memory of a group: each member's part is written by it alone and read by all; collective
 * operations on it, random ones against a serial reference, send no message. Members that map
 * nothing, disagree, give it back, die, or go on without one that has died.
 */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define TAG   7
#define MOST  8
#define COUNT 1500u               /* elements of a block, at most */
#define HALF  (MOST * COUNT + 64) /* of a part: what is given; what comes */
#define LEN   (2 * HALF * sizeof(int64_t))
#define LEAST 512u /* elements that go by memory: 4 KiB */

struct scene {
	void (*act)(slmpm_group g, int rank, int n);
	int members, killed;
};

static int64_t other[2 * HALF]; /* private, as a part is laid out */

/* ---- one random operation -------------------------------------------------------------------- */

struct trial {
	uint64_t number;
	uint32_t kind;
	int n, root, stray; /* stray: the rank whose contribution is private; -1 */
	uint64_t count, offset;
	bool in_place, private_result;
};

static int64_t given(const struct trial *t, int rank, uint64_t i)
{
	return (int64_t)(t->number * 7919 + (uint64_t)rank * 104729 + i * 31 % 1009);
}

static bool takes_all(uint32_t kind)
{
	return kind == SLMPM_COLL_GATHER || kind == SLMPM_COLL_ALLGATHER ||
	       kind == SLMPM_COLL_ALLTOALL;
}

static bool gives_all(uint32_t kind)
{
	return kind == SLMPM_COLL_SCATTER || kind == SLMPM_COLL_ALLTOALL ||
	       kind == SLMPM_COLL_REDUCE_SCATTER;
}

/* Has it a result at RANK? */
static bool has_result(const struct trial *t, int rank)
{
	switch (t->kind) {
	case SLMPM_COLL_REDUCE:
	case SLMPM_COLL_GATHER: return rank == t->root;
	case SLMPM_COLL_BROADCAST: return rank != t->root;
	default: return true;
	}
}

static int64_t expected(const struct trial *t, int rank, uint64_t i)
{
	int last = t->kind == SLMPM_COLL_SCAN ? rank + 1 : t->n;
	uint64_t mine = (uint64_t)rank * t->count;
	int64_t sum = 0;

	switch (t->kind) {
	case SLMPM_COLL_BROADCAST: return given(t, t->root, i);
	case SLMPM_COLL_SCATTER: return given(t, t->root, mine + i);
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER: return given(t, (int)(i / t->count), i % t->count);
	case SLMPM_COLL_ALLTOALL: return given(t, (int)(i / t->count), mine + i % t->count);
	default:
		for (int r = 0; r < last; r++)
			sum += given(t, r, t->kind == SLMPM_COLL_REDUCE_SCATTER ? mine + i : i);
		return sum;
	}
}

static struct trial draw(struct rng *r, uint64_t number, int n)
{
	static const uint32_t kinds[] = {SLMPM_COLL_BROADCAST,      SLMPM_COLL_REDUCE,
					 SLMPM_COLL_ALLREDUCE,      SLMPM_COLL_ALLREDUCE,
					 SLMPM_COLL_SCATTER,        SLMPM_COLL_GATHER,
					 SLMPM_COLL_ALLGATHER,      SLMPM_COLL_ALLTOALL,
					 SLMPM_COLL_REDUCE_SCATTER, SLMPM_COLL_SCAN};
	struct trial t = {.number = number,
			  .kind = kinds[rng_below(r, sizeof(kinds) / sizeof(kinds[0]))],
			  .n = n,
			  .root = (int)rng_below(r, (uint32_t)n),
			  .stray = -1,
			  .count = LEAST / 2 + rng_below(r, COUNT - LEAST / 2),
			  .offset = rng_below(r, 64)};

	if (rng_below(r, 8) == 0)
		t.stray = (int)rng_below(r, (uint32_t)n);
	/* At all members, where the kind has it. */
	t.in_place = t.kind == SLMPM_COLL_ALLREDUCE && rng_below(r, 2);
	t.private_result = rng_below(r, 3) == 0;
	return t;
}

static bool gives(const struct trial *t, int rank)
{
	switch (t->kind) {
	case SLMPM_COLL_BROADCAST:
	case SLMPM_COLL_SCATTER: return rank == t->root;
	case SLMPM_COLL_REDUCE:
	case SLMPM_COLL_GATHER: return rank != t->root;
	case SLMPM_COLL_SCAN: return rank + 1 < t->n;
	default: return true;
	}
}

static bool goes_by_memory(const struct trial *t)
{
	return t->count >= LEAST && (t->stray < 0 || !gives(t, t->stray));
}

/* It is done once more by a reference that all can reckon; true: in memory. */
static bool do_one(slmpm_group g, int64_t *part, const struct trial *t, int rank)
{
	uint64_t blocks = (uint64_t)t->n * t->count, before = circle_query(g).in_memory;
	bool stray = rank == t->stray;
	int64_t *from = (stray ? other : part) + t->offset;
	int64_t *to = (t->private_result && !t->in_place ? other : part) + HALF;

	if (t->in_place)
		to = from;
	for (uint64_t i = 0; i < (gives_all(t->kind) ? blocks : t->count); i++)
		from[i] = given(t, rank, i);
	if (!t->in_place)
		memset(to, 0x55, HALF * sizeof(*to));
	OK(slmpm_collect(g, t->kind, t->in_place ? SLMPM_IN_PLACE : from, to, t->count, SLMPM_INT64,
			 SLMPM_CALC_SUM, t->root, PATIENCE));
	for (uint64_t i = 0; has_result(t, rank) && i < (takes_all(t->kind) ? blocks : t->count);
	     i++)
		CHECK(to[i] == expected(t, rank, i),
		      "%llu: kind %u, rank %d of %d, root %d, %llu elements%s: %lld at %llu, not %lld",
		      (unsigned long long)t->number, t->kind, rank, t->n, t->root,
		      (unsigned long long)t->count, t->in_place ? ", in place" : "",
		      (long long)to[i], (unsigned long long)i, (long long)expected(t, rank, i));
	return circle_query(g).in_memory > before;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static int64_t *part_of(slmpm_group_memory m, int rank, uint64_t len)
{
	uint64_t got = 1;
	void *base = NULL;

	OK(slmpm_group_part(m, rank, &base, &got));
	CHECK(got == len && !base == !len, "part of %d: %llu bytes", rank, (unsigned long long)got);
	return base;
}

static slmpm_group_memory alloc(slmpm_group g, uint64_t len, int place)
{
	slmpm_group_memory m = {0};

	OK(slmpm_group_alloc(&m, g, len, place, 0, PATIENCE));
	CHECK(m.id, "no handle");
	return m;
}

static uint64_t messages(void)
{
	struct slmpm_totals all[MOST];
	int n = slmpm_totals(circle_own, all, sizeof(all[0]), MOST);
	uint64_t sum = 0;

	CHECK(n > 0, "totals: %d", n);
	for (int i = 0; i < n; i++)
		sum += all[i].sent_messages + all[i].sent_packets;
	return sum;
}

static void random_ones(slmpm_group g, int rank, int n)
{
	slmpm_group_memory m = alloc(g, LEN, n > 2 ? 1 : SLMPM_ALLOC_BESIDE);
	struct rng r = {.state = (uint64_t)n};
	int64_t *part = part_of(m, rank, LEN);
	uint64_t before = messages();

	for (uint64_t i = 0; i < LEN / sizeof(*part); i++)
		CHECK(!part[i], "byte %llu is not zero", (unsigned long long)i);
	for (uint64_t k = 1; k <= 120; k++) {
		struct trial t = draw(&r, k, n);
		/* In place without one: by the ring. */
		bool shared = do_one(g, part, &t, rank);

		CHECK(shared == goes_by_memory(&t), "%llu: kind %u, %llu of %d, stray %d: %s",
		      (unsigned long long)k, t.kind, (unsigned long long)t.count, n, t.stray,
		      shared ? "in memory" : "not in memory");
	}
	CHECK(messages() == before, "%llu messages", (unsigned long long)(messages() - before));
	OK(slmpm_group_free(m));
	REFUSED(slmpm_group_free(m), SLMPM_EHANDLE, "memory of a group");
}

static sigjmp_buf back;

static void fault(int signal)
{
	siglongjmp(back, signal);
}

/* Parts of their own lengths, at one member; a member that maps nothing; who reads cannot write. */
static void parts(slmpm_group g, int rank, int n)
{
	slmpm_group_memory m = {0};
	uint64_t own = (uint64_t)rank * 5000;
	int64_t *at;

	if (rank == n - 1) {
		OK(slmpm_group_alloc(&m, g, 0, 1, SLMPM_ALLOC_NOT_HERE, PATIENCE));
		CHECK(!m.id, "a handle");
	} else {
		m = alloc(g, own, 1);
		if (own)
			memset(part_of(m, rank, own), rank, own);
	}
	OK(slmpm_barrier(g, PATIENCE));
	for (int r = 0; m.id && r < n; r++) {
		uint64_t len = r == n - 1 ? 0 : (uint64_t)r * 5000;
		const unsigned char *bytes = (void *)part_of(m, r, len);

		for (uint64_t i = 0; i < len; i++)
			CHECK(bytes[i] == r, "byte %llu of %d", (unsigned long long)i, r);
	}
	if (rank == 0) {
		struct sigaction act = {.sa_handler = fault};

		at = part_of(m, 1, 5000);
		sigaction(SIGSEGV, &act, NULL);
		if (!sigsetjmp(back, 1)) {
			*(volatile int64_t *)at = 1;
			CHECK(0, "another's part can be written");
		}
		sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	}
	if (m.id)
		REFUSED(slmpm_group_part(m, n, (void **)&at, &own), SLMPM_EINVAL, "no rank");
	OK(slmpm_barrier(g, PATIENCE));
	/* It ends with its group. */
}

/* What one alone asks for in vain all are refused. */
static void bad_at_one(slmpm_group g, int rank)
{
	const bool bad = rank == 1;
	const char *others = "refuses";
	slmpm_group_memory m = {0};

	REFUSED(slmpm_group_alloc(&m, g, bad ? UINT64_MAX : LEN, -1, 0, PATIENCE), SLMPM_EINVAL,
		bad ? "argument: slmpm_group_alloc: 18446744073709551615 bytes" : others);
	REFUSED(slmpm_group_alloc(&m, g, LEN, -1, bad ? 2 : 0, PATIENCE), SLMPM_EINVAL,
		bad ? "flags" : others);
	REFUSED(slmpm_group_alloc(&m, g, LEN, -1, bad ? SLMPM_ALLOC_NOT_HERE : 0, PATIENCE),
		SLMPM_EINVAL, bad ? "bytes, and" : others);
	REFUSED(slmpm_group_alloc(&m, g, LEN, bad ? INT_MIN : -1, 0, PATIENCE), SLMPM_EINVAL,
		bad ? "no rank" : others);
	REFUSED(slmpm_group_alloc(&m, g, LEN, -2, 0, PATIENCE), SLMPM_EINVAL,
		rank ? "rank 0" : "no rank");
	REFUSED(slmpm_group_alloc(bad ? NULL : &m, g, LEN, -1, 0, PATIENCE), SLMPM_EINVAL,
		bad ? "handle" : others);
}

static void disagreement(slmpm_group g, int rank, int n)
{
	slmpm_group_memory m = {0};
	int64_t one = 1, sum = 0;

	REFUSED(slmpm_group_alloc(&m, g, LEN, rank == 1 ? 0 : 1, 0, PATIENCE), SLMPM_EINVAL,
		"place");
	REFUSED(slmpm_group_alloc(&m, g, LEN, n, 0, PATIENCE), SLMPM_EINVAL, "place");
	REFUSED(slmpm_group_alloc(&m, g, rank ? LEN : 0, 0, rank ? 0 : SLMPM_ALLOC_NOT_HERE,
				  PATIENCE),
		SLMPM_EINVAL, "maps it");
	REFUSED(slmpm_group_alloc(&m, g, rank == 1 ? UINT64_C(1) << 60 : 1, -1, 0, PATIENCE),
		SLMPM_ENOMEM, rank == 1 ? "are left by" : "rank 1");
	bad_at_one(g, rank);
	REFUSED(slmpm_group_alloc(&m, g, LEN, 0, SLMPM_ALLOC_NOT_HERE, PATIENCE), SLMPM_EINVAL, "");
	REFUSED(slmpm_group_alloc(&m, g, LEN, 0, 2, PATIENCE), SLMPM_EINVAL,
		rank ? "rank 0" : "flags");
	REFUSED(slmpm_group_alloc(NULL, g, LEN, 0, 0, PATIENCE), SLMPM_EINVAL,
		rank ? "rank 0" : "handle");
	REFUSED(slmpm_group_alloc(&m, g, LEN, 0, 0, 0), SLMPM_EAGAIN, "0");
	OK(slmpm_allreduce(g, &one, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	CHECK(sum == n, "sum %lld", (long long)sum);
}

static void sum_by(slmpm_group g, slmpm_group_memory m, int rank, int n, bool by_memory)
{
	int64_t *part = part_of(m, rank, LEN);
	const struct trial t = {.number = 5,
				.kind = SLMPM_COLL_ALLREDUCE,
				.n = n,
				.stray = -1,
				.count = COUNT,
				.in_place = true};

	CHECK(do_one(g, part, &t, rank) == by_memory, "%s",
	      by_memory ? "not in memory" : "in memory");
}

/* One has given it back: the others take another way, and all have the right sums. */
static void given_back(slmpm_group g, int rank, int n)
{
	slmpm_group_memory m = alloc(g, LEN, SLMPM_ALLOC_BESIDE), more;
	int64_t *part = part_of(m, rank, LEN);

	more = alloc(g, LEN, SLMPM_ALLOC_BESIDE);
	sum_by(g, m, rank, n, true);
	if (rank == 0) {
		OK(slmpm_group_free(m));
		part = part_of(more, rank, LEN);
	}
	{
		const struct trial t = {.number = 6,
					.kind = SLMPM_COLL_ALLREDUCE,
					.n = n,
					.stray = -1,
					.count = COUNT,
					.in_place = true};

		CHECK(!do_one(g, part, &t, rank), "in memory that is not there");
	}
	sum_by(g, more, rank, n, true);
}

/* The last one dies while the others make another memory, which none has then. */
static void death(slmpm_group g, int rank, int n)
{
	slmpm_group_memory m = alloc(g, LEN, SLMPM_ALLOC_BESIDE), none = {0};
	const int64_t *lost = part_of(m, n - 1, LEN);

	part_of(m, rank, LEN)[0] = rank + 100;
	OK(slmpm_barrier(g, PATIENCE));
	*(volatile int64_t *)&part_of(m, rank, LEN)[1] = 1;
	for (int r = 0; r < n - 1 && rank == n - 1; r++) /* else one could fail in the barrier */
		while (*(volatile int64_t *)&part_of(m, r, LEN)[1] != 1)
			usleep(1000);
	if (rank == n - 1)
		raise(SIGKILL);
	REFUSED(slmpm_group_alloc(&none, g, LEN, 0, 0, PATIENCE), SLMPM_EDEAD,
		"slmpm_group_alloc: ");
	CHECK(strstr(slmpm_error_detail(), ": rank") && !strstr(slmpm_error_detail(), ", slmpm"),
	      "%s", slmpm_error_detail());
	OK(slmpm_group_shrink(g, PATIENCE));
	CHECK(*lost == n - 1 + 100, "%lld", (long long)*lost);
	sum_by(g, m, rank, n - 1, true);
	none = alloc(g, LEN, 0);
	sum_by(g, none, rank, n - 1, true);
	OK(slmpm_group_free(m));
}

static const struct scene scenes[] = {
	{random_ones, 2, -1},  {random_ones, 3, -1}, {random_ones, 8, -1}, {parts, 4, -1},
	{disagreement, 3, -1}, {given_back, 3, -1},  {death, 4, 3},
};

/* ---- */

static void member(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	s->act(group, i, s->members);
	OK(slmpm_group_destroy(group));
}

static void play(const struct scene *s)
{
	struct circle c = {.flags = 0};
	slmpm_group group;

	circle_begin(&c, s->members, member, (void *)s, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, s->members, TAG, PATIENCE));
	if (s->killed >= 0)
		CHECK(circle_wait(&c, s->killed) == -SIGKILL, "not killed");
	OK(slmpm_group_destroy(group));
	circle_end(&c);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		play(&scenes[i]);
	return 0;
}
