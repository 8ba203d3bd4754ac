/* SPDX-License-Identifier: BSD-3-Clause */
/* What can happen next, and doing it; states as bytes. */
#include "tests/model/step.h"

#include <stdio.h>
#include <string.h>

#include "tests/model/world.h"

#define BELOW 1024 /* bytes under the used stack kept zero: what a call finds there is no state */

struct world world;

static bool tracing;

static unsigned char stacks[THREADS][COROUTINE_STACK] __attribute__((aligned(4096)));

/* With the compiler's barrier left out, the writer's look at the sleeper may move up. */
static bool moves_up(int t, const struct request *r)
{
	return r->site == SITE_asleep_in && t == WRITER &&
	       model_weakened(SITE_bell_order, WEAK_OMITTED);
}

static unsigned ways_of(int t)
{
	const struct request *r = &world.threads[t].request;
	const struct knowledge *other = &world.memory.threads[!t];

	if (world.memory.threads[t].dead)
		return 0;
	switch ((enum operation)r->kind) {
	case OP_LOAD: return machine_readable(&world.memory, t, r->location) + moves_up(t, r);
	case OP_CHOOSE: return r->count;
	case OP_WAIT: return machine_news(&world.memory, r->location);
	case OP_SLEEP: return world.memory.threads[t].bell || other->dead;
	case OP_END: return 0;
	default: return 1;
	}
}

static bool chooses(int t)
{
	return world.threads[t].request.kind == OP_CHOOSE && !world.memory.threads[t].dead;
}

static bool may_die(const struct search *s)
{
	return s->kill && !world.memory.threads[WRITER].dead &&
	       world.threads[WRITER].request.kind != OP_END;
}

/* A choice touches nothing that is shared: the other thread need not be tried in front of it. */
unsigned step_ways(const struct search *s)
{
	for (int t = 0; t < THREADS; t++) {
		if (chooses(t))
			return ways_of(t);
	}
	return ways_of(WRITER) + ways_of(READER) + may_die(s);
}

/* Which thread, and in *WAY which of its ways; THREADS: the writer dies. */
static int chosen(unsigned *way)
{
	for (int t = 0; t < THREADS; t++) {
		if (chooses(t))
			return t;
	}
	for (int t = 0; t < THREADS; t++) {
		if (*way < ways_of(t))
			return t;
		*way -= ways_of(t);
	}
	return THREADS;
}

static void perform(int t, unsigned way)
{
	struct machine *m = &world.memory;
	struct thread *self = &world.threads[t];
	const struct request *r = &self->request;

	self->result = 0;
	switch ((enum operation)r->kind) {
	case OP_LOAD:
		if (way == machine_readable(m, t, r->location))
			self->result = m->early;
		else
			self->result = machine_load(m, t, r->location, way, (memory_order)r->order);
		break;
	case OP_STORE: machine_store(m, t, r->location, r->value, (memory_order)r->order); break;
	case OP_FENCE: machine_fence(m, t, (memory_order)r->order); break;
	case OP_BARRIER: machine_barrier(m); break;
	case OP_CHOOSE: self->result = way; break;
	case OP_BELL: m->threads[!t].bell = 1; break;
	case OP_SLEEP:
		self->result = m->threads[!t].dead;
		m->threads[t].bell = 0;
		if (m->threads[!t].dead)
			machine_mourn(m, t);
		break;
	case OP_WAIT:
	case OP_END: break;
	}
}

/* ---- for the reader of a trace ---- */

static void print_request(int t, unsigned way)
{
	static const char *const names[] = {"load",  "store", "fence", "membarrier", "chooses",
					    "polls", "wakes", "bell",  "end"};
	const struct request *r = &world.threads[t].request;

	printf("    %s  %-10s", t == WRITER ? "writer" : "reader", names[r->kind]);
	if (r->site)
		printf(" %-14s", model_site_name((enum model_site)r->site));
	if (r->kind == OP_LOAD && way < world.memory.locations[r->location].count) {
		const struct location *l = &world.memory.locations[r->location];

		printf(" %#llx at %s%s", (unsigned long long)l->messages[way].value,
		       machine_name(r->location), way + 1 < l->count ? " (stale)" : "");
	} else if (r->kind == OP_STORE) {
		printf(" %#llx at %s", (unsigned long long)r->value, machine_name(r->location));
	} else if (r->kind == OP_CHOOSE) {
		printf(" %u of %u", way, r->count);
	}
	printf("\n");
}

/* ---- steps ---- */

static void run(int t)
{
	struct coroutine *c = &world.threads[t].coroutine;

	memset((unsigned char *)c->sp - BELOW, 0, BELOW);
	world.running = t;
	coroutine_resume(c);
	world.running = -1;
}

static void hurry(const struct search *s, int t)
{
	while (s->hurry && world.threads[t].request.kind == OP_STORE && !world.fault) {
		if (tracing)
			print_request(t, 0);
		perform(t, 0);
		run(t);
	}
}

void step_take(const struct search *s, unsigned way)
{
	int t = chosen(&way);

	if (t == THREADS) {
		if (tracing)
			printf("    writer  is killed\n");
		world.memory.threads[WRITER].dead = 1;
		return;
	}
	if (tracing)
		print_request(t, way);
	perform(t, way);
	if (world.fault)
		return;
	run(t);
	hurry(s, t);
}

void step_show(const struct search *s, unsigned way)
{
	tracing = true;
	step_take(s, way);
	tracing = false;
}

void step_start(const struct search *s)
{
	memset(&world, 0, sizeof(world));
	memset(s->private, 0, s->private_size);
	machine_init(&world.memory, s->segments, s->reverse, s->start);
	for (int t = 0; t < THREADS; t++)
		coroutine_init(&world.threads[t].coroutine, stacks[t], s->entry[t]);
	for (int t = 0; t < THREADS && !world.fault; t++) {
		run(t);
		hurry(s, t);
	}
}

const char *step_fault(void)
{
	return world.fault;
}

/* ---- the state as bytes ---- */

uint64_t step_hash(const struct search *s)
{
	uint64_t hash = 1;

	s->canonical();
	for (int t = 0; t < THREADS; t++) {
		const struct coroutine *c = &world.threads[t].coroutine;

		if (world.memory.threads[t].dead)
			continue;
		hash = hash_bytes(hash, c->sp, coroutine_used(c));
		hash = hash_bytes(hash, &world.threads[t].request, sizeof(struct request));
	}
	hash = hash_bytes(hash, s->private, s->private_size);
	return machine_hash(&world.memory, hash);
}

static size_t world_size(void)
{
	return offsetof(struct world, memory) + machine_size(&world.memory);
}

size_t step_size(const struct search *s)
{
	return world_size() + s->private_size + coroutine_used(&world.threads[0].coroutine) +
	       coroutine_used(&world.threads[1].coroutine);
}

void step_save(const struct search *s, void *to)
{
	unsigned char *at = to;

	memcpy(at, &world, world_size());
	at += world_size();
	memcpy(at, s->private, s->private_size);
	at += s->private_size;
	for (int t = 0; t < THREADS; t++) {
		const struct coroutine *c = &world.threads[t].coroutine;

		memcpy(at, c->sp, coroutine_used(c));
		at += coroutine_used(c);
	}
}

void step_restore(const struct search *s, const void *from, size_t size)
{
	const unsigned char *at = from;

	(void)size;
	memcpy(&world, at, world_size());
	at += world_size();
	memcpy(s->private, at, s->private_size);
	at += s->private_size;
	for (int t = 0; t < THREADS; t++) {
		const struct coroutine *c = &world.threads[t].coroutine;

		memcpy(c->sp, at, coroutine_used(c));
		at += coroutine_used(c);
	}
}
