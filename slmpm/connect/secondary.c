/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of an endpoint: which there are to be, and what is of all of them. */
#include "slmpm/connect/secondary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/connect/secondary_parts.h"
#include "slmpm/base/config.h"
#include "slmpm/domain.h"
#include "slmpm/message/held.h"
#include "slmpm/mode/mode.h"

/* ---- the bond ------------------------------------------------------------------------------- */

/*
 * Who fetches or shares a copy relies on words in memory that both see at once: where some travel over
 * another fabric than memory does, nobody may.
 */
uint64_t secondary_features(const struct endpoint *ep)
{
	const struct routes *routes = &config_get()->routes;
	uint64_t features = WIRE_FEATURES;

	if (config_get()->engine == ENGINE_THREAD)
		features |= WIRE_FEATURE_ENGINE;

	for (uint32_t i = 0; i < routes->count; i++)
		if (routes->route[i].fabric[0] &&
		    strcmp(routes->route[i].fabric, ep->link.port->domain->fabric->name) != 0)
			features &= ~(WIRE_FEATURE_FETCH | WIRE_FEATURE_SHARE);
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
	f->hopes = true;
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

static struct fabric_link *each(const struct endpoint *ep, uint32_t i)
{
	struct secondary *f = ep->rooms->secondary;

	if (!f)
		return i == 0 ? ep->link.port : NULL;
	if (i < BOND_PATHS)
		return bond_port(ep->link.port, i);
	return i == BOND_PATHS ? ep->link.port : i == BOND_PATHS + 1 ? f->try.port : NULL;
}

void secondary_left(struct endpoint *ep, int process)
{
	for (uint32_t i = 0; i < BOND_PATHS + 2; i++) {
		struct fabric_link *port = each(ep, i);

		if (port) {
			port->bell = -1;
			port->process = process;
		}
	}
	if (ep->rooms->secondary)
		secondary_give_up(ep->rooms->secondary);
}
