/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/* Collective operations over boards, by processes: the same as done by one alone, element by
 * element: each kind, type, operation, root, of any length, with counts, in place, unaligned. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/random.h"
#include "tests/unit/members.h"

#define ROOM  (8u << 20) /* bytes of a buffer */
#define RING  (256u * 1024)
#define PIECE (16u * 1024)
#define KINDS SLMPM_COLL_EXSCAN
#define TYPES SLMPM_DOUBLE
#define OPS   SLMPM_CALC_LXOR

struct job {
	uint32_t kind, type, op, n, root, shape;
	uint64_t count;
	bool counts, places, in_place;
	uint64_t seed;
};

/* ---- values ---------------------------------------------------------------------------------- */

static const uint32_t width_of[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

static uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	struct rng g = {seed ^ a << 48 ^ b << 40 ^ c};

	return rng_next(&g);
}

/* Element I of what FROM has for TO, as it lies in memory. */
static void make(const struct job *j, uint32_t from, uint32_t to, uint64_t i, void *at)
{
	uint64_t bits = mixed(j->seed, from + 1, to + 1, i);
	double d = (double)(int64_t)(bits % 2001) / 8 - 125;
	float s = (float)d;

	if (bits % 7 == 0)
		bits = 0;
	if (j->type == SLMPM_DOUBLE)
		memcpy(at, &d, sizeof(d));
	else if (j->type == SLMPM_FLOAT)
		memcpy(at, &s, sizeof(s));
	else
		memcpy(at, &bits, width_of[j->type]); /* the lowest bytes, or others */
}

#define OF_INTEGERS(t, a, b)                                                                       \
	{                                                                                          \
	case SLMPM_CALC_AND: r = (t)(a & b); break;                                                \
	case SLMPM_CALC_OR: r = (t)(a | b); break;                                                 \
	case SLMPM_CALC_XOR: r = (t)(a ^ b); break;                                                \
	}
#define NONE(t, a, b)

/* a = a OP b. */
#define COMBINED(name, t, wide, bitwise)                                                           \
	static void name(uint32_t op, void *to, const void *from)                                  \
	{                                                                                          \
		t a, b, r = 0;                                                                     \
                                                                                                   \
		memcpy(&a, to, sizeof(a));                                                         \
		memcpy(&b, from, sizeof(b));                                                       \
		switch (op) {                                                                      \
			bitwise(t, a, b) case SLMPM_CALC_SUM : r = (t)((wide)a + (wide)b);         \
			break;                                                                     \
		case SLMPM_CALC_PRODUCT: r = (t)((wide)a * (wide)b); break;                        \
		case SLMPM_CALC_MIN: r = b < a ? b : a; break;                                     \
		case SLMPM_CALC_MAX: r = a < b ? b : a; break;                                     \
		case SLMPM_CALC_LAND: r = (t)((a != 0) && (b != 0)); break;                        \
		case SLMPM_CALC_LOR: r = (t)((a != 0) || (b != 0)); break;                         \
		case SLMPM_CALC_LXOR: r = (t)((a != 0) != (b != 0)); break;                        \
		}                                                                                  \
		memcpy(to, &r, sizeof(r));                                                         \
	}

COMBINED(of_i8, int8_t, uint64_t, OF_INTEGERS)
COMBINED(of_i16, int16_t, uint64_t, OF_INTEGERS)
COMBINED(of_i32, int32_t, uint64_t, OF_INTEGERS)
COMBINED(of_i64, int64_t, uint64_t, OF_INTEGERS)
COMBINED(of_u8, uint8_t, uint64_t, OF_INTEGERS)
COMBINED(of_u16, uint16_t, uint64_t, OF_INTEGERS)
COMBINED(of_u32, uint32_t, uint64_t, OF_INTEGERS)
COMBINED(of_u64, uint64_t, uint64_t, OF_INTEGERS)
COMBINED(of_f32, float, float, NONE)
COMBINED(of_f64, double, double, NONE)

static void combine(const struct job *j, void *to, const void *from)
{
	static void (*const of[])(uint32_t, void *, const void *) = {
		NULL, of_i8, of_i16, of_i32, of_i64, of_u8, of_u16, of_u32, of_u64, of_f32, of_f64};

	of[j->type](j->op, to, from);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool has_blocks(uint32_t kind)
{
	return kind == SLMPM_COLL_SCATTER || kind == SLMPM_COLL_GATHER ||
	       kind == SLMPM_COLL_ALLGATHER || kind == SLMPM_COLL_ALLTOALL ||
	       kind == SLMPM_COLL_REDUCE_SCATTER;
}

/* Elements that FROM has for TO. Where all have the same counts FROM or TO is 0. */
static uint64_t count_of(const struct job *j, uint32_t from, uint32_t to)
{
	uint64_t x;

	if (!j->counts)
		return j->count;
	if (j->kind == SLMPM_COLL_ALLTOALL && j->in_place && from > to) { /* as many back */
		uint32_t swap = from;

		from = to;
		to = swap;
	}
	x = mixed(j->seed, 100 + from, 200 + to, 0);
	return x % 4 == 0 ? 0 : x % (j->count + 2);
}

/* Blocks of N members: COUNTS filled in, PLACES one behind the other or all over the buffer. */
static void lay(const struct job *j, uint64_t *places, const uint64_t *counts, uint32_t which)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < j->n; i++) {
		uint32_t r = j->places ? (i * (j->n - 1) + which) % j->n : i;

		if (j->places)
			at += mixed(j->seed, which, r, 5) % 3;
		places[r] = at;
		at += counts[r];
	}
}

/* A member's part: what it has, and what it should have in the end. */
struct part {
	unsigned char *from, *to, *expected;
	uint64_t counts[MEMBERS_MAX], places[MEMBERS_MAX];
	uint64_t to_counts[MEMBERS_MAX], to_places[MEMBERS_MAX];
};

static void fill(const struct job *j, unsigned char *at, uint32_t from, uint32_t to, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		make(j, from, to, i, at + i * width_of[j->type]);
}

/* Ranks LO to before HI combined, of what they have for TO. */
static void reduce(const struct job *j, unsigned char *at, uint32_t lo, uint32_t hi, uint32_t to,
		   uint64_t count)
{
	uint32_t w = width_of[j->type];
	unsigned char x[8];

	fill(j, at, lo, to, count);
	for (uint32_t r = lo + 1; r < hi; r++)
		for (uint64_t i = 0; i < count; i++) {
			make(j, r, to, i, x);
			combine(j, at + i * w, x);
		}
}

static void lay_all(const struct job *j, struct part *p, uint32_t rank)
{
	bool pairs = j->kind == SLMPM_COLL_ALLTOALL;

	for (uint32_t r = 0; r < j->n; r++) {
		p->counts[r] = pairs ? count_of(j, rank, r) : count_of(j, 0, r);
		p->to_counts[r] = pairs ? count_of(j, r, rank) : p->counts[r];
	}
	lay(j, p->places, p->counts, 0);
	lay(j, p->to_places, p->to_counts, j->in_place ? 0 : 1);
	if (!pairs)
		memcpy(p->to_places, p->places, sizeof(p->places));
}

static void give(const struct job *j, struct part *p, uint32_t rank)
{
	uint32_t w = width_of[j->type];
	unsigned char *at = j->in_place ? p->to : p->from;
	const uint64_t *places = j->in_place ? p->to_places : p->places;

	switch (j->kind) {
	case SLMPM_COLL_BARRIER: break;
	case SLMPM_COLL_SCATTER:
	case SLMPM_COLL_ALLTOALL:
	case SLMPM_COLL_REDUCE_SCATTER:
		if (j->kind == SLMPM_COLL_SCATTER && rank != j->root)
			break;
		for (uint32_t r = 0; r < j->n; r++)
			fill(j, at + places[r] * w, rank, r, p->counts[r]);
		break;
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER:
		if (j->in_place && (j->kind == SLMPM_COLL_ALLGATHER || rank == j->root))
			fill(j, p->to + places[rank] * w, rank, 0, p->counts[rank]);
		else
			fill(j, p->from, rank, 0, p->counts[rank]);
		break;
	case SLMPM_COLL_BROADCAST:
		if (rank == j->root)
			fill(j, at, rank, 0, j->count);
		break;
	case SLMPM_COLL_REDUCE: fill(j, rank == j->root ? at : p->from, rank, 0, j->count); break;
	default: fill(j, at, rank, 0, j->count);
	}
}

static void expect(const struct job *j, struct part *p, uint32_t rank)
{
	uint32_t w = width_of[j->type];
	bool root = rank == j->root;

	switch (j->kind) {
	case SLMPM_COLL_BROADCAST:
		if (!root) /* whose `to` is not looked at */
			fill(j, p->expected, j->root, 0, j->count);
		break;
	case SLMPM_COLL_REDUCE:
		if (root)
			reduce(j, p->expected, 0, j->n, 0, j->count);
		break;
	case SLMPM_COLL_ALLREDUCE: reduce(j, p->expected, 0, j->n, 0, j->count); break;
	case SLMPM_COLL_SCAN: reduce(j, p->expected, 0, rank + 1, 0, j->count); break;
	case SLMPM_COLL_EXSCAN:
		if (rank)
			reduce(j, p->expected, 0, rank, 0, j->count);
		break;
	case SLMPM_COLL_SCATTER:
		if (!root || !j->in_place)
			fill(j, p->expected, j->root, rank, p->counts[rank]);
		break;
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER:
		for (uint32_t r = 0; r < j->n && (root || j->kind != SLMPM_COLL_GATHER); r++)
			fill(j, p->expected + p->places[r] * w, r, 0, p->counts[r]);
		break;
	case SLMPM_COLL_ALLTOALL:
		for (uint32_t r = 0; r < j->n; r++)
			fill(j, p->expected + p->to_places[r] * w, r, rank, p->to_counts[r]);
		break;
	case SLMPM_COLL_REDUCE_SCATTER: reduce(j, p->expected, 0, j->n, rank, p->counts[rank]);
	}
}

/* ---- one job --------------------------------------------------------------------------------- */

/* At most: what is between blocks, too. */
static uint64_t extent_of(const struct job *j)
{
	uint64_t blocks = has_blocks(j->kind) ? j->n : 1;

	return blocks * (j->count + 4) * width_of[j->type] + 64;
}

static bool may_be_in_place(const struct job *j, uint32_t rank)
{
	if (j->kind == SLMPM_COLL_BARRIER)
		return false;
	return (j->kind != SLMPM_COLL_BROADCAST && j->kind != SLMPM_COLL_REDUCE &&
		j->kind != SLMPM_COLL_GATHER && j->kind != SLMPM_COLL_SCATTER) ||
	       rank == j->root;
}

static unsigned char *buffer[3];

static void do_job(struct boards *b, const struct job *j)
{
	struct job own = *j;
	struct part p;
	uint64_t room = extent_of(j);
	uint32_t rank = b->rank;
	struct slmpm_coll c = {.size = sizeof(c), .kind = j->kind, .type = j->type, .op = j->op};
	int rc;

	own.in_place = j->in_place && may_be_in_place(j, rank);
	CHECK(room < ROOM, "too much");
	p.from = buffer[0] + j->seed % 9;
	p.to = buffer[1] + j->seed / 9 % 9;
	p.expected = buffer[2];
	memset(p.from, 0x5a, room);
	memset(p.to, 0xa5, room);
	lay_all(&own, &p, rank);
	give(&own, &p, rank);
	memcpy(p.expected, p.to, room);
	expect(&own, &p, rank);
	c.root = (int32_t)j->root;
	c.count = j->count;
	c.from = own.in_place ? SLMPM_IN_PLACE : p.from;
	c.to = p.to;
	if (has_blocks(j->kind) && j->counts) {
		bool turned = j->kind == SLMPM_COLL_ALLTOALL && own.in_place;

		c.count = 0;
		c.counts = turned ? NULL : p.counts;
		c.places = j->places && !turned ? p.places : NULL;
		if (j->kind == SLMPM_COLL_ALLTOALL) {
			c.to_counts = p.to_counts;
			c.to_places = j->places ? p.to_places : NULL;
		} else if (own.kind == SLMPM_COLL_SCATTER && rank != j->root && j->seed % 2) {
			c.count = p.counts[rank]; /* as in MPI */
			c.counts = c.places = NULL;
		}
	}
	rc = members_do(b, &c);
	CHECK(rc == 0, "rank %u: %d %s", rank, rc, slmpm_error_detail());
	if (memcmp(p.to, p.expected, room) != 0) {
		uint64_t i = 0;

		while (p.to[i] == p.expected[i])
			i++;
		CHECK(false,
		      "rank %u of %u: kind %u type %u op %u root %u count %llu counts %d places %d "
		      "in place %d: byte %llu of %llu: %x, not %x",
		      rank, j->n, j->kind, j->type, j->op, j->root, (unsigned long long)j->count,
		      j->counts, j->places, own.in_place, (unsigned long long)i,
		      (unsigned long long)room, p.to[i], p.expected[i]);
	}
}

static void take_buffers(void)
{
	for (int i = 0; i < 3; i++) {
		buffer[i] = malloc(ROOM + 16);
		CHECK(buffer[i], "no memory");
	}
}

/* ---- which ----------------------------------------------------------------------------------- */

static bool is_one(uint32_t op, uint32_t type)
{
	return type < SLMPM_FLOAT || op < SLMPM_CALC_AND || op > SLMPM_CALC_XOR;
}

/* Each kind, type, operation and root, in short; where it is slow some, others each time. */
static void all_kinds(struct boards *b, void *arg)
{
	struct rng g = {*(uint64_t *)arg};
	uint32_t one_in = (uint32_t)(actor_slow() + 1) / 2;

	take_buffers();
	for (uint32_t kind = 1; kind <= KINDS; kind++)
		for (uint32_t type = 1; type <= TYPES; type++)
			for (uint32_t op = 1; op <= OPS; op++)
				for (uint32_t root = 0; root < b->size; root++) {
					static const uint64_t some[] = {1, 2, 7, 20, 41};
					struct job j = {kind,
							type,
							op,
							b->size,
							root,
							0,
							some[rng_below(&g, 5)],
							false,
							false,
							rng_one_in(&g, 3),
							rng_next(&g)};

					if (is_one(op, type) && rng_one_in(&g, one_in))
						do_job(b, &j);
				}
}

static uint64_t some_count(struct rng *g, uint32_t type)
{
	uint32_t w = width_of[type];
	uint32_t near = rng_below(g, 3);

	switch (rng_below(g, 14)) {
	case 0: return 0;
	case 1: return 1;
	case 2: return 7;
	case 3:
	case 4: return 40 / w - 1 + near;
	case 5:
	case 6: return rng_below(g, 400);
	case 7: return PIECE / w - 1 + near;
	case 8: return PIECE / 2 / w - 1 + near;
	case 9: return rng_below(g, 5 * PIECE) / w;
	case 10: return RING / w - 1 + near;
	case 11: return rng_below(g, 3 * RING) / w;
	default: return rng_below(g, 40);
	}
}

struct random_run {
	uint64_t seed;
	uint32_t jobs;
};

static void at_random(struct boards *b, void *arg)
{
	const struct random_run *run = arg;
	struct rng g = {run->seed + b->size}, own = {run->seed ^ (b->rank + 77)};

	take_buffers();
	for (uint32_t i = 0; i < run->jobs; i++) {
		struct job j = {.n = b->size};

		j.kind = 1 + rng_below(&g, KINDS);
		j.type = 1 + rng_below(&g, TYPES);
		do
			j.op = 1 + rng_below(&g, OPS);
		while (!is_one(j.op, j.type));
		j.root = rng_below(&g, b->size);
		j.count = some_count(&g, j.type);
		j.counts = rng_one_in(&g, 2);
		j.places = j.counts && rng_one_in(&g, 2);
		j.in_place = rng_one_in(&g, 3);
		j.seed = rng_next(&g);
		if (i == run->jobs / 2 && !b->rank) /* by the rings alone from now on */
			reach_refused(b);
		if (rng_one_in(&own, 10))
			members_nap();
		do_job(b, &j);
	}
}

/* Of one length: many keep to the lines of as many as there are posts. */
static void stay_near(struct boards *b, void *arg)
{
	static const uint32_t kinds[] = {SLMPM_COLL_ALLREDUCE, SLMPM_COLL_BROADCAST};
	struct job j = {.type = SLMPM_UINT64, .op = SLMPM_CALC_SUM, .n = b->size, .count = 128};

	take_buffers();
	j.seed = *(uint64_t *)arg;
	for (uint32_t i = 0; i < 4 * BOARD_SLOTS; i++) {
		j.kind = kinds[i / BOARD_SLOTS % 2];
		j.root = i / 2 % b->size;
		do_job(b, &j);
	}
	for (uint32_t i = BOARD_SLOTS * 1024; i < RING; i++)
		CHECK(!b->own->ring[i], "rank %u has written to byte %u of its ring", b->rank, i);
}

int main(void)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 8};
	uint64_t seed = rng_run_seed((uint64_t)time(NULL));

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct random_run run = {seed, sizes[i] == 2 ? 600 : 200};

		run.jobs /= (uint32_t)actor_slow();

		members_run(sizes[i], all_kinds, &seed, 60);
		members_run(sizes[i], at_random, &run, 60);
		members_run(sizes[i], stay_near, &seed, 60);
		printf("%u members\n", sizes[i]);
	}
	return 0;
}
