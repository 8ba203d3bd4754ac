/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of what is measured (aggregate.h): of sums, and of a context's links. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void sum_words(void *to, const void *from, size_t bytes)
{
	uint64_t *sum = to;
	const uint64_t *words = from;

	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] = plus(sum[i], words[i]);
}

uint64_t aggregate_mean(const struct aggregate_cell *c)
{
	return c->count ? c->ns / c->count : 0;
}

uint64_t aggregate_name(const char *fabric)
{
	char text[sizeof(uint64_t)] = "";
	uint64_t name;

	snprintf(text, sizeof(text), "%.7s", fabric);
	memcpy(&name, text, sizeof(name));
	return LITTLE_64(name);
}

/* The last place is for all that find none. */
static struct aggregate_fabric *aggregate_sum_fabric_of(struct aggregate *m, uint64_t name)
{
	int i = 0;

	while (i < AGGREGATE_FABRICS - 1 && m->fabrics[i].name && m->fabrics[i].name != name)
		i++;
	m->fabrics[i].name = name;
	return &m->fabrics[i];
}

void aggregate_add(struct aggregate *to, const struct aggregate *m)
{
	sum_words(to, m, offsetof(struct aggregate, fabrics));
	for (int i = 0; i < AGGREGATE_FABRICS; i++) {
		const struct aggregate_fabric *f = &m->fabrics[i];

		if (f->name)
			sum_words(&aggregate_sum_fabric_of(to, f->name)->requests, &f->requests,
				  sizeof(*f) - offsetof(struct aggregate_fabric, requests));
	}
}

/* ---- of a context's links -------------------------------------------------------------------- */

/* N cells by their samples. */
static uint64_t mean_of(const struct slmpm_timing *t, int n)
{
	uint64_t samples = 0;
	double ns = 0;

	for (; n--; t++) {
		if (!t->latency_ns)
			continue;
		ns += (double)t->latency_ns * (double)t->samples;
		samples += t->samples;
	}
	return samples ? (uint64_t)(ns / (double)samples) : 0;
}

static void add_one(struct aggregate_cell *to, uint64_t ns)
{
	if (!ns || ns > AGGREGATE_LATENCY)
		return;
	to->ns += ns;
	to->count++;
}

/* Of several links of a peer, the one that is in use. */
static const char *fabric_in_use(const struct slmpm_monitor *m)
{
	for (uint32_t i = 0; i < m->path_count; i++)
		if (m->paths[i].used)
			return m->paths[i].link;
	return m->link;
}

/* More than an idle link shows: one message on its way, and what is read and not published. */
static bool aggregate_sum_is_busy(uint64_t queue, uint32_t out)
{
	const struct mode_limits *l = mode_limits();
	uint32_t most = l->light > l->unpublished ? l->light : l->unpublished;

	return !mode_is_short(queue, l) || out > 10 * most;
}

/* A link over FABRIC: what waits for it, and what lies in its rings. */
static struct monitor_load add_load(struct aggregate *sum, const char *fabric, uint64_t queue,
				    uint32_t out, uint32_t in, uint32_t echo)
{
	struct monitor_load load = {.queue = (uint32_t)queue,
				    .busy = aggregate_sum_is_busy(queue, out)};
	struct aggregate_fabric *f = aggregate_sum_fabric_of(sum, aggregate_name(fabric));

	load.out = load.busy ? out : 0;
	f->links++;
	f->queue = plus(f->queue, queue);
	f->busy += load.busy;
	f->load += load.out;
	f->out += out;
	f->in += in;
	add_one(&f->echo, echo);
	return load;
}

/* Of several links of a peer each by its fabric. */
static void add_paths(struct aggregate *sum, const struct slmpm_monitor *m,
		      struct monitor_load *loads)
{
	for (uint32_t i = 0; i < m->path_count; i++) {
		const struct slmpm_monitor_path *p = &m->paths[i];

		if (p->state == SLMPM_LINK_UP)
			loads[i] = add_load(sum, p->link, p->queue_depth, p->out_permille,
					    p->in_permille, p->echo_ns);
	}
	if (!m->path_count)
		loads[0] = add_load(sum, m->link, m->queue_depth, m->out_permille, m->in_permille,
				    m->echo_ns);
}

static void add_link(struct aggregate *sum, const struct slmpm_monitor *m,
		     struct monitor_load *loads)
{
	struct aggregate_fabric *f;

	add_paths(sum, m, loads);
	f = aggregate_sum_fabric_of(sum, aggregate_name(fabric_in_use(m)));
	sum->links++;
	sum->queue += m->queue_depth;
	sum->out += m->out_permille;
	sum->in += m->in_permille;
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		f->requests = plus(f->requests, m->requests[p]);
		add_one(&f->latency[p],
			mean_of(m->timing[p][0], SLMPM_SIZE_CLASSES * SLMPM_WARMTH));
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			add_one(&sum->cells[p][s], mean_of(m->timing[p][s], SLMPM_WARMTH));
	}
}

static void to_one(struct aggregate_cell *c)
{
	c->ns = aggregate_mean(c);
	c->count = c->count != 0;
}

/* A context is one contributor, however many links it has. */
static void to_one_contributor(struct aggregate *sum)
{
	for (int i = 0; i < AGGREGATE_FABRICS; i++) {
		to_one(&sum->fabrics[i].echo);
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			to_one(&sum->fabrics[i].latency[p]);
	}
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			to_one(&sum->cells[p][s]);
}

void aggregate_of_links(struct context *ctx, struct aggregate *sum)
{
	struct slmpm_monitor m;

	*sum = (struct aggregate){.instances = 0};
	for (uint32_t i = 0; i < ctx->count; i++) {
		struct endpoint *ep = ctx->endpoints[i];
		struct monitor_load loads[SLMPM_MONITOR_PATHS] = {{0}};

		if (ep->state == SLMPM_PEER_UP) {
			monitor_take(ep, &m);
			add_link(sum, &m, loads);
		}
		if (ep->rooms->monitor)
			memcpy(ep->rooms->monitor->load, loads, sizeof(loads));
	}
	to_one_contributor(sum);
}
