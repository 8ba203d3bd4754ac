/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of a peer as applications see them, which one is used, what has gone over them. */
#include <stdio.h>

#include "slmpm/bond/secondary_state.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/base/sized.h"

static void links_count(struct slmpm_link_info *info, const struct fabric_link *port)
{
	info->written = port ? port->counts.produced : 0;
	info->read = port ? port->counts.read : 0;
}

static uint32_t links_state_of(const struct endpoint *ep, enum bond_state state, uint32_t lost)
{
	if (ep->state == SLMPM_PEER_UP && state == PATH_UP)
		return SLMPM_LINK_UP;
	return state != PATH_NONE || lost ? SLMPM_LINK_LOST : SLMPM_LINK_NONE;
}

static void links_describe(const struct endpoint *ep, uint32_t i, struct slmpm_link_info *info)
{
	const struct fabric_link *bond = ep->link.port;
	const struct secondary_link *l = &ep->rooms->secondary->link[i];

	info->state = links_state_of(ep, bond_state(bond, i), l->lost);
	info->used = info->state == SLMPM_LINK_UP && bond_home(bond) == i;
	info->made = l->made;
	info->lost = l->lost;
	links_count(info, bond_port(bond, i));
	snprintf(info->fabric, sizeof(info->fabric), "%s", secondary_fabric(ep, i));
	snprintf(info->where, sizeof(info->where), "%s", l->where);
	if (bond_reason(bond, i))
		snprintf(info->reason, sizeof(info->reason), "%s", bond_reason(bond, i));
}

/* Without a bond. */
static void describe_only(const struct endpoint *ep, struct slmpm_link_info *info)
{
	const struct fabric_link *port = ep->link.port;
	struct sockaddr_storage end;
	char here[NET_NAME], there[NET_NAME];

	info->made = ep->life->was_up;
	info->lost = ep->life->was_up && ep->state != SLMPM_PEER_UP;
	info->used = ep->state == SLMPM_PEER_UP;
	info->state = info->used ? SLMPM_LINK_UP : info->lost ? SLMPM_LINK_LOST : SLMPM_LINK_NONE;
	links_count(info, port);
	snprintf(info->fabric, sizeof(info->fabric), "%s", port->domain->fabric->name);
	if (info->lost)
		snprintf(info->reason, sizeof(info->reason), "%s", ep->life->reason);
	if (!net_end(port->bell, false, &end))
		return;
	net_host((const struct sockaddr *)&end, here);
	if (!net_end(port->bell, true, &end))
		return;
	net_host((const struct sockaddr *)&end, there);
	snprintf(info->where, sizeof(info->where), "%s - %s", here, there);
}

int slmpm_link_query(slmpm_peer peer, uint32_t link, struct slmpm_link_info *info)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_link_info now = {.size = sizeof(now)};
	int rc = 0;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (sized_check_own("slmpm_link_query", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	if (link >= secondary_links(ep)) {
		rc = error_set(SLMPM_ENOENT, "link %u of %s: it has %u, from 0", link,
			       ep->life->name, secondary_links(ep));
	} else {
		if (ep->state == SLMPM_PEER_UP && !ep->lent)
			(void)link_flush(ep);
		if (ep->rooms->secondary)
			links_describe(ep, link, &now);
		else
			describe_only(ep, &now);
	}
	context_unlock(ep->ctx);
	if (rc == 0)
		sized_give_own(info, &now, sizeof(now));
	return rc;
}

int slmpm_link_use(slmpm_peer peer, uint32_t link)
{
	struct endpoint *ep = endpoint_of(peer);
	int rc = 0;

	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	if (ep->state != SLMPM_PEER_UP)
		rc = error_set(SLMPM_ESTATE, "%s is not connected", ep->life->name);
	else if (link >= secondary_links(ep) && link != SLMPM_LINK_ANY)
		rc = error_set(SLMPM_ENOENT, "link %u of %s: it has %u, from 0", link,
			       ep->life->name, secondary_links(ep));
	else if (ep->rooms->secondary)
		secondary_use(ep, link);
	context_unlock(ep->ctx);
	return rc;
}

int slmpm_peer_stats(slmpm_peer peer, struct slmpm_stats *stats, size_t size)
{
	struct endpoint *ep = endpoint_of(peer);

	if (!ep)
		return endpoint_bad_handle(peer);
	if (sized_check("slmpm_peer_stats", stats, size, sizeof(*stats)) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	if (ep->state == SLMPM_PEER_UP && !ep->lent)
		link_flush(ep);
	endpoint_stats(ep);
	sized_give(stats, size, ep->stats, sizeof(*stats));
	context_unlock(ep->ctx);
	return 0;
}
