/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors of a group without boards agree as those with boards do (shrink.c): what each shows
 * goes to all others by messages, into copies of its board. All connect for that, and a connection
 * that is new brings all again: so what one that has ended has lost does not matter.
 */
#include "slmpm/base/clock.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/group/pairing.h"

#define FULL_MS 5 /* a connection takes no more now */

/* ---- sent ------------------------------------------------------------------------------------ */

/* False: M's connection takes no more now. */
static bool send_said(struct member *m, bool verdict, const struct said *said)
{
	struct wire_group packet = {
		.step = LITTLE_32(verdict ? GROUP_VERDICT : GROUP_VIEW),
		.number = LITTLE_32((uint32_t)said->generation),
		.posted = LITTLE_64(said->posted),
	};
	int rc;

	for (uint32_t w = 0; w < BOARD_RANKS; w++)
		packet.gone[w] = LITTLE_64(said->gone[w]);
	rc = bootstrap_pass(m->pair->ep, &packet, sizeof(packet), WIRE_GROUP, NULL, 0);
	if (!groups_are_full(rc))
		return true;
	pair_due(m, clock_now() + FULL_MS * PAIR_MS);
	return false;
}

/* The verdict first: by that the view of the next generation is read. */
void survivor_show(struct member *m)
{
	const struct boards *b = &m->group->boards;
	struct distant *d = m->distant;
	struct said said;

	if (!pair_is_up(m->pair))
		return;
	if (agree_give(b, true, &said) && said.generation != d->has_verdict) {
		if (!send_said(m, true, &said))
			return;
		d->has_verdict = said.generation;
	}
	if (agree_give(b, false, &said) && b->own->view.version != d->has_view &&
	    send_said(m, false, &said))
		d->has_view = b->own->view.version;
}

void survivors_show(const struct group *g)
{
	for (uint32_t s = 0; s < g->seats; s++)
		if (g->members[s].distant && !g->members[s].out)
			survivor_show(&g->members[s]);
}

void survivor_up(struct member *m)
{
	m->distant->has_verdict = m->distant->has_view = 0;
	survivor_show(m);
}

/* ---- come ------------------------------------------------------------------------------------ */

/* Of the member by RANK; it is there until that is left out. */
static struct board *copy_of(struct group *g, uint32_t rank)
{
	if (!g->boards.of[rank])
		g->boards.of[rank] = board_copy();
	return (struct board *)(uintptr_t)g->boards.of[rank];
}

int survivor_said(struct endpoint *ep, const struct wire_group *packet)
{
	struct pair *p = ep->rooms->pair;
	struct member *m = p ? p->member : NULL;
	struct said said = {.generation = LITTLE_32(packet->number),
			    .posted = LITTLE_64(packet->posted)};
	struct board *copy;

	if (PEER_FAULT(!p || (m && !m->distant)))
		return -SLMPM_EPROTO;
	/* After an end that this member has seen, and perhaps shown, nothing counts. */
	if (!m || m->out || m->ended || m->distant->left)
		return 0;
	copy = copy_of(m->group, pair_rank(m));
	if (!copy)
		return -SLMPM_ENOMEM;
	for (uint32_t w = 0; w < BOARD_RANKS; w++)
		said.gone[w] = LITTLE_64(packet->gone[w]);
	agree_take(copy, LITTLE_32(packet->step) == GROUP_VERDICT, &said);
	m->group->ctx->news = true;
	return 0;
}

/* ---- a shrink -------------------------------------------------------------------------------- */

int survivors_begin(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (!copy_of(g, r))
			return error_set(SLMPM_ENOMEM, "for what others say");
	for (uint32_t r = 0; r < g->boards.size; r++) {
		struct member *m = member_of(g, r);

		if (!m->distant)
			continue;
		m->distant->agrees = true;
		pair_want(m);
	}
	return 0;
}

/* Those that are left out by now are no more wanted, either. */
void survivors_end(struct group *g)
{
	for (uint32_t s = 0; s < g->seats; s++) {
		struct member *m = &g->members[s];

		if (!m->distant || !m->distant->agrees)
			continue;
		m->distant->agrees = false;
		pair_unwant(m);
	}
	survivors_show(g);
}
