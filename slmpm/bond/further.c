/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting further links: rounds as in the handshake, each packet with the link's number. Either
 * side may find that one cannot be had: then there are no more of them.
 */
#include "slmpm/bond/further.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/bond.h"
#include "slmpm/domain.h"
#include "slmpm/landing.h"
#include "slmpm/log.h"
#include "slmpm/trace.h"

struct further {
	uint32_t links;           /* that both sides want */
	uint32_t index;           /* of the one that is being connected, or comes next */
	struct fabric_link *port; /* of it; NULL: not yet, or none is to come */
	int round;
	bool pending; /* the fabric does not know yet whether this round connects */
	bool ahead;   /* but the peer's does, and this is its first round of the next: */
	struct fabric_blob first;
};

/* ---- the bond ------------------------------------------------------------------------------- */

uint64_t further_offer(void)
{
	return ((UINT64_C(1) << (config_get()->links - 1)) - 1) * WIRE_FEATURE_LINKS;
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
	bond->owner = ep;
	bond->bell = ep->link.port->bell;
	bond->process = ep->link.port->process;
	bond->pid = ep->link.port->pid;
	bond->active = ep->link.port->active;
	if (bond_open(bond, (uint64_t)config_get()->links_log, ep->link.port->domain->fabric,
		      ep->link.port) == 0)
		return bond;
	free(bond);
	return NULL;
}

int further_open(struct control *c)
{
	struct endpoint *ep = c->ep;
	struct fabric_link *bond;
	uint32_t links = 1;

	while (links < BOND_PATHS && c->features & WIRE_FEATURE_LINKS << (links - 1))
		links++;
	if (links == 1)
		return 0;
	ep->further = calloc(1, sizeof(*ep->further));
	bond = ep->further ? new_bond(ep) : NULL;
	if (!bond)
		return -ENOMEM;
	ep->further->links = links;
	ep->further->index = 1;
	ep->link.fabric = trace_before(landing_before(&bond_fabric));
	ep->link.port = bond;
	return 0;
}

void further_free(struct endpoint *ep)
{
	struct further *f = ep->further;

	if (f && f->port) {
		f->port->domain->fabric->disconnect(f->port);
		free(f->port);
	}
	free(f);
	ep->further = NULL;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static int say(struct endpoint *ep, uint32_t round, const struct fabric_blob *blob)
{
	struct further *f = ep->further;
	struct wire_round packet = {.round = LITTLE_32(round), .link = LITTLE_32(f->index)};

	packet.blob_length = LITTLE_32(blob->length);
	memcpy(packet.blob, blob->bytes, blob->length);
	return control_send(ep->control, &packet, sizeof(packet), WIRE_LINK,
			    blob->fd_count ? blob->fds[0] : -1);
}

/* No more of them. TELL: it is this side that cannot. */
static void give_up(struct endpoint *ep, bool tell, const char *why)
{
	struct further *f = ep->further;
	struct fabric_blob none = {.length = 0};

	/* Who has left has no links at all. */
	if (!tell || say(ep, WIRE_LINK_NOT, &none) == 0)
		log_line(SLMPM_LOG_INFO, "%s: no link %u of %u: %s", ep->name, f->index + 1,
			 f->links, why);
	if (f->port) {
		f->port->domain->fabric->disconnect(f->port);
		free(f->port);
	}
	f->port = NULL;
	f->pending = false;
	/* The other side may have it already, and speak by it. */
	bond_deny(ep->link.port, f->index);
	f->index = f->links;
}

static int send_round(struct endpoint *ep)
{
	struct further *f = ep->further;
	struct fabric_blob blob = {.fds = {-1, -1}};
	int rc = f->port->domain->fabric->address(f->port, f->round, &blob);

	return rc < 0 ? rc : say(ep, (uint32_t)f->round, &blob);
}

static struct fabric_link *new_port(struct endpoint *ep)
{
	struct fabric_domain *domain = bond_port(ep->link.port, 0)->domain;
	struct fabric_link *port = calloc(1, domain->fabric->link_size);

	if (!port)
		return NULL;
	port->domain = domain;
	port->owner = ep;
	port->bell = ep->link.port->bell;
	port->process = ep->link.port->process;
	port->pid = ep->link.port->pid;
	port->active = ep->link.port->active;
	return port;
}

void further_begin(struct endpoint *ep)
{
	struct further *f = ep->further;

	if (!f || f->index >= f->links || ep->state != SLMPM_PEER_UP)
		return;
	f->round = 0;
	f->port = new_port(ep);
	if (!f->port || send_round(ep) < 0)
		give_up(ep, true, "it cannot be made here");
}

static void take_round(struct endpoint *ep, struct fabric_blob *blob);

static void joined(struct endpoint *ep)
{
	struct further *f = ep->further;
	struct fabric_link *port = f->port;
	int rc = bond_add(ep->link.port, f->index, port->domain->fabric, port);

	if (rc < 0) {
		give_up(ep, true, "it does not fit the others");
		return;
	}
	f->port = NULL;
	f->index++;
	log_line(SLMPM_LOG_DEBUG, "%s: link %u of %u stands", ep->name, f->index, f->links);
	further_begin(ep);
	if (f->ahead && f->port)
		take_round(ep, &f->first);
	f->ahead = false;
}

/* The fabric has said RC of this round. */
static void take_answer(struct endpoint *ep, int rc)
{
	struct further *f = ep->further;
	char why[64];

	f->pending = rc == 2;
	if (rc == 2)
		return;
	if (rc == 0) {
		joined(ep);
		return;
	}
	if (rc == 1) {
		f->round++;
		rc = send_round(ep);
	}
	if (rc < 0)
		give_up(ep, true, strerror_r(-rc, why, sizeof(why)));
}

static int violates(struct endpoint *ep)
{
	ep->broken = "round of a further link"; /* at the top of progress */
	ep->direct = false;
	return 0;
}

static void take_round(struct endpoint *ep, struct fabric_blob *blob)
{
	struct further *f = ep->further;
	int rc = f->port->domain->fabric->connect(f->port, f->round, blob);

	if (rc == -EPROTO)
		(void)violates(ep);
	else
		take_answer(ep, rc);
}

static bool is_ahead(const struct further *f, const struct received *r)
{
	return f->pending && !f->ahead && !r->fd_count && f->index + 1 < f->links &&
	       LITTLE_32(r->packet.round.link) == f->index + 1 && !r->packet.round.round;
}

int further_packet(struct control *c, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	struct endpoint *ep = c->ep;
	struct further *f = ep->further;
	struct fabric_blob blob = {.fds = {-1, -1}};
	uint32_t round = LITTLE_32(packet->round);

	blob.length = LITTLE_32(packet->blob_length);
	if (PEER_FAULT(c->step != CONNECTED || !f || r->length != sizeof(*packet) ||
		       blob.length > sizeof(blob.bytes) || r->fd_count > 1))
		return violates(ep);
	if (!f->port) /* given up here: what was under way does not matter */
		return PEER_FAULT(f->index < f->links) ? violates(ep) : 0;
	memcpy(blob.bytes, packet->blob, blob.length);
	if (is_ahead(f, r)) {
		f->ahead = true;
		f->first = blob;
		return 0;
	}
	if (PEER_FAULT(LITTLE_32(packet->link) != f->index))
		return violates(ep);
	if (round == WIRE_LINK_NOT) {
		give_up(ep, false, "the peer cannot have it");
		return 0;
	}
	if (PEER_FAULT(round != (uint32_t)f->round || f->pending))
		return violates(ep);
	blob.fd_count = r->fd_count;
	if (r->fd_count)
		blob.fds[0] = r->fds[0];
	take_round(ep, &blob);
	if (r->fd_count)
		r->fds[0] = blob.fds[0]; /* what the fabric took is -1 now */
	return 0;
}

void further_ask_all(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++) {
		struct endpoint *ep = ctx->endpoints[i];
		struct further *f = ep->further;

		if (f && f->pending && ep->state == SLMPM_PEER_UP)
			take_answer(ep, f->port->domain->fabric->connect(f->port, f->round, NULL));
	}
}

/* ---- what is of all links ------------------------------------------------------------------- */

static struct fabric_link *each(const struct endpoint *ep, uint32_t i)
{
	struct further *f = ep->further;

	if (!f)
		return i == 0 ? ep->link.port : NULL;
	if (i < BOND_PATHS)
		return bond_port(ep->link.port, i);
	return i == BOND_PATHS ? ep->link.port : i == BOND_PATHS + 1 ? f->port : NULL;
}

#define PORTS (BOND_PATHS + 2)

void further_bell(struct endpoint *ep, int fd)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (each(ep, i))
			each(ep, i)->bell = fd;
}

void further_process(struct endpoint *ep, int fd)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (each(ep, i))
			each(ep, i)->process = fd;
}

bool further_speaks(const struct endpoint *ep)
{
	if (!ep->further)
		return ep->link.port->domain->fd >= 0;
	for (uint32_t i = 0; i < BOND_PATHS; i++)
		if (bond_port(ep->link.port, i) && bond_port(ep->link.port, i)->domain->fd >= 0)
			return true;
	return false;
}

bool further_stays(const struct endpoint *ep)
{
	return ep->further && further_speaks(ep);
}

struct fabric_domain *further_memory(const struct endpoint *ep)
{
	return ep->further ? bond_memory(ep->link.port) : ep->link.port->domain;
}
