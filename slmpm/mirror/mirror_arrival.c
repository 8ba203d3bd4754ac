/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets about mirrors: checked, and given to the attachment they are of. */
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"

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
	role = w->how & MIRROR_ROLES;
	return !PEER_FAULT(!w->size || w->slot >= MIRRORS_MAX ||
			   w->how & ~(MIRROR_ROLES | SLMPM_MIRROR_BOTH) ||
			   (role != SLMPM_MIRROR_LEAD && role != SLMPM_MIRROR_FOLLOW));
}

static void asked(struct endpoint *ep, const struct head *h)
{
	struct mirrors *all = ep->rooms->mirrors;
	struct wanted asks, *kept;
	struct attachment *a;

	if (!read_ask(h, &asks)) {
		(void)endpoint_poison(ep, "packet about a mirror");
		return;
	}
	a = attachment_with_tag(all, asks.tag);
	if (a && a->state == ATTACHMENT_ENDING)
		return; /* for the one that was asked for here before; its end has been told */
	if (PEER_FAULT((a && a->state != ATTACHMENT_ASKED) || wanted_with(all, asks.tag) ||
		       all->wanted_count >= MIRRORS_MAX)) {
		(void)endpoint_poison(ep, "mirror that is asked for");
		return;
	}
	if (a) {
		attachment_join(a, &asks);
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
	context_changed(ep->ctx);
}

static void left(struct endpoint *ep, uint32_t tag)
{
	struct attachment *a = attachment_with_tag(ep->rooms->mirrors, tag);
	struct wanted *w = wanted_with(ep->rooms->mirrors, tag);

	if (w)
		wanted_free(ep->rooms->mirrors, w);
	if (a && a->state == ATTACHMENT_JOINED)
		attachment_stale(a, -SLMPM_ECLOSED);
	if (PEER_FAULT(link_deferred(ep, WIRE_MIRROR_END) > 2 * MIRRORS_MAX)) {
		(void)endpoint_poison(ep, "number of mirrors left");
		return;
	}
	mirror_send_end(ep, tag, true);
}

static void mirror_arrival_ended(struct endpoint *ep, const struct head *h)
{
	struct attachment *a = attachment_with_tag(ep->rooms->mirrors, h->stream);

	if (PEER_FAULT(h->seq > 1 || h->length ||
		       (h->seq && (!a || a->state != ATTACHMENT_ENDING)))) {
		(void)endpoint_poison(ep, "end of a mirror");
		return;
	}
	if (!h->seq) {
		left(ep, h->stream);
		return;
	}
	ep->rooms->mirrors->slots[a->slot] = NULL;
	free(a);
	context_changed(ep->ctx);
}

static void mirror_arrival_changed(struct endpoint *ep, const struct head *h)
{
	struct attachment *a =
		h->stream < MIRRORS_MAX ? ep->rooms->mirrors->slots[h->stream] : NULL;

	if (PEER_FAULT(!a)) {
		(void)endpoint_poison(ep, "change of no mirror");
		return;
	}
	if (a->state == ATTACHMENT_ENDING)
		return;
	if (h->damaged)
		attachment_lose(a);
	else if (h->opcode != WIRE_MIRROR_STORED)
		mirror_take(a, h);
	else if (PEER_FAULT(h->length || a->state != ATTACHMENT_JOINED ||
			    a->how & SLMPM_MIRROR_LEAD || !mirror_echoed(a, h->imm)))
		(void)endpoint_poison(ep, "count of changes");
}

void mirror_arrived(struct endpoint *ep, const struct head *h)
{
	if (PEER_FAULT(!ep->life->mirrored || h->flags & ~WIRE_FLAG_CHECK)) {
		(void)endpoint_poison(ep, "packet about a mirror");
		return;
	}
	if (!mirrors_of(ep)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for its mirrors");
		return;
	}
	/* A lost change is the mirror's end, anything else lost would part what the sides know. */
	if (h->damaged && (h->opcode < WIRE_MIRROR_PART || h->opcode > WIRE_MIRROR_LIST_LAST)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM,
			     "a packet about a mirror came damaged");
		return;
	}
	switch (h->opcode) {
	case WIRE_MIRROR_ASK: asked(ep, h); return;
	case WIRE_MIRROR_END: mirror_arrival_ended(ep, h); return;
	default: mirror_arrival_changed(ep, h); return;
	}
}

bool mirror_take_directly(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct head h = {
		.seq = a->head[0],
		.stream = (uint32_t)a->head[1],
		.imm = (uint32_t)(a->head[1] >> 32),
		.extent = a->head[2],
		.length = a->length,
		.data = a->data,
		.opcode = a->kind,
	};

	if (a->head[2] & ~WIRE_LENGTH_MASK || !ep->rooms->mirrors)
		return false;
	mirror_arrival_changed(ep, &h);
	progress_release(ep, a);
	return true;
}
