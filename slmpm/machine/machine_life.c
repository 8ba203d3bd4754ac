/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept of the machines of a group: which members are on which; opened, left, closed. */
#include <errno.h>
#include <stdlib.h>

#include "slmpm/machine/machine_parts.h"

/* ---- which ones ------------------------------------------------------------------------------ */

static uint32_t count_machines(const uint32_t *hosts, uint32_t size)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < size; r++)
		n += hosts[r] == r;
	return n;
}

static void find_machines(struct machine *n, const uint32_t *hosts, uint32_t size, uint32_t own)
{
	uint32_t machine = 0;

	for (uint32_t lowest = 0; lowest < size; lowest++) {
		if (hosts[lowest] != lowest)
			continue;
		n->index = hosts[own] == lowest ? machine : n->index;
		n->lowest[machine] = lowest;
		for (uint32_t r = lowest; r < size; r++)
			n->counts[machine] += hosts[r] == lowest;
		machine++;
	}
}

/* Behind R on its machine, of which the lowest is behind the last. */
static uint32_t next_here(const uint32_t *hosts, uint32_t size, uint32_t r)
{
	const uint32_t lowest = hosts[r];

	do
		r = (r + 1) % size;
	while (hosts[r] != lowest);
	return r;
}

/* The lowest rank leads its machine. Where all share processors, which members mostly have in
 * turns, so would those that have the most to do share one: they are others by turns. */
static void find_heads(struct machine *n, const uint32_t *hosts, uint32_t size, bool shared)
{
	for (uint32_t i = 0; i < n->machines; i++) {
		n->heads[i] = n->lowest[i];
		for (uint64_t k = shared ? i % n->counts[i] : 0; k; k--)
			n->heads[i] = next_here(hosts, size, n->heads[i]);
	}
}

/* Machine by machine, from its head on: who forms the group of those here is connected with all. */
static void find_places(struct machine *n, const uint32_t *hosts, uint32_t size)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < n->machines; i++)
		for (uint32_t k = 0, r = n->heads[i]; k < n->counts[i]; k++) {
			n->place[r] = place++;
			r = next_here(hosts, size, r);
		}
}

static void find_local(struct machine *n, const uint32_t *hosts, uint32_t size, uint32_t own)
{
	for (uint32_t r = n->heads[n->index]; n->locals < n->counts[n->index]; n->locals++) {
		n->rank = r == own ? n->locals : n->rank;
		n->ranks[n->locals] = r;
		r = next_here(hosts, size, r);
	}
}

static void machine_free(struct machine *n)
{
	free(n->ranks);
	free(n->counts);
	free(n->room);
	free(n);
}

int machine_open(struct group *g)
{
	const uint32_t size = g->boards.size, *hosts = g->messages->hosts;
	struct machine *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->machines = count_machines(hosts, size);
	n->ranks = calloc(2 * (size_t)size + 3 * (size_t)n->machines, sizeof(*n->ranks));
	n->counts = calloc(2 * (size_t)n->machines, sizeof(*n->counts));
	if (!n->ranks || !n->counts) {
		machine_free(n);
		return -ENOMEM;
	}
	n->place = n->ranks + size;
	n->lowest = n->place + size;
	n->heads = n->lowest + n->machines;
	n->leaders = n->heads + n->machines;
	find_machines(n, hosts, size, g->boards.rank);
	find_heads(n, hosts, size, g->messages->processors);
	find_places(n, hosts, size);
	find_local(n, hosts, size, g->boards.rank);
	n->local.ranks = n->ranks;
	n->local.of = &g->boards;
	list_init(&n->op.node);
	g->messages->machine = n;
	return 0;
}

/* ---- it goes --------------------------------------------------------------------------------- */

/* The context frees it, once none of its groups is gone through. The others learn at once that this
 * member has left it in order: its process may end before that. */
void machine_leave(struct group *g)
{
	struct machine *n = g->messages->machine;
	struct group *of = n->group;

	n->group = NULL;
	if (!of)
		return;
	operations_shut(of);
	if (of->state == GROUP_HAS_FORMED)
		boards_end(&of->boards, 0, BOARD_NONE, NULL);
	of->whole = NULL;
	of->boards.local = NULL;
	of->to_reap = true;
	g->ctx->collecting++;
}

void machine_close(struct group *g)
{
	machine_leave(g);
	machine_free(g->messages->machine);
	g->messages->machine = NULL;
}
