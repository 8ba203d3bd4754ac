/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of peers by address. Each address of a peer belongs to one of its links, or to none; a
 * handle that was found by one has that link in it (endpoint.h), as a hint for what it is used for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/bond/bond.h"
#include "slmpm/base/config.h"
#include "slmpm/base/address.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/error.h"
#include "slmpm/net/topology.h"
#include "slmpm/base/sized.h"

/* ---- the addresses of a peer ------------------------------------------------------------- */

struct addresses {
	struct slmpm_peer_info info;
	int links, n;
	struct slmpm_address list[2 * BOND_PATHS + 1];
};

static void find_add(struct addresses *all, const char *text, uint32_t link, const char *fabric)
{
	struct slmpm_address *to = &all->list[all->n++];

	*to = (struct slmpm_address){.size = sizeof(*to), .link = link};
	snprintf(to->fabric, sizeof(to->fabric), "%s", fabric);
	snprintf(to->text, sizeof(to->text), "%s", text);
}

/* What this process was told of its elements: a list in their order. */
static bool find_pci(uint32_t element, char text[ADDRESS_TEXT])
{
	const struct place *place = NULL;
	const struct topology *t;

	if (!element)
		return false;
	if (topology_get(&t) <= 0)
		return address_in_list(config_get()->pci, element - 1, text);
	return topology_find(&element, &place) >= 0 && place->set[PLACE_PCI] &&
	       address_in_list(place->set[PLACE_PCI], element - place->first, text);
}

/* Of the other end. Of a process on this machine that is an address of this machine, too, loopback
 * where none was asked for. */
static bool find_ip(const struct slmpm_link_info *l, bool here, struct address *ip)
{
	const char *other = strstr(l->where, " - ");
	char text[ADDRESS_TEXT];

	if (other)
		snprintf(text, sizeof(text), "ip:%.80s", other + 3);
	else
		snprintf(text, sizeof(text), "ip:%.80s", *l->where ? l->where : "127.0.0.1");
	return (other || here) && address_parse(ip, text);
}

static void address_add_link(struct addresses *all, uint32_t i, const struct slmpm_link_info *l)
{
	char text[ADDRESS_TEXT];
	struct address ip;

	if (l->state != SLMPM_LINK_UP)
		return;
	if (!strcmp(l->fabric, "shm")) {
		if (find_pci(all->info.element, text))
			find_add(all, text, i, l->fabric);
	} else if (find_ip(l, all->info.pid > 0, &ip)) {
		find_add(all, ip.text, i, l->fabric);
		if (address_mac_of(ip.text + 3, text))
			find_add(all, text, i, l->fabric);
	}
}

static void add_id(struct addresses *all)
{
	struct slmpm_element_info e = {.size = sizeof(e)};
	char host[65] = "", text[ADDRESS_TEXT];

	if (all->info.element)
		(void)slmpm_element_query(all->info.element, &e);
	if (!*e.host && gethostname(host, sizeof(host) - 1) < 0)
		return;
	if (all->info.element)
		snprintf(text, sizeof(text), "id:%.64s/%u", *e.host ? e.host : host,
			 all->info.element);
	else if (all->info.pid > 0)
		snprintf(text, sizeof(text), "id:%.64s:%d", host, all->info.pid);
	else /* on another machine, and nobody's element */
		return;
	find_add(all, text, SLMPM_LINK_ANY, "");
}

static int addresses_of(slmpm_peer peer, struct addresses *all)
{
	struct slmpm_link_info l = {.size = sizeof(l)};
	int rc;

	*all = (struct addresses){.info = {.size = sizeof(all->info)}};
	rc = slmpm_peer_query(peer, &all->info);
	if (rc < 0)
		return rc;
	while (all->links < BOND_PATHS && slmpm_link_query(peer, (uint32_t)all->links, &l) >= 0)
		address_add_link(all, (uint32_t)all->links++, &l);
	add_id(all);
	return 0;
}

int slmpm_peer_address(slmpm_peer peer, int i, struct slmpm_address *address)
{
	struct addresses all;
	int rc = sized_check_own("slmpm_peer_address", address, sizeof(*address));

	if (rc < 0)
		return rc;
	if (i < 0)
		return error_set(SLMPM_EINVAL, "slmpm_peer_address: address %d", i);
	rc = addresses_of(peer, &all);
	if (rc < 0)
		return rc;
	if (i >= all.n)
		return error_set(SLMPM_ENOENT, "%s has no more addresses", all.info.name);
	sized_give_own(address, &all.list[i], sizeof(*address));
	return 0;
}

/* ---- the peer of an address -------------------------------------------------------------- */

/* Those of CTX, to be freed; *N of them. NULL: none, or no memory. */
static slmpm_peer *list_peers(struct context *ctx, int *n)
{
	slmpm_peer *peers;

	context_lock(ctx);
	peers = calloc((size_t)ctx->count + 1, sizeof(*peers));
	*n = 0;
	for (uint32_t i = 0; peers && i < ctx->count; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP)
			peers[(*n)++].id = handle_id(ctx->endpoints[i]);
	context_unlock(ctx);
	return peers;
}

/* Has PEER the address? *LINK: the first that has it; or any, if all have. */
static bool has_address(slmpm_peer peer, const struct address *a, uint32_t *link)
{
	struct addresses all;
	int by = 0;

	if (addresses_of(peer, &all) < 0 || (a->element && a->element != all.info.element))
		return false;
	for (int i = all.n - 1; i >= 0; i--)
		if (!strcmp(all.list[i].text, a->text)) {
			*link = all.list[i].link;
			by++;
		}
	if (by == all.links)
		*link = SLMPM_LINK_ANY;
	return by;
}

static slmpm_peer with_link(slmpm_peer peer, uint32_t link)
{
	if (link != SLMPM_LINK_ANY)
		peer.id |= (uint64_t)(link + 1) << ENDPOINT_LINK_SHIFT;
	return peer;
}

int slmpm_peer_find(slmpm_peer *peer, slmpm_ctx handle, const char *text)
{
	int n, found = 0, rc = 0;
	slmpm_peer one = {0}, *peers;
	struct context *ctx;
	struct address a;
	uint32_t link;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_peer_find: no peer");
	if (!address_parse(&a, text))
		return error_set(SLMPM_EADDRESS,
				 "\"%.60s\": write pci:0000:03:00.0, mac:02:00:00:00:00:01, "
				 "ip:192.0.2.1 or id:HOST/ELEMENT",
				 text ? text : "(null)");
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	peers = list_peers(ctx, &n);
	if (!peers)
		return error_set(SLMPM_ENOMEM, "slmpm_peer_find");
	for (int i = 0; i < n; i++)
		if (has_address(peers[i], &a, &link) && !found++)
			one = with_link(peers[i], link);
	free(peers);
	if (found > 1)
		return error_set(SLMPM_EINVAL, "%.90s: %d peers have it; write %.90s/ELEMENT", text,
				 found, text);
	if (!found)
		return error_set(SLMPM_ENOENT, "%.90s: no peer has it", text);
	*peer = one;
	return 0;
}
