/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others see of a group: its operations under way, how far each member is, and who is waited
 * for since when. Nothing is noted where operations begin or go on: all is read from the boards, or
 * from what has come, as the context inspects its links. Since when is when it was seen first.
 */
#include "slmpm/group/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/mapping.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/places.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/page_layout.h"
#include "slmpm/group/pairing.h"
#include "slmpm/group/tags.h"
#include "slmpm/part.h"

#define NS_PER_MS UINT64_C(1000000)
#define FEW       8 /* members: each one's step is in a text */

struct group_page {
	struct mapping m; /* struct shown_page */
	struct slmpm_group_shown next;
};

/* ---- made, and given back -------------------------------------------------------------------- */

static struct shown_page *page_of(const struct group *g)
{
	return g->page->m.base;
}

/* Without room for it none is shown. */
static void page_make(struct group *g)
{
	struct group_page *page = calloc(1, sizeof(*page));
	struct shown_page *to;

	g->unshown = true;
	if (!page)
		return;
	if (mapping_create(&page->m, PAGE_LABEL, sizeof(*to)) < 0) {
		free(page);
		return;
	}
	(void)mapping_close_seals(&page->m);
	to = page->m.base;
	to->version = PAGE_VERSION;
	to->size = sizeof(to->places[0]);
	/* Pairs with the acquire in view_is_sound. */
	atomic_store_explicit(&to->magic, PAGE_MAGIC, memory_order_release);
	g->page = page;
	g->unshown = false;
}

void group_page_free(struct group *g)
{
	g->unshown = true; /* no other is made */
	if (!g->page)
		return;
	mapping_destroy(&g->page->m);
	free(g->page);
	g->page = NULL;
}

void group_page_forked(const struct group *g)
{
	if (g->page)
		close(g->page->m.fd);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* When one of that number, kind and tag was seen first, or NOW. */
static uint64_t seen_first(const struct slmpm_group_shown *before,
			   const struct slmpm_shown_operation *op, uint64_t now)
{
	for (uint32_t i = 0; i < before->operation_count; i++) {
		const struct slmpm_shown_operation *last = &before->operation[i];

		if (last->number == op->number && last->kind == op->kind && last->tag == op->tag)
			return last->since_ns;
	}
	return now;
}

static void show_operation(struct slmpm_group_shown *to, const struct slmpm_group_shown *before,
			   uint64_t number, uint32_t kind, uint64_t since)
{
	struct slmpm_shown_operation op = {.number = number, .kind = kind};

	if (to->operation_count == SLMPM_SHOWN_OPERATIONS)
		return;
	op.since_ns = seen_first(before, &op, since);
	to->operation[to->operation_count++] = op;
}

/* NOW, or when OP was started, where that is known. */
static uint64_t started_at(const struct collective *op, uint64_t now)
{
	return op->deadline == UINT64_MAX ? now :
					    op->deadline - (uint64_t)op->timeout_ms * NS_PER_MS;
}

static void show_tags(const struct group *g, struct slmpm_group_shown *to,
		      const struct slmpm_group_shown *before)
{
	const struct collective *op;

	for (uint32_t i = 0; (op = tags_at(g, i)); i++) {
		struct slmpm_shown_operation shown = {.kind = op->coll->kind, .tag = op->coll->tag};

		to->under_way++;
		if (to->operation_count == SLMPM_SHOWN_OPERATIONS)
			continue;
		shown.since_ns = seen_first(before, &shown, started_at(op, to->taken_ns));
		to->operation[to->operation_count++] = shown;
	}
}

static void show_operations(const struct group *g, struct slmpm_group_shown *to,
			    const struct slmpm_group_shown *before)
{
	uint64_t number = g->apart ? g->boards.posted : g->flat.number;

	to->under_way = (uint32_t)(g->begun - g->done);
	LIST_EACH_ENTRY(struct collective, op, &g->operations, node)
		show_operation(to, before, number++, op->coll->kind, started_at(op, to->taken_ns));
	show_tags(g, to, before);
	if (g->meeting.waits) {
		to->under_way++;
		show_operation(to, before, g->meeting.number, SLMPM_SHOWN_MEET, to->taken_ns);
	}
	if (g->shrinking) {
		to->under_way++;
		show_operation(to, before, 0, SLMPM_SHOWN_SHRINK, to->taken_ns);
	}
}

/* ---- members --------------------------------------------------------------------------------- */

/* Whom all wait for in the end, though nothing need come of it here; -1: not known. */
static int page_suspect(struct group *g)
{
	bool begun = g->apart && g->messages && g->messages->stage != NOT_BEGUN;

	return begun ? stalled_suspect(g) : -1;
}

/* One that waits for another as well is none of them. */
static bool is_awaited_apart(const struct group *g, uint32_t r, int suspect)
{
	return suspect == (int)r ||
	       (messages_await(g, r) && stalled_for_whom(g, r, clock_now()) == r);
}

/* BEHIND: of operations_behind. */
static bool is_awaited(const struct group *g, uint32_t r, int suspect, uint64_t behind)
{
	if (r == g->boards.rank)
		return false;
	if (tags_await(g, r))
		return true;
	if (g->shrinking)
		return agree_waits_for(&g->shrinking->agreement, r);
	if (g->meeting.waits && attendance_came(g, r) < g->meeting.number)
		return true;
	return g->apart ? is_awaited_apart(g, r, suspect) :
			  g->under_way && operations_await(g, r, behind);
}

/* What it has said itself, as long as that holds. */
static void show_stand(const struct group *g, uint32_t r, struct slmpm_shown_member *to)
{
	uint32_t whom = stalled_for_whom(g, r, clock_now());

	if (whom == r)
		return;
	to->flags |= SLMPM_SHOWN_WAITS;
	to->present = stalled_stand(g, r)->number;
	to->length = whom;
}

static void show_distant(const struct group *g, uint32_t r, struct slmpm_shown_member *to)
{
	const struct member *m = member_of(g, r);

	to->step = messages_came(g, r) + parts.machine->came(g, r);
	if (!m->distant)
		return;
	snprintf(to->host, sizeof(to->host), "%.*s", (int)sizeof(to->host) - 1, m->distant->url);
	if (pair_is_up(m->pair))
		to->flags |= SLMPM_SHOWN_CONNECTED;
	if (m->distant->left)
		to->flags |= SLMPM_SHOWN_LEFT;
	show_stand(g, r, to);
}

static void show_step(const struct group *g, uint32_t r, struct slmpm_shown_member *to)
{
	struct board_step step;

	boards_step(&g->boards, r, &step);
	to->step = step.number;
	to->kind = step.kind;
	to->present = step.present;
	to->length = step.length;
	if (boards_left(&g->boards, r))
		to->flags |= SLMPM_SHOWN_LEFT;
}

static const struct slmpm_shown_member *member_before(const struct slmpm_group_shown *before,
						      uint32_t rank)
{
	for (uint32_t i = 0; i < before->member_count; i++)
		if (before->member[i].rank == rank)
			return &before->member[i];
	return NULL;
}

/* M has begun what is waited for. Of a meeting, and by messages, that is not known. */
static bool has_begun(const struct slmpm_group_shown *s, const struct slmpm_shown_member *m)
{
	const struct slmpm_shown_operation *op = &s->operation[0];

	return s->operation_count && !s->apart && op->kind < SLMPM_SHOWN_MEET && op->number &&
	       m->step >= op->number;
}

/* NOW is waited for: since it was seen to go on, or since the operation that it has not begun was
 * seen. */
static uint64_t awaited_since(const struct slmpm_group_shown *to,
			      const struct slmpm_group_shown *before,
			      const struct slmpm_shown_member *now)
{
	const struct slmpm_shown_member *last = member_before(before, now->rank);
	bool stands = last && last->step == now->step && last->present == now->present &&
		      before->generation == to->generation;

	if (stands && last->since_ns)
		return last->since_ns;
	return to->operation_count && !has_begun(to, now) ? to->operation[0].since_ns :
							    to->taken_ns;
}

static void show_member(const struct group *g, uint32_t r, bool awaited,
			struct slmpm_group_shown *to, const struct slmpm_group_shown *before)
{
	struct slmpm_shown_member *m = &to->member[to->member_count];

	if (to->member_count == SLMPM_SHOWN_MEMBERS)
		return;
	*m = (struct slmpm_shown_member){.rank = r, .pid = g->boards.processes[r]};
	if (g->apart)
		show_distant(g, r, m);
	else if (g->boards.of[r])
		show_step(g, r, m);
	if (member_of(g, r)->ended)
		m->flags |= SLMPM_SHOWN_DEAD;
	if (awaited)
		m->since_ns = awaited_since(to, before, m);
	to->member_count++;
}

static void show_members(struct group *g, struct slmpm_group_shown *to,
			 const struct slmpm_group_shown *before)
{
	const int suspect = page_suspect(g);
	const uint64_t behind = g->apart || !g->under_way ? 0 : operations_behind(g);

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!is_awaited(g, r, suspect, behind))
			continue;
		to->waiting++;
		show_member(g, r, true, to, before);
	}
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (to->member_count < SLMPM_SHOWN_MEMBERS && !is_awaited(g, r, suspect, behind))
			show_member(g, r, false, to, before);
}

/* ---- shown ----------------------------------------------------------------------------------- */

/* As it is now; NULL: there is no room for it. */
static const struct slmpm_group_shown *group_show(struct group *g, uint64_t now)
{
	const struct slmpm_group_shown *before;
	struct slmpm_group_shown *to;
	struct shown_page *page;

	if (!g->page && !g->unshown)
		page_make(g);
	if (!g->page)
		return NULL;
	page = page_of(g);
	to = &g->page->next;
	before = &page->places[atomic_load_explicit(&page->turn, memory_order_relaxed) & 1];
	*to = (struct slmpm_group_shown){
		.size = sizeof(*to),
		.tag = g->tag,
		.group = handle_id(g),
		.taken_ns = now,
		.rank = (int32_t)g->boards.rank,
		.members = g->boards.size,
		.status = g->status,
		.culprit = g->culprit,
		.begun = g->begun + tags_begun(g),
		.done = g->done + tags_begun(g) - tags_outstanding(g),
		.generation = g->boards.generation,
		.apart = g->apart,
		.algorithm = g->algorithm,
	};
	show_operations(g, to, before);
	if (g->apart)
		messages_note_awaited(g);
	if (g->apart && g->lane)
		messages_note_awaited(g->lane);
	show_members(g, to, before);
	places_fill(&page->turn, page->places, sizeof(page->places[0]), to,
		    offsetof(struct slmpm_group_shown, member) +
			    to->member_count * sizeof(to->member[0]));
	return to;
}

static bool is_shown(const struct group *g)
{
	return g->state == GROUP_HAS_FORMED && !g->whole && !g->to_reap;
}

void group_page_begin(struct group *g)
{
	if (is_shown(g))
		(void)group_show(g, clock_now());
}

void groups_publish(struct context *ctx)
{
	uint64_t now = clock_now();

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node)
		if (is_shown(g))
			(void)group_show(g, now);
}

/* ---- in texts -------------------------------------------------------------------------------- */

/* ns that the one that has been waited for longest has been. */
static uint64_t longest_wait(const struct slmpm_group_shown *s, uint64_t least)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < s->waiting && i < s->member_count; i++) {
		const struct slmpm_shown_member *m = &s->member[i];
		uint64_t waited = s->taken_ns - m->since_ns;

		/* Since the operation was begun, which may not have been seen at once. */
		if (!has_begun(s, m) && waited < least)
			waited = least;
		longest = waited > longest ? waited : longest;
	}
	return longest;
}

void group_page_waited(struct group *g, int timeout_ms, char text[GROUP_WAITED])
{
	uint64_t least = timeout_ms > 0 ? (uint64_t)timeout_ms * NS_PER_MS : 0, ns = least;
	const struct slmpm_group_shown *s;

	text[0] = 0;
	if (!timeout_ms) /* one of many calls that only try */
		return;
	s = group_show(group_main(g), clock_now());
	if (s)
		ns = longest_wait(s, least);
	if (ns >= NS_PER_MS)
		(void)snprintf(text, GROUP_WAITED, " for %.3f s", (double)ns / 1e9);
}

void group_page_steps(const struct group *g, char text[GROUP_STEPS])
{
	size_t at = 0;

	text[0] = 0;
	if (g->apart || g->boards.size > FEW)
		return;
	at = (size_t)snprintf(text, GROUP_STEPS, "; ranks at operation ");
	for (uint32_t r = 0; r < g->boards.size && at < GROUP_STEPS; r++) {
		struct board_step step;

		boards_step(&g->boards, r, &step);
		at += (size_t)snprintf(text + at, GROUP_STEPS - at, "%s%" PRIu64, r ? ", " : "",
				       step.number);
	}
}
