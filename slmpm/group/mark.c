/* SPDX-License-Identifier: BSD-3-Clause */
/* The mark of each message of an operation, by which members that disagree are found out. */
#include <stdio.h>

#include "slmpm/board/flat_parts.h"
#include "slmpm/dial/dial.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/pairing.h"
#include "slmpm/plan/plan.h"

/* A rank, in texts: BOARD_MEMBER. */
#define OF(g, rank) BOARD_MEMBER_OF(&(g)->boards, (uint32_t)(rank))

#define MARK_TYPE  4
#define MARK_OP    8
#define MARK_NUM   12
#define MARK_NUMS  0xffu /* of the number: streams alone say which of so few it may be */
#define MARK_REST  20
#define MARK_FIELD 15u
#define MARK_OWN   15u /* type: a function of the program's own */

/* All members give the same; else the length of a message says who disagrees. */
static bool counts_are_same(uint32_t kind)
{
	return kind != SLMPM_COLL_ALLTOALL && kind != SLMPM_COLL_SCATTER &&
	       kind != SLMPM_COLL_GATHER;
}

uint32_t mark_of(const struct slmpm_coll *c, uint32_t size, uint64_t number)
{
	uint32_t mark = c->kind | ((uint32_t)number & MARK_NUMS) << MARK_NUM;
	uint64_t rest = number;

	if (c->kind == SLMPM_COLL_BARRIER)
		return mark;
	if (flat_has_root(c->kind))
		rest = rest * 31 + (uint32_t)c->root;
	if (counts_are_same(c->kind))
		rest = rest * 31 + (c->counts ? 0 : c->count);
	for (uint32_t r = 0; c->counts && counts_are_same(c->kind) && r < size; r++)
		rest = rest * 31 + c->counts[r];
	if (c->combine)
		rest = rest * 31 + c->combine->width;
	rest = rest * UINT64_C(0x9e3779b97f4a7c15) >> (32 + MARK_REST);
	mark |= (c->combine ? MARK_OWN : c->type) << MARK_TYPE;
	if (c->combine)
		mark |= (c->combine->flags & SLMPM_COLL_COMMUTES) << MARK_OP;
	else if (flat_combines(c->kind))
		mark |= c->op << MARK_OP;
	return mark | (uint32_t)rest << MARK_REST;
}

uint32_t mark_with(uint32_t mark, uint32_t hash)
{
	return mark ^ hash << MARK_REST;
}

static bool is_own(uint32_t mark)
{
	return (mark >> MARK_TYPE & MARK_FIELD) == MARK_OWN;
}

static bool is_of_number(uint32_t mark, uint32_t other)
{
	return !((mark ^ other) >> MARK_NUM & MARK_NUMS);
}

/* Of the same kind, type and operation: what may differ, by the mark alone. */
static const char *mark_difference(const struct slmpm_coll *c, uint32_t mark, uint32_t other)
{
	const bool root = flat_has_root(c->kind), count = counts_are_same(c->kind);

	if (!is_of_number(mark, other))
		return "number";
	if (c->kind == SLMPM_COLL_BARRIER || (!root && !count))
		return "plan";
	if (c->combine)
		return root ? "count, width, root or plan" : "count, width or plan";
	return !root ? "count or plan" : !count ? "root or plan" : "count, root or plan";
}

COLD int mark_differs(struct group *g, uint32_t other, int rank, int status)
{
	const struct slmpm_coll *c = g->messages->coll;
	const uint32_t mark = g->messages->run.mark;
	const char *in = mark_difference(c, mark, other);

	if (!other || other == mark)
		return boards_error(&g->boards, SLMPM_EINVAL, g->messages->number, c->kind,
				    "what " BOARD_MEMBER " sends is %s", OF(g, rank),
				    !other || status == -SLMPM_ETRUNC ? "longer" : "shorter");
	if ((other ^ mark) & MARK_FIELD)
		return boards_error(&g->boards, SLMPM_EINVAL, g->messages->number, 0,
				    BOARD_MEMBER " does %s, " BOARD_MEMBER " %s", OF(g, rank),
				    plan_kind_name(other & MARK_FIELD), OF(g, g->boards.rank),
				    plan_kind_name(c->kind));
	if ((other ^ mark) >> MARK_TYPE & MARK_FIELD && (is_own(mark) || is_own(other)))
		return boards_error(&g->boards, SLMPM_EINVAL, g->messages->number, c->kind,
				    BOARD_MEMBER " has a function of its own, " BOARD_MEMBER
						 " an operation of a type",
				    OF(g, is_own(mark) ? g->boards.rank : (uint32_t)rank),
				    OF(g, is_own(mark) ? (uint32_t)rank : g->boards.rank));
	if ((other ^ mark) >> MARK_TYPE & MARK_FIELD)
		in = "type";
	else if ((other ^ mark) >> MARK_OP & MARK_FIELD)
		in = "operation";
	return boards_error(&g->boards, SLMPM_EINVAL, g->messages->number, c->kind,
			    BOARD_MEMBER " has another %s than " BOARD_MEMBER, OF(g, rank), in,
			    OF(g, g->boards.rank));
}

COLD void messages_inspect(struct group *g)
{
	const struct messages *m = g->messages;
	uint32_t other;

	for (uint32_t r = 0; r < g->boards.size && m->stage == RUNS && !g->error; r++) {
		const struct pair *p = member_of(g, r)->pair;

		/* What is of a later one is its turn's. */
		if (pair_is_up(p) && dial_first_unread(p->ep, offload_stream(m->offload), &other) &&
		    other != m->run.mark && is_of_number(m->run.mark, other))
			(void)messages_break(g, mark_differs(g, other, (int)r, -SLMPM_EINVAL),
					     (int)r);
	}
}
