/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of a group that consists of the command's processes, one behind the other;
 * of those with a root each member is it in turn, so that each waits for the one before.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

#include <slmpm_deposit.h>
#include <slmpm_plan.h>

#define WORDS      256 /* sent and answered by hand */
#define WARM_WORDS 16
#define PUT_ALL    0 /* no collective: slmpm_put_all */
#define SPACE      1
#define GROUP_MS   60000

enum {
	FROM_ROOT = 1,
	TO_ROOT = 2,
	ROTATES = FROM_ROOT | TO_ROOT,
	OUT_EACH = 4, /* there is a block for each member, ... */
	IN_EACH = 8,  /* ... from each */
	COMBINES = 16,
	BESIDE = 32 /* a computation */
};

struct collective {
	const char *name;
	uint32_t kind, how;
};

static const struct collective collectives[] = {
	{"barrier", SLMPM_COLL_BARRIER, 0},
	{"bcast", SLMPM_COLL_BROADCAST, FROM_ROOT},
	{"reduce", SLMPM_COLL_REDUCE, TO_ROOT | COMBINES},
	{"allreduce", SLMPM_COLL_ALLREDUCE, COMBINES},
	{"scatter", SLMPM_COLL_SCATTER, FROM_ROOT | OUT_EACH},
	{"gather", SLMPM_COLL_GATHER, TO_ROOT | IN_EACH},
	{"allgather", SLMPM_COLL_ALLGATHER, IN_EACH},
	{"alltoall", SLMPM_COLL_ALLTOALL, OUT_EACH | IN_EACH},
	{"put_all", PUT_ALL, FROM_ROOT},
	{"offload", SLMPM_COLL_ALLREDUCE, COMBINES | BESIDE},
};

static const struct collective *collective_of(const struct test *test)
{
	const struct collective *c = collectives;

	while (strcmp(c->name, test->name) != 0)
		c++;
	return c;
}

/* ---- one operation, as this member sees it ---- */

struct part {
	const struct collective *what;
	slmpm_group group;
	int32_t rank, members;
	uint64_t size;
	unsigned char *from, *to;
	struct slmpm_coll coll;
	slmpm_cq cq; /* PUT_ALL: what has come */
	slmpm_group_memory memory;
};

/* Reductions are of doubles where they can be. */
static bool is_of_doubles(const struct part *t)
{
	return t->what->how & COMBINES && t->size % sizeof(double) == 0;
}

static void prepare(struct part *t, struct pair *p, const struct job *j)
{
	memset(t, 0, sizeof(*t));
	t->what = collective_of(j->test);
	t->group = p->crew.group;
	t->rank = p->side;
	t->members = (int32_t)p->crew.members;
	t->size = j->size;
	t->from = (unsigned char *)p->tx;
	t->to = (unsigned char *)p->rx;
	t->coll.size = sizeof(t->coll);
	t->coll.kind = t->what->kind;
	if (t->what->kind == SLMPM_COLL_BARRIER)
		return;
	t->coll.from = t->from;
	t->coll.to = t->to;
	t->coll.type = is_of_doubles(t) ? SLMPM_DOUBLE : SLMPM_UINT8;
	t->coll.count = is_of_doubles(t) ? t->size / sizeof(double) : t->size;
	t->coll.op = t->what->how & COMBINES ? SLMPM_CALC_SUM : 0;
}

static int32_t roots_of(const struct part *t)
{
	return t->what->how & ROTATES ? t->members : 1;
}

static bool is_root(const struct part *t)
{
	return t->coll.root == t->rank;
}

/* Blocks that this member gives, ... */
static uint64_t given(const struct part *t)
{
	if (t->what->how & FROM_ROOT && !is_root(t))
		return 0;
	return t->what->how & OUT_EACH ? (uint64_t)t->members : 1;
}

/* ... and that it gets. */
static uint64_t gotten(const struct part *t)
{
	uint32_t how = t->what->how;

	if (how & TO_ROOT && !is_root(t))
		return 0;
	if (how == FROM_ROOT && is_root(t))
		return 0;
	return how & IN_EACH ? (uint64_t)t->members : 1;
}

uint64_t collective_room(const struct job *j)
{
	bool blocks = collective_of(j->test)->how & (OUT_EACH | IN_EACH);

	return blocks ? j->size * j->members : j->size;
}

const char *collective_path(const struct pair *p, const struct job *j)
{
	struct slmpm_group_info info = {.size = sizeof(info)};

	if (collective_of(j->test)->kind == PUT_ALL || slmpm_group_query(p->crew.group, &info) < 0)
		return "";
	return info.algorithm ? "tcp" : "memory";
}

/* ---- memory of the group ---- */

#define LINE 64

/* What comes begins behind what goes. */
static int collective_memory(struct part *t, const struct job *j)
{
	uint64_t room = (collective_room(j) + LINE - 1) / LINE * LINE, len;
	void *base;
	int rc;

	if (!j->shared || !room)
		return 0;
	rc = slmpm_group_alloc(&t->memory, t->group, 2 * room, SLMPM_ALLOC_BESIDE, 0, GROUP_MS);
	if (rc >= 0)
		rc = slmpm_group_part(t->memory, t->rank, &base, &len);
	if (rc < 0)
		return rc;
	t->coll.from = t->from = base;
	t->coll.to = t->to = t->from + room;
	return 0;
}

static void give_memory_back(const struct part *t)
{
	if (t->memory.id)
		(void)slmpm_group_free(t->memory);
}

/* ---- one put to many ---- */

static int put_open(struct part *t, slmpm_ctx ctx)
{
	struct slmpm_deposits how = {.size = sizeof(how)};
	int rc;

	if (t->what->kind != PUT_ALL)
		return 0;
	rc = slmpm_cq_create(ctx, &how.cq);
	if (rc < 0)
		return rc;
	t->cq = how.cq;
	rc = slmpm_group_space(t->group, SPACE, t->to, t->size);
	return rc < 0 ? rc : slmpm_group_deposits(t->group, &how);
}

static int put_close(struct part *t, int rc)
{
	if (t->what->kind != PUT_ALL)
		return rc;
	if (rc >= 0)
		rc = slmpm_barrier(t->group, -1);
	(void)slmpm_group_deposits(t->group, NULL);
	(void)slmpm_group_space(t->group, SPACE, NULL, 0);
	(void)slmpm_cq_destroy(t->cq);
	return rc;
}

static int put_or_take(const struct part *t)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	const struct slmpm_put_spec put = {
		.size = sizeof(put), .space = SPACE, .len = t->size, .from = t->from};
	struct slmpm_done done = {.status = 0};
	int rc;

	if (is_root(t))
		return slmpm_put_all(t->group, &put, &how, NULL);
	rc = slmpm_cq_wait(t->cq, &done, 1, -1);
	return rc < 0 ? rc : done.status;
}

static ALWAYS_INLINE int operate(const struct part *t)
{
	return t->what->kind == PUT_ALL ? put_or_take(t) : slmpm_collective(t->group, &t->coll, -1);
}

/* ---- is it right? ---- */

static unsigned char byte_of(int32_t rank, uint64_t block, uint64_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + (uint64_t)rank * 31 + block * 17 + 3);
}

static unsigned char digit_of(int32_t rank, uint64_t i)
{
	return (unsigned char)((i + (uint64_t)rank) % 4);
}

static double number_of(int32_t rank, uint64_t i)
{
	return (double)(i % 97) + rank + 1;
}

static void draw_numbers(const struct part *t)
{
	double value;

	for (uint64_t i = 0; i < t->coll.count; i++) {
		value = number_of(t->rank, i);
		memcpy(t->from + i * sizeof(value), &value, sizeof(value));
	}
}

static void draw(const struct part *t)
{
	uint64_t blocks = t->what->how & OUT_EACH ? (uint64_t)t->members : 1;
	bool digits = t->what->how & COMBINES;

	if (is_of_doubles(t)) {
		draw_numbers(t);
		return;
	}
	for (uint64_t block = 0; block < blocks; block++)
		for (uint64_t i = 0; i < t->size; i++)
			t->from[block * t->size + i] =
				digits ? digit_of(t->rank, i) : byte_of(t->rank, block, i);
}

static bool sum_is_right(const struct part *t, uint64_t i)
{
	double value, sum = 0;
	unsigned digits = 0;

	for (int32_t r = 0; r < t->members; r++) {
		sum += number_of(r, i);
		digits += digit_of(r, i);
	}
	if (!is_of_doubles(t))
		return t->to[i] == (unsigned char)digits;
	memcpy(&value, t->to + i * sizeof(value), sizeof(value));
	return value <= sum && value >= sum;
}

static bool block_is_right(const struct part *t, uint64_t block, uint64_t i)
{
	int32_t giver = t->what->how & FROM_ROOT ? t->coll.root : (int32_t)block;
	uint64_t mine = t->what->how & OUT_EACH ? (uint64_t)t->rank : 0;

	return t->to[block * t->size + i] == byte_of(giver, mine, i);
}

static int check(const struct part *t)
{
	bool sums = t->what->how & COMBINES;
	uint64_t n = sums ? t->coll.count : t->size;

	for (uint64_t block = 0; block < gotten(t); block++)
		for (uint64_t i = 0; i < n; i++)
			if (sums ? !sum_is_right(t, i) : !block_is_right(t, block, i)) {
				fprintf(stderr,
					"slmpm_perftest: %s of %llu bytes: rank %d has wrong data "
					"at element %llu of block %llu\n",
					t->what->name, (unsigned long long)t->size, t->rank,
					(unsigned long long)i, (unsigned long long)block);
				return -SLMPM_ECHECKSUM;
			}
	return 0;
}

/* Once with each root. */
static int verify(struct part *t, const struct job *j)
{
	int rc = 0;

	draw(t);
	for (int32_t root = 0; root < roots_of(t) && rc >= 0; root++) {
		t->coll.root = root;
		memset(t->to, 0xa5, collective_room(j));
		rc = slmpm_barrier(t->group, -1);
		if (rc >= 0)
			rc = operate(t);
		if (rc >= 0)
			rc = check(t);
		if (rc >= 0)
			rc = slmpm_barrier(t->group, -1);
	}
	return rc;
}

/* ---- the measurement ---- */

/* Of the last operation; NULL: it has sent no messages of a plan. */
static const char *algorithm_of(const struct part *t)
{
	struct slmpm_group_info info = {.size = sizeof(info)};

	if (t->what->kind == PUT_ALL || slmpm_group_query(t->group, &info) < 0)
		return NULL;
	return slmpm_plan_algorithm(info.algorithm);
}

static ALWAYS_INLINE int one(struct part *t, uint64_t i, bool touch)
{
	int rc;

	if (touch)
		fill(t->from, given(t) * t->size, i);
	rc = operate(t);
	if (touch && rc >= 0)
		consume(t->to, gotten(t) * t->size);
	return rc;
}

/* A time is of as many operations as there are roots. */
static ALWAYS_INLINE int repeat(struct part *t, const struct job *j, struct hist *stamps,
				bool touch)
{
	uint64_t before = stamps ? now_ns() : 0, now;
	int32_t roots = roots_of(t);
	int rc = 0;

	t->coll.root = 0;
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = one(t, i, touch);
		if (++t->coll.root < roots)
			continue;
		t->coll.root = 0;
		if (stamps) {
			now = now_ns();
			hist_add(stamps, (now - before) / (uint64_t)roots);
			before = now;
		}
	}
	return rc;
}

static int exchange(struct pair *p, uint64_t n)
{
	uint64_t word = 0;
	int64_t rc = 0;

	for (uint64_t i = 0; i < 2 * n && rc >= 0; i++)
		rc = (i & 1) == (uint64_t)p->side ?
			     slmpm_send(p->peer, STREAM_DATA, &word, sizeof(word), -1) :
			     slmpm_recv(p->peer, STREAM_DATA, &word, sizeof(word), NULL, -1);
	return rc < 0 ? (int)rc : 0;
}

/* A message there and one back: between two that is the least. */
static int by_hand(struct pair *p)
{
	int rc = exchange(p, WARM_WORDS);
	uint64_t begin = now_ns();

	if (rc >= 0)
		rc = exchange(p, WORDS);
	p->extra.bare_ns = (double)(now_ns() - begin) / 2 / WORDS;
	return rc;
}

/* Of all threads of all members. */
static int sum_processors(struct pair *p, const struct part *t, uint64_t began)
{
	double mine = (double)(cpu_ns() - began);

	return slmpm_reduce(t->group, &mine, &p->extra.group_ns, 1, SLMPM_DOUBLE, SLMPM_CALC_SUM, 0,
			    -1);
}

static int time_all(struct pair *p, struct part *t, const struct job *j, struct hist *stamps)
{
	int rc = slmpm_barrier(t->group, -1);
	uint64_t worked = cpu_ns(), begin = now_ns();

	if (rc >= 0 && t->what->how & BESIDE)
		return collective_beside(p, &t->coll, j, stamps);
	if (rc >= 0 && stamps)
		rc = repeat(t, j, stamps, j->touch);
	else if (rc >= 0)
		rc = j->touch ? repeat(t, j, NULL, true) : repeat(t, j, NULL, false);
	p->extra.each_ns = (double)(now_ns() - begin) / (double)j->count;
	p->extra.algorithm = algorithm_of(t);
	if (rc >= 0)
		rc = sum_processors(p, t, worked);
	return rc < 0 || t->members > 2 ? rc : by_hand(p);
}

int loop_collective(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc = crew_ready(p, j->members);
	struct part t;

	if (rc >= 0)
		rc = crew_say(p, j);
	if (rc < 0)
		return rc;
	prepare(&t, p, j);
	rc = collective_memory(&t, j);
	if (rc >= 0)
		rc = put_open(&t, p->ctx);
	if (rc >= 0)
		rc = j->verify ? verify(&t, j) : time_all(p, &t, j, stamps);
	rc = put_close(&t, rc);
	give_memory_back(&t);
	return rc < 0 ? rc : crew_hear(p);
}
