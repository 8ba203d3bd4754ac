/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric under test, shapes of rings, what a test leaves behind. */
#include "tests/lib/fabric_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/far.h"

const struct fabric *fabric;

static const struct fabric_shape all[] = {
	{2, 64},     {2, 4096}, {4, 64},    {8, 64},    {8, 1024}, {16, 256},
	{32, 32768}, {64, 64},  {256, 128}, {8192, 64}, {0, 0},
};

/* Of bonds: there are many, and their links' own rows try all. */
static const struct fabric_shape few[] = {
	{2, 64}, {8, 1024}, {32, 4096}, {64, 64}, {256, 128}, {0, 0},
};

const struct fabric_shape *fabric_shapes = all;

/* What this process has, and the one that has the far ends. */
struct held {
	int descriptors, mappings, far_descriptors, far_mappings;
};

static struct held before;

static struct held held(void)
{
	struct held h = {0};

	if (far_side() >= 0)
		far_held(&h.far_descriptors, &h.far_mappings);
	h.descriptors = actor_descriptors();
	h.mappings = actor_mappings();
	return h;
}

static bool bonds;

void fabric_suite_bonds(void)
{
	bonds = true;
}

static const struct fabric *choice(int i)
{
	int built_in = 0;

	while (fabric_at(built_in))
		built_in++;
	return i < built_in ? fabric_at(i) : bonds ? bonded_at(i - built_in) : NULL;
}

int fabric_suite_choose(int i)
{
	const char *only = getenv("SLMPM_TEST_FABRIC");
	struct fabric_caps caps = {.why_not = ""};

	fabric = choice(i);
	if (!fabric)
		return -1;
	fabric_shapes = bonded_is(fabric) ? few : all;
	if (only && strcmp(only, fabric->name) != 0)
		return 0;
	if (fabric->probe(NULL, &caps) < 0) {
		CHECK(caps.why_not[0], "%s cannot run here and does not say why", fabric->name);
		printf("fabric %s: %s\n", fabric->name, caps.why_not);
		return 0;
	}
	fabric = far_fabric(fabric);
	printf("fabric %s\n", fabric->name);
	return 1;
}

int fabric_suite_before(void **state)
{
	(void)state;
	before = held();
	return 0;
}

int fabric_suite_after(void **state)
{
	struct held now = held();

	(void)state;
	if (memcmp(&now, &before, sizeof(now)) == 0)
		return 0;
	printf("%d descriptors, %d mappings; before there were %d and %d; far away %d and %d; %d and %d\n",
	       now.descriptors, now.mappings, before.descriptors, before.mappings,
	       now.far_descriptors, now.far_mappings, before.far_descriptors, before.far_mappings);
	return -1;
}

void fabric_each_shape(void (*body)(struct link_pair *p))
{
	for (const struct fabric_shape *s = fabric_shapes; s->segments; s++) {
		struct link_pair p;

		link_pair_open(&p, fabric, s->segments, s->size);
		body(&p);
		link_pair_close(&p);
	}
}
