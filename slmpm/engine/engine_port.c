/* SPDX-License-Identifier: BSD-3-Clause */
/* A context's side of the engine: its descriptor, and the thread that makes its progress. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/engine/transfer.h"
#include "slmpm/link/wait.h"

#define ASIDE_NS 1000000 /* between looks whether the application has waited since; at first ... */
#define NAP_NS   50000

static void engine_rung(struct context *ctx, struct watch *w)
{
	eventfd_t count;

	(void)ctx;
	(void)eventfd_read(w->fd, &count);
}

static struct engine_port *port_new(struct context *ctx)
{
	struct engine_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->ctx = ctx;
	list_init(&port->landed);
	port->front = port->news = -1;
	port->watch = (struct watch){
		.ready = engine_rung, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .owner = ctx};
	if (port->watch.fd < 0 || watch_add(ctx, &port->watch) < 0) {
		if (port->watch.fd >= 0)
			close(port->watch.fd);
		free(port);
		return NULL;
	}
	if (config_get()->engine == ENGINE_THREAD && config_get()->membarrier)
		lock_prepare(&ctx->lock); /* now, for it may take a while beside other threads */
	engine_enter();
	return port;
}

static void close_front(struct engine_port *port)
{
	if (port->front >= 0)
		close(port->front);
	if (port->news >= 0)
		close(port->news);
	port->front = port->news = -1;
}

void engine_close(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	if (!port)
		return;
	watch_close(ctx, &port->watch);
	close_front(port);
	free(port);
	ctx->port = NULL;
	engine_leave();
}

/* ---- progress while the application is busy ---------------------------------------------- */

static bool port_stops(const struct engine_port *port)
{
	return atomic_load_explicit(&port->stop, memory_order_relaxed);
}

static void port_stop(struct engine_port *port, bool stop)
{
	atomic_store_explicit(&port->stop, stop, memory_order_relaxed);
}

static void port_set_aside(struct engine_port *port, bool aside)
{
	atomic_store_explicit(&port->aside, aside, memory_order_relaxed);
}

/* Asked whenever something has been found, too: who never sleeps shows it as well. */
static bool engine_port_is_over(void *arg)
{
	struct engine_port *port = arg;

	if (port->ctx->news)
		engine_show(port->ctx);
	return port_stops(port) || atomic_load_explicit(&port->aside, memory_order_relaxed);
}

void engine_step_aside(struct context *ctx, bool waits)
{
	struct engine_port *port = ctx->port;

	if (port->enters) { /* it is the server itself */
		port->enters = false;
		return;
	}
	port_set_aside(port, port->served && !port->waits);
	if (waits && port->polls)
		context_wake(ctx);
}

/* Who waits polls with less delay than a thread that would have to wake it: the server comes back
 * once no call has made progress for a while: a short one, for what the application may have left
 * behind, as long as it does not wait again and again. Until then it leaves the lock alone. */
static void stay_aside(struct engine_port *port)
{
	struct timespec nap = {.tv_nsec = NAP_NS};

	if (!atomic_load_explicit(&port->aside, memory_order_relaxed))
		return;
	lock_leave(&port->ctx->lock);
	do {
		port_set_aside(port, false);
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < ASIDE_NS)
			nap.tv_nsec *= 2;
	} while (atomic_load_explicit(&port->aside, memory_order_relaxed) && !port_stops(port));
	context_lock_shared(port->ctx);
}

static void *engine_port_serve(void *arg)
{
	struct engine_port *port = arg;
	struct context *ctx = port->ctx;

	engine_unbind(true);
	engine_shorten_turns();
	if (port->attends)
		lock_admit(&ctx->lock);
	else
		context_lock_shared(ctx);
	atomic_store_explicit(&ctx->server, lock_self(), memory_order_relaxed);
	while (port->waits && !port_stops(port))
		(void)lock_wait(&ctx->lock, &ctx->changed, UINT64_MAX);
	while (!port_stops(port)) {
		port->enters = port->polls = true;
		(void)wait_until(ctx, engine_port_is_over, port, -1);
		port->enters = port->polls = false;
		stay_aside(port);
	}
	atomic_store_explicit(&ctx->server, 0, memory_order_relaxed);
	ctx->displaced = 0;
	lock_leave(&ctx->lock);
	return NULL;
}

/* Of a context of several threads; or, ATTENDS, of one that was opened for one. */
static int start_serving(struct context *ctx, bool attends)
{
	struct engine_port *port = ctx->port;
	int rc;

	context_lock_shared(ctx); /* which the thread takes first */
	port_stop(port, false);
	port->waits = !ctx->multiple;
	port->attends = attends;
	rc = engine_start_thread(&port->server, engine_port_serve, port);
	port->served = rc == 0;
	if (rc < 0) /* else it reads that */
		port->attends = false;
	ctx->parked = port->waits && rc == 0;
	lock_leave(&ctx->lock);
	return rc < 0 ? error_system(rc, "the engine's thread") : 0;
}

int engine_open(struct context *ctx)
{
	int64_t kind = config_get()->engine;

	if (kind == ENGINE_NONE)
		return 0;
	ctx->port = port_new(ctx);
	if (!ctx->port)
		return error_set(SLMPM_ENOMEM, "for the engine");
	return kind == ENGINE_THREAD && ctx->multiple ? start_serving(ctx, false) : 0;
}

static bool may_serve(const struct context *ctx)
{
	return ctx->port && !ctx->handlers && !ctx->calls_back &&
	       config_get()->engine == ENGINE_THREAD;
}

int engine_attend(struct context *ctx, const struct fabric *fabric)
{
	if (fabric->alloc || !may_serve(ctx))
		return 0;
	if (ctx->parked)
		engine_come_in(ctx);
	if (ctx->port->served)
		return 0;
	if (!ctx->multiple)
		context_to_threads(ctx);
	return start_serving(ctx, true);
}

int engine_stand_by(struct context *ctx)
{
	return may_serve(ctx) && !ctx->port->served ? start_serving(ctx, true) : 0;
}

void engine_come_in(struct context *ctx)
{
	ctx->parked = false;
	context_to_threads(ctx);
	ctx->port->waits = false;
	pthread_cond_broadcast(&ctx->changed);
}

void engine_leave_handlers(struct context *ctx)
{
	if (ctx->port && ctx->port->attends)
		engine_stop_serving(ctx);
}

void engine_stop_serving(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	if (!port || !port->served)
		return;
	context_lock_shared(ctx);
	port_stop(port, true);
	pthread_cond_broadcast(&ctx->changed);
	context_wake(ctx);
	lock_leave(&ctx->lock);
	pthread_join(port->server, NULL);
	lock_dismiss(&ctx->lock);
	port->served = ctx->parked = false;
}

/* ---- the application's own loop ---------------------------------------------------------- */

static int open_front(struct engine_port *port)
{
	struct epoll_event event = {.events = EPOLLIN};

	port->front = epoll_create1(EPOLL_CLOEXEC);
	port->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->front >= 0 && port->news >= 0 &&
	    epoll_ctl(port->front, EPOLL_CTL_ADD, port->news, &event) == 0 &&
	    epoll_ctl(port->front, EPOLL_CTL_ADD, port->ctx->epoll, &event) == 0)
		return 0;
	close_front(port);
	return error_set(SLMPM_ESYSTEM, "no descriptor is to be had");
}

int engine_descriptor(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	/* Also before there is such a thread: who has asked once goes on with what he was given. */
	if (!port || config_get()->engine != ENGINE_THREAD)
		return ctx->epoll;
	if (port->front < 0 && open_front(port) < 0)
		return -SLMPM_ESYSTEM;
	return port->front;
}

void engine_show(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	if (port->news >= 0 && !port->shown)
		port->shown = eventfd_write(port->news, 1) == 0;
}

void engine_seen(struct context *ctx)
{
	struct engine_port *port = ctx->port;
	eventfd_t count;

	if (port->shown)
		(void)eventfd_read(port->news, &count);
	port->shown = false;
}

void engine_forked(struct context *ctx)
{
	if (!ctx->port)
		return;
	close(ctx->port->watch.fd);
	close_front(ctx->port);
}
