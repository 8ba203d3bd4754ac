/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that block in operations of which each waits for the other: of different tags, or of one
 * with a tag and one without. Who is in a call that blocks, in a context of one thread, and without
 * functions of the program's that progress may call, starts nothing else meanwhile. Of one with a
 * tag it shows that; a member that blocks as well, waits for it, and has not started that tag, then
 * knows that neither goes on.
 */
#include <stdio.h>

#include "slmpm/board/layout.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/pairing.h"
#include "slmpm/group/tags.h"

#define AGAIN_NS UINT64_C(1000000000) /* where connections have come to be meanwhile */

/* ---- shown ----------------------------------------------------------------------------------- */

void blocked_begin(struct group *g, const struct collective *op)
{
	bool alone = !g->ctx->multiple && !g->ctx->handlers && !g->ctx->calls_back &&
		     !g->deposits && !g->overlays;

	g->blocked.in = alone ? op : NULL;
}

void blocked_end(struct group *g)
{
	g->blocked.in = NULL;
	if (LIKELY(!g->blocked.shown))
		return;
	g->blocked.shown = 0;
	if (!g->apart)
		board_store(&g->boards.own->blocked, 0);
}

/* Operations without tags would have to be counted. */
static void blocked_show(struct group *g, uint64_t now)
{
	const uint32_t tag = g->blocked.in->coll->tag;
	const uint64_t word = (uint64_t)tag << 32 | (uint32_t)tags_number(g);

	if (!tag || g->under_way || !tags_hold_named(g, tag))
		return;
	if (word == g->blocked.shown && (!g->apart || now < g->blocked.again))
		return;
	g->blocked.shown = word;
	g->blocked.again = now + AGAIN_NS;
	if (g->apart)
		stalled_show_blocked(g, tag);
	else
		/* Pairs with the acquire in is_shown_by. */
		atomic_store_explicit(&g->boards.own->blocked, word, memory_order_release);
}

/* ---- what follows ---------------------------------------------------------------------------- */

struct block {
	uint32_t tag;    /* of what it blocks in */
	uint64_t number; /* of the last one in the lane */
	bool before;     /* the operation of this member's that has no tag */
};

/* NUMBER is that of the operation. What is shown may be over: see waits_in_vain. */
static bool is_shown_by(const struct group *g, uint32_t r, uint64_t number, struct block *block)
{
	const uint64_t own = tags_number(g);
	const struct stand *s;
	uint64_t word;

	if (r == g->boards.rank)
		return false;
	if (g->apart) {
		s = stalled_blocked(g, r);
		if (s)
			*block = (struct block){s->blocked, s->blocked_number, s->begun < number};
		return s;
	}
	/* Pairs with the release in blocked_show: what it has posted before is seen as well. */
	word = atomic_load_explicit(&g->boards.of[r]->blocked, memory_order_acquire);
	*block = (struct block){(uint32_t)(word >> 32),
				own + (uint64_t)(int32_t)((uint32_t)word - (uint32_t)own),
				!boards_has(&g->boards, r, number)};
	return block->tag;
}

/* It is the one that is under way. What is only sent to R may go meanwhile. */
static bool blocked_awaits(const struct group *g, uint32_t r)
{
	const struct collective *op = LIST_ENTRY(g->operations.next, struct collective, node);

	if (!g->under_way || op != g->blocked.in)
		return false;
	return g->apart ? messages_lack(g, r) : flat_waits_for(&g->flat, r);
}

/* R's tag is done behind what was the last one in the lane as it showed it: where this member has
 * not come so far, that has not been, and R waits for it still. */
static bool waits_in_vain(const struct group *g, uint32_t r, struct block *block)
{
	const uint32_t tag = g->blocked.in->coll->tag;
	const uint64_t number = g->apart ? g->boards.posted : g->flat.number;

	if (!is_shown_by(g, r, number, block) || tags_have(g, block->tag))
		return false;
	if (tag)
		return tags_number(g) == block->number && tags_have_not(g, r, tag);
	return tags_number(g) <= block->number && block->before && blocked_awaits(g, r);
}

static COLD void blocked_fail(struct group *g, uint32_t r, uint32_t theirs)
{
	const struct slmpm_coll *own = g->blocked.in->coll;
	char tag[32] = "one without";

	if (own->tag)
		(void)snprintf(tag, sizeof(tag), "tag %u", own->tag);
	(void)error_set(SLMPM_EINVAL,
			"group %u: " BOARD_MEMBER " blocks in an operation of tag %u, " BOARD_MEMBER
			" in %s: each waits for the other",
			g->tag, BOARD_MEMBER_OF(&g->boards, r), theirs,
			BOARD_MEMBER_OF(&g->boards, g->boards.rank), tag);
	if (own->tag)
		tags_fail(g, -SLMPM_EINVAL, r);
	else
		operations_fail(g, -SLMPM_EINVAL, r);
}

COLD void blocked_inspect(struct group *g, uint64_t now)
{
	struct block block;

	if (!g->blocked.in || g->error || group_is_broken(g))
		return;
	blocked_show(g, now);
	for (uint32_t r = 0; r < g->boards.size && !g->error; r++)
		if (waits_in_vain(g, r, &block))
			blocked_fail(g, r, block.tag);
}
