/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of some members of a group. All say by an operation of the group which one they want to be
 * in; the first member of each new one founds it, by connections of the old one. A barrier follows:
 * all have what they want then, or none has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/wire.h"
#include "slmpm/board/layout.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/pairing.h"
#include "slmpm/link/wait.h"

#define CALL     "slmpm_group_split"
#define SLICE_MS 5
#define GRACE_MS 1000 /* until all know of a death that one connection has shown */

struct choice {         /* of a member, as it is exchanged: in little-endian order */
	uint32_t wrong; /* it asks for what cannot be */
	uint32_t color, key, rank;
};

struct split {                      /* a call of it */
	struct group *group, *part; /* part: NULL: none, or not yet */
	struct choice *members;     /* of the part, in its order: the first founds it */
	uint32_t n;
	uint32_t from, to; /* those of them that this process needs a connection with */
	uint32_t next;     /* the first of these that may not be there yet */
	uint64_t deadline;
	uint64_t form_by; /* the part */
	uint32_t culprit; /* a rank of the group that does not come to the part; BOARD_NONE */
	int timeout_ms;
	uint64_t barrier; /* the number of that */
	bool through;     /* a member is behind it */
};

static int time_until(uint64_t deadline)
{
	int left = clock_ms(clock_now(), deadline, -1);

	return left ? left : 1;
}

static int split_time_left(const struct split *s)
{
	return time_until(s->deadline);
}

/* Who founds the part knows who is late: its time ends first, then that of those that wait for it,
 * and last that of those in the barrier. */
static void limit_forming(struct split *s)
{
	uint64_t now = clock_now(), left = s->deadline > now ? s->deadline - now : 0;

	s->form_by = s->deadline;
	if (s->deadline != UINT64_MAX)
		s->form_by -= left / (s->from ? 4 : 8);
}

static bool is_broken(const struct group *g)
{
	return g->status || g->error;
}

static int split_collect(struct split *s, const struct slmpm_coll *c)
{
	return step_await(s->group, c, BOARD_CALL_SPLIT, split_time_left(s));
}

/* ---- who wants what -------------------------------------------------------------------------- */

static int exchange(struct split *s, int color, int key, bool wrong, struct choice *all)
{
	const struct choice own = {.wrong = LITTLE_32((uint32_t)wrong),
				   .color = LITTLE_32((uint32_t)color),
				   .key = LITTLE_32((uint32_t)key)};
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = SLMPM_COLL_ALLGATHER,
				     .type = SLMPM_UINT8,
				     .from = &own,
				     .to = all,
				     .count = sizeof(own)};

	return split_collect(s, &c);
}

static bool is_color(int color)
{
	return color >= 0 || color == SLMPM_COLOR_NONE;
}

/* By the first member that asks for what cannot be: the same at all. */
static COLD int split_refused(const struct split *s, const struct choice *all)
{
	const struct boards *b = &s->group->boards;
	char why[32] = "no place for the handle";
	uint32_t r = 0;
	int color;

	while (r < b->size && !all[r].wrong)
		r++;
	if (r == b->size)
		return 0;
	color = (int32_t)LITTLE_32(all[r].color);
	if (!is_color(color))
		(void)snprintf(why, sizeof(why), "no color %d", color);
	if (r == b->rank)
		return error_set(SLMPM_EINVAL, "%s", why);
	return error_set(SLMPM_EINVAL, BOARD_MEMBER " refuses: %s", BOARD_MEMBER_OF(b, r), why);
}

static void read_choices(const struct split *s, struct choice *all)
{
	for (uint32_t r = 0; r < s->group->boards.size; r++) {
		all[r].color = LITTLE_32(all[r].color);
		all[r].key = LITTLE_32(all[r].key);
		all[r].rank = r;
	}
}

/* By key, then by rank. */
static int compare_choices(const void *left, const void *right)
{
	const struct choice *a = left, *b = right;
	int32_t ka = (int32_t)a->key, kb = (int32_t)b->key;

	if (ka != kb)
		return ka < kb ? -1 : 1;
	return a->rank < b->rank ? -1 : 1;
}

/* Those of ALL that want the same come first. */
static void choose(struct split *s, int color, struct choice *all)
{
	bool founds;

	s->members = all;
	for (uint32_t r = 0; r < s->group->boards.size; r++)
		if (all[r].color == (uint32_t)color)
			all[s->n++] = all[r];
	qsort(all, s->n, sizeof(*all), compare_choices);
	founds = all[0].rank == s->group->boards.rank;
	s->from = s->next = founds;
	s->to = founds ? s->n : 1;
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct member *member_at(const struct split *s, uint32_t i)
{
	return member_of(s->group, s->members[i].rank);
}

static bool are_connected(void *arg)
{
	struct split *s = arg;

	while (s->next < s->to && pair_is_decided(member_at(s, s->next)))
		s->next++;
	return s->next == s->to || is_broken(s->group);
}

static void want_members(const struct split *s, bool want)
{
	for (uint32_t i = s->from; i < s->to; i++) {
		if (want)
			pair_want(member_at(s, i));
		else
			pair_unwant(member_at(s, i));
	}
}

static int not_connected(const struct split *s, uint32_t i)
{
	struct member *m = member_at(s, i);

	/* While others were waited for; the group will know why. */
	if (m->pair && !pair_lives(m->pair) && m->pair->ep->life->was_up)
		return error_set(SLMPM_ECLOSED, "the connection with " BOARD_MEMBER " has ended",
				 BOARD_MEMBER_OF(&s->group->boards, s->members[i].rank));
	return pair_error(m, "for a part", s->timeout_ms);
}

static int connect_members(struct split *s)
{
	(void)wait_until(s->group->ctx, are_connected, s, time_until(s->form_by));
	for (uint32_t i = s->from; i < s->to; i++)
		if (!pair_is_up(member_at(s, i)->pair)) {
			s->culprit = pair_culprit(member_at(s, i));
			return not_connected(s, i);
		}
	return 0;
}

/* ---- the part forms -------------------------------------------------------------------------- */

static int found_part(struct split *s)
{
	slmpm_peer *peers = calloc(s->n, sizeof(*peers));
	int rc = 0;

	if (!peers)
		return error_set(SLMPM_ENOMEM, "for a group");
	for (uint32_t i = 1; i < s->n; i++)
		peers[i].id = handle_id(member_at(s, i)->pair->ep);
	s->part = formation_new(NULL, s->group->ctx, peers, s->n, s->group->tag, s->group, -1, &rc);
	free(peers);
	if (s->part)
		formation_begin(s->part);
	return rc;
}

/* For ERROR, by WHY: all others learn at once which member lacks something. */
static COLD int split_lacks(struct split *s, int error, const char *why)
{
	const struct boards *b = &s->group->boards;

	s->culprit = b->rank;
	return error_set(-error, BOARD_MEMBER ": %s", BOARD_MEMBER_OF(b, b->rank), why);
}

static COLD int cannot_begin(struct split *s, int rc)
{
	char text[ERROR_DETAIL];

	if (!error_is_lack(-rc))
		return rc;
	(void)snprintf(text, sizeof(text), "%s", group_detail());
	return split_lacks(s, rc, text);
}

static int begin_part(struct split *s)
{
	int rc = 0;

	if (s->from)
		rc = found_part(s);
	else
		s->part = group_ask(member_at(s, 0)->pair->ep, s->group->tag, true, &rc);
	return rc < 0 ? cannot_begin(s, rc) : 0;
}

static bool part_is_decided(void *arg)
{
	const struct split *s = arg;

	return s->part->state != GROUP_IS_FORMING || is_broken(s->group);
}

/* As long as it forms the connections live. */
static void await_part(struct split *s)
{
	uint32_t i;
	int rc;

	(void)wait_until(s->group->ctx, part_is_decided, s, time_until(s->form_by));
	if (part_is_decided(s))
		return;
	i = s->from ? formation_missing(s->part) : 0;
	s->culprit = s->members[i].rank;
	rc = late_error(s->group->ctx, member_at(s, i)->pair->ep, s->timeout_ms,
			"nothing yet from " BOARD_MEMBER,
			BOARD_MEMBER_OF(&s->group->boards, s->culprit));
	if (s->from) {
		formation_fail(s->part, -rc, "%s", group_detail());
	} else {
		group_fail(s->part, -rc, "%s", group_detail());
		group_join_late(s->part, member_at(s, 0)->pair->ep, s->timeout_ms);
	}
}

static COLD int part_failed(struct split *s, int color)
{
	const struct group *part = s->part;
	char text[ERROR_DETAIL + sizeof("of color -2147483648: ")];

	(void)snprintf(text, sizeof(text), "of color %d: %s", color, part->detail);
	return part->lacks ? split_lacks(s, part->error, text) :
			     error_set(-part->error, "%s", text);
}

static int form(struct split *s, int color)
{
	int rc = connect_members(s);

	if (rc == 0)
		rc = begin_part(s);
	if (rc < 0)
		return rc;
	await_part(s);
	return s->part->state == GROUP_HAS_FAILED ? part_failed(s, color) : 0;
}

static bool group_knows(void *arg)
{
	return is_broken(arg);
}

/* The old group is broken by that, which all others learn so; of a death it learns by itself, of
 * who is late by who founds the part, of what another member lacks by that one. */
static COLD void give_up_split(struct split *s, int error)
{
	struct group *g = s->group;
	const int left = split_time_left(s);
	char text[ERROR_DETAIL];

	(void)snprintf(text, sizeof(text), "%s", group_detail());
	if (error == -SLMPM_EDEAD || error == -SLMPM_ECLOSED ||
	    ((error == -SLMPM_ETIMEOUT || error_is_lack(-error)) && s->culprit == BOARD_NONE))
		(void)wait_until(g->ctx, group_knows, g,
				 left >= 0 && left < GRACE_MS ? left : GRACE_MS);
	if (is_broken(g))
		return;
	(void)error_set(-error, "%s", text);
	operations_fail(g, error, s->culprit);
}

/* ---- the call -------------------------------------------------------------------------------- */

static int make_part(struct split *s, int color, struct choice *all)
{
	int rc;

	choose(s, color, all);
	limit_forming(s);
	want_members(s, true);
	rc = form(s, color);
	want_members(s, false);
	return rc;
}

/* Whether all others have said that they are through, or are broken or dead; one that is through
 * settles it, and one that is broken and has not come to the barrier, which none passes then. */
static bool is_settled(void *arg)
{
	struct split *s = arg;
	struct group *g = s->group;
	bool settled = true, in_vain = false;

	for (uint32_t r = 0; r < g->boards.size && !s->through; r++) {
		uint32_t culprit;
		bool ended;

		if (r == g->boards.rank)
			continue;
		ended = boards_ended(&g->boards, r, &culprit); /* before what it has posted */
		s->through = boards_has(&g->boards, r, s->barrier + 1);
		in_vain |= ended && !boards_has(&g->boards, r, s->barrier);
		settled &= ended || member_of(g, r)->ended;
	}
	return settled || in_vain || s->through;
}

static COLD void settle_here(struct split *s)
{
	/* No bell rings for that. */
	for (int ms = 0; ms < GRACE_MS && !is_settled(s); ms += SLICE_MS)
		(void)wait_until(s->group->ctx, is_settled, s, SLICE_MS);
}

/* By messages: all that live are asked (attendance.c). */
static bool is_settled_apart(void *arg)
{
	struct split *s = arg;
	int rc = attendance_of_split(s->group, s->barrier);

	s->through = rc > 0;
	return rc;
}

static COLD void settle_apart(struct split *s)
{
	struct group *g = s->group;
	int left = split_time_left(s);

	attendance_broken(g);
	attendance_ask(g, true);
	(void)wait_until(g->ctx, is_settled_apart, s,
			 left >= 0 && left < GRACE_MS ? GRACE_MS : left);
	attendance_ask(g, false);
}

/* The barrier has failed here, perhaps not at all others. */
static COLD int settle_split(struct split *s, int rc)
{
	char text[ERROR_DETAIL];

	(void)snprintf(text, sizeof(text), "%s", group_detail());
	if (s->group->apart)
		settle_apart(s);
	else
		settle_here(s);
	return s->through ? 0 : error_set(-rc, "%s", text);
}

/* By a barrier, which may be done at some members, and fail at others for a death behind it: so
 * those that are through say so, by one more post or by messages, whatever has become of the group
 * by then, and the others look for that. */
static int let_all_have_it(struct split *s)
{
	const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	struct group *g = s->group;
	int rc, left;

	s->barrier = g->boards.posted + 1;
	rc = split_collect(s, &barrier);
	if (rc < 0)
		return g->boards.posted < s->barrier ? rc : settle_split(s, rc);
	if (g->apart) {
		attendance_through(g, s->barrier);
		return 0;
	}
	left = split_time_left(s);
	(void)operation_await(g, &barrier, CALL, left >= 0 && left < GRACE_MS ? GRACE_MS : left);
	return 0;
}

/* ALL are there. What is refused leaves the group as it is. */
static int split_chosen(struct split *s, int color, struct choice *all)
{
	int rc = split_refused(s, all);

	if (rc < 0)
		return rc;
	read_choices(s, all);
	if (color != SLMPM_COLOR_NONE)
		rc = make_part(s, color, all);
	if (rc < 0)
		give_up_split(s, rc);
	return let_all_have_it(s);
}

/* Failed joins of earlier splits, which may have come after those had ended. None is of this split:
 * its parts begin behind the exchange. */
static void forget_failed(const struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct pair *p = member_of(g, r)->pair;
		struct groups *of;

		if (!pair_is_up(p))
			continue;
		bootstrap_read_ahead(p->ep);
		of = p->ep->rooms->groups;
		if (of && of->failed.part && of->failed.tag == g->tag)
			of->failed.error = 0;
		if (of && of->their_refused.part && of->their_refused.tag == g->tag)
			of->their_refused.error = 0;
	}
}

static int split(struct split *s, int color, int key, bool wrong)
{
	struct choice *all = calloc(s->group->boards.size, sizeof(*all));
	int rc;

	if (!all)
		return error_set(SLMPM_ENOMEM, "for what the members say");
	forget_failed(s->group);
	rc = exchange(s, color, key, wrong, all);
	if (rc == 0)
		rc = split_chosen(s, color, all);
	if (rc < 0 && s->group->apart && s->group->error)
		attendance_broken(s->group);
	free(all);
	return rc;
}

static int may_split(struct group *g, int timeout_ms)
{
	int rc = context_forbids(g->ctx, CALL);

	if (rc == 0)
		rc = step_may_begin(g, SLMPM_COLL_ALLGATHER, BOARD_CALL_SPLIT);
	if (rc == 0 && (g->splitting || g->shrinking))
		rc = error_set(SLMPM_EBUSY, CALL ": another thread calls %s",
			       g->splitting ? CALL : "slmpm_group_shrink");
	if (rc == 0 && !timeout_ms)
		rc = error_set(SLMPM_EAGAIN,
			       CALL ": a timeout of 0 is not enough for the others to answer");
	return rc;
}

static int conclude_split(struct split *s, slmpm_group *part, int rc)
{
	if (rc == 0)
		part->id = s->part ? handle_id(s->part) : 0;
	else
		rc = error_name_call(CALL, rc);
	if (rc < 0 && s->part)
		group_quit(s->part);
	return rc;
}

int slmpm_group_split(slmpm_group *part, slmpm_group group, int color, int key, int timeout_ms)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);
	struct split s = {.group = g,
			  .deadline = clock_deadline(timeout_ms),
			  .culprit = BOARD_NONE,
			  .timeout_ms = timeout_ms};

	if (!g)
		return rc;
	rc = may_split(g, timeout_ms);
	if (rc == 0) {
		g->splitting = true;
		g->waits++;
		rc = split(&s, color, key, !part || !is_color(color));
		g->waits--;
		g->splitting = false;
		rc = conclude_split(&s, part, rc);
	}
	context_unlock(ctx);
	return rc;
}
