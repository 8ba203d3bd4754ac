/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of an endpoint: which there are to be, what is of all of them, and packets about those to
 * be. */
#include "slmpm/connect/secondary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/domain.h"
#include "slmpm/link/link.h"
#include "slmpm/link/wait.h"
#include "slmpm/message/held.h"
#include "slmpm/message/inbound.h"
#include "slmpm/mode/mode.h"

/* ---- the bond ------------------------------------------------------------------------------- */

/* Who shares a copy relies on words in memory that both see at once: where some travel over another
 * fabric than memory does, none may. Messages are fetched where the first link has memory. */
uint64_t secondary_features(const struct endpoint *ep)
{
	const struct routes *routes = &config_get()->routes;
	uint64_t features = WIRE_FEATURES;

	if (config_get()->packet_max) /* packets are to be no longer */
		features &= ~WIRE_FEATURE_WHOLE;
	if (config_get()->engine == ENGINE_THREAD)
		features |= WIRE_FEATURE_ENGINE;
	for (uint32_t i = 0; i < routes->count; i++)
		if (routes->route[i].fabric[0] &&
		    strcmp(routes->route[i].fabric, ep->link.port->domain->fabric->name) != 0)
			features &= ~WIRE_FEATURE_SHARE;
	if (config_get()->attach == ATTACH_ALL)
		features |= WIRE_FEATURE_ATTACH;
	return features | ((UINT64_C(1) << (routes->count - 1)) - 1) * WIRE_FEATURE_LINKS;
}

/* The first link becomes path 0 of another one. */
static struct fabric_link *new_bond(struct endpoint *ep)
{
	int rc;
	struct fabric_domain *domain = domain_get(ep->ctx, &bond_fabric, &rc);
	struct fabric_link *bond = domain ? calloc(1, bond_fabric.link_size) : NULL;

	if (!bond)
		return NULL;
	bond->domain = domain;
	secondary_inherit(bond, ep->link.port);
	if (bond_open(bond, (uint64_t)config_get()->links_log, ep->link.port->domain->fabric,
		      ep->link.port) == 0)
		return bond;
	free(bond);
	return NULL;
}

/* The first link goes where the control connection does; the others in the order of the setting. */
static uint32_t find_first(const struct secondary *f, const struct routes *routes)
{
	for (uint32_t i = 0; i < routes->count && f->homed; i++)
		if (route_holds(&routes->route[i], (const struct sockaddr *)&f->here))
			return i;
	for (uint32_t i = 0; i < routes->count; i++)
		if (!routes->route[i].fabric[0] ||
		    !strcmp(routes->route[i].fabric, f->fabric->name))
			return i;
	return 0;
}

void secondary_name_where(struct secondary_link *l, const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote)
{
	char here[NET_NAME] = "*", there[NET_NAME] = "";

	l->where[0] = 0;
	if (local->ss_family)
		net_host((const struct sockaddr *)local, here);
	if (remote->ss_family)
		net_host((const struct sockaddr *)remote, there);
	if (local->ss_family || there[0])
		snprintf(l->where, sizeof(l->where), "%s%s%s", here, there[0] ? " - " : "", there);
}

static void set_out(struct secondary *f)
{
	const struct routes *routes = &config_get()->routes;
	uint32_t first = find_first(f, routes), next = 1;

	f->link[0].route = &routes->route[first];
	for (uint32_t i = 0; i < routes->count; i++)
		if (i != first)
			f->link[next++].route = &routes->route[i];
	for (uint32_t i = 0; i < BOND_PATHS; i++)
		f->link[i].due = f->link[i].tell = NEVER;
	f->link[0].up = true;
	f->link[0].made = 1;
	f->link[0].pause = SECONDARY_PAUSE;
	f->link[0].fabric = f->fabric->name;
	if (f->homed)
		secondary_name_where(&f->link[0], &f->here, &f->there);
}

void secondary_spread(struct secondary *f)
{
	const struct config *c = config_get();
	bool may = f->wanted < 0 && c->mode_link != MODE_STAY;

	bond_spread(f->ep->link.port, may ? (uint64_t)c->mode_spread : UINT64_MAX);
}

int secondary_open(struct control *c)
{
	struct endpoint *ep = c->ep;
	struct fabric_link *bond;
	struct secondary *f;
	uint32_t links = 1;

	while (links < BOND_PATHS && c->features & WIRE_FEATURE_LINKS << (links - 1))
		links++;
	if (links == 1)
		return 0;
	f = calloc(1, sizeof(*f));
	bond = f ? new_bond(ep) : NULL;
	if (!bond) {
		free(f);
		return -ENOMEM;
	}
	f->ep = ep;
	f->links = links;
	f->fabric = bond_port(bond, 0)->domain->fabric;
	f->active = ep->link.port->active;
	f->wanted = (int32_t)config_get()->link - 1;
	f->alone = NEVER;
	f->homed = net_end(c->socket.fd, false, &f->here) && net_end(c->socket.fd, true, &f->there);
	f->may_reconnect = true;
	bond_may_reconnect(bond, true);
	ep->rooms->secondary = f;
	ep->link.fabric = endpoint_fabric(&bond_fabric);
	ep->link.port = bond;
	set_out(f);
	secondary_spread(f);
	list_append(&ep->ctx->secondary, &f->node);
	return 0;
}

void secondary_free(struct endpoint *ep)
{
	struct secondary *f = ep->rooms->secondary;

	if (!f)
		return;
	list_remove(&f->node);
	secondary_try_free(f);
	free(f);
	ep->rooms->secondary = NULL;
}

void secondary_reclaim(struct endpoint *ep)
{
	struct secondary *f = ep->rooms->secondary;

	if (ep->lent == LENT_PACKET || held_in_ring(ep))
		return;
	if (!f) {
		ep->link.fabric->disconnect(ep->link.port);
		return;
	}
	list_remove(&f->node);
	secondary_try_free(f);
	bond_shut(ep->link.port);
}

/* ---- what is of all links ------------------------------------------------------------------- */

static void left_by(struct fabric_link *port, int process)
{
	if (port) {
		port->bell = -1;
		port->process = process;
	}
}

void secondary_left(struct endpoint *ep, int process)
{
	struct secondary *f = ep->rooms->secondary;

	left_by(ep->link.port, process);
	if (!f)
		return;
	for (uint32_t i = 0; i < BOND_PATHS; i++)
		left_by(bond_port(ep->link.port, i), process);
	left_by(f->try.port, process);
	secondary_give_up(f);
}

/* ---- packets, by the control connection or, without it, by the bond ---- */

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

void secondary_violates(struct endpoint *ep)
{
	endpoint_break(ep, "round of a secondary link");
}

/* False: nobody says that. */
static bool secondary_packet_take(struct secondary *f, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	uint32_t round = LITTLE_32(packet->round), link = LITTLE_16(packet->link);
	uint32_t family = LITTLE_16(packet->family);
	struct rounds *t = &f->try;

	if (PEER_FAULT(link >= f->links || LITTLE_16(packet->life) >= BOND_INCARNATIONS ||
		       (family && family != 4 && family != 6)))
		return false;
	if (round == WIRE_ROUND_NOT) {
		secondary_try_not(f, packet);
	} else if (round == WIRE_ROUND_ASK) {
		if (PEER_FAULT(!f->active))
			return false;
		/* It may stand here and not there yet: a try would end it. */
		if (bond_state(f->ep->link.port, link) != PATH_UP)
			f->link[link].due = clock_now();
	} else if (!f->active && round == 0) {
		secondary_try_begin(f, r);
	} else if (t->port && t->link == link && t->life == LITTLE_16(packet->life)) {
		if (PEER_FAULT(round != (uint32_t)t->round || t->pending))
			return false;
		if (f->active && round == 0)
			secondary_try_first(f, r);
		else
			secondary_try_round(f, r);
	}
	context_changed(f->ep->ctx);
	return true;
}

void secondary_packet(struct endpoint *ep, struct received *r)
{
	struct secondary *f = ep->rooms->secondary;

	/* None before the first link stands. */
	if (PEER_FAULT(!f || !rounds_is_sound(r)) ||
	    (ep->state == SLMPM_PEER_UP && !secondary_packet_take(f, r)))
		secondary_violates(ep);
}

void secondary_arrival(struct endpoint *ep, const struct head *h)
{
	struct received r = {.length = h->length};

	if (h->length == sizeof(r.packet.round))
		memcpy(&r.packet.round, h->data, sizeof(r.packet.round));
	if (ep->rooms->secondary)
		ep->rooms->secondary->by_bond = true; /* perhaps before this side knows */
	secondary_packet(ep, &r);
}
