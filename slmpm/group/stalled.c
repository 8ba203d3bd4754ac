/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that wait for messages say where they are: in which operation, which ones they have done,
 * and for whom they wait in the end. So members that wait for one another in different operations
 * learn it, and who is late is found though others wait for it as well. What has been said is said
 * again after as long as it has lasted: one that is stopped meanwhile is silent then.
 */
#include <stdlib.h>

#include "slmpm/base/clock.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/pairing.h"
#include "slmpm/group/tags.h"

#define FIRST_MS 50    /* between what is said and the same again: at first, ... */
#define MOST_MS  10000 /* ... and at most */
#define ASKED_MS 200   /* for an answer */

/* ---- said ------------------------------------------------------------------------------------ */

/* Of the first operation that differs from R's; else of one that both have begun. */
static void put_values(const struct group *g, uint32_t r, struct wire_group *packet)
{
	const struct messages *m = g->messages;
	const struct stand *s = stalled_stand(g, r);
	uint64_t number = mark_first_unlike(g, r);
	const struct asked_for *values;

	if (!number)
		number = s ? least_of(s->number, m->number) : m->number;
	if (m->number - number >= MARKS)
		return;
	values = &m->values[number % MARKS];
	packet->about = LITTLE_32((uint32_t)number);
	packet->root = (int32_t)LITTLE_32((uint32_t)values->root);
	packet->elements = LITTLE_64(values->count);
}

/* False: it cannot be, now. */
static bool say_stand(const struct group *g, uint32_t r, uint32_t flags, uint32_t blocked)
{
	const struct messages *m = g->messages;
	const struct pair *p = member_of(g, r)->pair;
	struct wire_group packet = {
		.step = LITTLE_32(GROUP_STANDS),
		.number = LITTLE_32(g->boards.generation),
		.what = LITTLE_32(flags | (g->main ? WIRE_GROUP_LANE : 0)),
	};

	if (!member_of(g, r)->distant || !pair_is_up(p))
		return false;
	if (m && m->generation == g->boards.generation) {
		packet.rank = LITTLE_32(m->suspect < g->boards.size ? m->suspect + 1 : 0);
		packet.within = LITTLE_32((uint32_t)(m->interval / PAIR_MS));
		packet.operation = LITTLE_64(m->number);
		for (uint32_t i = 0; i < MARKS; i++)
			packet.marks[i] = LITTLE_32(m->marks[i]);
		put_values(g, r, &packet);
	}
	if (blocked) {
		packet.blocked = LITTLE_32(blocked);
		packet.elements = LITTLE_64(g->main->boards.posted);
	}
	return bootstrap_pass(p->ep, &packet, sizeof(packet), WIRE_GROUP, NULL, 0) == 0;
}

void stalled_show(struct group *g)
{
	struct messages *m = g->messages;
	uint64_t now = clock_now(), waited = now - m->since;
	uint32_t suspect;

	if (m->stalled != m->number) {
		m->stalled = m->number;
		m->since = now;
		m->interval = m->next = 0;
		m->suspect = BOARD_NONE;
		return;
	}
	if (waited < FIRST_MS * PAIR_MS)
		return;
	suspect = (uint32_t)stalled_suspect(g);
	if (now < m->next && suspect == m->suspect)
		return;
	m->suspect = suspect;
	m->interval = least_of(waited, MOST_MS * PAIR_MS);
	m->next = now + m->interval;
	for (uint32_t r = 0; r < g->boards.size; r++)
		(void)say_stand(g, r, 0, 0);
}

COLD void stalled_show_blocked(const struct group *g, uint32_t tag)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		(void)say_stand(g->lane, r, WIRE_GROUP_BLOCKS, tag);
}

void stalled_ask(struct group *g, int rank, uint32_t other)
{
	struct messages *m = g->messages;

	if (m->asked.any)
		return;
	(void)say_stand(g, (uint32_t)rank, WIRE_GROUP_ASKS, 0);
	m->asked.any = true;
	m->asked.answered = false;
	m->asked.rank = rank;
	m->asked.mark = other;
	m->asked.until = clock_deadline(ASKED_MS);
}

/* ---- come ------------------------------------------------------------------------------------ */

/* In the group, or its LANE. */
static struct stand *stand_of(const struct member *m, bool lane)
{
	return m->distant && m->distant->stands ? &m->distant->stands[lane] : NULL;
}

/* What it has said else stays: its elements are no operation's here. */
static void take_blocked(struct stand *s, const struct wire_group *packet)
{
	s->blocked = LITTLE_32(packet->blocked);
	s->blocked_number = LITTLE_64(packet->operation);
	s->begun = LITTLE_64(packet->elements);
}

static bool take_stand(struct member *m, bool lane, const struct wire_group *packet)
{
	struct distant *d = m->distant;
	struct stand *s;

	if (!d->stands)
		d->stands = calloc(2, sizeof(*s));
	s = stand_of(m, lane);
	if (!s)
		return false;
	if (s->generation != LITTLE_32(packet->number))
		*s = (struct stand){.generation = LITTLE_32(packet->number)};
	if (LITTLE_32(packet->what) & WIRE_GROUP_BLOCKS) {
		take_blocked(s, packet);
		return true;
	}
	s->any = true;
	s->number = LITTLE_64(packet->operation);
	s->suspect = LITTLE_32(packet->rank);
	s->until = clock_now() + 2 * PAIR_MS * LITTLE_32(packet->within);
	for (uint32_t i = 0; i < MARKS; i++)
		s->marks[i] = LITTLE_32(packet->marks[i]);
	s->about = LITTLE_32(packet->about);
	s->said.count = LITTLE_64(packet->elements);
	s->said.root = (int32_t)LITTLE_32((uint32_t)packet->root);
	return true;
}

/* It may have asked at the same time, or have said it before it was asked. */
static bool is_answer(const struct group *g, uint32_t rank)
{
	const uint64_t first = mark_first_unlike(g, rank);
	const struct stand *s = stalled_stand(g, rank);

	return s && s->about == (uint32_t)(first ? first : g->messages->number);
}

/* RANK has said it in G, a group or its lane. */
static void note_stand(struct group *g, uint32_t rank, bool asks)
{
	struct messages *m = g->messages;

	if (m && m->asked.any && m->asked.rank == (int)rank && is_answer(g, rank))
		m->asked.answered = true;
	if (asks)
		(void)say_stand(g, rank, 0, 0);
}

int stalled_said(struct endpoint *ep, const struct wire_group *packet)
{
	struct member *m = pair_member(ep);
	uint32_t what = LITTLE_32(packet->what);
	bool lane = what & WIRE_GROUP_LANE;
	struct group *g;

	if (PEER_FAULT(!ep->rooms->pair || (m && !m->distant) ||
		       what & ~(WIRE_GROUP_LANE | WIRE_GROUP_ASKS | WIRE_GROUP_BLOCKS)))
		return -SLMPM_EPROTO;
	if (!m || m->out)
		return 0;
	if (!take_stand(m, lane, packet))
		return -SLMPM_ENOMEM;
	g = lane ? m->group->lane : m->group;
	if (g && !(what & WIRE_GROUP_BLOCKS))
		note_stand(g, pair_rank(m), what & WIRE_GROUP_ASKS);
	m->group->inspect_at = 0;
	m->group->ctx->news = true;
	return 0;
}

/* ---- what follows ---------------------------------------------------------------------------- */

const struct stand *stalled_stand(const struct group *g, uint32_t rank)
{
	const struct stand *s = stand_of(member_of(g, rank), g->main);

	return s && s->any && s->generation == g->boards.generation ? s : NULL;
}

COLD const struct stand *stalled_blocked(const struct group *g, uint32_t rank)
{
	const struct stand *s = stand_of(member_of(g, rank), true);

	return s && s->generation == g->boards.generation && s->blocked ? s : NULL;
}

uint32_t stalled_for_whom(const struct group *g, uint32_t rank, uint64_t now)
{
	const struct stand *s = stalled_stand(g, rank);
	uint32_t suspect = s && now < s->until ? s->suspect - 1 : rank;

	return suspect < g->boards.size ? suspect : rank;
}

int stalled_suspect(struct group *g)
{
	uint64_t now = clock_now();
	uint32_t found = BOARD_NONE;

	needs_note_awaited(g);
	for (uint32_t r = 0; r < g->boards.size; r++) {
		uint32_t suspect = needs_await(g, r) ? stalled_for_whom(g, r, now) : BOARD_NONE;

		if (suspect == r)
			return (int)r;
		if (suspect < g->boards.size &&
		    (found >= g->boards.size || found == g->boards.rank))
			found = suspect;
	}
	for (uint32_t r = 0; found == g->boards.rank && r < g->boards.size; r++)
		if (needs_await(g, r)) /* they wait for one another */
			return (int)r;
	return found < g->boards.size ? (int)found : -1;
}
