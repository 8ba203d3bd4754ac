/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: opening, the default one of each thread, closing (context.h). */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/domain.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/part.h"
#include "slmpm/request.h"
#include "slmpm/scan.h"
#include "slmpm/net/topology.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"
#include "slmpm/watch.h"

#define SEGMENTS_MAX     (1U << 24) /* as of the settings */
#define SEGMENT_SIZE_MAX (1U << 20)
#define SCAN_SPINS       1000 /* until who scans without the lock has ended that, as a rule */

struct handle_table context_table = HANDLE_TABLE("context", struct context);

static _Thread_local slmpm_ctx default_ctx;

extern inline slmpm_peer slmpm_any(slmpm_ctx ctx);

void context_wake(struct context *ctx)
{
	static const uint64_t one = 1;

	if (ctx->waiting)
		pthread_cond_broadcast(&ctx->changed);
	if (ctx->scan)
		atomic_store_explicit(&ctx->scan->over, true, memory_order_relaxed);
	if (ctx->sleeping && ctx->kick >= 0)
		(void)!write(ctx->kick, &one, sizeof(one));
}

void context_take_lock(struct context *ctx)
{
	if (UNLIKELY(lock_take(&ctx->lock)))
		ctx->turns++;
}

/* A pass has something to do that shows in no word that is scanned. */
static bool leaves_pass(const struct context *ctx)
{
	if (!list_empty(&ctx->ready))
		return true;
	for (uint32_t i = 0; i < ctx->live; i++)
		if (!endpoint_is_at_rest(ctx->endpoints[i]))
			return true;
	return false;
}

COLD void context_rouse(struct context *ctx)
{
	bool roused = ctx->scan ? leaves_pass(ctx) : domain_has_roused(ctx);

	if (context_leaves_work(ctx) || roused)
		context_wake(ctx);
}

COLD void context_end_scan(struct context *ctx)
{
	static const struct timespec moment = {.tv_nsec = 20000};
	struct scan *s = ctx->scan;

	if (!s)
		return;
	atomic_store_explicit(&s->over, true, memory_order_relaxed);
	/* Pairs with the release in wait_scan: its last load comes before what is done here next. */
	for (int i = 0; atomic_load_explicit(&s->inside, memory_order_acquire); i++)
		if (i < SCAN_SPINS)
			clock_pause();
		else
			(void)nanosleep(&moment, NULL);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The fabric of the setting at once: whoever cannot use it is told so here. */
static int open_domain(struct context *ctx, const struct slmpm_options *o)
{
	int rc = domain_shape(ctx, o);

	ctx->postings = ctx->shape.start;
	if (rc == 0)
		(void)domain_get(ctx, NULL, &rc);
	return rc;
}

static int context_check_options(const struct slmpm_options *o)
{
	uint32_t n = o ? o->ring_segments : 0, size = o ? o->ring_segment_size : 0;

	if (!o)
		return 0;
	if (o->reserved)
		return error_set(SLMPM_EINVAL, "slmpm_open: .reserved is %u, not 0", o->reserved);
	if (o->flags & ~(SLMPM_THREADS | SLMPM_HEADER_IDS | SLMPM_HEADER_ADDRESS) ||
	    o->wait > SLMPM_WAIT_BLOCK)
		return error_set(SLMPM_EINVAL, "slmpm_open: flags 0x%x, wait %u", o->flags,
				 o->wait);
	if ((n & (n - 1)) || n == 1 || n > SEGMENTS_MAX || (size & (size - 1)) ||
	    (size && size < 64) || size > SEGMENT_SIZE_MAX)
		return error_set(SLMPM_EINVAL,
				 "slmpm_open: %u segments of %u bytes: powers of two, 2 to %u and "
				 "64 to %u",
				 n, size, SEGMENTS_MAX, SEGMENT_SIZE_MAX);
	return 0;
}

/* Where several threads are, one may sleep while another has news for it. */
static void kick_arrived(struct context *ctx, struct watch *w)
{
	uint64_t count;

	(void)w;
	(void)!read(ctx->kick, &count, sizeof(count));
}

static int open_kick(struct context *ctx)
{
	static struct watch kick_watch = {.ready = kick_arrived, .fd = -1};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &kick_watch};

	ctx->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->kick < 0 || epoll_ctl(ctx->epoll, EPOLL_CTL_ADD, ctx->kick, &event) != 0)
		return error_system(-errno, "eventfd");
	return 0;
}

static int open_descriptors(struct context *ctx)
{
	ctx->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ctx->epoll < 0)
		return error_system(-errno, "epoll");
	/* With an engine's thread it may come to have several. */
	return ctx->multiple || config_get()->engine == ENGINE_THREAD ? open_kick(ctx) : 0;
}

void context_to_threads(struct context *ctx)
{
	context_lock_shared(ctx);
	ctx->multiple = ctx->careful = true;
	/* What the fast paths look at before they would lock. */
	PART_EACH(part, parts.to_threads)
		(*part)(ctx);
}

static void init_locks(struct context *ctx)
{
	pthread_condattr_t attributes;

	lock_init(&ctx->lock);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void context_free(struct context *ctx)
{
	PART_EACH(part, parts.shut)
		(*part)(ctx);
	domain_close_all(ctx);
	free(ctx->endpoints);
	if (ctx->epoll >= 0)
		close(ctx->epoll);
	if (ctx->kick >= 0)
		close(ctx->kick);
	alarm_close(ctx);
	stats_close(ctx);
	requests_release(ctx);
	handle_free(&context_table, ctx);
}

/* The more of what the setting and the options ask for. */
static uint32_t header_wanted(const struct config *config, const struct slmpm_options *o)
{
	uint32_t flags = o ? o->flags : 0;
	uint32_t wanted = flags & SLMPM_HEADER_ADDRESS ? HEADER_ADDRESS :
			  flags & SLMPM_HEADER_IDS     ? HEADER_IDS :
							 HEADER_NONE;

	return wanted > (uint32_t)config->header ? wanted : (uint32_t)config->header;
}

/* Nothing of it is open yet; NULL: no memory. */
static struct context *context_new(const struct config *config, const struct slmpm_options *o)
{
	struct context *ctx = handle_new(&context_table);

	if (!ctx)
		return NULL;
	ctx->epoll = ctx->kick = ctx->alarm.fd = ctx->stats.fd = -1;
	ctx->multiple = ctx->careful = o && o->flags & SLMPM_THREADS;
	ctx->header = header_wanted(config, o);
	ctx->wait = secure_getenv("SLMPM_WAIT") || !o ? (uint32_t)config->wait : o->wait;
	ctx->scans = IDLE_SCANS;
	spin_init(&ctx->spin, config->spin_us < 0 ? SPIN_AUTO : (uint64_t)config->spin_us * 1000);
	list_init(&ctx->posted);
	list_init(&ctx->regions);
	list_init(&ctx->mirrors);
	list_init(&ctx->fifo);
	list_init(&ctx->events);
	list_init(&ctx->listeners);
	list_init(&ctx->deadlines);
	list_init(&ctx->remote_peers);
	list_init(&ctx->counters);
	list_init(&ctx->queues);
	list_init(&ctx->work_queues);
	list_init(&ctx->groups);
	list_init(&ctx->stalled);
	list_init(&ctx->pairing);
	list_init(&ctx->paired);
	list_init(&ctx->overlays);
	list_init(&ctx->ready);
	list_init(&ctx->timed);
	list_init(&ctx->unused);
	list_init(&ctx->named);
	list_init(&ctx->to_dial);
	list_init(&ctx->dials);
	ctx->dial_max = (uint32_t)config->connections;
	list_init(&ctx->secondary);
	list_init(&ctx->spent);
	list_init(&ctx->retired);
	init_locks(ctx);
	return ctx;
}

int slmpm_open(slmpm_ctx *out, const struct slmpm_options *given)
{
	const struct config *config = config_get();
	struct slmpm_options full;
	const struct slmpm_options *o = given ? &full : NULL;
	struct context *ctx;
	int rc;

	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_open: no context");
	if (!config)
		return -SLMPM_EINVAL;
	rc = given ? sized_take("slmpm_open", &full, given, sizeof(full)) : 0;
	if (rc == 0)
		rc = context_check_options(o);
	if (rc == 0)
		rc = topology_check();
	if (rc < 0)
		return rc;
	fork_watch();
	ctx = context_new(config, o);
	if (!ctx)
		return error_set(SLMPM_ENOMEM, "for a context");
	rc = open_descriptors(ctx);
	if (rc == 0)
		rc = open_domain(ctx, o);
	if (rc < 0) {
		context_free(ctx);
		return rc;
	}
	stats_open(ctx);
	PART_EACH(part, parts.open) {
		rc = (*part)(ctx);
		if (rc == 0)
			continue;
		context_free(ctx);
		return rc;
	}
	out->id = handle_id(ctx);
	return 0;
}

/* ---- the default one ------------------------------------------------------------------------ */

static pthread_key_t ending;

static bool is_unused(struct context *ctx)
{
	bool unused;

	context_lock(ctx);
	unused = !ctx->count && list_empty(&ctx->listeners) && list_empty(&ctx->posted) &&
		 list_empty(&ctx->regions) && list_empty(&ctx->named) && list_empty(&ctx->groups);
	context_unlock(ctx);
	return unused;
}

/* A thread ends: nobody else knows its context, unless by a peer, listener or request of it. */
static void thread_ends(void *unused)
{
	struct context *ctx = handle_get(&context_table, default_ctx.id);

	(void)unused;
	if (!ctx || !is_unused(ctx))
		return;
	parts.retreat(ctx);
	context_free(ctx);
}

static void watch_threads(void)
{
	(void)pthread_key_create(&ending, thread_ends);
}

void context_forked(void)
{
	default_ctx.id = 0;
}

int slmpm_default(slmpm_ctx *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc = 0;

	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_default: no context");
	if (!default_ctx.id || !handle_get(&context_table, default_ctx.id)) {
		pthread_once(&once, watch_threads);
		rc = slmpm_open(&default_ctx, NULL);
		if (rc == 0)
			(void)pthread_setspecific(ending, &default_ctx);
	}
	*out = default_ctx;
	return rc;
}

/* ---- looking up, closing -------------------------------------------------------------------- */

int context_in_handler(const char *call)
{
	return error_set(SLMPM_ESTATE, "%s: it would block inside a handler", call);
}

struct context *context_get(slmpm_ctx handle, int *rc)
{
	struct context *ctx;

	if (!handle.id) {
		*rc = slmpm_default(&handle);
		if (*rc < 0)
			return NULL;
	}
	ctx = handle_get(&context_table, handle.id);
	if (!ctx)
		*rc = handle_error(&context_table, handle.id);
	return ctx;
}

/* While one is being closed, others change their places. */
static struct endpoint *still_open(const struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		if (!ctx->endpoints[i]->closing)
			return ctx->endpoints[i];
	return NULL;
}

int slmpm_shut(slmpm_ctx handle, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct endpoint *ep;
	struct context *ctx;
	int rc = 0;

	if (!handle.id) {
		if (!default_ctx.id || !handle_get(&context_table, default_ctx.id))
			return 0; /* opening one to close it helps nobody */
		handle = default_ctx;
	}
	ctx = handle_get(&context_table, handle.id);
	if (!ctx)
		return handle_error(&context_table, handle.id);
	context_lock(ctx);
	if (context_forbids(ctx, "slmpm_shut")) {
		context_unlock(ctx);
		return -SLMPM_ESTATE;
	}
	context_unlock(ctx);
	parts.retreat(ctx);
	context_lock(ctx);
	PART_EACH(part, parts.unlisten)
		(*part)(ctx);
	while ((ep = still_open(ctx))) {
		int one = parts.close(ep, clock_ms(clock_now(), deadline, -1));

		rc = rc < 0 ? rc : one;
	}
	while (ctx->count)
		endpoint_free(ctx->endpoints[ctx->count - 1]);
	context_unlock(ctx);
	context_free(ctx);
	return rc;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

static struct context *context_of_object(const struct handle_table *table, const void *object)
{
	const unsigned char *at = (const unsigned char *)object + table->context;

	return __atomic_load_n((struct context *const *)(const void *)at, __ATOMIC_RELAXED);
}

void *context_lock_object(struct handle_table *table, uint64_t id, int *rc)
{
	void *object = handle_get(table, id);

	if (object) {
		struct context *ctx = context_of_object(table, object);

		if (LIKELY(!ctx->multiple))
			return object;
		context_lock_shared(ctx);
		if (handle_id(object) == id && context_of_object(table, object) == ctx)
			return object;
		context_unlock(ctx); /* another thread has just ended it */
	}
	*rc = handle_error(table, id);
	return NULL;
}

int context_add(struct context *ctx, struct endpoint *ep)
{
	if (ctx->count == ctx->capacity) {
		uint32_t more = ctx->capacity ? ctx->capacity * 2 : 8;
		struct endpoint **list = realloc(ctx->endpoints, more * sizeof(*list));

		if (!list)
			return -SLMPM_ENOMEM;
		ctx->endpoints = list;
		ctx->capacity = more;
	}
	if (ctx->live < ctx->count)
		ctx->endpoints[ctx->count] = ctx->endpoints[ctx->live];
	ctx->count++;
	ctx->endpoints[ctx->live++] = ep;
	return 0;
}

void context_retire(struct context *ctx, uint32_t i)
{
	struct endpoint *ep = ctx->endpoints[i];

	ctx->endpoints[i] = ctx->endpoints[--ctx->live];
	ctx->endpoints[ctx->live] = ep;
}

void context_remove(struct context *ctx, struct endpoint *ep)
{
	for (uint32_t i = 0; i < ctx->count; i++) {
		if (ctx->endpoints[i] != ep)
			continue;
		if (i < ctx->live) {
			context_retire(ctx, i);
			i = ctx->live;
		}
		ctx->endpoints[i] = ctx->endpoints[--ctx->count];
		return;
	}
}
