/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of fork: what it inherits of its parent's is dropped, its handles say so. */
#include <unistd.h>

#include "shm/attach.h"
#include "slmpm/base/log.h"
#include "slmpm/watch.h"
#include "slmpm/domain.h"
#include "slmpm/endpoint.h"
#include "slmpm/part.h"
#include "slmpm/stats.h"

/* The child drops its copies of what belongs to the parent: a socket kept open here would hide
 * the parent's end from its peers. */
static void close_inherited(void)
{
	for (uint32_t i = 0; i < context_table.count; i++) {
		struct context *ctx = handle_slot(&context_table, i);

		if (!(atomic_load(&ctx->handle.generation) & 1))
			continue;
		domain_mark_forked(ctx);
		for (uint32_t at = 0; at < ctx->count; at++)
			PART_EACH(part, parts.fork_peer)
				(*part)(ctx->endpoints[at]);
		domain_forked(ctx);
		close(ctx->epoll);
		if (ctx->kick >= 0)
			close(ctx->kick);
		alarm_close(ctx);
		if (ctx->stats.fd >= 0)
			close(ctx->stats.fd);
		PART_EACH(part, parts.fork_context)
			(*part)(ctx);
	}
}

/* A thread that the child does not have, the engine's perhaps, may have had one of these. */
static void open_locks(void)
{
	log_forked();
	attach_forked();
	domain_caps_forked();
	endpoint_fabric_forked();
	stats_forked();
}

static void fork_forked(void)
{
	open_locks();
	close_inherited();
	PART_EACH(part, parts.fork)
		(*part)();
	handle_fork();
	context_forked();
}

static void register_handler(void)
{
	(void)pthread_atfork(NULL, NULL, fork_forked);
}

void fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handler);
}
