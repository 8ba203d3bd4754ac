/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets about links to be, by the control connection or, without it, by the bond: what they say, and
 * whether it is their turn.
 */
#include <errno.h>
#include <netinet/in.h>
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
	if (ep->state == SLMPM_PEER_UP && list_empty(&ep->deferred) && !ep->bundle.count &&
	    !(ep->loan.data && !ep->loan.area) && link_post_request(ep, &p, NULL) == 1)
		f->waits = false;
}

int secondary_send(struct secondary *f, uint32_t link, uint32_t life, struct wire_link *packet,
		   int fd)
{
	packet->link = LITTLE_16((uint16_t)link);
	packet->life = LITTLE_16((uint16_t)life);
	if (f->ep->control->socket.fd >= 0 && !f->by_bond) {
		if (fd >= 0)
			secondary_address_due(f);
		return control_send(f->ep->control, packet, sizeof(*packet), WIRE_LINK, fd);
	}
	if (fd >= 0)
		return -ENOTSUP;
	packet->head.type = packet->head.length = 0;
	f->waiting = *packet; /* what it replaces is old by now */
	f->waits = true;
	secondary_send_round(f);
	return 0;
}

void secondary_send_refusal(struct secondary *f, uint32_t link, uint32_t life, const char *why)
{
	struct wire_link packet = {.round = LITTLE_32(WIRE_LINK_NOT)};

	packet.blob_length = LITTLE_32(
		(uint32_t)snprintf((char *)packet.blob, sizeof(packet.blob), "%.100s", why));
	(void)secondary_send(f, link, life, &packet, -1);
}

void secondary_ask_for(struct secondary *f, uint32_t link)
{
	struct wire_link packet = {.round = LITTLE_32(WIRE_LINK_ASK)};

	(void)secondary_send(f, link, 0, &packet, -1);
}

void secondary_put_address(struct wire_link *packet, const struct sockaddr *sa)
{
	const void *from = sa->sa_family == AF_INET ?
				   (const void *)&((const struct sockaddr_in *)sa)->sin_addr :
				   (const void *)&((const struct sockaddr_in6 *)sa)->sin6_addr;

	packet->family = LITTLE_16(sa->sa_family == AF_INET ? 4 : 6);
	memcpy(packet->address, from, sa->sa_family == AF_INET ? 4 : 16);
}

bool secondary_address(const struct wire_link *packet, struct sockaddr_storage *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	switch (LITTLE_16(packet->family)) {
	case 0: return true;
	case 4:
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, packet->address, 4);
		return true;
	case 6:
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, packet->address, 16);
		return true;
	default: return false;
	}
}

/* ---- heard ---------------------------------------------------------------------------------- */

bool secondary_violates(struct endpoint *ep)
{
	ep->broken = "round of a secondary link"; /* at the top of progress */
	ep->direct = false;
	return false;
}

static bool secondary_packet_take(struct secondary *f, const struct wire_link *packet, int *fd)
{
	uint32_t round = LITTLE_32(packet->round), link = LITTLE_16(packet->link);
	struct secondary_try *t = &f->try;
	struct sockaddr_storage unused;

	if (PEER_FAULT(LITTLE_32(packet->blob_length) > sizeof(packet->blob) || link >= f->links ||
		       LITTLE_16(packet->life) >= BOND_INCARNATIONS ||
		       !secondary_address(packet, &unused)))
		return secondary_violates(f->ep);
	if (round == WIRE_LINK_NOT) {
		secondary_try_not(f, packet);
	} else if (round == WIRE_LINK_ASK) {
		if (PEER_FAULT(!f->active))
			return secondary_violates(f->ep);
		/* It may stand here and not there yet: a try would end it. */
		if (bond_state(f->ep->link.port, link) != PATH_UP)
			f->link[link].due = clock_now();
	} else if (!f->active && round == 0) {
		secondary_try_begin(f, packet, fd);
	} else if (t->port && t->link == link && t->life == LITTLE_16(packet->life)) {
		if (PEER_FAULT(round != (uint32_t)t->round || t->pending))
			return secondary_violates(f->ep);
		if (f->active && round == 0)
			secondary_try_first(f, packet, fd);
		else
			secondary_try_round(f, packet, fd);
	}
	context_changed(f->ep->ctx);
	return true;
}

int secondary_packet(struct control *c, struct received *r)
{
	struct secondary *f = c->ep->secondary;
	int fd = r->fd_count ? r->fds[0] : -1;

	/* None before the first link stands. */
	if (PEER_FAULT(!f || r->length != sizeof(r->packet.link) || r->fd_count > 1)) {
		(void)secondary_violates(c->ep);
		return 0;
	}
	if (c->ep->state == SLMPM_PEER_UP)
		(void)secondary_packet_take(f, &r->packet.link, &fd);
	if (r->fd_count)
		r->fds[0] = fd;
	return 0;
}

void secondary_arrival(struct endpoint *ep, const struct head *h)
{
	struct wire_link packet;
	int fd = -1;

	if (PEER_FAULT(!ep->secondary || h->length != sizeof(packet))) {
		(void)secondary_violates(ep);
		return;
	}
	memcpy(&packet, h->data, sizeof(packet));
	ep->secondary->by_bond = true; /* perhaps before this side knows */
	(void)secondary_packet_take(ep->secondary, &packet, &fd);
}
