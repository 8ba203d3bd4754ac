/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the selector for an endpoint, and the calls that return what it chose (pick.h). */
#include "slmpm/choice/pick.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/bond/bond.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/choice/choice.h"
#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"

_Static_assert(BOND_PATHS == MODE_LINKS, "each path of a bond can be asked for");

/* ---- questions ------------------------------------------------------------------------------ */

static uint32_t as_cost(uint64_t ns)
{
	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* Once a fabric is overloaded it is so until no other link over it has much to do. */
static bool stays_overloaded(struct endpoint *ep, const struct mode_view *v, uint32_t link,
			     bool busy)
{
	uint8_t bit = (uint8_t)(1u << link), *overloaded = &ep->rooms->figures->modes.overloaded;

	if (mode_is_overloaded(v, mode_limits()))
		*overloaded |= bit;
	else if (!busy)
		*overloaded &= (uint8_t)~bit;
	return *overloaded & bit;
}

/* What all instances of the application see of the fabric of EP's LINK, and have measured. */
static void inspect_all(struct endpoint *ep, struct mode_view *v, const struct mode_ask *ask,
			uint32_t link, const char *fabric)
{
	static const struct monitor_load none;
	uint64_t busy;

	if (!config_get()->aggregate)
		return;
	monitor_pass_next(ep->ctx);
	busy = aggregate_inspect_fabric(
		fabric, ep->rooms->monitor ? &ep->rooms->monitor->load[link] : &none, ask, &v->all);
	if (v->all.known)
		v->all.overloaded = stays_overloaded(ep, v, link, busy);
}

/* A side that only sends hardly yields, and would hold its processor for shared by one yield. */
bool pick_is_shared(struct endpoint *ep)
{
	const struct fabric_counts *counts = &ep->link.port->counts;
	struct figures *f = ep->rooms->figures;

	if (LIKELY(!ep->ctx->oversubscribed))
		return false;
	if (f->switches != ep->ctx->switches) {
		f->switches = ep->ctx->switches;
		f->taken = counts->consumed_seen;
	}
	return counts->consumed_seen - f->taken < counts->out_segments;
}

static void pick_inspect(struct endpoint *ep, struct mode_view *v, const struct mode_ask *ask,
			 const struct choice *c)
{
	const struct fabric_counts *counts = &ep->link.port->counts;

	link_count(ep);
	v->queue = ep->link.depth;
	v->unread = counts->produced - counts->consumed_seen;
	v->segments = counts->out_segments;
	v->dma = ep->moving;
	v->sleeps = ep->ctx->wait == SLMPM_WAIT_BLOCK || (!ask->always && pick_is_shared(ep));
	if (c)
		choice_view(c, v);
	if (!bond_is(ep->link.port))
		inspect_all(ep, v, ask, 0, ep->link.port->domain->fabric->name);
}

/* ---- several links -------------------------------------------------------------------------- */

static bool is_light(const struct fabric_link *port)
{
	const struct fabric_counts *c = &port->counts;

	return (c->produced - c->consumed_seen) * 100 <= mode_limits()->light * c->out_segments;
}

/* The one that is asked for by nobody: the default, if it is up, or that in use, or any. One that
 * was left only once it has little to do again: each change waits for what has gone before. */
static int usual_link(const struct endpoint *ep)
{
	const struct fabric_link *bond = ep->link.port;
	uint32_t up = bond_up(bond);
	int link = secondary_wanted(ep), left = ep->rooms->figures->modes.left - 1;

	if (left >= 0 && (link < 0 || link == left))
		link = up >> left & 1 && mode_is_short(ep->link.depth, mode_limits()) &&
				       is_light(bond_port(bond, (uint32_t)left)) ?
			       left :
			       -1;
	if (link < 0 || !(up >> link & 1))
		link = (int)bond_home(bond);
	return up >> link & 1 || !up ? link : __builtin_ctz(up);
}

/* A process that only sends does not receive what a network's reader publishes: a ring that seems
 * to be full is read again before others are judged by their load. */
static void inspect_ring(const struct context *ctx, struct fabric_link *port, struct mode_view *v)
{
	const struct fabric_counts *c = &port->counts;

	v->unread = c->produced - c->consumed_seen;
	v->segments = c->out_segments;
	/* Of another thread's sleep nothing is taken that is to wake it. */
	if (!(config_get()->aggregate || mode_limits()->defaults) || ctx->sleeping ||
	    !mode_is_full(v, mode_limits()))
		return;
	(void)link_status(port, FABRIC_ASK);
	v->unread = c->produced - c->consumed_seen;
}

/* One view for all but the rings. */
static void pick_inspect_links(struct endpoint *ep, struct mode_link *links,
			       const struct mode_ask *ask, const struct choice *c)
{
	const struct fabric_link *bond = ep->link.port;
	bool spread = bond_spreads(bond); /* that is seen to packet by packet */
	uint32_t up = bond_up(bond);

	pick_inspect(ep, &links->view, ask, c);
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		struct fabric_link *port = bond_port(bond, i);

		links[i] = links[0];
		links[i].up = up >> i & 1;
		if (!port)
			continue;
		links[i].wire = !port->domain->fabric->alloc && !spread;
		if (!port->domain->fabric->alloc)
			links[i].ways &= ~MODE_BIT(MODE_FETCHED);
		inspect_ring(ep->ctx, port, &links[i].view);
		links[i].view.echo =
			ep->rooms->monitor ? as_cost(ep->rooms->monitor->paths[i].time.least) : 0;
		inspect_all(ep, &links[i].view, ask, i, port->domain->fabric->name);
	}
}

/* What waits, waits for the link in use or, while that stands in for another, for the one left. */
static void inspect_queues(const struct endpoint *ep, struct mode_link *links)
{
	int left = ep->rooms->figures->modes.left - 1;
	int of = left >= 0 && links[left].up ? left : (int)bond_home(ep->link.port);

	for (int i = 0; i < BOND_PATHS; i++)
		if (i != of)
			links[i].view.queue = 0;
}

/* Whence it went for want of room: it comes back there, and has once a packet has gone by it. Who
 * asks for a link stays where that is. */
static void note_left(struct endpoint *ep, bool asked, int wanted, const struct mode_link *links,
		      struct mode mode)
{
	int left = ep->rooms->figures->modes.left - 1;

	if (asked)
		return;
	if (mode.link == left && bond_home(ep->link.port) == mode.link && rail_is_on(ep, left))
		ep->rooms->figures->modes.left = 0;
	else if (mode.way && mode.link != wanted && links[wanted].up && left < 0)
		ep->rooms->figures->modes.left = (uint8_t)(wanted + 1);
}

/* The one that would have been taken has too much to do still. */
static bool is_away(const struct endpoint *ep, struct mode mode)
{
	return ep->rooms->figures->modes.left && mode.link != ep->rooms->figures->modes.left - 1;
}

/* None stands: that which is wanted is as good as any, unless it is to be by no other. */
static bool waits_for_one(const struct endpoint *ep, const struct mode_ask *ask)
{
	return !ask->strict && bond_is(ep->link.port) && !bond_up(ep->link.port);
}

/* By the fabric that is the default one of messages. */
static bool is_default(const struct endpoint *ep, int link)
{
	const char *fabric = config_get()->default_smt;

	return secondary_wanted(ep) < 0 && !mode_is_auto(fabric) &&
	       !strcmp(secondary_fabric(ep, (uint32_t)link), fabric);
}

/* As each link is seen now. */
static void pick_views(struct endpoint *ep, struct mode_link *links, const struct mode_ask *ask,
		       const struct choice *c)
{
	if (!bond_is(ep->link.port)) {
		pick_inspect(ep, &links->view, ask, c);
		return;
	}
	pick_inspect_links(ep, links, ask, c);
	inspect_queues(ep, links);
}

static struct mode pick_among(struct endpoint *ep, const struct mode_ask *ask,
			      struct mode_link *links, bool asked, int wanted)
{
	links[wanted].up |= !asked || waits_for_one(ep, ask);
	return mode_select(ask, links, BOND_PATHS, wanted, mode_limits());
}

struct mode pick_link(struct endpoint *ep, struct mode_ask *ask, uint32_t ways, int wanted,
		      const struct choice *c)
{
	struct mode_link links[BOND_PATHS] = {{.up = true, .ways = ways}};
	struct fabric_link *bond = ep->link.port;
	bool asked = wanted >= 0;
	struct mode mode;

	pick_views(ep, links, ask, c);
	if (!asked)
		wanted = bond_is(bond) ? usual_link(ep) : 0;
	ask->set = bond_is(bond) && !asked && is_default(ep, wanted);
	mode = pick_among(ep, ask, links, asked, wanted);
	if (!bond_is(bond))
		return mode;
	note_left(ep, asked, wanted, links, mode);
	if (mode.way && !asked && mode.link == bond_home(bond) && bond_is_spread(bond))
		mode.reason = SLMPM_REASON_LINK;
	if (mode.way && !asked && mode.reason == SLMPM_REASON_CALL && is_away(ep, mode))
		mode.reason = SLMPM_REASON_LINK;
	if (asked && mode.link == wanted && mode.reason == SLMPM_REASON_CALL)
		mode.reason = SLMPM_REASON_HINT;
	if (!asked && mode.reason == SLMPM_REASON_CALL && is_default(ep, mode.link))
		mode.reason = SLMPM_REASON_SETTING;
	return mode;
}

enum mode_rma pick_form(const struct endpoint *ep)
{
	return mode_form((enum mode_rma)config_get()->rma, ep->active, ep->life->native);
}

/* By which the peer's memory is mapped. */
static int memory_link(const struct endpoint *ep)
{
	const struct fabric_domain *memory = secondary_memory(ep);

	for (uint32_t i = 0; memory && i < BOND_PATHS; i++) {
		const struct fabric_link *port = bond_port(ep->link.port, i);

		if (port && port->domain == memory)
			return (int)i;
	}
	return -1;
}

uint32_t pick_memory_hint(const struct endpoint *ep, uint32_t flags)
{
	int link = mode_hint_link(mode_hint(flags));

	return link < 0 || !bond_is(ep->link.port) || link == memory_link(ep) ? 0 : flags;
}

struct mode pick_reach(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		       int wanted)
{
	struct mode_link links[BOND_PATHS] = {{.up = true, .ways = ways, .view.behind = behind}};
	bool bond = bond_is(ep->link.port), asked = wanted >= 0;
	int memory = bond ? memory_link(ep) : 0;
	struct mode mode;

	pick_views(ep, links, ask, NULL);
	for (int i = 0; bond && i < BOND_PATHS; i++)
		if (i != memory)
			links[i].ways &= 1u << MODE_REQUEST;
	if (!asked && memory >= 0 && ways & ~(1u << MODE_REQUEST))
		wanted = memory;
	else if (!asked)
		wanted = bond ? usual_link(ep) : 0;
	mode = pick_among(ep, ask, links, asked, wanted);
	if (asked && mode.link == wanted &&
	    (mode.reason == SLMPM_REASON_CALL || mode.reason == SLMPM_REASON_ONLY))
		mode.reason = SLMPM_REASON_HINT;
	return mode;
}

/* ---- rails: by which of several links packets go -------------------------------------------- */

bool rail_is_on(const struct endpoint *ep, int link)
{
	return link < 0 ||
	       (bond_is(ep->link.port) ? bond_path(ep->link.port) == (uint32_t)link : !link);
}

uint16_t rail_flags(const struct endpoint *ep, struct mode mode, uint8_t hint)
{
	bool asked = mode_hint_link(hint) >= 0;
	uint32_t strict = asked ? hint & SLMPM_STRICT >> MODE_HINT_SHIFT : 0;

	if (!bond_is(ep->link.port) || (!asked && mode.link == bond_home(ep->link.port)))
		return 0;
	return mode_packet_flags((uint8_t)(strict | SLMPM_ON_LINK(mode.link) >> MODE_HINT_SHIFT));
}

void rail_follow(struct endpoint *ep, struct mode mode)
{
	if (bond_is(ep->link.port) && mode.way && mode.link != bond_home(ep->link.port))
		(void)bond_use(ep->link.port, mode.link);
}

static bool is_down(const struct endpoint *ep, int link)
{
	return link >= 0 && (uint32_t)link < secondary_links(ep) && bond_is(ep->link.port) &&
	       !(bond_up(ep->link.port) >> link & 1);
}

int rail_refusal(const struct endpoint *ep, uint8_t hint)
{
	return is_down(ep, mode_hint_link(hint)) ? -SLMPM_ESTATE : -SLMPM_ENOTSUP;
}

bool rail_ends(struct endpoint *ep, struct request *r, int rc)
{
	if (rc != -ENOLINK)
		return false;
	link_dequeue(ep, r);
	if (r->bound_stream)
		binding_return(ep, r->stream);
	request_finish(r, rail_refusal(ep, r->hint));
	return true;
}

int rail_refused(const struct endpoint *ep, const char *who, uint8_t hint, int status)
{
	uint32_t link = (uint32_t)mode_hint_link(hint);
	const char *reason;

	if (status == -SLMPM_ESTATE && bond_is(ep->link.port)) {
		reason = bond_reason(ep->link.port, link);
		return error_set(SLMPM_ESTATE, "%slink %u to %s %s%s", who, link, ep->life->name,
				 reason ? "is lost: " : "does not stand", reason ? reason : "");
	}
	if (mode_hint_link(hint) >= 0 && link >= secondary_links(ep))
		return error_set(-status, "%slink %u to %s: it has %u", who, link, ep->life->name,
				 secondary_links(ep));
	return error_set(-status, "%snot by that protocol to %s", who, ep->life->name);
}

int rail_impossible(const struct endpoint *ep, const char *call, uint8_t hint)
{
	char who[48];

	snprintf(who, sizeof(who), "%s: ", call);
	return rail_refused(ep, who, hint, rail_refusal(ep, hint));
}

/* ---- the calls ------------------------------------------------------------------------------ */

static const struct fabric *pick_fabric_of(const struct endpoint *ep, uint32_t link)
{
	const struct fabric_link *port = ep->link.port;

	if (bond_is(ep->link.port) && bond_port(port, link))
		port = bond_port(port, link);
	return port->domain->fabric;
}

static void pick_describe(const struct endpoint *ep, enum mode_op op, struct mode m,
			  struct slmpm_mode *mode)
{
	static const uint8_t ops[] = {SLMPM_OP_SEND, SLMPM_OP_PUT, SLMPM_OP_GET, SLMPM_OP_ATOMIC};
	struct slmpm_mode now = {
		.op = m.way ? ops[op] : 0,
		.protocol = mode_protocol(op, (enum mode_route)m.way),
		.reason = m.reason,
		.link = m.link,
	};

	snprintf(now.fabric, sizeof(now.fabric), "%s", pick_fabric_of(ep, m.link)->name);
	sized_give_own(mode, &now, sizeof(now));
}

int slmpm_req_mode(slmpm_req req, struct slmpm_mode *mode)
{
	struct request *r = handle_get(&request_table, req.id);
	struct context *ctx;
	int rc = 0;

	if (sized_check_own("slmpm_req_mode", mode, sizeof(*mode)) < 0)
		return -SLMPM_EINVAL;
	if (!r || r->bound)
		return handle_error(&request_table, req.id);
	ctx = r->ctx;
	context_lock(ctx);
	if (handle_get(&request_table, req.id) != r) /* another thread was first */
		rc = handle_error(&request_table, req.id);
	else if (!r->ep)
		rc = error_set(SLMPM_EINVAL, "slmpm_req_mode: a receive from any peer");
	else
		pick_describe(r->ep, request_mode_op(r->kind), r->mode, mode);
	context_unlock(ctx);
	return rc;
}

int slmpm_peer_mode(slmpm_peer peer, struct slmpm_mode *mode)
{
	struct endpoint *ep = endpoint_of(peer);

	if (sized_check_own("slmpm_peer_mode", mode, sizeof(*mode)) < 0)
		return -SLMPM_EINVAL;
	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	pick_describe(ep, (enum mode_op)ep->rooms->figures->modes.last_op,
		      ep->rooms->figures->modes.last, mode);
	context_unlock(ep->ctx);
	return 0;
}
