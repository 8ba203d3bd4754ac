/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A try for a link: rounds as in the handshake, each packet with the link's number and life, so
 * that late ones are known. One at a time: the side that tries ends the last one before the next
 * begins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "fabrics/registry.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/config.h"
#include "slmpm/domain.h"
#include "slmpm/base/log.h"
#include "slmpm/link/wait.h"

static const struct sockaddr *address_of(const struct sockaddr_storage *a)
{
	return a->ss_family ? (const struct sockaddr *)a : NULL;
}

static int send_this_round(struct secondary *f)
{
	struct rounds *t = &f->try;
	struct wire_round packet;
	int fd, rc = rounds_write(t, &packet, &fd);

	if (rc < 0)
		return rc;
	snprintf(packet.name, sizeof(packet.name), "%s", t->port->domain->fabric->name);
	if (!f->active && route_has_place(f->link[t->link].route) && f->local.ss_family) {
		bool v4 = f->local.ss_family == AF_INET;

		packet.family = LITTLE_16(v4 ? 4 : 6);
		memcpy(packet.address, route_bytes(address_of(&f->local)), v4 ? 4 : 16);
	}
	return secondary_send(f, &packet, fd);
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
	const struct rounds *t = &f->try;

	log_line(SLMPM_LOG_INFO, "%s: link %u of %u is not to be had: %s", f->ep->life->name,
		 t->link, f->links, why);
	if (tell)
		secondary_send_word(f, WIRE_ROUND_NOT, t->link, t->life, why);
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
	int rc;

	if (!route_has_place(route)) {
		if (f->homed && (!f->active || !f->remote.ss_family))
			f->local = f->here;
		return 0;
	}
	rc = route_address(route, family, &f->local);
	if (rc == 0 && !net_allowed(address_of(&f->local)))
		rc = -EACCES;
	return rc;
}

/* Everything that a try needs of this side; false: it is not to be had. */
static bool secondary_try_set_up(struct secondary *f, uint32_t link, uint32_t life,
				 const struct fabric *fabric)
{
	struct fabric_link *bond = f->ep->link.port;
	struct fabric_domain *domain;
	int rc;

	secondary_try_free(f);
	f->try = (struct rounds){.link = link, .life = life};
	f->local.ss_family = f->remote.ss_family = AF_UNSPEC;
	f->deadline = clock_now() + (uint64_t)config_get()->handshake_ms * 1000000;
	f->link[link].fabric = fabric->name;
	domain = domain_get(f->ep->ctx, fabric, &rc);
	f->try.port = domain ? calloc(1, fabric->link_size) : NULL;
	if (!f->try.port)
		return false;
	f->try.port->domain = domain;
	secondary_inherit(f->try.port, bond);
	context_changed(f->ep->ctx); /* a sleeper does not know of this deadline */
	return true;
}

/* ---- how many a peer may cause -------------------------------------------------------------- */

/* Nothing that was said lies unread, or there is no telling. */
static bool has_read(const struct secondary *f)
{
	const struct control *c = f->ep->rooms->control;
	int unread = 0;

	return c->socket.fd < 0 || c->stream || ioctl(c->socket.fd, SIOCOUTQ, &unread) != 0 ||
	       unread == 0;
}

/*
 * When a try may begin: 0 now, and then it is counted. Each costs a ring or a listener, and a ring
 * lives on as long as its descriptor lies in the peer's socket: there are never more of those than
 * the pair may have links, and no more tries in the pause that an honest peer makes before it tries
 * a link again.
 */
static uint64_t secondary_bound(struct secondary *f)
{
	uint64_t now = clock_now();

	if (f->given && has_read(f))
		f->given = 0;
	if (f->given >= f->links)
		return now + SECONDARY_PAUSE;
	if (now >= f->since + SECONDARY_PAUSE) {
		f->since = now;
		f->begun = 0;
	}
	if (f->begun == f->links)
		return f->since + SECONDARY_PAUSE;
	f->begun++;
	return 0;
}

/* ---- this side tries ------------------------------------------------------------------------ */

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
		secondary_try_end(f, false, "it cannot be opened here");
		return;
	}
	rc = send_this_round(f);
	if (rc < 0)
		secondary_try_fail(f, rc);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void joined(struct secondary *f)
{
	struct rounds *t = &f->try;

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
	if (rc == 0)
		joined(f);
	if (rc == 1)
		rc = send_this_round(f);
	if (rc == -EPROTO)
		secondary_violates(f->ep);
	if (rc < 0)
		secondary_try_fail(f, rc);
}

void secondary_try_round(struct secondary *f, struct received *r)
{
	struct fabric_link *port = f->try.port;
	int rc;

	port->local = address_of(&f->local);
	port->remote = address_of(&f->remote);
	port->start_in = endpoint_start_in(f->ep); /* of all links of a pair */
	rc = rounds_take(f->ep, &f->try, r);
	if (PEER_FAULT(port->start_in != endpoint_start_in(f->ep)))
		rc = -EPROTO;
	secondary_try_take_answer(f, rc);
}

/* This side tries, and knows now where the other one listens. */
void secondary_try_first(struct secondary *f, struct received *r)
{
	struct secondary_link *l = &f->link[f->try.link];
	const struct wire_round *packet = &r->packet.round;
	bool v4 = LITTLE_16(packet->family) == 4;
	int rc = -EACCES;

	memset(&f->remote, 0, sizeof(f->remote));
	if (packet->family) {
		f->remote.ss_family = v4 ? AF_INET : AF_INET6;
		memcpy(route_bytes((struct sockaddr *)&f->remote), packet->address, v4 ? 4 : 16);
	}
	if (!f->remote.ss_family || net_allowed(address_of(&f->remote)))
		rc = secondary_try_find_place(f, l->route, f->remote.ss_family);
	if (!f->remote.ss_family && f->homed)
		f->remote = f->there;
	if (rc < 0) {
		secondary_try_fail(f, rc);
		return;
	}
	secondary_name_where(l, &f->local, &f->remote);
	secondary_try_round(f, r);
}

static const char *secondary_try_refusal(struct secondary *f, const struct wire_round *packet,
					 const struct fabric **fabric)
{
	uint32_t link = LITTLE_16(packet->link);
	const struct route *route = f->link[link].route;
	char name[sizeof(packet->name)];

	control_text(name, sizeof(name), packet->name, sizeof(packet->name));
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
void secondary_try_begin(struct secondary *f, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	uint32_t link = LITTLE_16(packet->link), life = LITTLE_16(packet->life);
	const struct fabric *fabric;
	const char *why;
	int rc;

	/* Of which it thinks no more; before the next of the same link is expected, which it would
	 * deny. */
	if (f->try.port)
		secondary_try_end(f, false, "the peer tries another one");
	why = secondary_try_refusal(f, packet, &fabric);
	if (why) {
		secondary_send_word(f, WIRE_ROUND_NOT, link, life, why);
		return;
	}
	if (!secondary_try_set_up(f, link, life, fabric)) {
		secondary_try_fail(f, -ENOMEM);
		return;
	}
	rc = secondary_try_find_place(f, f->link[link].route, f->homed ? f->here.ss_family : 0);
	if (rc == -EADDRNOTAVAIL) /* none as the first link's: of the other family, then */
		rc = secondary_try_find_place(f, f->link[link].route, 0);
	secondary_name_where(&f->link[link], &f->local, &f->remote);
	f->try.port->local = address_of(&f->local);
	rc = rc < 0 ? rc : send_this_round(f);
	if (rc < 0)
		secondary_try_fail(f, rc);
	else
		secondary_try_round(f, r);
}

void secondary_try_not(struct secondary *f, const struct wire_round *packet)
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
	secondary_try_take_answer(f, rounds_ask(f->ep, &f->try));
}
