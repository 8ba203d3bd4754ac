/* SPDX-License-Identifier: BSD-3-Clause */
/* A link whose fabric asks has another table of functions, of which poll answers: so no arrival
 * without data is ever seen above, and other links pay nothing. */
#include "slmpm/link/landing.h"

#include "slmpm/domain.h"
#include "slmpm/link/packet.h"
#include "slmpm/part.h"
#include "slmpm/base/wire.h"

/* ---- where it belongs ----------------------------------------------------------------------- */

static void *wanted_place(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct packet_kind *kind = &packet_kinds[a->kind];

	/* A payload of more than the message does not land. */
	if (a->head[2] >> 48 & (WIRE_FLAG_CHECK | WIRE_FLAG_ADDRESSED) || !kind->place)
		return NULL;
	return kind->place(ep, a);
}

/* The kernel may not write where a mirror is tracked by protecting its pages. */
static void *landing_place_of(struct endpoint *ep, const struct fabric_arrival *a)
{
	void *place = wanted_place(ep, a);

	return place && parts.guards(ep->ctx, place, a->length) ? NULL : place;
}

static void landing_say(struct endpoint *ep, void *place)
{
	struct fabric_wr wr = {.op = FABRIC_LAND, .into = place};

	ep->link.landing->place = place;
	/* A link that is lost shows that in poll. */
	(void)ep->link.port->domain->fabric->post(ep->link.port, &wr);
}

static void set_state(struct endpoint *ep, uint8_t state)
{
	ep->ctx->landings -= ep->link.landing->state == LANDING_KNOWN;
	ep->ctx->landings += state == LANDING_KNOWN;
	ep->link.landing->state = state;
}

/* A receive in the fast path, not posted yet, would find its message in the ring. It posts itself
 * once that path is blocked; so the first time only blocks it. */
static bool must_wait(struct endpoint *ep)
{
	if (ep->blocked || ep->ctx->passing)
		return false;
	endpoint_block(ep, BLOCK_LANDING, true);
	ep->ctx->news = true;
	return true;
}

/* False: the next time. */
static bool decide(struct endpoint *ep)
{
	const struct packet_kind *kind = &packet_kinds[ep->link.landing->arrival.kind];

	if (must_wait(ep))
		return false;
	set_state(ep, LANDING_KNOWN);
	landing_say(ep, landing_place_of(ep, &ep->link.landing->arrival));
	if (ep->link.landing->place && kind->placed)
		kind->placed(ep, &ep->link.landing->arrival);
	endpoint_block(ep, BLOCK_LANDING, false);
	return true;
}

/* ---- between the link and the fabric -------------------------------------------------------- */

/* The last of GOT arrivals has no data yet: kept back until those before it have been taken. */
static int landing_keep_back(struct endpoint *ep, const struct fabric_arrival *arrivals, int got)
{
	const struct fabric_arrival *last = &arrivals[got - 1];

	if (last->data || !last->length)
		return got;
	ep->link.landing->arrival = *last;
	set_state(ep, LANDING_ASKED);
	return got - 1;
}

int landing_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct endpoint *ep = link->owner;
	int got;

	for (;;) {
		if (ep->link.landing->state == LANDING_ASKED && !decide(ep))
			return 0;
		got = link->domain->fabric->poll(link, arrivals, n);
		if (got <= 0)
			return got;
		if (ep->link.landing->state == LANDING_KNOWN)
			set_state(ep, LANDING_NONE);
		got = landing_keep_back(ep, arrivals, got);
		if (got)
			return got;
	}
}

bool landing_before(struct fabric *table)
{
	if (!domain_caps(table)->land_min)
		return false;
	table->poll = landing_poll;
	return true;
}

/* ---- changes -------------------------------------------------------------------------------- */

void landing_inspect(struct endpoint *ep)
{
	void *place;

	if (ep->link.landing->state != LANDING_KNOWN)
		return;
	place = landing_place_of(ep, &ep->link.landing->arrival);
	if (place != ep->link.landing->place)
		landing_say(ep, place);
}

void landing_inspect_all(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->live; i++)
		landing_inspect(ctx->endpoints[i]);
}

void landing_end(struct endpoint *ep)
{
	if (ep->link.landing->state == LANDING_KNOWN)
		landing_say(ep, NULL);
	set_state(ep, LANDING_NONE);
}
