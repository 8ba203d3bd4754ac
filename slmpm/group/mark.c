/* SPDX-License-Identifier: BSD-3-Clause */
/* The mark of each message of an operation, by which members that disagree are found out. */
#include <inttypes.h>
#include <stdio.h>

#include "slmpm/base/clock.h"
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

uint32_t mark_of(const struct slmpm_coll *c, uint32_t size, uint64_t number, enum board_call call)
{
	uint32_t mark = c->kind | ((uint32_t)number & MARK_NUMS) << MARK_NUM | call << MARK_OP;
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

void mark_note(struct messages *m)
{
	uint32_t mark = m->run.mark;

	m->marks[m->number % MARKS] = mark;
	m->values[m->number % MARKS] =
		(struct asked_for){.count = m->run.spec.counts ? UINT64_MAX : m->run.spec.count,
				   .root = flat_has_root(m->coll->kind) ? m->coll->root : -1};
	m->run.mark = mark_with(mark, m->history >> MARK_REST);
	m->history = (m->history ^ mark) * UINT32_C(0x9e3779b1);
}

uint32_t mark_with(uint32_t mark, uint32_t hash)
{
	return mark ^ hash << MARK_REST;
}

static bool is_own(uint32_t mark)
{
	return (mark >> MARK_TYPE & MARK_FIELD) == MARK_OWN;
}

/* And the call of which it is a step. */
static uint32_t mark_kind(uint32_t mark)
{
	const uint32_t kind = mark & MARK_FIELD;

	return flat_combines(kind) || is_own(mark) ?
		       kind :
		       kind | (mark >> MARK_OP & MARK_FIELD) << BOARD_KIND_CALL;
}

/* Of what another says as well. */
static const char *mark_kind_name(uint32_t mark)
{
	const char *name = boards_kind_name(mark_kind(mark));

	return name ? name : "an unknown kind";
}

static bool is_of_number(uint32_t mark, uint32_t other)
{
	return !((mark ^ other) >> MARK_NUM & MARK_NUMS);
}

/* Of the same kind, type and operation: what may differ, by the mark alone. */
static const char *mark_difference(uint32_t mark, uint32_t other)
{
	const uint32_t kind = mark & MARK_FIELD;
	const bool root = flat_has_root(kind), count = counts_are_same(kind);

	if ((other ^ mark) >> MARK_OP & MARK_FIELD)
		return "operation";
	if (!is_of_number(mark, other))
		return "number";
	if (kind == SLMPM_COLL_BARRIER || (!root && !count))
		return "plan";
	if (is_own(mark))
		return root ? "count, width, root or plan" : "count, width or plan";
	return !root ? "count or plan" : !count ? "root or plan" : "count, root or plan";
}

/* What RANK has said of operation NUMBER; NULL: nothing. */
static const struct asked_for *values_of(const struct group *g, uint64_t number, int rank)
{
	const struct stand *s = stalled_stand(g, (uint32_t)rank);

	return s && number <= s->number && s->about == (uint32_t)number ? &s->said : NULL;
}

/* As of flat_differ: WHAT, where it is known of both. 0: that does not differ. */
static COLD int values_differ(struct group *g, uint64_t number, uint32_t kind, int rank)
{
	const struct asked_for *own = &g->messages->values[number % MARKS];
	const struct asked_for *theirs = values_of(g, number, rank);

	if (!theirs)
		return 0;
	if (theirs->root != own->root)
		return boards_error(&g->boards, SLMPM_EINVAL, number, kind,
				    BOARD_MEMBER " has root %d, " BOARD_MEMBER " root %d",
				    OF(g, rank), theirs->root, OF(g, g->boards.rank), own->root);
	if (theirs->count == own->count || theirs->count == UINT64_MAX || own->count == UINT64_MAX)
		return 0;
	return boards_error(&g->boards, SLMPM_EINVAL, number, kind,
			    BOARD_MEMBER " has count %" PRIu64 ", " BOARD_MEMBER " count %" PRIu64,
			    OF(g, rank), theirs->count, OF(g, g->boards.rank), own->count);
}

/* By the marks alone: of the elements. 0: that does not differ. */
static COLD int elements_differ(struct group *g, uint64_t number, uint32_t mark, uint32_t other,
				int rank)
{
	const uint32_t types = (other ^ mark) >> MARK_TYPE & MARK_FIELD;
	const uint32_t ops = (other ^ mark) >> MARK_OP & MARK_FIELD;
	const int shift = types ? MARK_TYPE : MARK_OP;
	const char *(*name)(uint32_t) = types ? flat_type_name : flat_op_name;

	if (types && (is_own(mark) || is_own(other)))
		return boards_error(&g->boards, SLMPM_EINVAL, number, mark & MARK_FIELD,
				    BOARD_MEMBER " has a function of its own, " BOARD_MEMBER
						 " an operation of a type",
				    OF(g, is_own(mark) ? g->boards.rank : (uint32_t)rank),
				    OF(g, is_own(mark) ? (uint32_t)rank : g->boards.rank));
	if (!types && (!ops || is_own(mark)))
		return 0;
	return boards_error(&g->boards, SLMPM_EINVAL, number, mark & MARK_FIELD,
			    BOARD_MEMBER " has %s, " BOARD_MEMBER " %s", OF(g, rank),
			    name(other >> shift & MARK_FIELD), OF(g, g->boards.rank),
			    name(mark >> shift & MARK_FIELD));
}

/* In operation NUMBER RANK has OTHER for this member's MARK. */
static COLD int marks_differ(struct group *g, uint64_t number, uint32_t mark, uint32_t other,
			     int rank)
{
	const uint32_t kind = mark_kind(mark);
	int rc;

	if (mark_kind(other) != kind)
		return boards_error(&g->boards, SLMPM_EINVAL, number, 0,
				    BOARD_MEMBER " does %s, " BOARD_MEMBER " %s", OF(g, rank),
				    mark_kind_name(other), OF(g, g->boards.rank),
				    mark_kind_name(mark));
	rc = elements_differ(g, number, mark, other, rank);
	if (rc == 0 && is_of_number(mark, other))
		rc = values_differ(g, number, kind, rank);
	if (rc < 0)
		return rc;
	return boards_error(&g->boards, SLMPM_EINVAL, number, kind,
			    BOARD_MEMBER " has another %s than " BOARD_MEMBER, OF(g, rank),
			    mark_difference(mark, other), OF(g, g->boards.rank));
}

COLD uint64_t mark_first_unlike(const struct group *g, uint32_t rank)
{
	const struct messages *m = g->messages;
	const struct stand *s = stalled_stand(g, rank);
	uint64_t least = s && s->number < m->number ? s->number : m->number;
	uint64_t most = s && s->number > m->number ? s->number : m->number;

	/* Of each the last ones are known. */
	for (uint64_t k = most < MARKS ? 1 : most - MARKS + 1; s && k <= least; k++)
		if (m->marks[k % MARKS] && s->marks[k % MARKS] &&
		    m->marks[k % MARKS] != s->marks[k % MARKS])
			return k;
	return 0;
}

/* By the length of what RANK has sent. */
static COLD int lengths_differ(struct group *g, int rank)
{
	const struct messages *m = g->messages;
	uint64_t due, sent = offload_sent(m->offload, &due);

	return boards_error(&g->boards, SLMPM_EINVAL, m->number, m->coll->kind,
			    "what " BOARD_MEMBER " sends is %s: count %" PRIu64 ", at " BOARD_MEMBER
			    " count %" PRIu64,
			    OF(g, rank), sent > due ? "longer" : "shorter", sent,
			    OF(g, g->boards.rank), due);
}

COLD int mark_differs(struct group *g, uint32_t other, int rank)
{
	const struct messages *m = g->messages;
	const uint64_t first = mark_first_unlike(g, (uint32_t)rank);
	int rc;

	if (first)
		return marks_differ(g, first, m->marks[first % MARKS],
				    stalled_stand(g, (uint32_t)rank)->marks[first % MARKS], rank);
	if (other != m->run.mark)
		return marks_differ(g, m->number, m->run.mark, other, rank);
	rc = values_differ(g, m->number, m->coll->kind, rank);
	return rc < 0 ? rc : lengths_differ(g, rank);
}

/* ---- amid an operation ----------------------------------------------------------------------- */

/* RANK has sent a message of another one. What is of a later one is its turn's. */
static COLD bool has_sent_another(const struct group *g, uint32_t rank, uint32_t *other)
{
	const struct messages *m = g->messages;
	const struct pair *p = member_of(g, rank)->pair;

	return m->stage == RUNS && pair_is_up(p) &&
	       dial_first_unread(p->ep, offload_stream(m->offload), other) &&
	       *other != m->run.mark && is_of_number(m->run.mark, *other);
}

/* It says which ones it has done before the group is broken; where another has been asked, that
 * one comes first. */
static COLD bool has_its_time(struct group *g, uint32_t rank, uint32_t other)
{
	const struct messages *m = g->messages;

	stalled_ask(g, (int)rank, other);
	return (m->asked.rank != (int)rank || !m->asked.answered) && clock_now() < m->asked.until;
}

COLD void messages_inspect(struct group *g)
{
	const struct messages *m = g->messages;
	uint32_t other;

	for (uint32_t r = 0; r < g->boards.size && m->stage != NOT_BEGUN && !g->error; r++) {
		if (r == g->boards.rank)
			continue;
		other = 0;
		if ((has_sent_another(g, r, &other) || mark_first_unlike(g, r)) &&
		    !has_its_time(g, r, other))
			(void)messages_break(g, mark_differs(g, other, (int)r), (int)r);
	}
	if (m->stage != NOT_BEGUN && !g->error)
		stalled_show(g);
}
