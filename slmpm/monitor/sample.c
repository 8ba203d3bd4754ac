/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of what operations take. Long ones are requests, and are timed as such. For a short
 * message an inspection shuts the fast paths until the next one has gone; the slow path marks it
 * (WIRE_FLAG_TIMED), and the peer answers when it arrived. So a fast path pays for nothing.
 *
 * Echoes: now and then a packet that the peer answers, behind all that was sent before. The time
 * until then is what a message takes both ways, the rings' content and the peer's attention
 * included. Idle links carry none, and calls that wait for nothing send none: the answer would lie
 * there unread.
 */
#include <stdatomic.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/packet.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/bond/bond.h"

#define OF_PERIOD 8  /* samples of a link in SLMPM_MONITOR_MS, at most */
#define GIVEN_UP  10 /* periods after which an answer is not waited for any more */

/* ---- what has been measured ------------------------------------------------------------------ */

void monitor_time_add(struct monitor_time *t, uint64_t value)
{
	/* An eighth of the mean is the last one. */
	t->mean = t->mean ? t->mean - t->mean / 8 + value / 8 : value;
	t->least = !t->least || value < t->least ? value : t->least;
}

static struct monitor_cell *sample_add(struct monitor *m, int protocol, uint64_t length,
				       const void *memory, uint64_t busy)
{
	int size_class = slmpm_size_class(length);
	const void **last = &m->last[protocol][size_class];
	struct monitor_cell *c =
		&m->cells[protocol][size_class][*last == memory ? SLMPM_WARM : SLMPM_FRESH];

	*last = memory;
	c->samples++;
	c->bytes += length;
	c->busy += busy;
	return c;
}

void monitor_timed(struct endpoint *ep, int protocol, uint64_t length, const void *memory,
		   uint64_t busy, uint64_t latency)
{
	struct monitor_cell *c;

	/* Two processors' counters may differ by a little: less than nothing is nothing. */
	if (!ep->rooms->monitor || (int64_t)busy <= 0)
		return;
	c = sample_add(ep->rooms->monitor, protocol, length, memory, busy);
	if (latency)
		monitor_time_add(&c->latency, latency);
}

/* ---- requests -------------------------------------------------------------------------------- */

void monitor_requested(struct request *r)
{
	struct monitor *m = r->ep->rooms->monitor;

	if (!m || !r->rma.remote || r->rma.stored)
		return;
	if (r->kind == REQUEST_ATOMIC) {
		m->atomics++;
		return;
	}
	r->began = clock_ticks();
	if (r->rma.carrier)
		return;
	*(r->kind == REQUEST_PUT ? &m->puts : &m->gets) += 1;
	*(r->kind == REQUEST_PUT ? &m->put_bytes : &m->get_bytes) += r->length;
}

/* A message's last packet is on its way when the request ends: that takes as long as an echo. */
static uint64_t latency_of(const struct request *r, uint64_t took)
{
	const struct monitor *m = r->ep->rooms->monitor;

	if (r->kind >= REQUEST_PUT)
		return took;
	return m && m->echo.time.mean ? took + m->echo.time.mean / 2 : 0;
}

void monitor_finished(struct request *r)
{
	int protocol = r->kind < REQUEST_PUT  ? SLMPM_BY_SMT :
		       !r->rma.carrier        ? SLMPM_BY_REQUEST :
		       r->kind == REQUEST_PUT ? SLMPM_BY_PUT :
						SLMPM_BY_GET;
	uint64_t took;

	if (!r->began)
		return;
	took = clock_ticks() - r->began;
	r->began = 0;
	if (took && r->result.status == 0)
		monitor_timed(r->ep, protocol, r->length, r->piece_count ? r->pieces->base : NULL,
			      took, latency_of(r, took));
}

/* ---- messages that go in a packet ------------------------------------------------------------ */

/* A call that waits for nothing reads the answer late: its way back would be all. */
static bool may_sample(const struct endpoint *ep)
{
	if (!ep->rooms->monitor->sample.agreed || ep->state != SLMPM_PEER_UP ||
	    ep->ctx->monitor.after_silence)
		return false;
	return ep->life->pid || !ep->ctx->monitor.opportunistic;
}

static bool sample_is_due(const struct monitor *m, uint64_t ns)
{
	uint64_t period = monitor_period();
	uint64_t since = ns - m->sample.asked;

	return since >= (m->sample.began ? GIVEN_UP * period : period / OF_PERIOD);
}

void sample_inspect(struct endpoint *ep, uint64_t ns)
{
	struct monitor *m = ep->rooms->monitor;
	bool sends = ep->sent != m->sample.sent;

	m->sample.sent = ep->sent;
	if (endpoint_is_blocked(ep, BLOCK_SAMPLE)) { /* nothing sent since could be timed */
		endpoint_block(ep, BLOCK_SAMPLE, false);
		return;
	}
	if (!sends || !may_sample(ep) || !sample_is_due(m, ns))
		return;
	m->sample.asked = ns;
	m->sample.shut = !ep->blocked;
	endpoint_block(ep, BLOCK_SAMPLE, true);
}

bool sample_gives_way(const struct request *r)
{
	struct endpoint *ep = r->ep;

	if (!endpoint_is_blocked(ep, BLOCK_SAMPLE))
		return false;
	endpoint_block(ep, BLOCK_SAMPLE, false);
	return !ep->blocked && r->length <= ep->packet_max && r->length < ep->fetch_min && !r->hint;
}

void sample_sent(struct endpoint *ep, struct request *r, uint64_t began)
{
	struct monitor *m = ep->rooms->monitor;
	uint64_t busy = clock_ticks() - began;

	if ((int64_t)busy <= 0)
		return;
	m->sample.cell = sample_add(m, SLMPM_BY_SMT, r->length,
				    r->piece_count ? r->pieces->base : NULL, busy);
	m->sample.seq = r->seq;
	m->sample.began = began;
	/* A blocking call's would have gone the fast path, where nothing is chosen. */
	if (m->sample.shut && !atomic_load_explicit(&r->handle.generation, memory_order_relaxed) &&
	    ep->link.queue.next == &r->node && ep->link.queue.prev == &r->node && !r->hint &&
	    r->length < ep->fetch_min && !ep->link.check)
		r->mode = (struct mode){.way = MODE_NONE};
}

void sample_asked(struct endpoint *ep, const struct head *h)
{
	uint64_t ticks = LITTLE_64(clock_ticks());

	/* Who asks and does not read gets one answer. */
	if (ep->state == SLMPM_PEER_UP && !h->damaged && !link_deferred(ep, WIRE_ECHO_ANSWER))
		link_control(ep, WIRE_ECHO_ANSWER, h->seq, 1, &ticks, sizeof(ticks));
}

/* By the clock of this machine; on another one, or where that cannot be, by what both ways took. */
static uint64_t latency_by(const struct endpoint *ep, uint64_t there)
{
	const struct monitor *m = ep->rooms->monitor;
	uint64_t took = clock_ticks() - m->sample.began, way = m->echo.time.least / 2;

	if (ep->life->pid && there - m->sample.began <= took)
		return there - m->sample.began;
	return way && way < took / 2 ? took - way : took / 2;
}

static void sample_answered(struct endpoint *ep, const struct head *h)
{
	struct monitor *m = ep->rooms->monitor;
	uint64_t there, latency;

	if (PEER_FAULT(!m->sample.agreed ||
		       !wire_is_given(h->seq, endpoint_start(ep), m->sample.seq) ||
		       h->length != sizeof(there))) {
		endpoint_poison(ep, "echo");
		return;
	}
	if (h->seq != m->sample.seq || !m->sample.began) /* one that has been given up */
		return;
	memcpy(&there, h->data, sizeof(there));
	latency = latency_by(ep, LITTLE_64(there));
	m->sample.began = 0;
	if (latency)
		monitor_time_add(&m->sample.cell->latency, latency);
}

/* ---- echoes --------------------------------------------------------------------------------- */

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
