/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Collective operations with a function of the program's own: elements of any width, an operation
 * that does not commute, vectors from none to several rings, each kind that combines, in place or
 * not, with counts; who calls the function; members whose functions differ.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/random.h"

#define MOST   6      /* members */
#define BYTES  700000 /* of a contribution, about */
#define ROUNDS 120
#define MARK   0xa5 /* the last byte of an element of three bytes and more */

enum way { AT_ONCE, STARTED, PREPARED, WAYS };

struct job {
	struct slmpm_coll c;
	struct slmpm_combine combine;
	uint64_t width, counts[MOST], total, seed;
	int n, rank;
	bool in_place;
};

static const uint64_t widths[] = {1,  2,  3,   4,    5,    8,    12,    16,   24,
				  40, 41, 100, 1000, 8184, 8193, 16385, 65536};
static _Atomic int called; /* by any thread, by another than the main one */
static _Atomic int elsewhere;
static pthread_t main_thread;
static slmpm_group inside;

/* Pairs of bytes are x -> ax + b, applied one after the other: associative, and does not commute.
 * A byte that is left over is a sum. */
static void compose(unsigned char *to, const unsigned char *left, const unsigned char *right,
		    uint64_t width)
{
	uint64_t i = 0, end = width >= 3 ? width - 1 : width;

	CHECK(width < 3 || (left[width - 1] == MARK && right[width - 1] == MARK),
	      "an element is cut");
	for (; i + 1 < end; i += 2) {
		unsigned char a = (unsigned char)(left[i] * right[i]);
		unsigned char b = (unsigned char)(left[i] * right[i + 1] + left[i + 1]);

		to[i] = a;
		to[i + 1] = b;
	}
	if (i < end)
		to[i] = (unsigned char)(left[i] + right[i]);
	if (width >= 3)
		to[width - 1] = MARK;
}

static void own(void *to, const void *left, const void *right, uint64_t count, void *arg)
{
	uint64_t width = *(const uint64_t *)arg;

	if (width % 8 == 0)
		CHECK(((uintptr_t)to | (uintptr_t)left | (uintptr_t)right) %
				      (width % 16 ? 8 : 16) ==
			      0,
		      "not aligned as an array is");
	atomic_fetch_add(&called, 1);
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&elsewhere, 1);
	for (uint64_t i = 0; i < count; i++)
		compose((unsigned char *)to + i * width, (const unsigned char *)left + i * width,
			(const unsigned char *)right + i * width, width);
	if (inside.id)
		REFUSED(slmpm_barrier(inside, PATIENCE), SLMPM_ESTATE, "");
}

static void element(const struct job *j, int rank, uint64_t i, unsigned char *at)
{
	struct rng g = {j->seed ^ (uint64_t)rank << 40 ^ i};

	for (uint64_t k = 0; k < j->width; k++)
		at[k] = (unsigned char)(rng_next(&g) >> 20 | (k % 2 == 0));
	if (j->width >= 3)
		at[j->width - 1] = MARK;
}

/* Of ranks LO to before HI. */
static void is(const struct job *j, const unsigned char *got, int hi, uint64_t i)
{
	unsigned char *want = malloc(2 * j->width), *next = want + j->width;

	CHECK(want, "no memory");
	element(j, 0, i, want);
	for (int r = 1; r < hi; r++) {
		element(j, r, i, next);
		compose(want, want, next, j->width);
	}
	CHECK(!memcmp(got, want, j->width), "kind %u of %llu of %llu bytes, rank %d of %d: %llu",
	      j->c.kind, (unsigned long long)j->c.count, (unsigned long long)j->width, j->rank,
	      j->n, (unsigned long long)i);
	free(want);
}

static void make(struct job *j, struct rng *g, int n, int rank)
{
	static const uint32_t kinds[] = {SLMPM_COLL_REDUCE, SLMPM_COLL_ALLREDUCE,
					 SLMPM_COLL_REDUCE_SCATTER, SLMPM_COLL_SCAN,
					 SLMPM_COLL_EXSCAN};
	uint64_t most;

	memset(j, 0, sizeof(*j));
	j->n = n;
	j->rank = rank;
	j->seed = rng_next(g);
	j->width = widths[rng_below(g, sizeof(widths) / sizeof(widths[0]))];
	j->combine.size = sizeof(j->combine);
	j->combine.width = j->width;
	j->combine.function = own;
	j->combine.arg = &j->width;
	j->combine.flags = rng_below(g, 4);
	j->c.size = sizeof(j->c);
	j->c.kind = kinds[rng_below(g, 5)];
	j->c.combine = &j->combine;
	j->c.root = (int)rng_below(g, (uint32_t)n);
	most = rng_one_in(g, 3) ? BYTES / j->width : rng_one_in(g, 2) ? 9000 / j->width : 3;
	j->total = j->c.count = rng_below(g, (uint32_t)most + 2);
	if (j->c.kind != SLMPM_COLL_REDUCE_SCATTER)
		return;
	j->c.count /= (uint64_t)n;
	j->total = 0;
	if (rng_one_in(g, 2))
		j->c.counts = j->counts;
	for (int r = 0; r < n; r++) {
		j->counts[r] = j->c.counts ? rng_below(g, (uint32_t)j->c.count + 2) : j->c.count;
		j->total += j->counts[r];
	}
}

static void check(const struct job *j, const unsigned char *to, const unsigned char *untouched)
{
	uint64_t before = 0, n = j->c.count;
	int hi = j->c.kind == SLMPM_COLL_SCAN   ? j->rank + 1 :
		 j->c.kind == SLMPM_COLL_EXSCAN ? j->rank :
						  j->n;

	if (j->c.kind == SLMPM_COLL_REDUCE_SCATTER) {
		for (int r = 0; r < j->rank; r++)
			before += j->counts[r];
		n = j->counts[j->rank];
	}
	if (j->c.kind == SLMPM_COLL_REDUCE && j->rank != j->c.root)
		hi = 0;
	for (uint64_t i = 0; i<n; i += j->width> 100 ? 1 : 1 + i / 64)
		if (hi)
			is(j, to + i * j->width, hi, before + i);
	CHECK(hi || !memcmp(to, untouched, n * j->width), "what is not its own is written");
}

static void do_it(const struct crew *crew, const struct slmpm_coll *c, enum way way)
{
	struct slmpm_done d;
	slmpm_prepared p;
	slmpm_req req;

	switch (way) {
	case AT_ONCE: OK(slmpm_collective(crew->group[0], c, PATIENCE)); break;
	case STARTED:
		OK(slmpm_collective_start(crew->group[0], c, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &d, PATIENCE), 0);
		OK(d.status);
		break;
	default:
		OK(slmpm_collective_prepare(&p, crew->group[0], c));
		OK(slmpm_prepared_start(p, NULL, NULL));
		OK(slmpm_prepared_destroy(p));
	}
}

static void each(const struct crew *crew, int rank)
{
	struct rng same = {*(const uint64_t *)crew->arg}, mine = {same.state + 77 + (uint64_t)rank};

	main_thread = pthread_self();
	for (int k = 0; k < ROUNDS / actor_slow(); k++) {
		unsigned char *from, *to, *before;
		struct job j;

		make(&j, &same, crew->members, rank);
		if (crew->apart && j.width > 1) /* messages take it at its word */
			j.combine.flags &= ~SLMPM_COLL_COMMUTES;
		from = malloc(j.total * j.width + 1);
		to = malloc(j.total * j.width + 1);
		before = malloc(j.total * j.width + 1);
		CHECK(from && to && before, "no memory");
		for (uint64_t i = 0; i < j.total; i++)
			element(&j, rank, i, from + i * j.width);
		memset(to, 0x77, j.total * j.width);
		j.in_place =
			rng_one_in(&mine, 2) && (j.c.kind != SLMPM_COLL_REDUCE || rank == j.c.root);
		if (j.in_place)
			memcpy(to, from, j.total * j.width);
		memcpy(before, to, j.total * j.width);
		j.c.from = j.in_place ? SLMPM_IN_PLACE : from;
		j.c.to = to;
		do_it(crew, &j.c, (enum way)rng_below(&mine, WAYS));
		check(&j, to, before);
		free(from);
		free(to);
		free(before);
	}
}

/* ---- who calls it ---------------------------------------------------------------------------- */

static void by_whom(const struct crew *crew, int rank)
{
	bool safe = crew->arg;
	uint64_t width = 4;
	struct slmpm_combine combine = {.size = sizeof(combine),
					.flags = safe ? SLMPM_COLL_SAFE : 0,
					.width = width,
					.function = own,
					.arg = &width};
	struct job j = {.width = width, .seed = 5, .n = crew->members, .rank = rank};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .from = SLMPM_IN_PLACE,
			       .count = 100000,
			       .combine = &combine};
	unsigned char *at = c.to = malloc(c.count * width);
	slmpm_req req;

	CHECK(at, "no memory");
	main_thread = pthread_self();
	for (uint64_t i = 0; i < c.count; i++)
		element(&j, rank, i, at + i * width);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	OK(slmpm_collective_start(crew->group[0], &c, NULL, &req));
	usleep(200000 * (useconds_t)actor_slow());
	if (safe) /* while all slept */
		EXPECT(slmpm_test(&req, NULL), 1);
	else
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	CHECK(called && (safe || !elsewhere), "%d calls, %d of another thread", called, elsewhere);
	for (uint64_t i = 0; i < c.count; i += 99)
		is(&j, at + i * width, crew->members, i);
	free(at);
	c.count = 1;
	inside = crew->group[0];
	c.to = &(uint32_t){(uint32_t)MARK << 24 | 0x010101u};
	((unsigned char *)c.to)[3] = MARK;
	OK(slmpm_collective(crew->group[0], &c, PATIENCE));
}

/* ---- who disagrees --------------------------------------------------------------------------- */

static void other_width(const struct crew *crew, int rank)
{
	uint64_t width = rank ? 16 : 12;
	struct slmpm_combine combine = {
		.size = sizeof(combine), .width = width, .function = own, .arg = &width};
	unsigned char x[48] = {0}, y[48];
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = crew->arg ? SLMPM_COLL_REDUCE : SLMPM_COLL_SCAN,
			       .from = x,
			       .to = y,
			       .count = 3,
			       .combine = &combine};

	for (int i = 0; i < 48; i++)
		x[i] = MARK;
	if (!rank || crew->arg) /* the lowest reads none */
		(void)slmpm_collective(crew->group[0], &c, PATIENCE);
	else
		REFUSED(slmpm_collective(crew->group[0], &c, PATIENCE), SLMPM_EINVAL,
			"has width 16");
	REFUSED(slmpm_barrier(crew->group[0], PATIENCE), SLMPM_EINVAL, "width 12");
}

static void other_operation(const struct crew *crew, int rank)
{
	uint64_t width = 8, x = 1, y;
	struct slmpm_combine combine = {
		.size = sizeof(combine), .width = width, .function = own, .arg = &width};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_UINT64,
			       .op = SLMPM_CALC_SUM,
			       .from = &x,
			       .to = &y,
			       .count = 1,
			       .combine = rank ? &combine : NULL};

	OK(slmpm_barrier(crew->group[0], PATIENCE)); /* who is connected learns why */
	REFUSED(slmpm_collective(crew->group[0], &c, PATIENCE), SLMPM_EINVAL,
		"a function of its own");
}

static void refused(const struct crew *crew, int rank)
{
	uint64_t x = 1, y;
	slmpm_group g = crew->group[0];
	struct slmpm_combine combine = {.size = sizeof(combine), .width = 8};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .from = &x,
			       .to = &y,
			       .count = 1,
			       .combine = &combine};
	slmpm_req req;

	(void)rank;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no function");
	combine.function = own;
	combine.flags = 4;
	REFUSED(slmpm_collective_start(g, &c, NULL, &req), SLMPM_EINVAL, "unknown flags");
	combine.flags = 0;
	combine.width = 0;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "width of 0");
	combine.width = SLMPM_COLL_WIDTH + 1;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_ELIMIT, "width of 65537");
	combine.width = 64;
	c.count = UINT64_MAX / 32;
	c.from = SLMPM_IN_PLACE;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no memory");
	combine.width = SLMPM_COLL_WIDTH; /* 2^64 bytes */
	c.count = UINT64_C(1) << 48;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no memory");
	c.count = 1;
	combine.size = 8; /* ends before its function */
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no function");
	combine.size = 4;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, ".combine: .size");
	combine.size = sizeof(combine);
	combine.width = 64;
	c.from = &x;
	c.kind = SLMPM_COLL_BROADCAST;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, ".combine");
	c.kind = SLMPM_COLL_ALLREDUCE;
	c.from = NULL;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, ".from is NULL");
	OK(slmpm_barrier(g, PATIENCE));
}

int main(void)
{
	uint64_t seed = rng_run_seed(7);
	struct crew crew = {.groups = 1, .members = 3};

	for (int i = 0; i < 2; i++) {
		crew.arg = i ? "reduce" : NULL;
		crew.body = other_width;
		crew_run(&crew, 30);
	}
	crew.body = other_operation;
	crew_run(&crew, 30);
	crew.apart = 1;
	crew_run(&crew, 30);
	crew.apart = 0;
	crew.body = refused;
	crew_run(&crew, 30);
	crew.arg = &seed;
	crew.body = each;
	for (crew.members = 1; crew.members <= MOST; crew.members += 1 + crew.members / 3)
		crew_run(&crew, 60);
	crew.members = 4;
	crew.apart = 6; /* by TCP */
	crew_run(&crew, 60);
	setenv("SLMPM_ENGINE", "thread", 1);
	crew.members = 3;
	crew.body = by_whom;
	/* ThreadSanitizer starts no threads in a child of a process with TCP. */
	for (int i = 0; i < (actor_slow() > 1 ? 2 : 4); i++) {
		crew.apart = i < 2 ? 0 : 3;
		crew.arg = i % 2 ? "safe" : NULL;
		crew_run(&crew, 30);
	}
	return 0;
}
