/* SPDX-License-Identifier: BSD-3-Clause */
/* The group of those on this machine forms with the first operation, and all members agree on
 * whether it is used. */
#include <stdlib.h>

#include "slmpm/machine/machine_parts.h"
#include "slmpm/group/pairing.h"

/* ---- founded, joined ------------------------------------------------------------------------- */

/* No part of the application's has it, nor has one of another generation. */
static uint32_t machine_tag(const struct group *g)
{
	return ~g->tag ^ g->boards.generation;
}

static void found_machine(struct group *g)
{
	struct machine *n = g->messages->machine;
	slmpm_peer *peers = calloc(n->locals, sizeof(*peers));
	int rc;

	if (!peers)
		return;
	for (uint32_t i = 1; i < n->locals; i++)
		peers[i].id = handle_id(member_of(g, n->ranks[i])->pair->ep);
	n->group = formation_new("a group within a machine", g->ctx, peers, n->locals,
				 machine_tag(g), g, -1, &rc);
	free(peers);
	if (!n->group)
		return;
	n->group->whole = g;
	machine_sized(n->group);
	formation_begin(n->group);
}

static void join_machine(struct group *g)
{
	struct machine *n = g->messages->machine;
	int rc;

	n->group = group_ask(member_of(g, n->ranks[0])->pair->ep, machine_tag(g), true, &rc);
	if (n->group)
		n->group->whole = g;
}

/* It cannot even be founded: those that come to join it are to go without, too. Of one that has
 * failed formation_fail says so. */
static void refuse_local(struct group *g)
{
	const struct machine *n = g->messages->machine;

	for (uint32_t i = 1; i < n->locals; i++) {
		struct endpoint *ep = pair_endpoint(g, n->ranks[i]);

		if (ep) /* it has not died */
			formation_refuse_part(ep, machine_tag(g), SLMPM_ENOMEM,
					      "no memory within a machine");
	}
}

/* ---- it forms -------------------------------------------------------------------------------- */

/* One that is waited for has left: -1: none. */
static COLD int left_local(const struct group *g)
{
	const struct machine *n = g->messages->machine;

	for (uint32_t i = 0; i < n->locals; i++) {
		const struct distant *d = member_of(g, n->ranks[i])->distant;

		if (d && d->left && machine_awaits(g, n->ranks[i]))
			return (int)n->ranks[i];
	}
	return -1;
}

static int await_local(struct group *g)
{
	const int left = g->left ? left_local(g) : -1;
	const struct messages *m = g->messages;
	int rc;

	if (left < 0)
		return 0;
	rc = boards_error(&g->boards, SLMPM_ECLOSED, m->number, m->coll->kind,
			  BOARD_MEMBER " has left the group",
			  BOARD_MEMBER_OF(&g->boards, (uint32_t)left));
	return messages_break(g, rc, left);
}

void machine_sized(struct group *local)
{
	const struct group *g = local->whole;
	struct machine *n = g->messages->machine;
	struct boards *b = &local->boards;

	if (b->size != n->locals || b->rank != n->rank)
		return;
	b->tag = g->tag;
	b->local = &n->local;
}

/* Another's word, which may be wrong, says how many there are. */
static int use_local(struct group *g)
{
	const struct machine *n = g->messages->machine;

	if (PEER_FAULT(!machine_is_used(n)))
		return messages_break(g, error_set(SLMPM_EPROTO, "the members of a machine differ"),
				      (int)n->ranks[0]);
	return 1;
}

/* As machine_connect. */
static int begin_forming(struct group *g)
{
	struct machine *n = g->messages->machine;
	int rc = machine_connect(g);

	if (rc <= 0)
		return rc;
	n->asked = true;
	if (n->rank != 0)
		join_machine(g);
	else
		found_machine(g);
	return 1;
}

int machine_form(struct group *g)
{
	struct machine *n = g->messages->machine;
	int rc = n->asked ? 1 : begin_forming(g);

	if (rc <= 0)
		return rc;
	if (n->group && n->group->state == GROUP_IS_FORMING)
		return await_local(g);
	machine_want(g, false);
	if (machine_has_formed(n))
		return use_local(g);
	if (n->rank == 0 && !n->group)
		refuse_local(g);
	return 1;
}

/* ---- it is used ------------------------------------------------------------------------------ */

bool machine_can_be_used(const struct machine *n)
{
	return n->locals == 1 || machine_has_formed(n);
}

/* All members do: it is there on each machine, or on none. */
int machine_agree(struct group *g)
{
	struct messages *m = g->messages;
	struct machine *n = m->machine;

	n->phase = MACHINE_AGREES;
	n->word = machine_can_be_used(n);
	n->coll = (struct slmpm_coll){.size = sizeof(n->coll),
				      .kind = SLMPM_COLL_ALLREDUCE,
				      .type = SLMPM_INT32,
				      .op = SLMPM_CALC_AND,
				      .count = 1};
	m->run = (struct offload_run){.spec = {.kind = n->coll.kind,
					       .size = g->boards.size,
					       .rank = g->boards.rank,
					       .flags = PLAN_IN_PLACE,
					       .count = 1,
					       .hosts = m->hosts,
					       .processors = m->processors},
				      .type = n->coll.type,
				      .op = n->coll.op,
				      .to = &n->word};
	m->run.mark = mark_of(&n->coll, g->boards.size, 0, BOARD_CALL_NONE);
	m->run.spec.algorithm = plan_choose(&m->run.spec, sizeof(n->word));
	return messages_exchange(g);
}
