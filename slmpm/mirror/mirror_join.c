/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attachments: how the mirrors of two processes find each other, and part. Each side asks, by tag,
 * and both judge by what both have asked; so nobody has to be answered. Who leaves is answered, for
 * until then what was on its way still comes.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/mirror/mirror.h"

/* ---- an endpoint's -------------------------------------------------------------------------- */

struct mirrors *mirrors_of(struct endpoint *ep)
{
	if (!ep->rooms->mirrors) {
		ep->rooms->mirrors = calloc(1, sizeof(*ep->rooms->mirrors));
		if (ep->rooms->mirrors)
			list_init(&ep->rooms->mirrors->wanted);
	}
	return ep->rooms->mirrors;
}

struct attachment *attachment_with_tag(const struct mirrors *all, uint32_t tag)
{
	for (uint32_t i = 0; i < MIRRORS_MAX; i++)
		if (all->slots[i] && all->slots[i]->tag == tag)
			return all->slots[i];
	return NULL;
}

struct wanted *wanted_with(const struct mirrors *all, uint32_t tag)
{
	LIST_EACH_ENTRY(struct wanted, w, &all->wanted, node)
		if (w->tag == tag)
			return w;
	return NULL;
}

void wanted_free(struct mirrors *all, struct wanted *w)
{
	all->wanted_count--;
	list_remove(&w->node);
	free(w);
}

void mirror_send_end(struct endpoint *ep, uint32_t tag, bool answer)
{
	static const char nothing;

	link_control_whole(ep, WIRE_MIRROR_END, answer, wire_route(tag, 0), 0, &nothing, 0);
}

/* One of M's has come, joined or gone. */
static void sort(struct mirror *m)
{
	struct attachment *a = LIST_ENTRY(m->attachments.next, struct attachment, of_mirror);
	bool alone = !list_empty(&m->attachments) && a->of_mirror.next == &m->attachments &&
		     a->state == ATTACHMENT_JOINED && mirror_covers(m, 0, m->size) && !m->tracker &&
		     !m->ctx->multiple && !a->ep->link.check;

	m->to = NULL;
	LIST_EACH_ENTRY(struct attachment, each, &m->attachments, of_mirror)
		each->only = false;
	if (alone && attachment_sends(a))
		m->to = a;
	else if (alone)
		a->only = true;
}

void mirror_close_shortcuts(struct context *ctx)
{
	LIST_EACH(at, &ctx->mirrors)
		sort(LIST_ENTRY(at, struct mirror, node));
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void forget_changes(struct attachment *a)
{
	dirty_free(&a->dirty);
	intervals_free(&a->intervals);
	a->sending = 0;
}

void attachment_stale(struct attachment *a, int error)
{
	struct mirror *m = a->mirror;

	attachment_pend(a, false);
	a->all->slots[a->slot] = NULL;
	a->all = NULL;
	a->ep = NULL;
	a->state = ATTACHMENT_STALE;
	a->error = error;
	a->cut = a->coming;
	sort(m);
	forget_changes(a);
	mirror_close(a);
	read_serve(m);
	m->ctx->finished = true;
	context_changed(m->ctx);
}

void attachment_leave(struct attachment *a)
{
	list_remove(&a->of_mirror);
	sort(a->mirror);
	a->only = false;
	if (a->state == ATTACHMENT_STALE) {
		free(a);
		return;
	}
	attachment_pend(a, false);
	mirror_close(a);
	forget_changes(a);
	a->state = ATTACHMENT_ENDING;
	a->mirror = NULL;
	mirror_send_end(a->ep, a->tag, false);
}

void attachment_lose(struct attachment *a)
{
	struct endpoint *ep = a->ep;
	struct attachment *left = calloc(1, sizeof(*left));

	if (!left) {
		endpoint_lacks_memory(ep, "no memory for a mirror's end");
		return;
	}
	left->ep = ep;
	left->all = a->all;
	left->tag = a->tag;
	left->slot = a->slot;
	left->state = ATTACHMENT_ENDING;
	list_init(&left->of_mirror);
	attachment_stale(a, -SLMPM_ECHECKSUM);
	left->all->slots[left->slot] = left;
	mirror_send_end(ep, left->tag, false);
}

void mirror_end(struct endpoint *ep)
{
	struct mirrors *all = ep->rooms->mirrors;

	if (!all)
		return;
	for (uint32_t i = 0; i < MIRRORS_MAX; i++) {
		struct attachment *a = all->slots[i];

		if (a && a->state == ATTACHMENT_ENDING)
			free(a);
		else if (a)
			attachment_stale(a, -ep->life->error);
	}
	LIST_EACH(at, &all->wanted)
		wanted_free(all, LIST_ENTRY(at, struct wanted, node));
	free(all);
	ep->rooms->mirrors = NULL;
}

/* ---- beginnings ----------------------------------------------------------------------------- */

/* Why the two do not fit; NULL: they do. */
static const char *judge(const struct attachment *a, const struct wanted *w)
{
	uint32_t follower = a->how & SLMPM_MIRROR_FOLLOW ? a->how : w->how;
	uint32_t leader = a->how & SLMPM_MIRROR_FOLLOW ? w->how : a->how;

	if ((a->how & MIRROR_ROLES) == (w->how & MIRROR_ROLES))
		return a->how & SLMPM_MIRROR_LEAD ? "both would lead" : "both would follow";
	if (a->mirror->size != w->size)
		return "one is longer than the other";
	if (a->mirror->span_sum != w->span_sum)
		return "their spans differ";
	if (follower & SLMPM_MIRROR_BOTH && !(leader & SLMPM_MIRROR_BOTH))
		return "the leader takes no changes";
	return NULL;
}

void attachment_join(struct attachment *a, struct wanted *w)
{
	const struct mirror *m = a->mirror;

	a->why = judge(a, w);
	if (a->why) {
		attachment_stale(a, -SLMPM_EINVAL);
		return;
	}
	a->peer_slot = w->slot;
	a->state = ATTACHMENT_JOINED;
	a->both = a->how & w->how & SLMPM_MIRROR_BOTH;
	if (a->both) { /* else the follower sends none */
		a->intervals.stored = a->intervals.swept = (uint32_t)endpoint_start(a->ep);
		a->numbered = a->intervals.stored;
		a->taken = (uint32_t)endpoint_start_in(a->ep);
	}
	sort(a->mirror);
	if (a->how & SLMPM_MIRROR_LEAD) /* all of it is new to the peer */
		for (const struct slmpm_span *s = m->spans; s < m->spans + m->span_count; s++)
			mirror_note_for(a, s->offset, s->offset + s->len);
	else if (m->tracker && a->both)
		attachment_pend(a, true);
	a->ep->ctx->finished = true;
	context_changed(a->ep->ctx);
}

static void mirror_join_ask(const struct attachment *a)
{
	const struct wire_mirror packet = {
		.size = LITTLE_64(a->mirror->size),
		.tag = LITTLE_32(a->tag),
		.how = LITTLE_32(a->how),
		.slot = LITTLE_32(a->slot),
		.span_sum = LITTLE_32(a->mirror->span_sum),
	};

	link_control(a->ep, WIRE_MIRROR_ASK, 0, 0, &packet, sizeof(packet));
}

struct attachment *attachment_new(struct mirror *m, struct endpoint *ep, uint32_t tag, uint32_t how)
{
	struct mirrors *all = ep->rooms->mirrors;
	struct attachment *a = calloc(1, sizeof(*a));
	bool flies = how & SLMPM_MIRROR_FOLLOW && how & SLMPM_MIRROR_BOTH;

	if (!a)
		return NULL;
	if ((flies && intervals_init(&a->intervals) < 0) || dirty_init(&a->dirty, m->size) < 0) {
		intervals_free(&a->intervals);
		free(a);
		return NULL;
	}
	a->mirror = m;
	a->ep = ep;
	a->all = all;
	a->peer = handle_id(ep);
	a->tag = tag;
	a->how = how;
	while (all->slots[a->slot])
		a->slot++;
	all->slots[a->slot] = a;
	all->top = a->slot < all->top ? all->top : a->slot + 1;
	list_append(&m->attachments, &a->of_mirror);
	sort(m);
	mirror_join_ask(a);
	return a;
}
