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

/* ---- the addresses of a peer ---------------------------------------------------------------- */

struct walk { /* over them: the AT-th is wanted */
	slmpm_peer peer;
	struct slmpm_peer_info info;
	struct slmpm_address *out;
	int at;
};

/* True: this is the one. */
static bool find_tell(struct walk *w, const char *text, uint32_t link, const char *fabric)
{
	if (w->at--)
		return false;
	w->out->link = link;
	snprintf(w->out->fabric, sizeof(w->out->fabric), "%s", fabric);
	snprintf(w->out->text, sizeof(w->out->text), "%s", text);
	return true;
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

static bool tell_link(struct walk *w, uint32_t i, const struct slmpm_link_info *l)
{
	char text[ADDRESS_TEXT];
	struct address ip;

	if (l->state != SLMPM_LINK_UP)
		return false;
	if (!strcmp(l->fabric, "shm"))
		return find_pci(w->info.element, text) && find_tell(w, text, i, l->fabric);
	if (!find_ip(l, w->info.pid > 0, &ip))
		return false;
	if (find_tell(w, ip.text, i, l->fabric))
		return true;
	return address_mac_of(ip.text + 3, text) && find_tell(w, text, i, l->fabric);
}

static bool tell_id(struct walk *w)
{
	struct slmpm_element_info e = {.size = sizeof(e)};
	char host[65] = "", text[ADDRESS_TEXT];

	if (w->info.element)
		(void)slmpm_element_query(w->info.element, &e);
	if (!*e.host && gethostname(host, sizeof(host) - 1) < 0)
		return false;
	if (!w->info.element && w->info.pid <= 0) /* on another machine, and nobody's element */
		return false;
	if (w->info.element)
		snprintf(text, sizeof(text), "id:%.64s/%u", *e.host ? e.host : host,
			 w->info.element);
	else
		snprintf(text, sizeof(text), "id:%.64s:%d", host, w->info.pid);
	return find_tell(w, text, SLMPM_LINK_ANY, "");
}

/* 1, 0: there are no more, or negative. */
static int address_at(slmpm_peer peer, int at, struct slmpm_address *out,
		      struct slmpm_peer_info *info)
{
	struct walk w = {.peer = peer, .info = {.size = sizeof(w.info)}, .out = out, .at = at};
	int rc = slmpm_peer_query(peer, &w.info);

	*info = w.info;
	for (uint32_t i = 0; rc >= 0 && i < BOND_PATHS; i++) {
		struct slmpm_link_info l = {.size = sizeof(l)};

		if (slmpm_link_query(peer, i, &l) < 0)
			break;
		if (tell_link(&w, i, &l))
			return 1;
	}
	return rc < 0 ? rc : tell_id(&w);
}

int slmpm_peer_address(slmpm_peer peer, int i, struct slmpm_address *address)
{
	struct slmpm_address found = {.size = sizeof(found)};
	struct slmpm_peer_info info;
	int rc = sized_check_own("slmpm_peer_address", address, sizeof(found));

	if (rc < 0)
		return rc;
	if (i < 0)
		return error_set(SLMPM_EINVAL, "slmpm_peer_address: address %d", i);
	rc = address_at(peer, i, &found, &info);
	if (rc == 0)
		return error_set(SLMPM_ENOENT, "%s has no more addresses", info.name);
	if (rc < 0)
		return rc;
	sized_give_own(address, &found, sizeof(found));
	return 0;
}

/* ---- the peer of an address ----------------------------------------------------------------- */

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

/* A bit for each that the peer has or is to have. */
static uint32_t links_of(slmpm_peer peer)
{
	struct slmpm_link_info l = {.size = sizeof(l)};
	uint32_t n = 0;

	while (n < BOND_PATHS && slmpm_link_query(peer, n, &l) >= 0)
		n++;
	return (1u << n) - 1;
}

/* Has PEER the address? *LINK: by which link; by any, if all have it, else by the first that has. */
static bool has_address(slmpm_peer peer, const struct address *a, uint32_t *link)
{
	struct slmpm_address one = {.size = sizeof(one)};
	struct slmpm_peer_info info;
	uint32_t by = 0;
	bool has = false;

	for (int i = 0; address_at(peer, i, &one, &info) > 0; i++) {
		if (strcmp(one.text, a->text) != 0)
			continue;
		if (a->element && a->element != info.element)
			return false;
		if (!has)
			*link = one.link;
		has = true;
		by |= one.link < BOND_PATHS ? 1u << one.link : 0;
	}
	if (has && by == links_of(peer))
		*link = SLMPM_LINK_ANY;
	return has;
}

static slmpm_peer with_link(slmpm_peer peer, uint32_t link)
{
	if (link != SLMPM_LINK_ANY)
		peer.id |= (uint64_t)(link + 1) << ENDPOINT_LINK_SHIFT;
	return peer;
}

static int find_link_of(struct context *ctx, const struct address *a, const char *text,
			slmpm_peer *peer)
{
	int n, found = 0;
	slmpm_peer *peers = list_peers(ctx, &n);
	uint32_t link;

	if (!peers)
		return error_set(SLMPM_ENOMEM, "slmpm_peer_find");
	for (int i = 0; i < n; i++)
		if (has_address(peers[i], a, &link) && !found++)
			*peer = with_link(peers[i], link);
	free(peers);
	if (found > 1)
		return error_set(SLMPM_EINVAL, "%.90s: %d peers have it; write %.90s/ELEMENT", text,
				 found, text);
	return found ? 0 : error_set(SLMPM_ENOENT, "%.90s: no peer has it", text);
}

int slmpm_peer_find(slmpm_peer *peer, slmpm_ctx handle, const char *text)
{
	struct context *ctx;
	struct address a;
	slmpm_peer one = {0};
	int rc = 0;

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
	rc = find_link_of(ctx, &a, text, &one);
	if (rc == 0)
		*peer = one;
	return rc;
}
