/* SPDX-License-Identifier: BSD-3-Clause */
/* What the coroutines ask for: the hooks make requests, and yield to the scheduler with them. */
#include "tests/model/explore.h"
#include "tests/model/world.h"

enum model_site model_weak_site;
enum model_weakening model_weak_how;

const char *model_site_name(enum model_site site)
{
	static const char *const names[] = {
#define MODEL_SITE(name) #name,
		"", MODEL_SITES(MODEL_SITE)
#undef MODEL_SITE
	};

	return names[site];
}

static uint64_t ask(struct request request)
{
	struct thread *t = &world.threads[world.running];

	t->request = request;
	coroutine_yield(&t->coroutine);
	return t->result;
}

void explore_fault(const char *text)
{
	if (!world.fault)
		world.fault = text;
}

_Noreturn void model_fault(const char *text)
{
	explore_fault(text);
	model_end();
}

static int16_t located(const volatile void *word, bool own)
{
	int at = machine_location(word);

	if (at < 0)
		model_fault("an access outside the shared words");
	if (own != (world.memory.locations[at].owner == world.running))
		model_fault(own ? "a store into own memory" :
				  "a load from the other side's memory");
	return (int16_t)at;
}

uint64_t model_load(enum model_site site, const volatile void *word, memory_order order)
{
	if (model_weakened(site, WEAK_RELAXED))
		order = memory_order_relaxed;
	return ask((struct request){.kind = OP_LOAD,
				    .site = (uint16_t)site,
				    .location = located(word, false),
				    .order = order});
}

void model_store(enum model_site site, volatile void *word, uint64_t value, memory_order order)
{
	int16_t at = located(word, true);

	if (model_weakened(site, WEAK_OMITTED))
		return;
	if (model_weakened(site, WEAK_RELAXED))
		order = memory_order_relaxed;
	machine_prefetch(&world.memory, world.running);
	ask((struct request){.kind = OP_STORE,
			     .site = (uint16_t)site,
			     .location = at,
			     .order = order,
			     .value = value});
}

void model_fence(enum model_site site, memory_order order)
{
	if (model_weakened(site, WEAK_OMITTED))
		return;
	if (model_weakened(site, WEAK_ACQ_REL))
		order = memory_order_acq_rel;
	ask((struct request){.kind = OP_FENCE, .site = (uint16_t)site, .order = order});
}

void model_compiler_fence(enum model_site site)
{
	(void)site; /* program order is what the coroutines keep: see readable() */
}

void model_barrier(void)
{
	if (ORDER_RULE(barrier))
		ask((struct request){.kind = OP_BARRIER, .site = SITE_barrier});
}

unsigned model_choose(unsigned n)
{
	if (n < 2)
		return 0;
	return (unsigned)ask((struct request){.kind = OP_CHOOSE, .count = (uint16_t)n});
}

void model_wait(const volatile void *word)
{
	ask((struct request){.kind = OP_WAIT, .location = located(word, false)});
}

bool model_sleep(void)
{
	return ask((struct request){.kind = OP_SLEEP});
}

void model_bell(void)
{
	ask((struct request){.kind = OP_BELL});
}

void model_write_payload(unsigned segment, bool first, uint64_t value)
{
	const char *wrong = machine_write_plain(&world.memory, segment, first, value);

	if (wrong)
		model_fault(wrong);
}

uint64_t model_read_payload(unsigned segment, bool first)
{
	uint64_t value = 0;
	const char *wrong = machine_read_plain(&world.memory, segment, first, &value);

	if (wrong)
		model_fault(wrong);
	return value;
}

void model_end(void)
{
	for (;;)
		ask((struct request){.kind = OP_END});
}

bool explore_writer_dead(void)
{
	return world.memory.threads[WRITER].dead;
}

uint64_t model_newest(int location)
{
	const struct location *l = &world.memory.locations[location];

	return l->messages[l->count - 1].value;
}
