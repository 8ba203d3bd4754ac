/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of what a job measures, and its means (means.h). */
#include "slmpm/monitor/means.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "slmpm/error.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/wait.h"
#include "slmpm/wire.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list parts = {&parts, &parts};
static const struct endpoint *parent; /* who knows the job's number */
static _Atomic uint64_t job;          /* 0: not known yet */
/* For who may not wait: the mean of each cell, 0 where there is none; and the instances. */
static _Atomic uint32_t known[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES], instances = 1;

/* ---- sums ------------------------------------------------------------------------------------- */

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void means_add_cell(struct means_cell *to, uint64_t ns, uint32_t count)
{
	if (!ns || ns > MEANS_LATENCY)
		return;
	to->ns += ns * count;
	to->count += count;
}

static void add_sum(struct means_cell *to, const struct means_cell *c)
{
	to->ns += c->ns;
	to->count += c->count;
}

static uint64_t mean(const struct means_cell *c)
{
	return c->count ? c->ns / c->count : 0;
}

/* The last place is for all that find none. */
static struct means_fabric *fabric_of(struct means *m, const char *name)
{
	int i = 0;

	while (i < MEANS_FABRICS - 1 && m->fabrics[i].name[0] &&
	       strncmp(m->fabrics[i].name, name, sizeof(m->fabrics[i].name) - 1) != 0)
		i++;
	snprintf(m->fabrics[i].name, sizeof(m->fabrics[i].name), "%.7s", name);
	return &m->fabrics[i];
}

static void add_fabric(struct means *to, const struct means_fabric *f)
{
	struct means_fabric *at = fabric_of(to, f->name);

	at->requests = plus(at->requests, f->requests);
	at->links += f->links;
	at->out += f->out;
	at->in += f->in;
	add_sum(&at->echo, &f->echo);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		add_sum(&at->latency[p], &f->latency[p]);
}

void means_add(struct means *to, const struct means *m)
{
	to->instances += m->instances;
	to->links += m->links;
	to->queue += m->queue;
	to->out += m->out;
	to->in += m->in;
	for (int i = 0; i < MEANS_FABRICS; i++)
		if (m->fabrics[i].name[0])
			add_fabric(to, &m->fabrics[i]);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			add_sum(&to->cells[p][s], &m->cells[p][s]);
}

/* Of the job, but for one part; the process itself is an instance. With the lock. */
static void sum_without(struct means *sum, const struct means_part *without)
{
	*sum = (struct means){.instances = 1};
	LIST_EACH(at, &parts) {
		const struct means_part *part = LIST_ENTRY(at, struct means_part, node);

		if (part != without)
			means_add(sum, &part->sum);
	}
}

void means_of_job(const struct endpoint *ep, struct means *sum)
{
	pthread_mutex_lock(&lock);
	sum_without(sum, ep ? ep->monitor->heard : NULL);
	pthread_mutex_unlock(&lock);
}

static uint32_t cut32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Of all: how many jobs. With the lock. */
static uint32_t sum_all(struct means *all)
{
	sum_without(all, NULL);
	return 1 + voices_add(all, wait_now());
}

static void make_known(void)
{
	struct means all;

	(void)sum_all(&all);
	atomic_store_explicit(&instances, cut32(all.instances), memory_order_relaxed);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			atomic_store_explicit(&known[p][s], cut32(mean(&all.cells[p][s])),
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

/* ---- the job ---------------------------------------------------------------------------------- */

/* 48 bits that no other job has, and not 0. */
static uint64_t new_job(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = wait_now() ^ (uint64_t)getpid() << 32;
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

void means_begin(struct endpoint *ep)
{
	pthread_mutex_lock(&lock);
	if (ep->is_parent && ep->monitor->echo.means) {
		parent = ep;
		means_set_job(0);
	} else if (!means_job() && !parent) {
		means_set_job(new_job());
	}
	pthread_mutex_unlock(&lock);
}

/* ---- what this process sees itself -------------------------------------------------------------- */

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

static void add_one(struct means_cell *to, uint64_t ns)
{
	means_add_cell(to, ns, 1);
}

/* Of several links of a peer, the one that is in use. */
static const char *fabric_in_use(const struct slmpm_monitor *m)
{
	for (uint32_t i = 0; i < m->path_count; i++)
		if (m->paths[i].used)
			return m->paths[i].link;
	return m->link;
}

static void add_link(struct means *sum, const struct slmpm_monitor *m)
{
	struct means_fabric *f = fabric_of(sum, fabric_in_use(m));

	sum->links++;
	f->links++;
	sum->queue += m->queue_depth;
	sum->out += m->out_permille;
	sum->in += m->in_permille;
	f->out += m->out_permille;
	f->in += m->in_permille;
	add_one(&f->echo, m->echo_ns);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		f->requests = plus(f->requests, m->requests[p]);
		add_one(&f->latency[p],
			mean_of(m->timing[p][0], SLMPM_SIZE_CLASSES * SLMPM_WARMTH));
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			add_one(&sum->cells[p][s], mean_of(m->timing[p][s], SLMPM_WARMTH));
	}
}

static void to_one(struct means_cell *c)
{
	c->ns = mean(c);
	c->count = c->count != 0;
}

/* A context is one voice, however many links it has. */
static void to_one_voice(struct means *sum)
{
	for (int i = 0; i < MEANS_FABRICS; i++) {
		to_one(&sum->fabrics[i].echo);
		for (int p = 0; p < SLMPM_PROTOCOLS; p++)
			to_one(&sum->fabrics[i].latency[p]);
	}
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			to_one(&sum->cells[p][s]);
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
	forget(ep->monitor->heard);
	ep->monitor->heard = NULL;
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
	list_init(&parts);
	voices_forget(NULL);
	parent = NULL;
	means_set_job(0);
	make_known();
}

/* ---- what others tell ------------------------------------------------------------------------- */

void means_change(struct endpoint *ep, uint64_t from, uint64_t born,
		  void (*set)(struct means *m, const void *arg), const void *arg)
{
	struct means_part **heard = &ep->monitor->heard;
	struct means *m;

	pthread_mutex_lock(&lock);
	if (!from && !*heard && (*heard = calloc(1, sizeof(**heard))))
		list_append(&parts, &(*heard)->node);
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
	found = voices_next(ep, wait_now(), at, from, age, sum);
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- for the program ---------------------------------------------------------------------------- */

static uint32_t share(uint64_t permille, uint64_t links)
{
	return links ? (uint32_t)(permille / links) : 0;
}

static void give_fabric(const struct means_fabric *f, struct slmpm_means_fabric *out)
{
	snprintf(out->name, sizeof(out->name), "%s", f->name);
	out->requests = f->requests;
	out->links = f->links;
	out->out_permille = share(f->out, f->links);
	out->in_permille = share(f->in, f->links);
	out->echo_ns = cut32(mean(&f->echo));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		out->latency_ns[p] = cut32(mean(&f->latency[p]));
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
			out->latency_ns[p][s] = cut32(mean(&all.cells[p][s]));
}

int slmpm_means(struct slmpm_means *means, size_t size)
{
	struct slmpm_means now;

	if (!means || size < sizeof(means->size))
		return error_set(SLMPM_EINVAL, "slmpm_means: nowhere to write");
	means_take(&now);
	now.size = (uint32_t)(size < sizeof(now) ? size : sizeof(now));
	memcpy(means, &now, now.size);
	return 0;
}
