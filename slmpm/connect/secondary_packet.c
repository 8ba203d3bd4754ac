/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets about links to be, by the control connection or, without it, by the bond: what they say, and
 * whether it is their turn.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/connect/secondary_parts.h"
#include "slmpm/link/link.h"
#include "slmpm/message/inbound.h"
#include "slmpm/link/wait.h"

/* ---- saying --------------------------------------------------------------------------------- */

void secondary_send_round(struct secondary *f)
{
	struct endpoint *ep = f->ep;
	struct packet p = {
		.opcode = WIRE_BOND_LINK,
		.data = &f->waiting,
		.length = sizeof(f->waiting),
	};

	/* As everything that must not come between what is being built or gathered. */
	if (ep->state == SLMPM_PEER_UP && list_empty(&ep->link.deferred) && !ep->bundle.count &&
	    ep->lent != LENT_PACKET && link_post_request(ep, &p, NULL) == 1)
		f->waits = false;
}

int secondary_send(struct secondary *f, struct wire_round *packet, int fd)
{
	if (f->ep->rooms->control->socket.fd >= 0 && !f->by_bond) {
		f->given += fd >= 0;
		return control_send(f->ep->rooms->control, packet, sizeof(*packet), WIRE_ROUND, fd);
	}
	if (fd >= 0)
		return -ENOTSUP;
	f->waiting = *packet; /* what it replaces is old by now */
	f->waits = true;
	secondary_send_round(f);
	return 0;
}

void secondary_send_word(struct secondary *f, uint32_t round, uint32_t link, uint32_t life,
			 const char *why)
{
	struct wire_round packet = {.round = LITTLE_32(round),
				    .link = LITTLE_16((uint16_t)link),
				    .life = LITTLE_16((uint16_t)life)};

	packet.blob_length = LITTLE_32(
		(uint32_t)snprintf((char *)packet.blob, sizeof(packet.blob), "%.100s", why));
	(void)secondary_send(f, &packet, -1);
}

bool secondary_address(const struct wire_round *packet, struct sockaddr_storage *to)
{
	uint32_t family = LITTLE_16(packet->family);

	memset(to, 0, sizeof(*to));
	if (family == 4 || family == 6) {
		to->ss_family = family == 4 ? AF_INET : AF_INET6;
		memcpy(route_bytes((struct sockaddr *)to), packet->address, family == 4 ? 4 : 16);
	}
	return !family || to->ss_family;
}

/* ---- heard ---------------------------------------------------------------------------------- */

bool secondary_violates(struct endpoint *ep)
{
	endpoint_break(ep, "round of a secondary link");
	return false;
}

static bool secondary_packet_take(struct secondary *f, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	uint32_t round = LITTLE_32(packet->round), link = LITTLE_16(packet->link);
	struct rounds *t = &f->try;
	struct sockaddr_storage unused;

	if (PEER_FAULT(link >= f->links || LITTLE_16(packet->life) >= BOND_INCARNATIONS ||
		       !secondary_address(packet, &unused)))
		return secondary_violates(f->ep);
	if (round == WIRE_ROUND_NOT) {
		secondary_try_not(f, packet);
	} else if (round == WIRE_ROUND_ASK) {
		if (PEER_FAULT(!f->active))
			return secondary_violates(f->ep);
		/* It may stand here and not there yet: a try would end it. */
		if (bond_state(f->ep->link.port, link) != PATH_UP)
			f->link[link].due = clock_now();
	} else if (!f->active && round == 0) {
		secondary_try_begin(f, r);
	} else if (t->port && t->link == link && t->life == LITTLE_16(packet->life)) {
		if (PEER_FAULT(round != (uint32_t)t->round || t->pending))
			return secondary_violates(f->ep);
		if (f->active && round == 0)
			secondary_try_first(f, r);
		else
			secondary_try_round(f, r);
	}
	context_changed(f->ep->ctx);
	return true;
}

int secondary_packet(struct endpoint *ep, struct received *r)
{
	/* None before the first link stands. */
	if (PEER_FAULT(!ep->rooms->secondary || !rounds_is_sound(r)))
		(void)secondary_violates(ep);
	else if (ep->state == SLMPM_PEER_UP)
		(void)secondary_packet_take(ep->rooms->secondary, r);
	return 0;
}

void secondary_arrival(struct endpoint *ep, const struct head *h)
{
	struct received r = {.length = h->length};

	if (h->length == sizeof(r.packet.round))
		memcpy(&r.packet.round, h->data, sizeof(r.packet.round));
	if (ep->rooms->secondary)
		ep->rooms->secondary->by_bond = true; /* perhaps before this side knows */
	(void)secondary_packet(ep, &r);
}
