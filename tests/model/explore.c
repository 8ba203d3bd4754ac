/* SPDX-License-Identifier: BSD-3-Clause */
/* Depth first over every schedule, with snapshots to go back to and a table of states seen. */
#include "tests/model/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/model/step.h"

#define DEPTH_MAX 20000
#define HUGE      (2u << 20)

/* A state on the present path. */
struct frame {
	uint64_t hash;
	double paths;
	size_t snapshot; /* where in the arena, if it will be needed again */
	size_t size;
	unsigned next, ways;
};

struct entry {
	uint64_t hash; /* 0: free */
	double paths;  /* of a bounded search: the depth at which it was seen */
};

static struct frame frames[DEPTH_MAX];
static uint8_t path[DEPTH_MAX];
static unsigned path_length;

static struct entry *table;
static uint64_t table_size, table_used;

static unsigned char *arena;
static size_t arena_size;

static struct entry *find(uint64_t hash)
{
	uint64_t at = hash & (table_size - 1);

	while (table[at].hash && table[at].hash != hash)
		at = (at + 1) & (table_size - 1);
	return &table[at];
}

static void *need(void *memory)
{
	if (!memory) {
		fprintf(stderr, "model: out of memory\n");
		exit(2);
	}
	return memory;
}

/* Empty, in pages as large as can be: its entries are read in no order. */
static struct entry *new_table(void)
{
	size_t size = table_size * sizeof(*table);
	struct entry *t = need(size < HUGE ? malloc(size) : aligned_alloc(HUGE, size));

	(void)madvise(t, size, MADV_HUGEPAGE);
	return memset(t, 0, size);
}

static void grow_table(void)
{
	struct entry *old = table;
	uint64_t old_size = table_size;

	table_size *= 2;
	table = new_table();
	for (uint64_t i = 0; i < old_size; i++) {
		if (old[i].hash)
			*find(old[i].hash) = old[i];
	}
	free(old);
}

static struct entry *insert(struct entry *at, uint64_t hash)
{
	if (table_used * 4 >= table_size * 3) {
		grow_table();
		at = find(hash);
	}
	at->hash = hash;
	table_used++;
	return at;
}

static void keep(struct frame *f, const struct search *s)
{
	f->size = step_size(s);
	if (f->snapshot + f->size > arena_size) {
		arena_size = 2 * (f->snapshot + f->size);
		arena = need(realloc(arena, arena_size));
	}
	step_save(s, arena + f->snapshot);
}

/*
 * Enters the present state on the path. False when it was seen before, or ends the path; then its
 * paths are added to the frame above.
 */
static bool enter(const struct search *s, struct outcome *out, unsigned depth)
{
	struct frame *above = depth ? &frames[depth - 1] : NULL;
	struct frame *f = &frames[depth];
	uint64_t hash = step_hash(s);
	struct entry *e;

	hash += !hash;
	e = find(hash);
	if (e->hash && (!s->limit || e->paths <= depth)) {
		if (above && !s->limit)
			above->paths += e->paths;
		return false;
	}
	if (!e->hash) {
		e = insert(e, hash);
		out->states++;
		out->fault = s->fresh ? s->fresh(s) : NULL;
		if (out->fault)
			return false;
	}
	e->paths = s->limit ? depth : 0;
	f->hash = hash;
	f->paths = 0;
	f->next = 0;
	f->ways = step_ways(s);
	f->snapshot = above ? above->snapshot + above->size : 0;
	f->size = 0;
	if (f->ways > 1)
		keep(f, s);
	if (depth > out->depth)
		out->depth = depth;
	if (f->ways)
		return true;
	out->fault = s->settled();
	if (!s->limit)
		e->paths = 1;
	if (above)
		above->paths += 1;
	return false;
}

static void start(const struct search *s)
{
	free(table);
	table_size = 1 << 16;
	table = new_table();
	table_used = 0;
	step_start(s);
}

/* The deepest frame is done: its paths are known, and count in the one above. */
static void leave(const struct search *s, unsigned depth)
{
	if (!s->limit)
		find(frames[depth].hash)->paths = frames[depth].paths;
	if (depth)
		frames[depth - 1].paths += frames[depth].paths;
}

struct outcome explore(const struct search *s)
{
	struct outcome out = {0};
	unsigned depth = 0; /* frames */

	start(s);
	out.fault = step_fault();
	if (!out.fault && enter(s, &out, 0))
		depth = 1;
	while (depth && !out.fault) {
		struct frame *f = &frames[depth - 1];

		if (f->next == f->ways || (s->limit && depth > s->limit)) {
			leave(s, --depth);
			continue;
		}
		if (f->next && f->size)
			step_restore(s, arena + f->snapshot, f->size);
		path[depth - 1] = (uint8_t)f->next;
		step_take(s, f->next++);
		out.transitions++;
		out.fault = step_fault();
		if (!out.fault && depth == DEPTH_MAX)
			out.fault = "endless: no end of steps";
		if (!out.fault && out.states > s->states_max)
			out.fault = "the checker: more states than the scenario allows";
		if (!out.fault && enter(s, &out, depth))
			depth++;
	}
	out.executions = frames[0].paths;
	if (out.fault) {
		path_length = depth;
		out.depth = depth;
	}
	return out;
}

void explore_print_trace(const struct search *s)
{
	const char *fault;

	step_start(s);
	for (unsigned i = 0; i < path_length && !step_fault(); i++)
		step_show(s, path[i]);
	fault = step_fault();
	if (!fault && s->fresh)
		fault = s->fresh(s);
	printf("     -> %s\n", fault ? fault : s->settled());
}
