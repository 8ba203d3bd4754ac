/* SPDX-License-Identifier: BSD-3-Clause */
/* The means of a job: its parts as they come and go, their sum for who asks (means.h). */
#include "slmpm/monitor/means.h"

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
static struct list heard_parts = {&heard_parts, &heard_parts};
static const struct endpoint *parent; /* who knows the job's number */
static _Atomic uint64_t job;          /* 0: not known yet */
/* For who may not wait: the mean of each cell, 0 where there is none; and the instances. */
static _Atomic uint32_t known[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES], instances = 1;

static _Atomic bool loaded; /* some fabric has much to do */
static struct {             /* the same of fabrics */
	_Atomic uint64_t name;
	_Atomic uint64_t rings; /* in the upper half how many are busy, in the lower their load */
	_Atomic uint32_t queue, echo;
} fabrics[MEANS_FABRICS];

/* ---- of the job ------------------------------------------------------------------------------- */

static uint32_t cut32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Of the job, but for one part; the process itself is an instance. With the lock. */
static void sum_without(struct means *sum, const struct means_part *without)
{
	*sum = (struct means){.instances = 1};
	LIST_EACH(at, &heard_parts) {
		const struct means_part *part = LIST_ENTRY(at, struct means_part, node);

		if (part != without)
			means_add(sum, &part->sum);
	}
}

void means_of_job(const struct endpoint *ep, struct means *sum)
{
	pthread_mutex_lock(&lock);
	sum_without(sum, ep ? ep->monitor->means.heard : NULL);
	pthread_mutex_unlock(&lock);
}

/* Of all: how many jobs. With the lock. */
static uint32_t sum_all(struct means *all)
{
	sum_without(all, NULL);
	return 1 + voices_add(all, clock_now());
}

static uint32_t share(uint64_t sum, uint64_t links)
{
	return links ? cut32(sum / links) : 0;
}

/* A reader may find figures of two moments: each of them was true. */
static void make_fabric_known(int i, const struct means_fabric *f)
{
	uint64_t name;

	memcpy(&name, f->name, sizeof(name));
	atomic_store_explicit(&fabrics[i].queue, cut32(f->queue), memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].rings, (uint64_t)cut32(f->busy) << 32 | cut32(f->load),
			      memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].echo, cut32(means_mean(&f->echo)), memory_order_relaxed);
	atomic_store_explicit(&fabrics[i].name, name, memory_order_relaxed);
}

static uint32_t without(uint32_t all, uint32_t own)
{
	return all > own ? all - own : 0;
}

static void take_known(int i, const struct monitor_load *own, struct means_known *to)
{
	uint64_t rings = atomic_load_explicit(&fabrics[i].rings, memory_order_relaxed);
	uint32_t queue = atomic_load_explicit(&fabrics[i].queue, memory_order_relaxed);

	to->busy = without((uint32_t)(rings >> 32), own->busy);
	to->queue = share(without(queue, own->queue), to->busy);
	to->out_permille = share(without((uint32_t)rings, own->out), to->busy);
	to->echo = atomic_load_explicit(&fabrics[i].echo, memory_order_relaxed);
}

bool means_fabric_known(const char *name, const struct monitor_load *own, struct means_known *to)
{
	char word[sizeof(uint64_t)] = "";
	uint64_t wanted;

	snprintf(word, sizeof(word), "%.7s", name);
	memcpy(&wanted, word, sizeof(wanted));
	for (int i = 0; i < MEANS_FABRICS; i++) {
		if (atomic_load_explicit(&fabrics[i].name, memory_order_relaxed) != wanted)
			continue;
		take_known(i, own, to);
		return true;
	}
	return false;
}

bool means_is_busy(void)
{
	return atomic_load_explicit(&loaded, memory_order_relaxed);
}

static void make_known(void)
{
	struct means all;
	uint64_t busy = 0;

	(void)sum_all(&all);
	atomic_store_explicit(&instances, cut32(all.instances), memory_order_relaxed);
	for (int i = 0; i < MEANS_FABRICS; i++) {
		make_fabric_known(i, &all.fabrics[i]);
		busy += all.fabrics[i].busy;
	}
	atomic_store_explicit(&loaded, busy, memory_order_relaxed);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			atomic_store_explicit(&known[p][s], cut32(means_mean(&all.cells[p][s])),
					      memory_order_relaxed);
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

/* ---- its number --------------------------------------------------------------------------------- */

/* 48 bits that no other job has, and not 0. */
static uint64_t new_job(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = clock_now() ^ (uint64_t)getpid() << 32;
	return (number & WIRE_LENGTH_MASK) | 1;
}

uint64_t means_job(void)
{
	return atomic_load_explicit(&job, memory_order_relaxed);
}

void means_set_job(uint64_t number)
{
	atomic_store_explicit(&job, number, memory_order_relaxed);
}

void means_agreed(struct endpoint *ep, uint64_t features)
{
	ep->monitor->means.agreed = features & WIRE_FEATURE_MEANS;
	pthread_mutex_lock(&lock);
	if (ep->is_parent && ep->monitor->means.agreed) {
		parent = ep;
		means_set_job(0);
	} else if (!means_job() && !parent) {
		means_set_job(new_job());
	}
	pthread_mutex_unlock(&lock);
}

/* ---- its parts ---------------------------------------------------------------------------------- */

void means_look(struct context *ctx, uint64_t ns)
{
	struct means_part *own = ctx->monitor.own;
	struct means sum;

	if (ns - ctx->monitor.summed < (uint64_t)config_get()->monitor_ms * 1000000)
		return;
	ctx->monitor.summed = ns;
	if (!own && !(own = calloc(1, sizeof(*own))))
		return;
	means_of_links(ctx, &sum);
	pthread_mutex_lock(&lock);
	own->sum = sum;
	if (!ctx->monitor.own)
		list_append(&heard_parts, &own->node);
	ctx->monitor.own = own;
	make_known();
	pthread_mutex_unlock(&lock);
	monitor_publish_means(ctx);
}

/* With it goes what came over the link, or from the context. */
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
	forget(ep->monitor->means.heard);
	ep->monitor->means.heard = NULL;
	pthread_mutex_lock(&lock);
	voices_forget(ep);
	if (parent == ep) { /* what is left here is a job of its own */
		parent = NULL;
		means_set_job(new_job());
	}
	pthread_mutex_unlock(&lock);
}

void means_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	list_init(&heard_parts);
	voices_forget(NULL);
	parent = NULL;
	means_set_job(0);
	make_known();
}

/* ---- what others tell ------------------------------------------------------------------------- */

void means_change(struct endpoint *ep, uint64_t from, uint64_t born,
		  void (*set)(struct means *m, const void *arg), const void *arg)
{
	struct means_part **heard = &ep->monitor->means.heard;
	struct means *m;

	pthread_mutex_lock(&lock);
	if (!from && !*heard && (*heard = calloc(1, sizeof(**heard))))
		list_append(&heard_parts, &(*heard)->node);
	m = from ? voices_place(ep, from, born) : *heard ? &(*heard)->sum : NULL;
	if (m)
		set(m, arg);
	make_known();
	pthread_mutex_unlock(&lock);
}

bool means_next_voice(const struct endpoint *ep, uint32_t *at, uint64_t *from, uint64_t *age,
		      struct means *sum)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = voices_next(ep, clock_now(), at, from, age, sum);
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- for the program ---------------------------------------------------------------------------- */

static void give_fabric(const struct means_fabric *f, struct slmpm_means_fabric *out)
{
	snprintf(out->name, sizeof(out->name), "%s", f->name);
	out->requests = f->requests;
	out->links = f->links;
	out->queue_depth = f->queue;
	out->busy_links = f->busy;
	out->out_permille = share(f->out, f->links);
	out->in_permille = share(f->in, f->links);
	out->echo_ns = cut32(means_mean(&f->echo));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		out->latency_ns[p] = cut32(means_mean(&f->latency[p]));
}

void means_take(struct slmpm_means *out)
{
	struct means all;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	pthread_mutex_lock(&lock);
	out->jobs = sum_all(&all);
	out->job = means_job();
	pthread_mutex_unlock(&lock);
	out->instances = cut32(all.instances);
	out->links = all.links;
	out->queue_depth = all.queue;
	out->out_permille = share(all.out, all.links);
	out->in_permille = share(all.in, all.links);
	for (int i = 0; i < MEANS_FABRICS; i++)
		give_fabric(&all.fabrics[i], &out->fabrics[i]);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			out->latency_ns[p][s] = cut32(means_mean(&all.cells[p][s]));
}

int slmpm_means(struct slmpm_means *means, size_t size)
{
	struct slmpm_means now;

	if (sized_check("slmpm_means", means, size, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	means_take(&now);
	sized_give(means, size, &now, sizeof(now));
	return 0;
}
