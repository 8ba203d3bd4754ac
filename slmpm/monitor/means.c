/* SPDX-License-Identifier: BSD-3-Clause */
/* Means over all instances of a job (means.h). */
#include "slmpm/monitor/means.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/error.h"
#include "slmpm/link.h"
#include "slmpm/message/arrival.h"
#include "slmpm/monitor/monitor.h"

#define INSTANCES_MAX 1000000 /* that a peer may speak for */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list parts = {&parts, &parts};
/* For who may not wait: the mean of each cell, 0 where there is none; and the instances. */
static _Atomic uint32_t known[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES], instances = 1;

/* ---- sums ------------------------------------------------------------------------------------- */

static void add_requests(struct means *m, const char *name, uint64_t requests)
{
	int i = 0;

	while (i < MEANS_FABRICS - 1 && m->fabrics[i].name[0] &&
	       strncmp(m->fabrics[i].name, name, sizeof(m->fabrics[i].name) - 1) != 0)
		i++;
	snprintf(m->fabrics[i].name, sizeof(m->fabrics[i].name), "%.7s", name);
	m->fabrics[i].requests += requests;
}

static void add_cell(struct means_cell *to, uint64_t ns, uint32_t count)
{
	to->ns += ns * count;
	to->count += count;
}

static void add(struct means *to, const struct means *m)
{
	to->instances += m->instances;
	to->links += m->links;
	to->queue += m->queue;
	to->out += m->out;
	to->in += m->in;
	for (int i = 0; i < MEANS_FABRICS; i++)
		if (m->fabrics[i].name[0])
			add_requests(to, m->fabrics[i].name, m->fabrics[i].requests);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			to->cells[p][s].ns += m->cells[p][s].ns;
			to->cells[p][s].count += m->cells[p][s].count;
		}
}

/* All that is known, but for one part; the process itself is an instance. With the lock. */
static void sum_without(struct means *sum, const struct means_part *without)
{
	*sum = (struct means){.instances = 1};
	LIST_EACH(at, &parts) {
		const struct means_part *part = LIST_ENTRY(at, struct means_part, node);

		if (part != without)
			add(sum, &part->sum);
	}
}

static void make_known(void)
{
	struct means all;

	sum_without(&all, NULL);
	atomic_store_explicit(&instances, (uint32_t)all.instances, memory_order_relaxed);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			const struct means_cell *c = &all.cells[p][s];
			uint64_t mean = c->count ? c->ns / c->count : 0;

			atomic_store_explicit(&known[p][s],
					      mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX,
					      memory_order_relaxed);
		}
}

bool monitor_mean(int protocol, uint64_t length, uint64_t *ns)
{
	*ns = atomic_load_explicit(&known[protocol][slmpm_size_class(length)],
				   memory_order_relaxed);
	return *ns;
}

uint32_t means_instances(void)
{
	return atomic_load_explicit(&instances, memory_order_relaxed);
}

/* ---- what this process sees itself -------------------------------------------------------------- */

/* Both warmths by their samples. */
static uint64_t mean_of(const struct slmpm_timing *t)
{
	uint64_t ns = 0, samples = 0;

	for (int w = 0; w < SLMPM_WARMTH; w++) {
		if (!t[w].latency_ns)
			continue;
		ns += t[w].latency_ns * t[w].samples;
		samples += t[w].samples;
	}
	return samples ? ns / samples : 0;
}

static void add_link(struct means *sum, const struct slmpm_monitor *m)
{
	uint64_t requests = 0;

	sum->links++;
	sum->queue += m->queue_depth;
	sum->out += m->out_permille;
	sum->in += m->in_permille;
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		requests += m->requests[p];
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			uint64_t ns = mean_of(m->timing[p][s]);

			add_cell(&sum->cells[p][s], ns, ns != 0);
		}
	}
	add_requests(sum, m->link, requests);
}

/* A context is one voice, however many links it has. */
static void to_one_voice(struct means *sum)
{
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			struct means_cell *c = &sum->cells[p][s];

			c->ns = c->count ? c->ns / c->count : 0;
			c->count = c->count != 0;
		}
}

void means_look(struct context *ctx, uint64_t ns)
{
	struct means_part *own = ctx->monitor.own;
	struct means sum = {.instances = 0};
	struct slmpm_monitor m;

	if (ns - ctx->monitor.summed < (uint64_t)config_get()->monitor_ms * 1000000)
		return;
	ctx->monitor.summed = ns;
	if (!own && !(own = calloc(1, sizeof(*own))))
		return;
	for (uint32_t i = 0; i < ctx->count; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP) {
			monitor_take(ctx->endpoints[i], &m);
			add_link(&sum, &m);
		}
	to_one_voice(&sum);
	pthread_mutex_lock(&lock);
	own->sum = sum;
	if (!ctx->monitor.own)
		list_append(&parts, &own->node);
	ctx->monitor.own = own;
	make_known();
	pthread_mutex_unlock(&lock);
}

static void forget(struct means_part *part)
{
	if (!part)
		return;
	pthread_mutex_lock(&lock);
	list_remove(&part->node);
	make_known();
	pthread_mutex_unlock(&lock);
	free(part);
}

void means_shut(struct context *ctx)
{
	forget(ctx->monitor.own);
	ctx->monitor.own = NULL;
}

void means_end(struct endpoint *ep)
{
	forget(ep->monitor->heard);
	ep->monitor->heard = NULL;
}

void means_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	list_init(&parts);
	make_known();
}

/* ---- the wire ---------------------------------------------------------------------------------- */

/* Little-endian throughout; `seq` is the part's number. */
struct wire_counts {
	uint32_t instances, links, queue, out, in, zero;
};
struct wire_fabrics {
	struct {
		char name[8];
		uint64_t requests;
	} fabrics[MEANS_FABRICS];
};
struct wire_times { /* of one protocol, by class: mean, and over how many instances */
	uint32_t ns[SLMPM_SIZE_CLASSES];
	uint16_t count[SLMPM_SIZE_CLASSES];
};
_Static_assert(sizeof(struct wire_counts) == 24 && sizeof(struct wire_fabrics) == 64 &&
		       sizeof(struct wire_times) == 60,
	       "wire layout");

static uint32_t cut32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void say_times(struct endpoint *ep, const struct means *m, int p)
{
	struct wire_times w;

	for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
		const struct means_cell *c = &m->cells[p][s];

		w.ns[s] = LITTLE_32(cut32(c->count ? c->ns / c->count : 0));
		w.count[s] = LITTLE_16((uint16_t)(c->count < UINT16_MAX ? c->count : UINT16_MAX));
	}
	link_control(ep, WIRE_MEANS, (uint64_t)p + 2, 0, &w, sizeof(w));
}

/* Is the peer of this process's job? */
static bool is_kin(const struct endpoint *ep)
{
	return ep->is_parent || ep->process;
}

void means_tell(struct endpoint *ep)
{
	struct wire_fabrics f = {0};
	struct wire_counts c;
	struct means m;

	if (!ep->monitor->echo.means || !is_kin(ep))
		return;
	pthread_mutex_lock(&lock);
	sum_without(&m, ep->monitor->heard);
	pthread_mutex_unlock(&lock);
	c = (struct wire_counts){
		.instances = LITTLE_32(cut32(m.instances)),
		.links = LITTLE_32(cut32(m.links)),
		.queue = LITTLE_32(cut32(m.queue)),
		.out = LITTLE_32(cut32(m.out)),
		.in = LITTLE_32(cut32(m.in)),
	};
	link_control(ep, WIRE_MEANS, 0, 0, &c, sizeof(c));
	for (int i = 0; i < MEANS_FABRICS; i++) {
		memcpy(f.fabrics[i].name, m.fabrics[i].name, sizeof(f.fabrics[i].name));
		f.fabrics[i].requests = LITTLE_64(m.fabrics[i].requests);
	}
	link_control(ep, WIRE_MEANS, 1, 0, &f, sizeof(f));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		say_times(ep, &m, p);
}

static uint64_t bounded(uint32_t value, uint64_t most)
{
	value = LITTLE_32(value);
	return value < most ? value : most;
}

/* What a peer says is its own affair; sums must not run over. */
static void take_counts(struct means *to, const struct wire_counts *c)
{
	to->instances = bounded(c->instances, INSTANCES_MAX);
	to->links = bounded(c->links, UINT32_MAX);
	to->queue = bounded(c->queue, UINT32_MAX);
	to->out = bounded(c->out, 1000 * to->links);
	to->in = bounded(c->in, 1000 * to->links);
}

static void take_fabrics(struct means *to, const struct wire_fabrics *f)
{
	for (int i = 0; i < MEANS_FABRICS; i++) {
		char *name = to->fabrics[i].name;

		memcpy(name, f->fabrics[i].name, sizeof(to->fabrics[i].name));
		name[sizeof(to->fabrics[i].name) - 1] = 0;
		for (; *name; name++)
			if (*name <= ' ' || *name > '~')
				*name = '?';
		to->fabrics[i].requests = LITTLE_64(f->fabrics[i].requests);
	}
}

static void take_times(struct means *to, int p, const struct wire_times *w)
{
	for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
		to->cells[p][s] = (struct means_cell){.ns = 0};
		add_cell(&to->cells[p][s], LITTLE_32(w->ns[s]), LITTLE_16(w->count[s]));
	}
}

static uint32_t length_of(uint64_t part)
{
	return part == 0 ? sizeof(struct wire_counts) :
	       part == 1 ? sizeof(struct wire_fabrics) :
			   sizeof(struct wire_times);
}

static void take(struct means *to, const struct head *h)
{
	union {
		struct wire_counts counts;
		struct wire_fabrics fabrics;
		struct wire_times times;
	} w;

	memcpy(&w, h->data, h->length);
	if (h->seq == 0)
		take_counts(to, &w.counts);
	else if (h->seq == 1)
		take_fabrics(to, &w.fabrics);
	else
		take_times(to, (int)h->seq - 2, &w.times);
}

void means_heard(struct endpoint *ep, const struct head *h)
{
	struct means_part *heard = ep->monitor ? ep->monitor->heard : NULL;

	if (h->damaged || !ep->monitor)
		return;
	if (PEER_FAULT(h->seq >= MEANS_PARTS || h->flags & ~WIRE_FLAG_CHECK ||
		       h->length != length_of(h->seq))) {
		arrival_violates(ep, "means");
		return;
	}
	if (!is_kin(ep) || (!heard && !(heard = calloc(1, sizeof(*heard)))))
		return;
	pthread_mutex_lock(&lock);
	take(&heard->sum, h);
	if (!ep->monitor->heard)
		list_append(&parts, &heard->node);
	ep->monitor->heard = heard;
	make_known();
	pthread_mutex_unlock(&lock);
}

/* ---- for the program ---------------------------------------------------------------------------- */

static void give(const struct means *m, struct slmpm_means *out)
{
	out->size = sizeof(*out);
	out->instances = (uint32_t)m->instances;
	out->links = m->links;
	out->queue_depth = m->queue;
	out->out_permille = m->links ? (uint32_t)(m->out / m->links) : 0;
	out->in_permille = m->links ? (uint32_t)(m->in / m->links) : 0;
	for (int i = 0; i < MEANS_FABRICS; i++) {
		snprintf(out->fabrics[i].name, sizeof(out->fabrics[i].name), "%s",
			 m->fabrics[i].name);
		out->fabrics[i].requests = m->fabrics[i].requests;
	}
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++) {
			const struct means_cell *c = &m->cells[p][s];

			out->latency_ns[p][s] = c->count ? cut32(c->ns / c->count) : 0;
		}
}

int slmpm_means(struct slmpm_means *means, size_t size)
{
	struct slmpm_means now = {.size = 0};
	struct means all;

	if (!means || size < sizeof(means->size))
		return error_set(SLMPM_EINVAL, "slmpm_means: nowhere to write");
	pthread_mutex_lock(&lock);
	sum_without(&all, NULL);
	pthread_mutex_unlock(&lock);
	give(&all, &now);
	now.size = (uint32_t)(size < sizeof(now) ? size : sizeof(now));
	memcpy(means, &now, now.size);
	return 0;
}
