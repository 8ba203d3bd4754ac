/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attachments: how the mirrors of two processes find each other, and part. Each side asks, by tag,
 * and both judge by what both have asked; so nobody has to be answered. Who leaves is answered, for
 * until then what was on its way still comes.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/error.h"
#include "slmpm/link.h"
#include "slmpm/message/arrival.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/read.h"
#include "slmpm/progress.h"
#include "slmpm/wait.h"

#define ROLES (SLMPM_MIRROR_LEAD | SLMPM_MIRROR_FOLLOW)

/* ---- an endpoint's -------------------------------------------------------------------------- */

static struct mirrors *mirrors_of(struct endpoint *ep)
{
	if (!ep->mirrors) {
		ep->mirrors = calloc(1, sizeof(*ep->mirrors));
		if (ep->mirrors)
			list_init(&ep->mirrors->wanted);
	}
	return ep->mirrors;
}

static struct attachment *with_tag(const struct mirrors *all, uint32_t tag)
{
	for (uint32_t i = 0; i < MIRRORS_MAX; i++)
		if (all->slots[i] && all->slots[i]->tag == tag)
			return all->slots[i];
	return NULL;
}

static struct wanted *wanted_with(const struct mirrors *all, uint32_t tag)
{
	LIST_EACH(at, &all->wanted) {
		struct wanted *w = LIST_ENTRY(at, struct wanted, node);

		if (w->tag == tag)
			return w;
	}
	return NULL;
}

static void wanted_free(struct mirrors *all, struct wanted *w)
{
	all->wanted_count--;
	list_remove(&w->node);
	free(w);
}

static void say_end(struct endpoint *ep, uint32_t tag, bool answer)
{
	static const char nothing;

	link_control_routed(ep, WIRE_MIRROR_END, answer, wire_route(tag, 0), &nothing, 0);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void forget_changes(struct attachment *a)
{
	dirty_free(&a->dirty);
	free(a->flights);
	a->flights = NULL;
	a->flight_count = 0;
	a->sending = 0;
}

void attachment_stale(struct attachment *a, int error)
{
	struct mirror *m = a->mirror;

	attachment_pend(a, false);
	a->ep->mirrors->slots[a->slot] = NULL;
	a->ep = NULL;
	a->state = ATTACHMENT_STALE;
	a->error = error;
	a->cut = a->coming;
	forget_changes(a);
	mirror_close(a);
	read_serve(m);
	m->ctx->finished = true;
	wait_changed(m->ctx);
}

void attachment_leave(struct attachment *a)
{
	list_remove(&a->of_mirror);
	if (a->state == ATTACHMENT_STALE) {
		free(a);
		return;
	}
	attachment_pend(a, false);
	mirror_close(a);
	forget_changes(a);
	a->state = ATTACHMENT_ENDING;
	a->mirror = NULL;
	say_end(a->ep, a->tag, false);
}

/* A change of it has been lost on the way: the mirror is told, the peer is left. */
static void lose(struct attachment *a)
{
	struct endpoint *ep = a->ep;
	struct attachment *left = calloc(1, sizeof(*left));

	if (!left) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for a mirror's end");
		return;
	}
	left->ep = ep;
	left->tag = a->tag;
	left->slot = a->slot;
	left->state = ATTACHMENT_ENDING;
	list_init(&left->of_mirror);
	attachment_stale(a, -SLMPM_ECHECKSUM);
	ep->mirrors->slots[left->slot] = left;
	say_end(ep, left->tag, false);
}

void mirror_end(struct endpoint *ep, int error)
{
	struct mirrors *all = ep->mirrors;

	if (!all)
		return;
	for (uint32_t i = 0; i < MIRRORS_MAX; i++) {
		struct attachment *a = all->slots[i];

		if (a && a->state == ATTACHMENT_ENDING)
			free(a);
		else if (a)
			attachment_stale(a, -error);
	}
	LIST_EACH(at, &all->wanted)
		wanted_free(all, LIST_ENTRY(at, struct wanted, node));
	free(all);
	ep->mirrors = NULL;
}

/* ---- beginnings ----------------------------------------------------------------------------- */

/* Why the two do not fit; NULL: they do. */
static const char *judge(const struct attachment *a, const struct wanted *w)
{
	uint32_t follower = a->how & SLMPM_MIRROR_FOLLOW ? a->how : w->how;
	uint32_t leader = a->how & SLMPM_MIRROR_FOLLOW ? w->how : a->how;

	if ((a->how & ROLES) == (w->how & ROLES))
		return a->how & SLMPM_MIRROR_LEAD ? "both would lead" : "both would follow";
	if (a->mirror->size != w->size)
		return "one is longer than the other";
	if (a->mirror->span_sum != w->span_sum)
		return "their spans differ";
	if (follower & SLMPM_MIRROR_BOTH && !(leader & SLMPM_MIRROR_BOTH))
		return "the leader takes no changes";
	return NULL;
}

/* All of it is new to the peer. */
static void fill(struct attachment *a)
{
	const struct mirror *m = a->mirror;

	if (!m->span_count)
		dirty_add(&a->dirty, 0, m->size);
	for (uint32_t i = 0; i < m->span_count; i++)
		dirty_add(&a->dirty, m->spans[i].offset, m->spans[i].offset + m->spans[i].len);
	if (!m->group)
		attachment_pend(a, true);
}

static void join(struct attachment *a, struct wanted *w)
{
	a->why = judge(a, w);
	if (a->why) {
		attachment_stale(a, -SLMPM_EINVAL);
		return;
	}
	a->peer_slot = w->slot;
	a->state = ATTACHMENT_JOINED;
	a->both = a->how & w->how & SLMPM_MIRROR_BOTH;
	if (a->how & SLMPM_MIRROR_LEAD)
		fill(a);
	else if (a->mirror->tracker && a->both)
		attachment_pend(a, true);
	a->ep->ctx->finished = true;
	wait_changed(a->ep->ctx);
}

static void ask(const struct attachment *a)
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

static struct attachment *attachment_new(struct mirror *m, struct endpoint *ep, uint32_t tag,
					 uint32_t how)
{
	struct mirrors *all = ep->mirrors;
	struct attachment *a = calloc(1, sizeof(*a));
	bool flies = how & SLMPM_MIRROR_FOLLOW && how & SLMPM_MIRROR_BOTH;

	if (!a)
		return NULL;
	if (flies)
		a->flights = calloc(MIRROR_FLIGHTS, sizeof(*a->flights));
	if ((flies && !a->flights) || dirty_init(&a->dirty, m->size) < 0) {
		free(a->flights);
		free(a);
		return NULL;
	}
	a->mirror = m;
	a->ep = ep;
	a->peer = handle_id(ep);
	a->tag = tag;
	a->how = how;
	while (all->slots[a->slot])
		a->slot++;
	all->slots[a->slot] = a;
	all->top = a->slot < all->top ? all->top : a->slot + 1;
	list_append(&m->attachments, &a->of_mirror);
	return a;
}

/* ---- slmpm_mirror_attach -------------------------------------------------------------------- */

struct joining {
	slmpm_mirror mirror;
	slmpm_peer peer;
	uint32_t tag, how;
	bool asked;
	int rc; /* 0: not yet; 1 */
};

static uint32_t used(const struct mirrors *all)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MIRRORS_MAX; i++)
		n += all->slots[i] != NULL;
	return n;
}

/* What an attachment that is new would stand beside. 1: none; 0: not yet. */
static int may_attach(struct mirror *m, struct endpoint *ep, const struct joining *j)
{
	const struct attachment *leader = mirror_find(m, (slmpm_peer){0}), *same;

	if (ep->state != SLMPM_PEER_UP)
		return endpoint_error(ep);
	if (!ep->mirrored)
		return error_set(SLMPM_ENOTSUP, "%s does not know mirrors", ep->name);
	if (j->how & SLMPM_MIRROR_FOLLOW && leader && leader->state != ATTACHMENT_STALE)
		return error_set(SLMPM_EBUSY, "the mirror has a leader");
	if (!mirrors_of(ep))
		return error_set(SLMPM_ENOMEM, "for mirrors");
	same = with_tag(ep->mirrors, j->tag);
	if (same && same->state == ATTACHMENT_ENDING)
		return 0;
	if (same)
		return error_set(SLMPM_EBUSY, "another mirror has tag %u with %s", j->tag,
				 ep->name);
	if (used(ep->mirrors) == MIRRORS_MAX)
		return error_set(SLMPM_ELIMIT, "%u mirrors with %s", MIRRORS_MAX, ep->name);
	return 1;
}

static int begin(struct mirror *m, struct endpoint *ep, struct joining *j)
{
	struct attachment *a = mirror_find(m, j->peer);
	struct wanted *w;
	int rc;

	if (a && a->state != ATTACHMENT_STALE) {
		if (a->tag != j->tag || a->how != j->how)
			return error_set(SLMPM_EBUSY, "the mirror is attached to %s otherwise",
					 ep->name);
		return 1;
	}
	if (a && a->why) /* it has come to nothing meanwhile, which nobody has been told */
		return 1;
	rc = may_attach(m, ep, j);
	if (rc <= 0)
		return rc;
	if (a)
		attachment_leave(a);
	if (j->how & SLMPM_MIRROR_FOLLOW && (a = mirror_find(m, (slmpm_peer){0})))
		attachment_leave(a);
	a = attachment_new(m, ep, j->tag, j->how);
	if (!a)
		return error_set(SLMPM_ENOMEM, "for a mirror's changes");
	ask(a);
	w = wanted_with(ep->mirrors, j->tag);
	if (w) {
		join(a, w);
		wanted_free(ep->mirrors, w);
	}
	return 1;
}

/* One that has come to nothing leaves only its reason. */
static int conclude(struct attachment *a)
{
	const struct endpoint *ep = endpoint_get((slmpm_peer){a->peer});
	const char *name = ep ? ep->name : "the peer";
	int rc;

	if (a->why)
		rc = error_set(-a->error, "the mirrors here and at %s do not fit: %s", name,
			       a->why);
	else
		rc = error_set(-a->error, "%s has left the mirror", name);
	attachment_leave(a);
	return rc;
}

/* 0 not yet, 1 it has, negative. */
static int look(struct joining *j)
{
	struct mirror *m = handle_get(&mirror_table, j->mirror.id);
	struct endpoint *ep = endpoint_get(j->peer);
	struct attachment *a;
	int rc;

	if (!m)
		return handle_error(&mirror_table, j->mirror.id);
	if (!j->asked) {
		if (!ep)
			return endpoint_bad_handle(j->peer);
		if (ep->state == SLMPM_PEER_CONNECTING)
			return 0;
		rc = begin(m, ep, j);
		if (rc <= 0)
			return rc;
		j->asked = true;
	}
	a = mirror_find(m, j->peer);
	if (!a)
		return mirror_not_attached("slmpm_mirror_attach");
	if (a->state == ATTACHMENT_STALE)
		return conclude(a);
	return a->state == ATTACHMENT_JOINED && (a->how & SLMPM_MIRROR_LEAD || a->filled);
}

static bool has_joined(void *arg)
{
	struct joining *j = arg;

	if (!j->rc) /* what has ended is not looked at again */
		j->rc = look(j);
	return j->rc;
}

static int explain_timeout(const struct joining *j)
{
	const struct endpoint *ep = endpoint_get(j->peer);

	if (!j->asked && ep && ep->state == SLMPM_PEER_UP)
		return error_set(SLMPM_EBUSY, "a mirror of tag %u with %s is being detached",
				 j->tag, ep->name);
	return error_set(SLMPM_ETIMEOUT, "the mirror of tag %u with %s is not there yet", j->tag,
			 ep ? ep->name : "the peer");
}

int slmpm_mirror_attach(slmpm_mirror mirror, slmpm_peer peer, uint32_t tag, uint32_t how,
			int timeout_ms)
{
	struct joining j = {.mirror = mirror, .peer = peer, .tag = tag, .how = how};
	uint32_t role = how & ROLES;
	struct endpoint *ep;
	struct context *ctx;
	struct mirror *m;
	int rc = 0;

	if ((role != SLMPM_MIRROR_LEAD && role != SLMPM_MIRROR_FOLLOW) ||
	    how & ~(ROLES | SLMPM_MIRROR_BOTH))
		return error_set(SLMPM_EINVAL, "slmpm_mirror_attach: how 0x%x", how);
	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	ctx = m->ctx;
	ep = endpoint_get(peer);
	if (!ep)
		rc = endpoint_bad_handle(peer);
	else if (ep->ctx != ctx)
		rc = error_set(SLMPM_EINVAL, "%s belongs to another context than the mirror",
			       ep->name);
	else
		rc = timeout_ms ? wait_forbidden(ctx, "slmpm_mirror_attach") : 0;
	if (rc == 0)
		rc = wait_until(ctx, has_joined, &j, timeout_ms) < 0 ? explain_timeout(&j) : j.rc;
	rc = rc > 0 ? 0 : rc;
	context_unlock(ctx);
	return rc;
}

int slmpm_mirror_detach(slmpm_mirror mirror, slmpm_peer peer)
{
	struct attachment *a;
	struct mirror *m;
	int rc = 0;

	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	a = mirror_find(m, peer);
	if (a)
		attachment_leave(a);
	else
		rc = mirror_not_attached("slmpm_mirror_detach");
	context_unlock(m->ctx);
	return rc;
}

/* ---- packets -------------------------------------------------------------------------------- */

static bool read_ask(const struct head *h, struct wanted *w)
{
	struct wire_mirror packet;
	uint32_t role;

	if (PEER_FAULT(h->length != sizeof(packet)))
		return false;
	memcpy(&packet, h->data, sizeof(packet));
	w->size = LITTLE_64(packet.size);
	w->tag = LITTLE_32(packet.tag);
	w->how = LITTLE_32(packet.how);
	w->slot = LITTLE_32(packet.slot);
	w->span_sum = LITTLE_32(packet.span_sum);
	role = w->how & ROLES;
	return !PEER_FAULT(!w->size || w->slot >= MIRRORS_MAX ||
			   w->how & ~(ROLES | SLMPM_MIRROR_BOTH) ||
			   (role != SLMPM_MIRROR_LEAD && role != SLMPM_MIRROR_FOLLOW));
}

static void asked(struct endpoint *ep, const struct head *h)
{
	struct mirrors *all = ep->mirrors;
	struct wanted asks, *kept;
	struct attachment *a;

	if (!read_ask(h, &asks)) {
		(void)arrival_violates(ep, "packet about a mirror");
		return;
	}
	a = with_tag(all, asks.tag);
	if (a && a->state == ATTACHMENT_ENDING)
		return; /* for the one that was asked for here before; its end has been told */
	if (PEER_FAULT((a && a->state != ATTACHMENT_ASKED) || wanted_with(all, asks.tag) ||
		       all->wanted_count >= MIRRORS_MAX)) {
		(void)arrival_violates(ep, "mirror that is asked for");
		return;
	}
	if (a) {
		join(a, &asks);
		return;
	}
	kept = malloc(sizeof(*kept));
	if (!kept) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for its mirrors");
		return;
	}
	*kept = asks;
	list_append(&all->wanted, &kept->node);
	all->wanted_count++;
	wait_changed(ep->ctx);
}

static void left(struct endpoint *ep, uint32_t tag)
{
	struct attachment *a = with_tag(ep->mirrors, tag);
	struct wanted *w = wanted_with(ep->mirrors, tag);

	if (w)
		wanted_free(ep->mirrors, w);
	if (a && a->state == ATTACHMENT_JOINED)
		attachment_stale(a, -SLMPM_ECLOSED);
	if (PEER_FAULT(link_owed(ep, WIRE_MIRROR_END) > 2 * MIRRORS_MAX)) {
		(void)arrival_violates(ep, "number of mirrors left");
		return;
	}
	say_end(ep, tag, true);
}

static void ended(struct endpoint *ep, const struct head *h)
{
	struct attachment *a = with_tag(ep->mirrors, h->stream);

	if (PEER_FAULT(h->seq > 1 || h->length ||
		       (h->seq && (!a || a->state != ATTACHMENT_ENDING)))) {
		(void)arrival_violates(ep, "end of a mirror");
		return;
	}
	if (!h->seq) {
		left(ep, h->stream);
		return;
	}
	ep->mirrors->slots[a->slot] = NULL;
	free(a);
	wait_changed(ep->ctx);
}

static void changed(struct endpoint *ep, const struct head *h, uint8_t opcode)
{
	struct attachment *a = h->stream < MIRRORS_MAX ? ep->mirrors->slots[h->stream] : NULL;

	if (PEER_FAULT(!a)) {
		(void)arrival_violates(ep, "change of no mirror");
		return;
	}
	if (a->state == ATTACHMENT_ENDING)
		return;
	if (h->damaged)
		lose(a);
	else if (opcode != WIRE_MIRROR_STORED)
		mirror_take(a, h, opcode);
	else if (PEER_FAULT(h->length || a->state != ATTACHMENT_JOINED ||
			    a->how & SLMPM_MIRROR_LEAD || !mirror_echoed(a, h->imm)))
		(void)arrival_violates(ep, "count of changes");
}

void mirror_arrived(struct endpoint *ep, const struct head *h, uint8_t opcode)
{
	if (PEER_FAULT(!ep->mirrored || h->flags & ~WIRE_FLAG_CHECK)) {
		(void)arrival_violates(ep, "packet about a mirror");
		return;
	}
	if (!mirrors_of(ep)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for its mirrors");
		return;
	}
	/* Of a change the mirror is told; without the others both sides would think of it differently. */
	if (h->damaged && (opcode < WIRE_MIRROR_PART || opcode > WIRE_MIRROR_LIST_LAST)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM,
			     "a packet about a mirror came damaged");
		return;
	}
	switch (opcode) {
	case WIRE_MIRROR_ASK: asked(ep, h); return;
	case WIRE_MIRROR_END: ended(ep, h); return;
	default: changed(ep, h, opcode); return;
	}
}

bool mirror_take_shortly(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct head h = {
		.seq = a->head[0],
		.stream = (uint32_t)a->head[1],
		.imm = (uint32_t)(a->head[1] >> 32),
		.extent = a->head[2],
		.length = a->length,
		.data = a->data,
	};

	if (a->kind < WIRE_MIRROR_PART || a->kind > WIRE_MIRROR_LIST_LAST ||
	    a->head[2] & ~WIRE_LENGTH_MASK || !ep->mirrors)
		return false;
	changed(ep, &h, a->kind);
	progress_release(ep, a);
	return true;
}
