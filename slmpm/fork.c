/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of fork: what it inherits of its parent's is dropped, its handles say so (fork.h). */
#include "slmpm/fork.h"

#include <unistd.h>

#include "slmpm/alarm.h"
#include "slmpm/completion/completion.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/connect/listener.h"
#include "slmpm/domain.h"
#include "slmpm/endpoint.h"
#include "slmpm/engine/engine.h"
#include "slmpm/engine/fifo.h"
#include "slmpm/launch/process.h"
#include "slmpm/memory/memory.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/means.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/request.h"
#include "slmpm/link/trace.h"

/* The child drops its copies of what belongs to the parent: a socket kept open here would hide
 * the parent's end from its peers. */
static void close_inherited(void)
{
	for (uint32_t i = 0; i < context_table.count; i++) {
		struct context *ctx = handle_slot(&context_table, i);

		if (!(atomic_load(&ctx->handle.generation) & 1))
			continue;
		for (uint32_t at = 0; at < ctx->count; at++) {
			bootstrap_forked(ctx->endpoints[at]);
			process_forked(ctx->endpoints[at]);
		}
		LIST_EACH(at, &ctx->listeners)
			listener_forked(LIST_ENTRY(at, struct listener, node));
		domain_forked(ctx);
		close(ctx->epoll);
		if (ctx->kick >= 0)
			close(ctx->kick);
		alarm_close(ctx);
		engine_forked(ctx);
		if (ctx->stats.fd >= 0)
			close(ctx->stats.fd);
		monitor_forked(ctx);
		mirror_forked(ctx);
	}
}

static void forked(void)
{
	close_inherited();
	handle_fork(&context_table);
	handle_fork(&endpoint_table);
	handle_fork(&request_table);
	handle_fork(&listener_table);
	completion_fork();
	trace_fork();
	memory_forked();
	handle_fork(&fifo_table);
	handle_fork(&mirror_table);
	engine_fork();
	means_forked();
	totals_forked();
	foreign_forked();
	context_forked();
}

static void watch(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

void fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
