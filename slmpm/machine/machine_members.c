/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a group on this machine: how they are connected, and how they stand. */
#include "slmpm/machine/machine_parts.h"
#include "slmpm/group/pairing.h"

/* ---- which ones ------------------------------------------------------------------------------ */

uint32_t machine_rank(const struct machine *n, uint32_t rank)
{
	uint32_t i = 0;

	while (i < n->locals && n->ranks[i] != rank)
		i++;
	return i < n->locals ? i : BOARD_NONE;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Those with which this member needs a connection for it: NULL: none. */
static struct member *first_local(const struct group *g, uint32_t *i)
{
	const struct machine *n = g->messages->machine;

	*i = n->rank == 0;
	if (n->locals == 1)
		return NULL;
	return member_of(g, n->ranks[*i]);
}

static struct member *next_local(const struct group *g, uint32_t *i)
{
	const struct machine *n = g->messages->machine;

	return n->rank == 0 && ++*i < n->locals ? member_of(g, n->ranks[*i]) : NULL;
}

void machine_want(struct group *g, bool want)
{
	struct machine *n = g->messages->machine;
	uint32_t i;

	if (n->wants == want)
		return;
	n->wants = want;
	for (struct member *m = first_local(g, &i); m; m = next_local(g, &i)) {
		if (want)
			pair_want(m);
		else
			pair_unwant(m);
	}
}

bool machine_is_decided(const struct group *g)
{
	uint32_t i;

	for (struct member *m = first_local(g, &i); m; m = next_local(g, &i))
		if (!pair_is_decided(m))
			return false;
	return true;
}

int machine_connect(struct group *g)
{
	const char *name;
	uint32_t i;

	if (!machine_is_decided(g))
		return 0;
	for (struct member *m = first_local(g, &i); m; m = next_local(g, &i)) {
		if (pair_is_up(m->pair))
			continue;
		if (group_is_broken(g)) /* which those that it needs may have learnt before */
			return messages_broken_by(g);
		name = boards_name(&g->boards, g->messages->number, g->messages->coll->kind);
		return messages_break(g, pair_error(m, name, -1), (int)pair_culprit(m));
	}
	return 1;
}

/* ---- how they stand -------------------------------------------------------------------------- */

bool machine_is_current(const struct group *g)
{
	const struct messages *m = g->messages;

	return m && m->machine && m->generation == g->boards.generation;
}

bool machine_has_formed(const struct machine *n)
{
	return n->group && n->group->state == GROUP_HAS_FORMED;
}

bool machine_is_used(const struct machine *n)
{
	return machine_has_formed(n) && n->group->boards.local;
}

COLD bool machine_awaits(const struct group *g, uint32_t rank)
{
	const struct machine *n = g->messages->machine;
	const uint32_t i = machine_rank(n, rank);

	if (i == BOARD_NONE || i == n->rank)
		return false;
	if (n->phase != MACHINE_FORMS)
		return machine_is_in_memory(n) && !n->result && flat_waits_for(&n->group->flat, i);
	if (n->rank != 0)
		return i == 0;
	return n->asked ? formation_awaits(n->group, i) : !pair_is_up(member_of(g, rank)->pair);
}

uint64_t machine_came(const struct group *g, uint32_t rank)
{
	const struct machine *n = g->messages ? g->messages->machine : NULL;
	const uint32_t i = n && machine_has_formed(n) ? machine_rank(n, rank) : BOARD_NONE;
	struct board_step step;

	if (i == BOARD_NONE || i == n->rank)
		return 0;
	boards_step(&n->group->boards, i, &step);
	return step.number;
}
