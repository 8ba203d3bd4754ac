/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Echoes: now and then a packet that the peer answers, behind all that was sent before. The time
 * until then is what a message takes both ways, the rings' content and the peer's attention
 * included. Idle links carry none, and calls that wait for nothing send none: the answer would lie
 * there unread.
 */
#include "slmpm/link/link.h"
#include "slmpm/link/packet.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/bond/bond.h"

#define GIVEN_UP 10 /* periods after which an answer is not waited for any more */

/* What the link has carried since it came up. */
static uint64_t echo_own_traffic(const struct slmpm_stats *s)
{
	return s->sent_messages + s->received_messages + s->puts + s->gets + s->atomics;
}

uint64_t echo_traffic(const struct context *ctx)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ctx->count; i++)
		sum += echo_own_traffic(ctx->endpoints[i]->stats);
	return sum;
}

bool echo_has_traffic(const struct endpoint *ep)
{
	return echo_own_traffic(ep->stats) != ep->rooms->monitor->echo.traffic;
}

static bool echo_is_due(const struct endpoint *ep, uint64_t ns)
{
	const struct monitor *m = ep->rooms->monitor;
	uint64_t period = monitor_period();

	if (!m->echo.agreed || !period || ep->state != SLMPM_PEER_UP || ep->closing ||
	    ns - m->echo.asked < period || !echo_has_traffic(ep))
		return false;
	return list_empty(&ep->link.deferred) &&
	       (!m->echo.began || ns - m->echo.asked >= GIVEN_UP * period);
}

bool echo_inspect(struct endpoint *ep, uint64_t ns)
{
	struct monitor *m = ep->rooms->monitor;

	if (!echo_is_due(ep, ns) || ep->ctx->handling || ep->ctx->monitor.opportunistic)
		return false;
	m->echo.id++;
	m->echo.asked = ns;
	m->echo.traffic = echo_own_traffic(ep->stats);
	m->echo.path = bond_is(ep->link.port) ? bond_home(ep->link.port) : 0;
	m->echo.began = clock_ticks();
	link_control(ep, WIRE_ECHO, m->echo.id, 0, NULL, 0);
	return true;
}

/* Who asks and does not read gets one answer. */
void echo_asked(struct endpoint *ep, const struct head *h)
{
	if (h->damaged)
		return;
	if (PEER_FAULT(h->length || h->flags & ~WIRE_FLAG_CHECK))
		endpoint_poison(ep, "echo");
	else if (!link_deferred(ep, WIRE_ECHO_ANSWER))
		link_control(ep, WIRE_ECHO_ANSWER, h->seq, 0, NULL, 0);
}

void echo_answered(struct endpoint *ep, const struct head *h)
{
	struct monitor *m = ep->rooms->monitor;
	uint64_t took;

	if (h->damaged)
		return;
	if (PEER_FAULT(!m || (h->extent & WIRE_LENGTH_MASK) > 1 || h->flags & ~WIRE_FLAG_CHECK)) {
		endpoint_poison(ep, "echo");
		return;
	}
	if (h->extent & WIRE_LENGTH_MASK) { /* to a message */
		sample_answered(ep, h);
		return;
	}
	if (PEER_FAULT(!wire_is_given(h->seq, endpoint_start(ep), m->echo.id) || h->length)) {
		endpoint_poison(ep, "echo");
		return;
	}
	if (h->seq != m->echo.id || !m->echo.began)
		return;
	took = clock_ticks() - m->echo.began;
	m->echo.began = 0;
	m->echo.count++;
	monitor_time_add(&m->echo.time, took);
	if (bond_is(ep->link.port) && bond_home(ep->link.port) == m->echo.path)
		monitor_time_add(&m->paths[m->echo.path].time, took);
}
