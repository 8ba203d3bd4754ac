/* SPDX-License-Identifier: BSD-3-Clause */
/* The aggregate of a job: its parts as they come and go, their sum for who asks (aggregate.h). */
#include "slmpm/monitor/aggregate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "slmpm/base/error.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/sized.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/wire.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list received_parts = {&received_parts, &received_parts};
static const struct endpoint *parent; /* who knows the job's number */
static _Atomic uint64_t job;          /* 0: not known yet */
/* For who may not wait: the mean of each cell, 0 where there is none; and the instances. */
static _Atomic uint32_t known[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES], instances = 1;

static _Atomic bool loaded; /* some fabric has much to do */
static struct {             /* the same of fabrics */
	_Atomic uint64_t name;
	_Atomic uint64_t rings; /* in the upper half how many are busy, in the lower their load */
	_Atomic uint32_t queue, echo;
} fabrics[AGGREGATE_FABRICS];

/* ---- of the job ------------------------------------------------------------------------------- */

static uint32_t aggregate_cut32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Of the job, but for one part; the process itself is an instance. With the lock. */
static void sum_without(struct aggregate *sum, const struct aggregate_part *without)
{
	*sum = (struct aggregate){.instances = 1};
	LIST_EACH(at, &received_parts) {
		const struct aggregate_part *part = LIST_ENTRY(at, struct aggregate_part, node);

		if (part != without)
			aggregate_add(sum, &part->sum);
	}
}

void aggregate_of_job(const struct endpoint *ep, struct aggregate *sum)
{
	pthread_mutex_lock(&lock);
	sum_without(sum, ep ? ep->monitor->aggregate.heard : NULL);
	pthread_mutex_unlock(&lock);
}

/* Of all: how many jobs. With the lock. */
static uint32_t sum_all(struct aggregate *all)
{
	sum_without(all, NULL);
	return 1 + contributors_add(all, clock_now());
}

static uint32_t aggregate_share(uint64_t sum, uint64_t links)
{
	return links ? aggregate_cut32(sum / links) : 0;
}

/* A reader may find figures of two moments: each of them was true. */
static void make_fabric_known(int i, const struct aggregate_fabric *f)
{
	uint64_t name;

	memcpy(&name, f->name, sizeof(name));
	atomic_store_explicit(&fabrics[i].queue, aggregate_cut32(f->queue), memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].rings,
			      (uint64_t)aggregate_cut32(f->busy) << 32 | aggregate_cut32(f->load),
			      memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].echo, aggregate_cut32(aggregate_mean(&f->echo)),
			      memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].name, name, memory_order_relaxed);
}

static uint32_t aggregate_without(uint32_t all, uint32_t own)
{
	return all > own ? all - own : 0;
}

static void take_known(int i, const struct monitor_load *own, struct aggregate_known *to)
{
	uint64_t rings = atomic_load_explicit(&fabrics[i].rings, memory_order_relaxed);
	uint32_t queue = atomic_load_explicit(&fabrics[i].queue, memory_order_relaxed);

	to->busy = aggregate_without((uint32_t)(rings >> 32), own->busy);
	to->queue = aggregate_share(aggregate_without(queue, own->queue), to->busy);
	to->out_permille = aggregate_share(aggregate_without((uint32_t)rings, own->out), to->busy);
	to->echo = atomic_load_explicit(&fabrics[i].echo, memory_order_relaxed);
}

bool aggregate_fabric_known(const char *name, const struct monitor_load *own,
			    struct aggregate_known *to)
{
	char word[sizeof(uint64_t)] = "";
	uint64_t wanted;

	snprintf(word, sizeof(word), "%.7s", name);
	memcpy(&wanted, word, sizeof(wanted));
	for (int i = 0; i < AGGREGATE_FABRICS; i++) {
		if (atomic_load_explicit(&fabrics[i].name, memory_order_relaxed) != wanted)
			continue;
		take_known(i, own, to);
		return true;
	}
	return false;
}

bool aggregate_is_busy(void)
{
	return atomic_load_explicit(&loaded, memory_order_relaxed);
}

static void make_known(void)
{
	struct aggregate all;
	uint64_t busy = 0;

	(void)sum_all(&all);
	atomic_store_explicit(&instances, aggregate_cut32(all.instances), memory_order_relaxed);
	for (int i = 0; i < AGGREGATE_FABRICS; i++) {
		make_fabric_known(i, &all.fabrics[i]);
		busy += all.fabrics[i].busy;
	}
	atomic_store_explicit(&loaded, busy, memory_order_relaxed);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			atomic_store_explicit(&known[p][s],
					      aggregate_cut32(aggregate_mean(&all.cells[p][s])),
					      memory_order_relaxed);
}

bool monitor_mean(int protocol, uint64_t length, uint64_t *ns)
{
	*ns = atomic_load_explicit(&known[protocol][slmpm_size_class(length)],
				   memory_order_relaxed);
	return *ns;
}

uint32_t aggregate_instances(void)
{
	return atomic_load_explicit(&instances, memory_order_relaxed);
}

/* ---- its number --------------------------------------------------------------------------------- */

/* 48 bits that no other job has, and not 0. */
static uint64_t new_job(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = clock_now() ^ (uint64_t)getpid() << 32;
	return (number & WIRE_LENGTH_MASK) | 1;
}

uint64_t aggregate_job(void)
{
	return atomic_load_explicit(&job, memory_order_relaxed);
}

void aggregate_set_job(uint64_t number)
{
	atomic_store_explicit(&job, number, memory_order_relaxed);
}

void aggregate_agreed(struct endpoint *ep, uint64_t features)
{
	ep->monitor->aggregate.agreed = features & WIRE_FEATURE_AGGREGATE;
	pthread_mutex_lock(&lock);
	if (ep->life->is_parent && ep->monitor->aggregate.agreed) {
		parent = ep;
		aggregate_set_job(0);
	} else if (!aggregate_job() && !parent) {
		aggregate_set_job(new_job());
	}
	pthread_mutex_unlock(&lock);
}

/* ---- its parts ---------------------------------------------------------------------------------- */

void aggregate_inspect(struct context *ctx, uint64_t ns)
{
	struct aggregate_part *own = ctx->monitor.own;
	struct aggregate sum;

	if (ns - ctx->monitor.summed < (uint64_t)config_get()->monitor_ms * 1000000)
		return;
	ctx->monitor.summed = ns;
	if (!own && !(own = calloc(1, sizeof(*own))))
		return;
	aggregate_of_links(ctx, &sum);
	pthread_mutex_lock(&lock);
	own->sum = sum;
	if (!ctx->monitor.own)
		list_append(&received_parts, &own->node);
	ctx->monitor.own = own;
	make_known();
	pthread_mutex_unlock(&lock);
	monitor_publish_aggregate(ctx);
}

/* With it goes what came over the link, or from the context. */
static void aggregate_forget(struct aggregate_part *part)
{
	if (!part)
		return;
	pthread_mutex_lock(&lock);
	list_remove(&part->node);
	make_known();
	pthread_mutex_unlock(&lock);
	free(part);
}

void aggregate_shut(struct context *ctx)
{
	aggregate_forget(ctx->monitor.own);
	ctx->monitor.own = NULL;
}

void aggregate_end(struct endpoint *ep)
{
	aggregate_forget(ep->monitor->aggregate.heard);
	ep->monitor->aggregate.heard = NULL;
	pthread_mutex_lock(&lock);
	contributors_forget(ep);
	if (parent == ep) { /* what is left here is a job of its own */
		parent = NULL;
		aggregate_set_job(new_job());
	}
	pthread_mutex_unlock(&lock);
}

void aggregate_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	list_init(&received_parts);
	contributors_forget(NULL);
	parent = NULL;
	aggregate_set_job(0);
	make_known();
}

/* ---- what others tell ------------------------------------------------------------------------- */

void aggregate_change(struct endpoint *ep, uint64_t from, uint64_t born,
		      void (*set)(struct aggregate *m, const void *arg), const void *arg)
{
	struct aggregate_part **heard = &ep->monitor->aggregate.heard;
	struct aggregate *m;

	pthread_mutex_lock(&lock);
	if (!from && !*heard && (*heard = calloc(1, sizeof(**heard))))
		list_append(&received_parts, &(*heard)->node);
	m = from ? contributors_place(ep, from, born) : *heard ? &(*heard)->sum : NULL;
	if (m)
		set(m, arg);
	make_known();
	pthread_mutex_unlock(&lock);
}

bool aggregate_next_contributor(const struct endpoint *ep, uint32_t *at, uint64_t *from,
				uint64_t *age, struct aggregate *sum)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = contributors_next(ep, clock_now(), at, from, age, sum);
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- for the program ---------------------------------------------------------------------------- */

static void give_fabric(const struct aggregate_fabric *f, struct slmpm_aggregate_fabric *out)
{
	snprintf(out->name, sizeof(out->name), "%s", f->name);
	out->requests = f->requests;
	out->links = f->links;
	out->queue_depth = f->queue;
	out->busy_links = f->busy;
	out->out_permille = aggregate_share(f->out, f->links);
	out->in_permille = aggregate_share(f->in, f->links);
	out->echo_ns = aggregate_cut32(aggregate_mean(&f->echo));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		out->latency_ns[p] = aggregate_cut32(aggregate_mean(&f->latency[p]));
}

void aggregate_take(struct slmpm_aggregate *out)
{
	struct aggregate all;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	pthread_mutex_lock(&lock);
	out->jobs = sum_all(&all);
	out->job = aggregate_job();
	pthread_mutex_unlock(&lock);
	out->instances = aggregate_cut32(all.instances);
	out->links = all.links;
	out->queue_depth = all.queue;
	out->out_permille = aggregate_share(all.out, all.links);
	out->in_permille = aggregate_share(all.in, all.links);
	for (int i = 0; i < AGGREGATE_FABRICS; i++)
		give_fabric(&all.fabrics[i], &out->fabrics[i]);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			out->latency_ns[p][s] = aggregate_cut32(aggregate_mean(&all.cells[p][s]));
}

int slmpm_aggregate(struct slmpm_aggregate *aggregate, size_t size)
{
	struct slmpm_aggregate now;

	if (sized_check("slmpm_aggregate", aggregate, size, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	aggregate_take(&now);
	sized_give(aggregate, size, &now, sizeof(now));
	return 0;
}
