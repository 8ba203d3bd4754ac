/* SPDX-License-Identifier: BSD-3-Clause */
/* A context's side of the engine: its descriptor, and the thread that makes its progress. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "slmpm/config.h"
#include "slmpm/engine/engine.h"
#include "slmpm/error.h"
#include "slmpm/engine/transfer.h"
#include "slmpm/wait.h"

static struct engine_port *port_new(struct context *ctx)
{
	struct engine_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->ctx = ctx;
	list_init(&port->landed);
	list_init(&port->waiting);
	port->watch = (struct watch){
		.kind = WATCH_ENGINE, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .owner = ctx};
	if (port->watch.fd < 0 || watch_add(ctx, &port->watch) < 0) {
		if (port->watch.fd >= 0)
			close(port->watch.fd);
		free(port);
		return NULL;
	}
	engine_enter();
	return port;
}

void engine_close(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	if (!port)
		return;
	watch_close(ctx, &port->watch);
	free(port);
	ctx->port = NULL;
	engine_leave();
}

void engine_rung(struct context *ctx)
{
	uint64_t count;

	(void)!read(ctx->port->watch.fd, &count, sizeof(count));
}

/* ---- progress while the application is busy ------------------------------------------------- */

static bool is_stopped(void *arg)
{
	return ((struct engine_port *)arg)->stop;
}

static void *serve(void *arg)
{
	struct engine_port *port = arg;

	pthread_mutex_lock(&port->ctx->lock);
	while (!port->stop)
		(void)wait_until(port->ctx, is_stopped, port, -1);
	pthread_mutex_unlock(&port->ctx->lock);
	return NULL;
}

int engine_open(struct context *ctx)
{
	int64_t kind = config_get()->engine;
	int rc;

	if (kind == ENGINE_NONE)
		return 0;
	ctx->port = port_new(ctx);
	if (!ctx->port)
		return error_set(SLMPM_ENOMEM, "for the engine");
	if (kind != ENGINE_THREAD || !ctx->multiple)
		return 0;
	rc = engine_start_thread(&ctx->port->server, serve, ctx->port);
	if (rc < 0)
		return error_system(rc, "the engine's thread");
	ctx->port->served = true;
	return 0;
}

void engine_stop_serving(struct context *ctx)
{
	struct engine_port *port = ctx->port;

	if (!port || !port->served)
		return;
	pthread_mutex_lock(&ctx->lock);
	port->stop = true;
	wait_wake(ctx);
	pthread_mutex_unlock(&ctx->lock);
	pthread_join(port->server, NULL);
	port->served = false;
}

/* ---- fork ----------------------------------------------------------------------------------- */

void engine_forked(struct context *ctx)
{
	if (ctx->port && ctx->port->watch.fd >= 0)
		close(ctx->port->watch.fd);
}
