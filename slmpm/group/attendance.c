/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many meetings each member of a group without boards has come to, and which split it is
 * through. Each shows that to all by messages; so one that has died may have shown it to some. What
 * is known of those that are gone is passed on until all that live know the same: then it counts
 * (doc/decisions/0058-attendance.md).
 */
#include "slmpm/base/clock.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/group/pairing.h"

#define FULL_MS 5 /* a connection takes no more now */
#define NONE    UINT32_MAX
#define PASSED  (UINT32_MAX - 1) /* in the place of an index, as NONE is */

/* By index among the members, of those that are not this process; NULL: it is. */
static struct distant *distant_at(const struct group *g, uint32_t index)
{
	return g->members[index].distant;
}

/* ---- what is known --------------------------------------------------------------------------- */

static uint64_t hash_two(uint64_t a, uint64_t b)
{
	uint64_t x = (a + 1) * UINT64_C(0x9e3779b97f4a7c15) + b;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The view is a sum of these: of members that are gone, of the last split that any is through, and
 * of the last meeting that any that has left had passed; of none it is 0. */
static uint64_t term_of(const struct distant *d, uint32_t index)
{
	return d->gone ? hash_two(index, d->came) : 0;
}

static uint64_t number_term(uint32_t what, uint64_t number)
{
	return number ? hash_two(what, number) : 0;
}

static void attendance_note(struct group *g, uint32_t index, uint64_t came, bool gone)
{
	struct attendance *a = &g->attendance;
	struct distant *d = distant_at(g, index);
	const uint64_t before = term_of(d, index);

	d->came = came > d->came ? came : d->came;
	d->gone |= gone;
	a->changed = true;
	if (term_of(d, index) == before)
		return;
	a->view += term_of(d, index) - before;
	d->noted = ++a->version;
}

static void note_number(struct attendance *a, uint32_t what, uint64_t *last, uint64_t number)
{
	if (number <= *last)
		return;
	a->view += number_term(what, number) - number_term(what, *last);
	*last = number;
	a->changed = true;
	a->version++;
}

static void note_through(struct group *g, uint64_t through)
{
	note_number(&g->attendance, NONE, &g->attendance.through, through);
}

/* What D has said counts as far as this member has come, without which none can be through a split
 * or have passed a meeting. The rest may be a lie that others have believed, who were ahead. */
static void note_said(struct group *g, const struct distant *d)
{
	struct attendance *a = &g->attendance;

	if (d->through <= g->boards.posted)
		note_through(g, d->through);
	if (d->passed <= a->came)
		note_number(a, PASSED, &a->passed, d->passed);
}

static void note_all_said(struct group *g)
{
	for (uint32_t s = 0; s < g->seats; s++)
		if (distant_at(g, s) && !g->members[s].out && !distant_at(g, s)->gone)
			note_said(g, distant_at(g, s));
}

static void take_said(struct member *m, const struct wire_group *packet)
{
	m->distant->through = LITTLE_64(packet->through);
	m->distant->passed = LITTLE_64(packet->passed);
	note_said(m->group, m->distant);
}

/* ---- shown ----------------------------------------------------------------------------------- */

/* With what is known of INDEX, or NONE. */
static struct wire_group packet_of(const struct group *g, uint32_t index)
{
	const struct attendance *a = &g->attendance;
	struct wire_group packet = {
		.step = LITTLE_32(GROUP_ATTENDS),
		.number = LITTLE_32(a->broken),
		.came = LITTLE_64(a->came),
		.through = LITTLE_64(a->through),
		.passed = LITTLE_64(a->passed),
		.view = LITTLE_64(a->view),
		.did = {LITTLE_64(a->broken ? a->begun + 1 : 0)},
	};

	if (index == NONE)
		return packet;
	packet.rank = LITTLE_32(index + 1);
	packet.count = LITTLE_64(distant_at(g, index)->came);
	return packet;
}

static bool send_attendance(struct member *m, uint32_t index)
{
	struct wire_group packet = packet_of(m->group, index);
	int rc = bootstrap_pass(m->pair->ep, &packet, sizeof(packet), WIRE_GROUP, NULL, 0);

	if (!groups_are_full(rc))
		return true;
	pair_due(m, clock_now() + FULL_MS * PAIR_MS);
	return false;
}

void attendance_show(struct member *m)
{
	const struct group *g = m->group;
	struct distant *d = m->distant;
	bool sent = false;

	if (d->has == g->attendance.version || !pair_is_up(m->pair))
		return;
	for (uint32_t s = 0; s < g->seats; s++) {
		if (!distant_at(g, s) || distant_at(g, s)->noted <= d->has)
			continue;
		if (!send_attendance(m, s))
			return;
		sent = true;
	}
	if (sent || send_attendance(m, NONE))
		d->has = g->attendance.version;
}

void attendance_up(struct member *m)
{
	m->distant->has = 0;
	attendance_show(m);
}

static void show_all(const struct group *g)
{
	for (uint32_t s = 0; s < g->seats; s++)
		if (distant_at(g, s) && !g->members[s].out)
			attendance_show(&g->members[s]);
}

/* ---- come ------------------------------------------------------------------------------------ */

void attendance_gone(struct member *m)
{
	struct distant *d = m->distant;

	if (!d || d->gone || !(m->ended || d->left || d->refused))
		return;
	attendance_note(m->group, (uint32_t)(m - m->group->members),
			d->left == LEFT_IN_ORDER ? BOARD_LEFT : d->fact, true);
	show_all(m->group);
	m->group->ctx->news = true;
}

void attendance_left(struct member *m, const struct wire_group *packet)
{
	if (m->distant && !m->distant->gone) /* else nothing of it counts */
		take_said(m, packet);
	attendance_gone(m);
}

/* What another knows of INDEX, which is gone, it says; whether that is so, only an attempt of this
 * member's own shows: until then it does not count. */
static void take_fact(struct group *g, uint32_t index, uint64_t came)
{
	struct member *of = &g->members[index];

	if (!of->distant)
		return;
	of->distant->fact = came > of->distant->fact ? came : of->distant->fact;
	if (of->distant->gone)
		attendance_note(g, index, came, false);
	if (of->out || of->distant->gone || pair_is_up(of->pair))
		return;
	of->distant->questioned = true;
	pair_due(of, 0);
}

int attendance_said(struct endpoint *ep, const struct wire_group *packet)
{
	struct pair *p = ep->rooms->pair;
	struct member *m = p ? p->member : NULL;
	uint32_t index = LITTLE_32(packet->rank);
	struct distant *d;

	if (PEER_FAULT(!p || (m && (!m->distant || index > m->group->seats))))
		return -SLMPM_EPROTO;
	/* After an end that this member has seen, and perhaps shown, nothing counts. */
	if (!m || m->out || m->distant->gone)
		return 0;
	d = m->distant;
	attendance_note(m->group, (uint32_t)(m - m->group->members), LITTLE_64(packet->came),
			false);
	if (index)
		take_fact(m->group, index - 1, LITTLE_64(packet->count));
	take_said(m, packet);
	d->view = LITTLE_64(packet->view);
	d->broken = LITTLE_32(packet->number);
	d->begun = LITTLE_64(packet->did[0]);
	show_all(m->group);
	m->group->ctx->news = true;
	return 0;
}

/* ---- all that live are asked ----------------------------------------------------------------- */

/* Counted: a meeting and a split may do so at a time. */
static void connect_all(struct group *g)
{
	if (g->attendance.users++)
		return;
	for (uint32_t s = 0; s < g->seats; s++) {
		struct member *m = &g->members[s];

		if (!m->distant || m->out || m->distant->gone)
			continue;
		m->distant->called = true;
		pair_want(m);
	}
}

static void connect_no_more(struct group *g)
{
	if (--g->attendance.users)
		return;
	for (uint32_t s = 0; s < g->seats; s++) {
		struct member *m = &g->members[s];

		if (!m->distant || !m->distant->called)
			continue;
		m->distant->called = false;
		pair_unwant(m);
	}
}

static bool is_alive(const struct member *m)
{
	return m->distant && !m->out && !m->distant->gone;
}

/* The first that lives and has not shown the view that this member has; NONE: all have. */
static uint32_t first_of_another_view(const struct group *g)
{
	uint32_t s = 0;

	while (s < g->seats &&
	       (!is_alive(&g->members[s]) || distant_at(g, s)->view == g->attendance.view))
		s++;
	return s < g->seats ? s : NONE;
}

/* ---- meetings -------------------------------------------------------------------------------- */

void attendance_come(struct group *g, uint64_t number)
{
	struct attendance *a = &g->attendance;

	a->meets = a->changed = true;
	a->came = number;
	a->version++;
	note_all_said(g);
	connect_all(g);
	show_all(g);
}

void attendance_settled(struct group *g, bool passed)
{
	struct attendance *a = &g->attendance;

	if (a->meets)
		connect_no_more(g);
	a->meets = false;
	a->met = passed ? g->meeting.number : a->met;
}

uint64_t attendance_came(const struct group *g, uint32_t rank)
{
	const struct distant *d = member_of(g, rank)->distant;

	if (!g->apart)
		return boards_came(&g->boards, rank);
	return d ? d->came : g->attendance.came;
}

/* INDEX ends it by its death. */
static int meeting_missed(struct group *g, uint32_t index)
{
	const struct member *m = &g->members[index];

	if (m->out)
		g->meeting.lost = m->pid;
	else
		g->meeting.next = pair_rank(m);
	return -SLMPM_EDEAD;
}

int attendance_decide(struct group *g)
{
	const uint64_t number = g->meeting.number;
	uint32_t other = NONE, waits = NONE;

	if (!g->attendance.changed)
		return 0;
	g->attendance.changed = false;
	if (g->attendance.passed >= number)
		return 1;
	other = first_of_another_view(g);
	for (uint32_t s = 0; s < g->seats; s++) {
		const struct distant *d = distant_at(g, s);

		if (!d || d->came >= number)
			continue;
		if (d->gone && other == NONE && d->came == number - 1)
			return meeting_missed(g, s);
		if (waits == NONE && (!d->gone || other != NONE))
			waits = d->gone ? other : s;
	}
	if (waits == NONE)
		return 1;
	g->meeting.next = pair_rank(&g->members[waits]);
	return 0;
}

/* ---- splits ---------------------------------------------------------------------------------- */

void attendance_through(struct group *g, uint64_t number)
{
	note_through(g, number);
	show_all(g);
}

void attendance_broken(struct group *g)
{
	g->attendance.broken = g->boards.generation + 1;
	g->attendance.begun = g->boards.posted;
	g->attendance.version++;
	note_all_said(g);
	show_all(g);
}

void attendance_ask(struct group *g, bool asks)
{
	if (asks)
		connect_all(g);
	else
		connect_no_more(g);
}

/* The group is broken for it, and operation NUMBER has not begun there, which none ends then. */
static bool has_given_up_before(const struct group *g, const struct distant *d, uint64_t number)
{
	return d->broken == g->boards.generation + 1 && d->begun && d->begun <= number;
}

int attendance_of_split(const struct group *g, uint64_t number)
{
	if (g->attendance.through >= number)
		return 1;
	for (uint32_t s = 0; s < g->seats; s++)
		if (distant_at(g, s) && has_given_up_before(g, distant_at(g, s), number))
			return -SLMPM_ECLOSED;
	if (first_of_another_view(g) != NONE)
		return 0;
	for (uint32_t s = 0; s < g->seats; s++)
		if (is_alive(&g->members[s]) &&
		    distant_at(g, s)->broken != g->boards.generation + 1)
			return 0;
	return -SLMPM_ECLOSED;
}
