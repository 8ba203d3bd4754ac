/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring on a link begins, is inspected and ends (monitor.h). */
#include "slmpm/monitor/monitor.h"

#include <stdlib.h>

#include "slmpm/bond/bond.h"
#include "slmpm/link/link.h"
#include "slmpm/link/inspect.h"
#include "slmpm/link/progress.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/totals.h"

_Static_assert(SLMPM_MONITOR_PATHS == BOND_PATHS, "one place for each link");

#define SHARE   16 /* links in an inspection */
/* Ticks between two inspections: the one behind sends no packets of the monitor's, which would
 * delay the first messages' answers. */
#define SILENCE (INSPECT_TICKS << 2)
#define SPARED  8 /* all but one of so many: traffic behind silence alone is measured, too */
#define WINDOW  UINT64_C(100000000) /* ns, at least, that a rate is taken over */

void monitor_new(struct endpoint *ep)
{
	struct monitor *m = calloc(1, sizeof(*m));

	ep->rooms->monitor = m;
	if (!m)
		return; /* without one it is not measured */
	m->since = m->flow.ns = clock_now();
	m->echo.id = m->sample.seq = m->sample.sent = ep->sent;
	monitor_page_assign(ep);
}

void monitor_agreed(struct endpoint *ep, uint64_t features)
{
	struct monitor *m = ep->rooms->monitor;

	if (!m)
		return;
	m->echo.agreed = features & WIRE_FEATURE_ECHO;
	m->sample.agreed = features & WIRE_FEATURE_TIMED && config_get()->monitor_ms;
	m->echo.asked = m->sample.asked = m->aggregate.notified = clock_now();
	aggregate_agreed(ep, features);
}

void monitor_leave_page(struct endpoint *ep)
{
	if (!ep->rooms->monitor || !ep->rooms->monitor->entry)
		return;
	monitor_publish(ep);
	monitor_page_release(ep);
}

void monitor_free(struct endpoint *ep)
{
	if (!ep->rooms->monitor)
		return;
	aggregate_end(ep);
	monitor_leave_page(ep);
	free(ep->rooms->monitor);
	ep->rooms->monitor = NULL;
}

/* ---- inspection ------------------------------------------------------------------------------ */

static uint32_t monitor_share_of(uint64_t part, uint64_t all)
{
	if (part > all)
		part = all;
	return all ? (uint32_t)((part << 16) / all) : 0;
}

static uint64_t rate(uint64_t now, uint64_t before, uint64_t ns)
{
	/* Totals go back where what was sent is taken back. */
	return now > before ? (uint64_t)((double)(now - before) * 1e9 / (double)ns) : 0;
}

static void inspect_flow(struct endpoint *ep, uint64_t ns)
{
	struct monitor *m = ep->rooms->monitor;
	uint64_t took = ns - m->flow.ns;
	union monitor_flow now;

	if (took < WINDOW)
		return;
	monitor_totals(ep, &now);
	for (size_t i = 0; i < sizeof(now.all) / sizeof(*now.all); i++)
		m->flow.rates.all[i] = rate(now.all[i], m->flow.totals.all[i], took);
	m->flow.totals = now;
	m->flow.ns = ns;
}

static void inspect_rings(const struct fabric_counts *c, uint32_t *out, uint32_t *in)
{
	*out = (7 * *out + monitor_share_of(c->produced - c->consumed_seen, c->out_segments)) / 8;
	*in = (7 * *in + monitor_share_of(c->in_produced_seen - c->consumed, c->in_segments)) / 8;
}

static void inspect_paths(struct endpoint *ep)
{
	struct monitor *m = ep->rooms->monitor;

	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		const struct fabric_link *port = bond_port(ep->link.port, i);

		if (port)
			inspect_rings(&port->counts, &m->paths[i].out_share, &m->paths[i].in_share);
	}
}

/* With SLMPM_AGGREGATE idle links, too, carry that much is to do elsewhere, and no more. */
static bool has_news(const struct endpoint *ep)
{
	const struct monitor *m = ep->rooms->monitor;

	return config_get()->aggregate && m->aggregate.agreed &&
	       (m->aggregate.busy || aggregate_is_busy() ||
		echo_traffic(ep->ctx) != m->aggregate.traffic);
}

/* A link without echoes carries what the job is to know all the same. */
static bool sends_opportunistic(const struct endpoint *ep, uint64_t ns)
{
	if (ep->state != SLMPM_PEER_UP || ep->closing || ep->ctx->handling ||
	    !list_empty(&ep->link.deferred) ||
	    ns - ep->rooms->monitor->aggregate.notified < monitor_period())
		return false;
	return (ep->ctx->monitor.opportunistic && echo_has_traffic(ep)) || has_news(ep);
}

static void monitor_inspect_one(struct endpoint *ep, uint64_t ns)
{
	struct monitor *m = ep->rooms->monitor;
	const struct fabric_counts *c = &ep->link.port->counts;

	link_count(ep);
	inspect_rings(c, &m->out_share, &m->in_share);
	if (bond_is(ep->link.port))
		inspect_paths(ep);
	inspect_flow(ep, ns);
	if (!ep->ctx->monitor.after_silence &&
	    (echo_inspect(ep, ns) || sends_opportunistic(ep, ns))) {
		m->aggregate.notified = ns;
		m->aggregate.traffic = config_get()->aggregate ? echo_traffic(ep->ctx) : 0;
		aggregate_send(ep); /* in its wake */
	}
	sample_inspect(ep, ns);
	monitor_publish(ep);
}

static uint64_t monitor_traffic(const struct context *ctx)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ctx->count; i++)
		sum += ctx->endpoints[i]->stats->sent_packets +
		       ctx->endpoints[i]->stats->received_packets;
	return sum;
}

bool monitor_is_shown(const struct context *ctx)
{
	return !config_get()->monitor_ms || monitor_traffic(ctx) == ctx->monitor.traffic;
}

void monitor_up(struct endpoint *ep)
{
	if (ep->rooms->monitor)
		monitor_publish(ep);
}

void monitor_ended(struct endpoint *ep)
{
	if (!ep->rooms->monitor)
		return;
	aggregate_end(ep);
	monitor_publish(ep);
}

static bool is_spared(struct context *ctx, uint64_t ticks)
{
	return ticks - ctx->monitor.inspected >= SILENCE && ++ctx->monitor.silences % SPARED;
}

void monitor_inspect(struct context *ctx, uint64_t ticks)
{
	uint32_t n = ctx->count < SHARE ? ctx->count : SHARE;
	uint64_t ns;

	ctx->monitor.after_silence = is_spared(ctx, ticks);
	ctx->monitor.inspected = ticks;
	if (!config_get()->monitor_ms)
		return;
	ns = clock_now();
	ctx->monitor.traffic = monitor_traffic(ctx);
	aggregate_inspect(ctx, ns);
	for (uint32_t i = 0; i < n; i++) {
		struct endpoint *ep = ctx->endpoints[ctx->monitor.next++ % ctx->count];

		totals_add(ep);
		if (ep->rooms->monitor)
			monitor_inspect_one(ep, ns);
	}
}

COLD void monitor_opportunistic(struct context *ctx)
{
	uint64_t ticks = clock_ticks();

	ctx->monitor.passed = 0;
	if (ticks - ctx->monitor.inspected >= INSPECT_TICKS << 1 &&
	    ticks >= ctx->monitor.not_before)
		progress_opportunistic(ctx);
}
