/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations with tags: held until all members have started them, and done one after the other. */
#include "slmpm/group/tags.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/board/layout.h"
#include "slmpm/completion/late.h"
#include "slmpm/group/page.h"
#include "slmpm/plan/plan.h"

#define MOST  SLMPM_COLL_TAGS
#define TURN  64 /* rounds before the rest of the context has its turn */
#define NAMED 4  /* ranks of those that are waited for */

struct tags { /* of a group */
	struct group lane;
	struct list held; /* struct collective, in the order of the calls */
	uint64_t begun;
	bool fresh; /* one is held that no round of this member's has named */
	struct collective round;
	struct slmpm_coll coll; /* that */
	uint32_t own[MOST];     /* what it gives, as LITTLE_32; 0: none */
	uint32_t *gathered; /* MOST by rank: of the round under way, as far as it has come ... */
	uint32_t *known;    /* ... and of the last one, without those that were done by it */
};

static struct collective *collective_of(const struct list *node)
{
	return LIST_ENTRY(node, struct collective, node);
}

static struct collective *find_tag(const struct list *list, uint32_t tag)
{
	LIST_EACH(at, list)
		if (collective_of(at)->coll->tag == tag)
			return collective_of(at);
	return NULL;
}

static uint32_t length_of(const struct list *list)
{
	uint32_t n = 0;

	LIST_EACH(at, list)
		n++;
	return n;
}

/* ---- made, and given back -------------------------------------------------------------------- */

static void tags_close(struct tags *t)
{
	free(t->gathered);
	free(t->known);
	free(t);
}

static struct tags *tags_open(struct group *g)
{
	struct tags *t = aligned_alloc(_Alignof(struct tags), sizeof(*t));
	struct group *lane;

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	lane = &t->lane;
	t->gathered = calloc(g->boards.size, sizeof(t->own));
	t->known = calloc(g->boards.size, sizeof(t->own));
	if (!t->gathered || !t->known ||
	    boards_open_lane(&lane->boards, &g->boards, g->apart) < 0) {
		tags_close(t);
		return NULL;
	}
	list_init(&t->held);
	list_init(&t->round.node);
	context_own(&lane->ctx, g->ctx);
	list_init(&lane->node);
	list_init(&lane->operations);
	list_init(&lane->spares);
	list_init(&lane->texts);
	lane->main = g;
	lane->state = g->state;
	lane->tag = g->tag;
	lane->members = g->members;
	lane->seats = g->seats;
	lane->apart = g->apart;
	lane->algorithms = g->algorithms;
	lane->culprit = -1;
	g->tags = t;
	g->lane = lane;
	return t;
}

void tags_free(struct group *g)
{
	struct tags *t = g->tags;

	if (!t)
		return;
	g->tags = NULL;
	g->lane = NULL;
	t->lane.shut = g->shut;
	messages_close(&t->lane);
	operations_free(&t->lane);
	boards_close_lane(&t->lane.boards);
	tags_close(t);
}

/* ---- held ------------------------------------------------------------------------------------ */

int tags_may_hold(struct group *g, uint32_t tag)
{
	struct tags *t = g->tags ? g->tags : tags_open(g);

	if (!t)
		return error_set(SLMPM_ENOMEM, "for operations with tags");
	if (find_tag(&t->held, tag) || find_tag(&t->lane.operations, tag))
		return error_set(SLMPM_EBUSY, "group %u: an operation of tag %u is outstanding",
				 g->tag, tag);
	if (length_of(&t->held) >= MOST)
		return error_set(SLMPM_ELIMIT,
				 "group %u: %d operations with tags wait for other members", g->tag,
				 MOST);
	return 0;
}

/* Whether any is. */
static void note_held(struct tags *t)
{
	struct group *lane = &t->lane;
	bool holds = !list_empty(&t->held);

	if (holds == lane->holds)
		return;
	lane->holds = holds;
	if (holds)
		lane->ctx->collecting++;
	else
		lane->ctx->collecting--;
	group_announce_no_more(lane);
}

void tags_hold(struct collective *op)
{
	struct group *g = op->group;
	struct tags *t = g->tags;

	op->group = &t->lane;
	list_append(&t->held, &op->node);
	t->begun++;
	t->fresh = true;
	note_held(t);
	(void)tags_go_on(g);
}

/* By the lane's error: behind what is under way, for then they are the last. */
static COLD int end_held(struct tags *t)
{
	int n = 0;

	if (t->lane.under_way)
		return 0;
	for (; !list_empty(&t->held); n++)
		operation_end(collective_of(t->held.next), t->lane.error);
	note_held(t);
	return n;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static const uint32_t *tag_given_by(const uint32_t *gathered, uint32_t r)
{
	return gathered + (size_t)r * MOST;
}

/* Where rank R has given TAG; NULL: it has not. */
static const uint32_t *find_given(const uint32_t *gathered, uint32_t r, uint32_t tag)
{
	const uint32_t *given = tag_given_by(gathered, r);

	for (uint32_t i = 0; i < MOST; i++)
		if (LITTLE_32(given[i]) == tag)
			return &given[i];
	return NULL;
}

static bool is_given_by_all(const struct tags *t, uint32_t tag)
{
	for (uint32_t r = 0; r < t->lane.boards.size; r++)
		if (!find_given(t->known, r, tag))
			return false;
	return true;
}

/* OP is the next: its tag may be given again. */
static void tag_is_next(struct tags *t, struct collective *op)
{
	struct group *lane = &t->lane;

	for (uint32_t r = 0; r < lane->boards.size; r++)
		t->known[find_given(t->known, r, op->coll->tag) - t->known] = 0;
	list_remove(&op->node);
	list_append(&lane->operations, &op->node);
	if (op->deadline < lane->due)
		lane->due = op->deadline;
}

/* What other members give is their word: what this one does not hold is none of its. */
static void round_ended(struct collective *op, int result)
{
	struct tags *t = op->group->tags;
	uint32_t *last = t->known;

	if (result < 0)
		return;
	t->known = t->gathered;
	t->gathered = last;
	for (uint32_t i = 0; i < MOST; i++) {
		uint32_t tag = LITTLE_32(t->known[i]);
		struct collective *next = tag ? find_tag(&t->held, tag) : NULL;

		if (next && is_given_by_all(t, tag))
			tag_is_next(t, next);
	}
	note_held(t);
}

static void begin_round(struct tags *t)
{
	struct group *lane = &t->lane;
	uint32_t n = 0;

	memset(t->own, 0, sizeof(t->own));
	LIST_EACH(at, &t->held)
		t->own[n++] = LITTLE_32(collective_of(at)->coll->tag);
	memset(t->gathered, 0, lane->boards.size * sizeof(t->own));
	t->fresh = false;
	t->coll = (struct slmpm_coll){.size = sizeof(t->coll),
				      .kind = SLMPM_COLL_ALLGATHER,
				      .type = SLMPM_UINT32,
				      .from = t->own,
				      .to = t->gathered,
				      .count = MOST};
	t->round = (struct collective){.group = lane,
				       .coll = &t->coll,
				       .ended = round_ended,
				       .deadline = UINT64_MAX,
				       .kept = true};
	list_init(&t->round.node);
	operation_go(&t->round);
}

/* Another member has begun the next one. */
static bool round_is_begun(const struct group *lane)
{
	const struct boards *b = &lane->boards;

	if (lane->apart)
		return messages_wait(lane);
	for (uint32_t r = 0; r < b->size; r++)
		if (r != b->rank && boards_has(b, r, b->posted + 1))
			return true;
	return false;
}

/* Of one that has left a round finds out what it has done. */
static bool round_is_due(const struct tags *t)
{
	return t->fresh || t->lane.left || round_is_begun(&t->lane);
}

int tags_go_on(struct group *g)
{
	struct tags *t = g->tags;
	struct group *lane = t ? &t->lane : NULL;
	int n = 0;

	if (t)
		lane_learns(g);
	for (int turns = 0; t && turns < TURN; turns++) {
		n += operations_go_on(lane);
		if (lane->under_way || list_empty(&t->held))
			break;
		if (lane->error || group_is_broken(lane)) {
			(void)operation_may_be_driven(lane, collective_of(t->held.next)->coll->kind,
						      NULL);
			return n + end_held(t);
		}
		if (round_is_due(t)) {
			begin_round(t);
			continue;
		}
		/* What came before it was announced has rung no bell (operation.c). */
		if (!g->ctx->armed || g->apart || group_is_announced(lane))
			break;
		group_announce(lane);
	}
	return n;
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* As far as this member knows. */
static bool has_given(const struct tags *t, uint32_t r, uint32_t tag)
{
	return find_given(t->known, r, tag) || find_given(t->gathered, r, tag);
}

/* A round is under way, of which little has come: for whom all wait in the end, as far as they have
 * said. -1: none is. */
static COLD int round_is_late(struct tags *t, uint32_t tag)
{
	struct group *lane = &t->lane;
	int r = -1;

	if (lane->apart && lane->under_way)
		r = messages_suspect(lane);
	return r >= 0 && !has_given(t, (uint32_t)r, tag) ? r : -1;
}

/* OP, which is held: those that have not started it. */
static COLD int held_late(struct tags *t, const struct collective *op, int timeout_ms,
			  uint32_t *culprit)
{
	const struct boards *b = &t->lane.boards;
	char ranks[NAMED * sizeof(", 1023 (process -2147483648)")] = "", waited[GROUP_WAITED];
	const int late = round_is_late(t, op->coll->tag);
	const char *why = NULL;
	uint32_t n = 0;
	size_t at = 0;

	*culprit = BOARD_NONE;
	for (uint32_t r = 0; r < b->size; r++) {
		if (r == b->rank || has_given(t, r, op->coll->tag) || (late >= 0 && (int)r != late))
			continue;
		if (!why && (why = member_suspicion(&t->lane, r)))
			*culprit = r;
		if (n++ < NAMED)
			at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u (process %d)",
					       n > 1 ? ", " : "", r, b->processes[r]);
		if (*culprit == BOARD_NONE)
			*culprit = r;
	}
	group_page_waited(&t->lane, timeout_ms, waited);
	return error_set(
		late_code(timeout_ms),
		"group %u, tag %u, %s: not known to have been started by rank%s %s%s%s%s%s",
		t->lane.tag, op->coll->tag, plan_kind_name(op->coll->kind), n > 1 ? "s" : "", ranks,
		n > NAMED ? " and others" : "", waited, why ? ", suspect: " : "", why ? why : "");
}

void tags_late(struct collective *op, int timeout_ms)
{
	struct group *lane = op->group;
	struct tags *t = lane->main->tags;
	uint32_t culprit;

	if (find_tag(&t->held, op->coll->tag) != op) {
		operations_late(lane, timeout_ms);
		return;
	}
	if (!lane->error) {
		(void)held_late(t, op, timeout_ms, &culprit);
		operations_fail(lane, -SLMPM_ETIMEOUT, culprit);
	}
	(void)end_held(t);
}

static bool expire_held(struct tags *t, uint64_t now, uint64_t *next)
{
	if (t->lane.error && t->lane.under_way)
		return false; /* they end with that */
	LIST_EACH_ENTRY(struct collective, op, &t->held, node) {
		if (op->deadline <= now) {
			tags_late(op, op->timeout_ms);
			return true;
		}
		*next = least_of(*next, op->deadline);
	}
	return false;
}

uint64_t tags_deadlines(struct group *g, uint64_t now, bool *passed)
{
	uint64_t next = UINT64_MAX;

	if (!g->tags)
		return next;
	next = operation_deadlines(&g->tags->lane, now, passed);
	*passed |= expire_held(g->tags, now, &next);
	return next;
}

bool tags_arm(struct group *g, bool asleep)
{
	return g->tags && operation_arm(&g->tags->lane, asleep);
}

/* ---- calls that block ------------------------------------------------------------------------ */

uint64_t tags_number(const struct group *g)
{
	const struct group *lane = g->lane;

	if (!lane)
		return 0;
	return lane->under_way && !lane->apart ? lane->flat.number : lane->boards.posted;
}

bool tags_hold_named(const struct group *g, uint32_t tag)
{
	const struct tags *t = g->tags;

	return t && !t->fresh && find_tag(&t->held, tag);
}

bool tags_have(const struct group *g, uint32_t tag)
{
	const struct tags *t = g->tags;

	return t && (find_tag(&t->held, tag) || find_tag(&t->lane.operations, tag));
}

bool tags_have_not(const struct group *g, uint32_t r, uint32_t tag)
{
	const struct tags *t = g->tags;

	return tags_hold_named(g, tag) && !t->lane.under_way && !has_given(t, r, tag);
}

COLD void tags_fail(struct group *g, int error, uint32_t culprit)
{
	operations_fail(g->lane, error, culprit);
	(void)end_held(g->tags);
}

/* ---- what becomes of the group --------------------------------------------------------------- */

void tags_follow(struct group *g)
{
	struct tags *t = g->tags;

	if (!t)
		return;
	boards_follow(&t->lane.boards, &g->boards);
	boards_awake(&t->lane.boards);
	t->lane.error = 0;
	t->lane.begun = t->lane.done = 0;
	memset(t->known, 0, g->boards.size * sizeof(t->own));
}

void tags_shut(struct group *g)
{
	struct tags *t = g->tags;

	if (!t)
		return;
	operations_shut(&t->lane);
	if (list_empty(&t->held))
		return;
	t->lane.error = -SLMPM_ECLOSED;
	(void)snprintf(t->lane.detail, sizeof(t->lane.detail), "the context has been closed");
	(void)end_held(t);
}

/* ---- how it stands --------------------------------------------------------------------------- */

uint64_t tags_begun(const struct group *g)
{
	return g->tags ? g->tags->begun : 0;
}

const struct collective *tags_at(const struct group *g, uint32_t i)
{
	const struct tags *t = g->tags;

	if (!t)
		return NULL;
	LIST_EACH(at, &t->held)
		if (!i--)
			return collective_of(at);
	LIST_EACH(at, &t->lane.operations)
		if (!tags_is_round(collective_of(at)->coll) && !i--)
			return collective_of(at);
	return NULL;
}

uint32_t tags_outstanding(const struct group *g)
{
	uint32_t n = 0;

	while (tags_at(g, n))
		n++;
	return n;
}

/* A round is under way: who has come to it says there what it holds. */
static bool round_awaits(const struct group *lane, uint32_t r)
{
	return lane->apart ? messages_await(lane, r) :
			     !boards_has(&lane->boards, r, lane->flat.number);
}

bool tags_await(const struct group *g, uint32_t r)
{
	const struct tags *t = g->tags;
	const struct group *lane = t ? &t->lane : NULL;

	if (!t || r == g->boards.rank)
		return false;
	if (lane->under_way && tags_is_round(collective_of(lane->operations.next)->coll))
		return !list_empty(&t->held) && round_awaits(lane, r);
	if (!list_empty(&t->held) && !has_given(t, r, collective_of(t->held.next)->coll->tag))
		return true;
	if (!lane->under_way)
		return false;
	return lane->apart ? messages_await(lane, r) : flat_waits_for(&lane->flat, r);
}
