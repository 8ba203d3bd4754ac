/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that knows all rooms: what each of them does in the life of contexts and peers, in order. */
#include "slmpm/part.h"

#include "slmpm/bond/further.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/workqueue.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/connect/listener.h"
#include "slmpm/connect/silence.h"
#include "slmpm/engine/engine.h"
#include "slmpm/engine/fifo.h"
#include "slmpm/launch/process.h"
#include "slmpm/link/addressee.h"
#include "slmpm/link/link.h"
#include "slmpm/link/trace.h"
#include "slmpm/memory/ask.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/memory/memory.h"
#include "slmpm/memory/rma.h"
#include "slmpm/memory/share.h"
#include "slmpm/message/am.h"
#include "slmpm/message/area.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/held.h"
#include "slmpm/message/inbound.h"
#include "slmpm/message/match.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/means.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/monitor/totals.h"

/* clang-format off: one a line */

static void (*const to_threads[])(struct context *) = {
	remote_close_shortcuts,
	mirror_close_shortcuts,
	NULL,
};

static void (*const shut[])(struct context *) = {
	mirror_shut, /* before the regions that mirrors lie in */
	memory_shut, completion_end, engine_close, am_forget, monitor_shut, NULL,
};

static uint64_t (*const deadlines[])(struct context *, uint64_t) = {
	bootstrap_deadlines,
	listener_deadlines,
	silence_deadlines,
	ask_deadlines,
	further_deadlines,
	process_deadlines,
	NULL,
};

static void (*const end[])(struct endpoint *) = {
	fetch_end,   link_queue_end, emulate_end, engine_end, /* before the requests whose bytes it moves */
	ask_end,     fifo_end,       rma_end,     link_forget_owed, memory_end,    mirror_end,
	inbound_end, /* what has begun to arrive has a receive, which match_end would find without it */
	match_end,   workqueue_fail, link_end,    totals_end,       monitor_ended, NULL,
};

static void (*const leave[])(struct endpoint *) = {
	totals_add,                  /* the last figures, while there are any */
	monitor_free,   held_forget, /* what lies in the ring is given back to it */
	am_forget_kept, inbound_forget, fifo_forget,   bootstrap_free, area_free_all,
	fetch_free,     share_free,     memory_forget, further_free,   NULL,
};

static void (*const without_link[])(struct endpoint *) = {
	addressee_free, emulate_free, rma_free, process_free, NULL,
};

static void (*const fork_peer[])(struct endpoint *) = {
	bootstrap_forked,
	process_forked,
	further_free,
	NULL,
};

static void (*const fork_context[])(struct context *) = {
	listener_forked_all, engine_forked, monitor_forked, mirror_forked, NULL,
};

static void (*const fork_process[])(void) = {
	listener_fork, completion_fork, trace_fork,    memory_forked,  fifo_fork, mirror_fork,
	engine_fork,   means_forked,    totals_forked, foreign_forked, NULL,
};

/* clang-format on */

const struct parts parts = {
	.to_threads = to_threads,
	.shut = shut,
	.deadlines = deadlines,
	.end = end,
	.leave = leave,
	.free = without_link,
	.fork_peer = fork_peer,
	.fork_context = fork_context,
	.fork = fork_process,
};
