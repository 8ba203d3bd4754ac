/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured on a link, as slmpm_monitor and the monitor's pages tell it (monitor.h). */
#include <stdio.h>
#include <string.h>

#include "slmpm/bond/bond.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/link/link.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"

#define COUNTED         1000 /* of what is nowhere counted: a walk bounded */
#define PERMILLE(share) ((uint32_t)(((uint64_t)(share)*1000 + 32768) >> 16))

/* ---- the clock ------------------------------------------------------------------------------- */

/* Ticks have a rate that shows between two looks at both clocks. */
static struct {
	pthread_once_t once;
	uint64_t ticks, ns;
} start = {.once = PTHREAD_ONCE_INIT};

static void start_clocks(void)
{
	start.ns = clock_now();
	start.ticks = clock_ticks();
}

/* Nanoseconds of a tick; at the very start rather wrong than never. */
static double tick(void)
{
	uint64_t ns, ticks;

	pthread_once(&start.once, start_clocks);
	ns = clock_now() - start.ns;
	ticks = clock_ticks() - start.ticks;
	return ticks ? (double)ns / (double)ticks : 1;
}

/* ---- figures --------------------------------------------------------------------------------- */

void monitor_totals(const struct endpoint *ep, union monitor_flow *t)
{
	const struct slmpm_stats *s = ep->stats;
	const struct monitor *m = ep->rooms->monitor;

	t->sent = s->sent_messages;
	t->sent_bytes = s->sent_bytes;
	t->received = s->received_messages;
	t->received_bytes = s->received_bytes;
	/* Answers that wait for room are not among those sent yet. */
	t->requests[SLMPM_BY_SMT] = excess_of(s->sent_messages - s->rget_messages, m->carriers);
	t->request_bytes[SLMPM_BY_SMT] =
		excess_of(s->sent_bytes - s->rget_bytes - s->push_bytes, m->carried);
	t->requests[SLMPM_BY_RGET] = s->rget_messages;
	t->request_bytes[SLMPM_BY_RGET] = s->rget_bytes + s->push_bytes;
	t->requests[SLMPM_BY_PUT] = s->puts - m->puts + s->atomics - m->atomics;
	t->request_bytes[SLMPM_BY_PUT] = s->put_bytes - m->put_bytes;
	t->requests[SLMPM_BY_GET] = s->gets - m->gets;
	t->request_bytes[SLMPM_BY_GET] = s->get_bytes - m->get_bytes;
	t->requests[SLMPM_BY_REQUEST] = m->puts + m->gets + m->atomics;
	t->request_bytes[SLMPM_BY_REQUEST] = m->put_bytes + m->get_bytes;
}

static void take_flow(const struct endpoint *ep, struct slmpm_monitor *out)
{
	const union monitor_flow *rates = &ep->rooms->monitor->flow.rates;
	union monitor_flow t;

	monitor_totals(ep, &t);
	out->sent_messages = t.sent;
	out->sent_bytes = t.sent_bytes;
	out->received_messages = t.received;
	out->received_bytes = t.received_bytes;
	memcpy(out->requests, t.requests, sizeof(t.requests));
	memcpy(out->request_bytes, t.request_bytes, sizeof(t.request_bytes));
	out->sent_rate = rates->sent;
	out->sent_byte_rate = rates->sent_bytes;
	out->received_rate = rates->received;
	out->received_byte_rate = rates->received_bytes;
	memcpy(out->request_rate, rates->requests, sizeof(rates->requests));
	memcpy(out->request_byte_rate, rates->request_bytes, sizeof(rates->request_bytes));
}

static void take_movers(struct endpoint *ep, struct slmpm_monitor *out)
{
	const struct slmpm_stats *s = ep->stats;

	endpoint_stats(ep); /* some are found out when they are read */
	out->copied_puts = s->copied_puts;
	out->copied_put_bytes = s->copied_put_bytes;
	out->copied_gets = s->copied_gets;
	out->copied_get_bytes = s->copied_get_bytes;
	out->engine_out = s->engine_out;
	out->engine_out_bytes = s->engine_out_bytes;
	out->engine_in = s->engine_in;
	out->engine_in_bytes = s->engine_in_bytes;
	out->helped_out_bytes = s->helped_out_bytes;
	out->helped_in_bytes = s->helped_in_bytes;
	out->asked = s->asked;
	out->asked_bytes = s->asked_bytes;
	out->asked_here = s->asked_here;
	out->asked_here_bytes = s->asked_here_bytes;
}

static uint32_t short_ns(uint64_t ticks, double ns_of_tick)
{
	double ns = (double)ticks * ns_of_tick;

	return ns < UINT32_MAX ? (uint32_t)(ns + 0.5) : UINT32_MAX;
}

static void take_timing(const struct monitor_cell *c, struct slmpm_timing *t, double ns_of_tick)
{
	t->samples = c->samples;
	t->bytes = c->bytes;
	t->busy_ns = (uint64_t)((double)c->busy * ns_of_tick);
	t->latency_ns = short_ns(c->latency.mean, ns_of_tick);
	t->latency_least_ns = short_ns(c->latency.least, ns_of_tick);
}

/* Into structures with members of the same names, of the link and of one of several. */
#define TAKE_RINGS(out, c, shares)                                                                 \
	do {                                                                                       \
		(out)->out_unread = (c)->produced - (c)->consumed_seen;                            \
		(out)->out_segments = (c)->out_segments;                                           \
		(out)->in_unread = (c)->in_produced_seen - (c)->consumed;                          \
		(out)->in_segments = (c)->in_segments;                                             \
		(out)->out_permille = PERMILLE((shares)->out_share);                               \
		(out)->in_permille = PERMILLE((shares)->in_share);                                 \
	} while (0)

static void take_path(const struct endpoint *ep, uint32_t i, struct slmpm_monitor_path *out,
		      double ns_of_tick)
{
	const struct fabric_link *bond = ep->link.port, *port = bond_port(bond, i);
	const struct fabric_counts *c = port ? &port->counts : NULL;
	const struct monitor *m = ep->rooms->monitor;

	snprintf(out->link, sizeof(out->link), "%s", secondary_fabric(ep, i));
	out->state = bond_state(bond, i) == PATH_UP && ep->state == SLMPM_PEER_UP ? SLMPM_LINK_UP :
		     c || bond_reason(bond, i) ? SLMPM_LINK_LOST :
						 SLMPM_LINK_NONE;
	out->used = out->state == SLMPM_LINK_UP && bond_home(bond) == i;
	out->queue_depth = out->used ? ep->link.depth : 0;
	out->echo_ns = short_ns(m->paths[i].time.mean, ns_of_tick);
	out->echo_least_ns = short_ns(m->paths[i].time.least, ns_of_tick);
	if (!c || out->state != SLMPM_LINK_UP)
		return;
	TAKE_RINGS(out, c, &m->paths[i]);
}

static void take_paths(const struct endpoint *ep, struct slmpm_monitor *out, double ns_of_tick)
{
	out->path_count = secondary_links(ep);
	for (uint32_t i = 0; i < out->path_count; i++)
		take_path(ep, i, &out->paths[i], ns_of_tick);
}

static uint64_t monitor_take_length_of(const struct list *list)
{
	uint64_t n = 0;

	for (const struct list *at = list->next; at != list && n < COUNTED; at = at->next)
		n++;
	return n;
}

/* Of those that count in out->requests what has no reason yet. */
static void leave_out_unfinished(const struct endpoint *ep, uint64_t *rest)
{
	uint64_t n = 0;

	rest[SLMPM_BY_SMT] -= monitor_take_length_of(&ep->link.announced);
	for (const struct list *at = ep->link.queue.next; at != &ep->link.queue && n < COUNTED;
	     at = at->next, n++) {
		const struct request *r = LIST_ENTRY(at, struct request, node);

		rest[SLMPM_BY_SMT] -= r->kind < REQUEST_PUT && r->numbered;
	}
	n = 0;
	for (const struct list *at = ep->one_sided.next; at != &ep->one_sided && n < COUNTED;
	     at = at->next, n++) {
		const struct rma_work *w = LIST_ENTRY(at, struct rma_work, live);
		const struct request *r = LIST_ENTRY(w, struct request, rma);
		int direct = r->kind == REQUEST_GET ? SLMPM_BY_GET : SLMPM_BY_PUT;

		if (w->remote && !w->stored)
			rest[w->carrier ? direct : SLMPM_BY_REQUEST]--;
	}
}

/* Who takes a fast path counts no reason: it is that of the rest. */
static void take_reasons(const struct endpoint *ep, struct slmpm_monitor *out)
{
	uint64_t rest[SLMPM_PROTOCOLS];

	memcpy(rest, out->requests, sizeof(rest));
	leave_out_unfinished(ep, rest);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		for (int r = 0; r < SLMPM_REASONS; r++) {
			out->reasons[p][r] = ep->rooms->figures->modes.by[p][r];
			rest[p] -= ep->rooms->figures->modes.by[p][r];
		}
		if ((int64_t)rest[p] > 0) /* else some ended otherwise than they began */
			out->reasons[p][SLMPM_REASON_SHORT] += rest[p];
	}
}

void monitor_take(struct endpoint *ep, struct slmpm_monitor *out)
{
	const struct monitor *m = ep->rooms->monitor;
	double ns_of_tick = tick();

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->state = ep->state;
	out->pid = ep->life->pid;
	out->element = ep->life->element;
	out->context = ep->ctx->handle.index;
	out->instances = aggregate_instances();
	out->taken_ns = clock_now();
	snprintf(out->link, sizeof(out->link), "%s", ep->link.fabric->name);
	snprintf(out->name, sizeof(out->name), "%s", ep->life->name);
	out->violations = ep->stats->violations;
	out->misaddressed = ep->stats->misaddressed;
	out->header = endpoint_header(ep);
	if (!m)
		return;
	out->since_ns = m->since;
	out->queue_depth = ep->link.depth;
	out->awaiting = monitor_take_length_of(&ep->link.announced);
	out->one_sided = monitor_take_length_of(&ep->one_sided);
	TAKE_RINGS(out, &ep->link.port->counts, m);
	out->echoes = m->echo.count;
	out->echo_ns = short_ns(m->echo.time.mean, ns_of_tick / 2);
	out->echo_least_ns = short_ns(m->echo.time.least, ns_of_tick / 2);
	if (bond_is(ep->link.port))
		take_paths(ep, out, ns_of_tick / 2);
	take_flow(ep, out);
	take_reasons(ep, out);
	take_movers(ep, out);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			for (int w = 0; w < SLMPM_WARMTH; w++)
				take_timing(&m->cells[p][s][w], &out->timing[p][s][w], ns_of_tick);
}

int slmpm_monitor(slmpm_peer peer, struct slmpm_monitor *monitor, size_t size)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_monitor now;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (sized_check("slmpm_monitor", monitor, size, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	link_count(ep);
	monitor_take(ep, &now);
	sized_give(monitor, size, &now, sizeof(now));
	context_unlock(ep->ctx);
	return 0;
}

extern inline int slmpm_size_class(uint64_t bytes);

const char *slmpm_protocol_name(int protocol)
{
	static const char *const names[SLMPM_PROTOCOLS] = {"smt", "rget", "put", "get", "request"};

	return protocol >= 0 && protocol < SLMPM_PROTOCOLS ? names[protocol] : NULL;
}
