/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of it, as text and as one JSON object. */
#include "apps/slmpm_sim/sim.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

static const char *const topologies[] = {"full", "torus", "mesh", "tree"};
/* The words of slmpm_wq_dump. */
enum { ENTRY_SEND, ENTRY_RECV, ENTRY_WAIT, ENTRY_CALC, ENTRY_COUNT, ENTRIES };
static const char *const entries[ENTRIES] = {"send", "recv", "wait", "calc", "count"};
static const uint8_t entry_of[STEP_KINDS] = {
	[SLMPM_PLAN_SEND] = ENTRY_SEND, [SLMPM_PLAN_RECV] = ENTRY_RECV,
	[SLMPM_PLAN_WAIT] = ENTRY_WAIT, [SLMPM_PLAN_FOLD] = ENTRY_CALC,
	[SLMPM_PLAN_COPY] = ENTRY_CALC, [SLMPM_PLAN_GATE] = ENTRY_COUNT,
	[SLMPM_PLAN_END] = ENTRY_CALC};

static const char *link_name(const struct setting *set, uint32_t link)
{
	static const char *const full[] = {"in", "out"};
	static const char *const torus[] = {"x_up", "x_down", "y_up", "y_down", "z_up", "z_down"};
	static const char *const tree[] = {"parent", "left", "right"};

	switch (set->topology) {
	case TOPOLOGY_FULL: return full[link];
	case TOPOLOGY_TREE: return tree[link];
	default: return torus[link];
	}
}

static double nanoseconds(uint64_t time)
{
	return (double)time / 1000;
}

const char *nodes_word(uint32_t nodes)
{
	return nodes == 1 ? "node" : "nodes";
}

/* How much of the whole time the busiest link had something to carry. */
static double busy_share(const struct result *r)
{
	return r->last ? (double)r->busy / (double)r->last : 0;
}

static void count_entries(const struct result *r, uint64_t count[ENTRIES])
{
	for (int i = 0; i < ENTRIES; i++)
		count[i] = 0;
	for (int i = 1; i < STEP_KINDS; i++)
		count[entry_of[i]] += r->steps[i];
}

static void print_text(const struct setting *set, const struct result *r)
{
	uint64_t count[ENTRIES];

	count_entries(r, count);
	printf("%s by %s, %" PRIu64 " bytes, %u %s, %s", slmpm_plan_kind(set->kind),
	       slmpm_plan_algorithm(r->algorithm), set->bytes, set->nodes, nodes_word(set->nodes),
	       topologies[set->topology]);
	if (set->extent[0])
		printf(" %u x %u x %u", set->extent[0], set->extent[1], set->extent[2]);
	printf("\ntime      %.3f us; the first node %.3f us\n", nanoseconds(r->last) / 1000,
	       nanoseconds(r->first) / 1000);
	printf("messages  %" PRIu64 " of %" PRIu64 " bytes in all, %" PRIu64 " hops\n", r->messages,
	       r->bytes, r->hops);
	printf("entries  ");
	for (int i = 0; i < ENTRIES; i++)
		printf(" %s %" PRIu64, entries[i], count[i]);
	if (r->node == UINT32_MAX)
		printf("\nbusiest   none\n");
	else
		printf("\nbusiest   %s of node %u, %" PRIu64 " bytes, %.1f %% of the time\n",
		       link_name(set, r->link), r->node, r->carried, busy_share(r) * 100);
}

static json_t *extents(const struct setting *set)
{
	return set->extent[0] ? json_pack("[iii]", (int)set->extent[0], (int)set->extent[1],
					  (int)set->extent[2]) :
				json_null();
}

static json_t *busiest(const struct setting *set, const struct result *r)
{
	if (r->node == UINT32_MAX)
		return json_null();
	return json_pack("{si ss sI sf}", "node", (int)r->node, "link", link_name(set, r->link),
			 "bytes", (json_int_t)r->carried, "busy", busy_share(r));
}

static int print_json(const struct setting *set, const struct result *r)
{
	json_t *kinds = json_object(), *all;
	uint64_t count[ENTRIES];
	int rc;

	count_entries(r, count);
	for (int i = 0; i < ENTRIES; i++)
		json_object_set_new(kinds, entries[i], json_integer((json_int_t)count[i]));
	all = json_pack("{ss ss sI si ss so sf sf sI sI sI sI so so}", "collective",
			slmpm_plan_kind(set->kind), "algorithm", slmpm_plan_algorithm(r->algorithm),
			"bytes", (json_int_t)set->bytes, "nodes", (int)set->nodes, "network",
			topologies[set->topology], "extent", extents(set), "time_ns",
			nanoseconds(r->last), "first_ns", nanoseconds(r->first), "messages",
			(json_int_t)r->messages, "message_bytes", (json_int_t)r->bytes, "hops",
			(json_int_t)r->hops, "events", (json_int_t)r->events, "entries", kinds,
			"busiest", busiest(set, r));
	rc = all ? json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) : -1;
	putchar('\n');
	json_decref(all);
	return rc != 0;
}

int print_result(const struct setting *set, const struct result *r)
{
	int rc = 0;

	if (set->json)
		rc = print_json(set, r);
	else
		print_text(set, r);
	return fflush(stdout) || ferror(stdout) || rc;
}
