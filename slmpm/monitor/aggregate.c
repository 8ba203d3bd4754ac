/* SPDX-License-Identifier: BSD-3-Clause */
/* The aggregate of a job: its parts as they come and go, their sum for who asks (aggregate.h). */
#include "slmpm/monitor/aggregate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "slmpm/monitor/monitor.h"
#include "slmpm/base/sized.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/wire.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list received_parts = {&received_parts, &received_parts};
static const struct endpoint *parent; /* knows the job's number */
_Atomic uint64_t aggregate_job;
static struct aggregate all = {.instances = 1}; /* as of the last change */
static uint32_t jobs;

/* ---- other jobs' contributors ---------------------------------------------------------------- */

/*
 * What is received of one job over several links, or a second time around a circle, is the same
 * contributor: the youngest counts. One that nobody refreshes grows old wherever it is passed on,
 * and falls silent. When all places are taken, a link of few contributors takes one of the link
 * that has most: no liars leave others none.
 */
static struct contributor {
	uint64_t job;  /* 0: a free place */
	uint64_t born; /* ns: as old as what it says */
	const struct endpoint *via;
	struct aggregate sum;
} contributors[AGGREGATE_CONTRIBUTORS];
#define CONTRIBUTORS_END (contributors + AGGREGATE_CONTRIBUTORS)

static bool contributor_is_old(uint64_t born, uint64_t ns)
{
	return ns - born > AGGREGATE_AGE * monitor_period();
}

static int contributors_by(const struct endpoint *via)
{
	int n = 0;

	for (const struct contributor *c = contributors; c < CONTRIBUTORS_END; c++)
		n += c->job && c->via == via;
	return n;
}

/* All are taken: the oldest of the link that has most, if it keeps as many as one of MINE then has.
 * Links that have ended come first. */
static struct contributor *contributor_take_over(int mine)
{
	struct contributor *best = NULL;
	int most = mine + 1;

	for (struct contributor *c = contributors; c < CONTRIBUTORS_END; c++) {
		int n = c->via ? contributors_by(c->via) : AGGREGATE_CONTRIBUTORS + 1;

		if (n > most || (best && n == most && c->born < best->born)) {
			best = c;
			most = n;
		}
	}
	if (best)
		best->job = 0;
	return best;
}

/* Its place; or a free one, where the link may have more. */
static struct contributor *contributor_find(const struct endpoint *ep, uint64_t job, uint64_t ns)
{
	struct contributor *free = NULL;

	for (struct contributor *c = contributors; c < CONTRIBUTORS_END; c++) {
		if (c->job && contributor_is_old(c->born, ns))
			c->job = 0;
		if (c->job == job)
			return c;
		if (!c->job && !free)
			free = c;
	}
	if (contributors_by(ep) >= AGGREGATE_CONTRIBUTORS / 2)
		return NULL;
	return free ? free : contributor_take_over(contributors_by(ep));
}

/* Where JOB's goes, received over EP, BORN then. NULL: no room, or a younger one is known. */
static struct aggregate *contributor_place(const struct endpoint *ep, uint64_t job, uint64_t born)
{
	uint64_t ns = clock_now();
	struct contributor *c = contributor_is_old(born, ns) ? NULL : contributor_find(ep, job, ns);

	if (!c || (c->job && born < c->born))
		return NULL;
	if (!c->job)
		memset(&c->sum, 0, sizeof(c->sum));
	c->job = job;
	c->born = born;
	c->via = ep;
	return &c->sum;
}

/* Adds those that have not fallen silent: how many. */
static uint32_t contributors_add(struct aggregate *sum, uint64_t ns)
{
	uint32_t n = 0;

	for (const struct contributor *c = contributors; c < CONTRIBUTORS_END; c++)
		if (c->job && c->job != aggregate_job && !contributor_is_old(c->born, ns)) {
			aggregate_add(sum, &c->sum);
			n++;
		}
	return n;
}

/* EP goes; NULL: they are the parent process's. */
static void contributors_forget(const struct endpoint *ep)
{
	for (struct contributor *c = contributors; c < CONTRIBUTORS_END; c++)
		if (!ep)
			c->job = 0;
		else if (c->via == ep)
			c->via = NULL; /* it may come by another link */
}

/* ---- of the job ------------------------------------------------------------------------------ */

static uint32_t aggregate_cut32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Of the job, but for one part; the process itself is an instance. With the lock. */
static void sum_without(struct aggregate *sum, const struct aggregate_part *without)
{
	*sum = (struct aggregate){.instances = 1};
	LIST_EACH_ENTRY(const struct aggregate_part, part, &received_parts, node)
		if (part != without)
			aggregate_add(sum, &part->sum);
}

void aggregate_of_job(const struct endpoint *ep, struct aggregate *sum)
{
	pthread_mutex_lock(&lock);
	sum_without(sum, ep ? ep->rooms->monitor->aggregate.received : NULL);
	pthread_mutex_unlock(&lock);
}

/* With the lock. */
static void sum_all(void)
{
	sum_without(&all, NULL);
	jobs = 1 + contributors_add(&all, clock_now());
}

static uint32_t aggregate_share(uint64_t sum, uint64_t links)
{
	return links ? aggregate_cut32(sum / links) : 0;
}

/* ---- for the selector ------------------------------------------------------------------------ */

static uint32_t mean_for(int protocol, uint64_t length)
{
	return aggregate_cut32(aggregate_mean(&all.cells[protocol][slmpm_size_class(length)]));
}

static uint64_t take_fabric(const struct aggregate_fabric *f, const struct monitor_load *own,
			    struct mode_others *to)
{
	uint64_t busy = excess_of(f->busy, own->busy);

	to->queue = aggregate_share(excess_of(f->queue, own->queue), busy);
	to->permille = aggregate_share(excess_of(f->load, own->out), busy);
	to->echo = aggregate_cut32(aggregate_mean(&f->echo));
	return busy;
}

uint64_t aggregate_inspect_fabric(const char *name, const struct monitor_load *own,
				  const struct mode_ask *ask, struct mode_others *others)
{
	uint64_t wanted = aggregate_name(name), busy = 0;

	pthread_mutex_lock(&lock);
	*others = (struct mode_others){.known = all.instances > 1};
	for (int i = 0; others->known && i < AGGREGATE_FABRICS; i++)
		if (all.fabrics[i].name == wanted)
			busy = take_fabric(&all.fabrics[i], own, others);
	if (others->known && ask->op == MODE_SEND) {
		others->cost[0] = mean_for(SLMPM_BY_SMT, ask->size);
		others->cost[1] = mean_for(SLMPM_BY_RGET, ask->size);
	}
	pthread_mutex_unlock(&lock);
	return busy;
}

uint64_t aggregate_busy(const struct aggregate *m)
{
	uint64_t busy = 0;

	for (int i = 0; i < AGGREGATE_FABRICS; i++)
		busy += m->fabrics[i].busy;
	return busy;
}

bool aggregate_is_busy(void)
{
	bool busy;

	pthread_mutex_lock(&lock);
	busy = aggregate_busy(&all);
	pthread_mutex_unlock(&lock);
	return busy;
}

uint32_t aggregate_instances(void)
{
	uint32_t instances;

	pthread_mutex_lock(&lock);
	instances = aggregate_cut32(all.instances);
	pthread_mutex_unlock(&lock);
	return instances;
}

/* ---- its number ------------------------------------------------------------------------------ */

/* 48 bits that no other job has, and not 0. */
static uint64_t new_job(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = clock_now() ^ (uint64_t)getpid() << 32;
	return (number & WIRE_LENGTH_MASK) | 1;
}

void aggregate_agreed(struct endpoint *ep, uint64_t features)
{
	ep->rooms->monitor->aggregate.agreed = features & WIRE_FEATURE_AGGREGATE;
	pthread_mutex_lock(&lock);
	if (ep->life->is_parent && ep->rooms->monitor->aggregate.agreed) {
		parent = ep;
		aggregate_job = 0;
	} else if (!aggregate_job && !parent) {
		aggregate_job = new_job();
	}
	pthread_mutex_unlock(&lock);
}

/* ---- its parts ------------------------------------------------------------------------------- */

void aggregate_inspect(struct context *ctx, uint64_t ns)
{
	struct aggregate_part *own = ctx->monitor.own;
	struct aggregate sum;

	if (ns - ctx->monitor.summed < monitor_period())
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
	sum_all();
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
	sum_all();
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
	aggregate_forget(ep->rooms->monitor->aggregate.received);
	ep->rooms->monitor->aggregate.received = NULL;
	pthread_mutex_lock(&lock);
	contributors_forget(ep);
	if (parent == ep) { /* what is left here is a job of its own */
		parent = NULL;
		aggregate_job = new_job();
	}
	pthread_mutex_unlock(&lock);
}

void aggregate_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	list_init(&received_parts);
	contributors_forget(NULL);
	parent = NULL;
	aggregate_job = 0;
	sum_all();
}

/* ---- what is received ------------------------------------------------------------------------ */

/* Keeps the lock until aggregate_changed, unless it is NULL. */
struct aggregate *aggregate_change(struct endpoint *ep, uint64_t from, uint64_t born)
{
	struct aggregate_part **received = &ep->rooms->monitor->aggregate.received;
	struct aggregate *m;

	pthread_mutex_lock(&lock);
	if (!from && !*received && (*received = calloc(1, sizeof(**received))))
		list_append(&received_parts, &(*received)->node);
	m = from ? contributor_place(ep, from, born) : *received ? &(*received)->sum : NULL;
	if (!m)
		pthread_mutex_unlock(&lock);
	return m;
}

void aggregate_changed(void)
{
	sum_all();
	pthread_mutex_unlock(&lock);
}

bool aggregate_next_contributor(const struct endpoint *ep, uint32_t *at, uint64_t *from,
				uint64_t *age, struct aggregate *sum)
{
	uint64_t ns = clock_now();
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; !found && i < AGGREGATE_CONTRIBUTORS; i++) {
		const struct contributor *v = &contributors[(*at)++ % AGGREGATE_CONTRIBUTORS];

		if (!v->job || v->job == aggregate_job || v->via == ep ||
		    contributor_is_old(v->born, ns))
			continue;
		*from = v->job;
		*age = (ns - v->born) / 1000000 + 1;
		*sum = v->sum;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- for the program ------------------------------------------------------------------------- */

static void give_fabric(const struct aggregate_fabric *f, struct slmpm_aggregate_fabric *out)
{
	uint64_t name = LITTLE_64(f->name);

	memcpy(out->name, &name, sizeof(name));
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
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	pthread_mutex_lock(&lock);
	sum_all(); /* some have fallen silent */
	out->jobs = jobs;
	out->job = aggregate_job;
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
	pthread_mutex_unlock(&lock);
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
