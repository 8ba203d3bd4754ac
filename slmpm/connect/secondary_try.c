/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A try for a link: rounds as in the handshake, each packet with the link's number and life, so that
 * late ones are known. One at a time: the side that tries ends the last one before the next begins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "slmpm/connect/secondary_parts.h"
#include "slmpm/base/config.h"
#include "slmpm/domain.h"
#include "slmpm/link/link.h"
#include "slmpm/base/log.h"
#include "slmpm/link/wait.h"

static const struct sockaddr *address_of(const struct sockaddr_storage *a)
{
	return a->ss_family ? (const struct sockaddr *)a : NULL;
}

static int send_this_round(struct secondary *f)
{
	struct secondary_try *t = &f->try;
	const struct route *route = f->link[t->link].route;
	struct fabric_blob blob = {.fds = {-1, -1}};
	struct wire_link packet = {.round = LITTLE_32((uint32_t)t->round)};
	int rc = t->port->domain->fabric->address(t->port, t->round, &blob);

	if (rc < 0)
		return rc;
	packet.blob_length = LITTLE_32(blob.length);
	memcpy(packet.blob, blob.bytes, blob.length);
	snprintf(packet.fabric, sizeof(packet.fabric), "%s", t->port->domain->fabric->name);
	if (!f->active && route_has_place(route) && t->local.ss_family)
		secondary_put_address(&packet, address_of(&t->local));
	return secondary_send(f, t->link, t->life, &packet, blob.fd_count ? blob.fds[0] : -1);
}

/* ---- a try's life --------------------------------------------------------------------------- */

void secondary_try_free(struct secondary *f)
{
	struct fabric_link *port = f->try.port;

	f->try.port = NULL;
	f->try.pending = false;
	if (!port)
		return;
	/* In a child's copy others have nothing to give back. */
	if (!port->domain->forked || port->domain->fd >= 0)
		port->domain->fabric->disconnect(port);
	free(port);
}

void secondary_try_end(struct secondary *f, bool tell, const char *why)
{
	struct secondary_try *t = &f->try;

	log_line(SLMPM_LOG_INFO, "%s: link %u of %u is not to be had: %s", f->ep->name, t->link,
		 f->links, why);
	if (tell)
		secondary_send_refusal(f, t->link, t->life, why);
	secondary_try_free(f);
	/* The other side may have it already, and speak by it. */
	bond_reject(f->ep->link.port, t->link);
	secondary_tried(f, t->link, true);
}

static void secondary_try_fail(struct secondary *f, int rc)
{
	char why[64];

	secondary_try_end(f, true, strerror_r(-rc, why, sizeof(why)));
}

void secondary_inherit(struct fabric_link *port, const struct fabric_link *from)
{
	port->owner = from->owner;
	port->bell = from->bell;
	port->process = from->process;
	port->pid = from->pid;
	port->active = from->active;
	port->attach = from->attach;
}

/* An address of this end that the link is to have. */
static int secondary_try_find_place(struct secondary *f, const struct route *route, int family)
{
	struct secondary_try *t = &f->try;
	int rc;

	if (!route_has_place(route)) {
		if (f->homed && (!f->active || !t->remote.ss_family))
			t->local = f->here;
		return 0;
	}
	rc = route_address(route, family, &t->local);
	if (rc == 0 && !net_allowed((const struct sockaddr *)&t->local))
		rc = -EACCES;
	return rc;
}

static void secondary_try_name_where(struct secondary *f)
{
	char here[NET_NAME] = "", there[NET_NAME] = "";
	struct secondary_link *l = &f->link[f->try.link];

	l->where[0] = 0;
	if (f->try.local.ss_family)
		net_host((const struct sockaddr *)&f->try.local, here);
	if (f->try.remote.ss_family)
		net_host((const struct sockaddr *)&f->try.remote, there);
	if (here[0] || there[0])
		snprintf(l->where, sizeof(l->where), "%s%s%s", here[0] ? here : "*",
			 there[0] ? " - " : "", there);
}

/* Everything that a try needs of this side; false: it is not to be had. */
static bool secondary_try_set_up(struct secondary *f, uint32_t link, uint32_t life,
				 const struct fabric *fabric)
{
	struct secondary_try *t = &f->try;
	struct fabric_link *bond = f->ep->link.port;
	struct fabric_domain *domain;
	int rc;

	secondary_try_free(f);
	memset(t, 0, sizeof(*t));
	t->link = link;
	t->life = life;
	t->deadline = clock_now() + (uint64_t)config_get()->handshake_ms * 1000000;
	f->link[link].fabric = fabric->name;
	domain = domain_get(f->ep->ctx, fabric, &rc);
	t->port = domain ? calloc(1, fabric->link_size) : NULL;
	if (!t->port)
		return false;
	t->port->domain = domain;
	secondary_inherit(t->port, bond);
	context_changed(f->ep->ctx); /* a sleeper does not know of this deadline */
	return true;
}

static const struct fabric *secondary_try_fabric_of(const struct secondary *f,
						    const struct route *route)
{
	return route->fabric[0] ? fabric_find(route->fabric) : f->fabric;
}

void secondary_try(struct secondary *f, uint32_t link)
{
	struct secondary_link *l = &f->link[link];
	uint32_t life = l->life + (l->made || l->life || l->pause);
	uint64_t later = secondary_bound(f);
	int rc;

	if (later) {
		l->due = later;
		return;
	}
	/* The first life of a link is 0, and so is a counter that nobody has used. */
	rc = bond_expect(f->ep->link.port, link, life);
	if (rc < 0) {
		secondary_tried(f, link, true);
		return;
	}
	l->life = life;
	if (!secondary_try_set_up(f, link, life, secondary_try_fabric_of(f, l->route))) {
		bond_reject(f->ep->link.port, link);
		secondary_tried(f, link, true);
		return;
	}
	rc = send_this_round(f);
	if (rc < 0)
		secondary_try_fail(f, rc);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void joined(struct secondary *f)
{
	struct secondary_try *t = &f->try;

	if (bond_add(f->ep->link.port, t->link, t->port->domain->fabric, t->port) < 0) {
		secondary_try_end(f, true, "it does not fit the others");
		return;
	}
	t->port->local = t->port->remote = NULL;
	t->port = NULL;
	secondary_tried(f, t->link, false);
}

/* The fabric has said RC of this round. */
static void secondary_try_take_answer(struct secondary *f, int rc)
{
	link_unauthenticated(f->ep, f->try.port);
	f->try.pending = rc == 2;
	if (rc == 2)
		return;
	if (rc == 0) {
		joined(f);
		return;
	}
	if (rc == 1) {
		f->try.round++;
		rc = send_this_round(f);
	}
	if (rc == -EPROTO)
		(void)secondary_violates(f->ep);
	if (rc < 0)
		secondary_try_fail(f, rc);
}

void secondary_try_round(struct secondary *f, const struct wire_link *packet, int *fd)
{
	struct secondary_try *t = &f->try;
	struct fabric_blob blob = {.fds = {-1, -1}};
	int rc;

	blob.length = LITTLE_32(packet->blob_length);
	memcpy(blob.bytes, packet->blob, blob.length);
	blob.fd_count = *fd >= 0;
	blob.fds[0] = *fd;
	t->port->local = address_of(&t->local);
	t->port->remote = address_of(&t->remote);
	t->port->start_in = endpoint_start_in(f->ep); /* of all links of a pair */
	rc = t->port->domain->fabric->connect(t->port, t->round, &blob);
	if (PEER_FAULT(t->port->start_in != endpoint_start_in(f->ep)))
		rc = -EPROTO;
	*fd = blob.fds[0]; /* what the fabric took is -1 now */
	secondary_try_take_answer(f, rc);
}

/* Who tries has heard where the other side listens. */
void secondary_try_first(struct secondary *f, const struct wire_link *packet, int *fd)
{
	struct secondary_try *t = &f->try;
	int rc = -EACCES;

	(void)secondary_address(packet, &t->remote);
	if (!t->remote.ss_family || net_allowed((const struct sockaddr *)&t->remote))
		rc = secondary_try_find_place(f, f->link[t->link].route, t->remote.ss_family);
	if (!t->remote.ss_family && f->homed)
		t->remote = f->there;
	if (rc < 0) {
		secondary_try_fail(f, rc);
		return;
	}
	secondary_try_name_where(f);
	secondary_try_round(f, packet, fd);
}

static const char *secondary_try_refusal(struct secondary *f, const struct wire_link *packet,
					 const struct fabric **fabric)
{
	uint32_t link = LITTLE_16(packet->link);
	const struct route *route = f->link[link].route;
	char name[sizeof(packet->fabric)];

	control_text(name, sizeof(name), packet->fabric, sizeof(packet->fabric));
	*fabric = fabric_find(name);
	if (!*fabric ||
	    *fabric != secondary_try_fabric_of(
			       f, route)) /* what both know before: secondary_features */
		return "another fabric is wanted here";
	if (secondary_bound(f))
		return "too many at once";
	switch (bond_expect(f->ep->link.port, link, LITTLE_16(packet->life))) {
	case 0: return NULL;
	case -EBUSY: return "the one before is still being read";
	default: return "its time is over";
	}
}

/* The other side tries. */
void secondary_try_begin(struct secondary *f, const struct wire_link *packet, int *fd)
{
	uint32_t link = LITTLE_16(packet->link), life = LITTLE_16(packet->life);
	const struct fabric *fabric;
	const char *why;
	int rc;

	/* Of which it thinks no more; before the next of the same link is expected, which it would deny. */
	if (f->try.port)
		secondary_try_end(f, false, "the peer tries another one");
	why = secondary_try_refusal(f, packet, &fabric);
	if (why) {
		secondary_send_refusal(f, link, life, why);
		return;
	}
	if (!secondary_try_set_up(f, link, life, fabric)) {
		f->try = (struct secondary_try){.link = link, .life = life};
		secondary_try_fail(f, -ENOMEM);
		return;
	}
	rc = secondary_try_find_place(f, f->link[link].route, f->homed ? f->here.ss_family : 0);
	if (rc == -EADDRNOTAVAIL) /* none as the first link's: of the other family, then */
		rc = secondary_try_find_place(f, f->link[link].route, 0);
	secondary_try_name_where(f);
	f->try.port->local = address_of(&f->try.local);
	rc = rc < 0 ? rc : send_this_round(f);
	if (rc < 0)
		secondary_try_fail(f, rc);
	else
		secondary_try_round(f, packet, fd);
}

void secondary_try_not(struct secondary *f, const struct wire_link *packet)
{
	uint32_t link = LITTLE_16(packet->link), life = LITTLE_16(packet->life);
	char said[sizeof(packet->blob) + 1], why[160];

	control_text(said, sizeof(said), (const char *)packet->blob,
		     LITTLE_32(packet->blob_length));
	snprintf(why, sizeof(why), "the peer says: %s", said);
	if (f->try.port && f->try.link == link && f->try.life == life)
		secondary_try_end(f, false, why);
	else if (bond_life(f->ep->link.port, link) == life)
		bond_reject(f->ep->link.port, link);
}

void secondary_try_ask(struct secondary *f)
{
	if (f->try.pending)
		secondary_try_take_answer(
			f, f->try.port->domain->fabric->connect(f->try.port, f->try.round, NULL));
}
