/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: one thread's endpoints, posted receives, events and descriptor. */
#ifndef SLMPM_CONTEXT_H
#define SLMPM_CONTEXT_H

#include <pthread.h>
#include <slmpm.h>

#include "fabrics/fabric.h"
#include "shm/compiler.h"
#include "shm/mapping.h"
#include "slmpm/base/config.h"
#include "slmpm/base/handle.h"
#include "slmpm/base/list.h"
#include "slmpm/base/lock.h"
#include "slmpm/base/spin.h"

struct endpoint;
struct domain;
struct aggregate_part;
struct watch;
struct monitor_pages;
struct queue;
struct scan;

struct context {
	struct handle handle;
	bool multiple;    /* several threads: lock taken around each call */
	bool careful;     /* multiple, or has mirrors: what lands in memory is noted */
	bool finished;    /* a request since this was last cleared: who waits may go on */
	bool news;        /* something to look at since slmpm_arm was last asked */
	bool ready_since; /* ... and a channel of a work queue ready, since a thread is away */
	bool rung;        /* bells wait in the sockets */
	bool quiet;       /* its last sleep was over with nothing to do */
	bool armed;       /* peers have been asked to ring */
	bool polling;     /* multiple: one thread polls for all ... */
	bool away;        /* ... and has given the lock back, to scan or to sleep, ... */
	bool sleeping;    /* ... which it does, on the descriptors, ... */
	bool wakes;       /* ... until others have news: it is not the engine's, which work wakes */
	bool parked;      /* the engine's thread is there, and stays out until it has work */
	bool kills;       /* a process has SIGKILL coming */
	bool passing;     /* in progress_context */
	bool handling;    /* a handler of an active message runs: no call may block */
	bool accepted;    /* there is a peer with am_is_due (am_run_due) */
	bool paused;      /* a listener waits for descriptors */
	bool enomem;      /* a peer's message for memory */
	bool asking;      /* a peer has not taken yet what its engine is to do (ask.c) */
	bool refused;     /* an unauthenticated connection has failed */
	bool ended;       /* an ended peer may hold memory or descriptors that nobody needs */
	bool laboured;    /* a piece of a calculation has been done: others may have the lock */
	bool moved;       /* an operation of a group has gone on, and waits for the next piece */
	bool yields;      /* a poll that finds nothing gives the processor to others */
	uint32_t waiting; /* threads that wait for the polling one */
	uint32_t lacking; /* calls that wait for room, which comes without a word that is scanned */

	struct endpoint **endpoints;
	uint32_t count, capacity;
	uint32_t live;   /* of them, in front: passes go by the others, which have ended for good */
	uint32_t turn;   /* whose kept messages a receive from anybody looks at first */
	uint32_t next;   /* with whom the next pass of progress begins: where the last one ended */
	uint32_t gone;   /* peers that passes have gone by since the fabrics were asked again */
	uint32_t rounds; /* so often all have been, while members of groups wait for each other */
	struct am_page **handlers; /* of active messages, by number (am.c); or NULL */
	struct list regions;       /* struct region */
	struct list mirrors;       /* struct mirror */
	struct list fifo;          /* struct fifo_entry, not taken yet */
	struct list posted;        /* receives from any peer in posting order, struct request */
	uint32_t posted_count;     /* of them, and of handlers that run */
	uint64_t postings;         /* receives posted so far */
	uint32_t unexpected;       /* messages in all endpoints' lists */
	struct list events;        /* struct event */
	struct list listeners;
	struct list deadlines;     /* struct control: handshakes under way */
	struct list remote_peers;  /* struct silence: peers on other machines */
	uint64_t silence_deadline; /* when the next of them is inspected for silence */
	struct list counters, queues, work_queues;
	struct queue
		*begins;     /* the own one of a work queue that begins an operation now; or NULL */
	struct list ready;   /* channels of work queues whose next entry may begin */
	struct list timed;   /* channels at a WAIT with a deadline */
	struct list unused;  /* struct binding: with entries reserved that nothing has used yet */
	struct list named;   /* struct named: peers by address, ... */
	struct list to_dial; /* ... of them, those that are to be connected */
	struct list dials;   /* struct dial: their connections, ... */
	uint32_t dial_count; /* ... of them, those that are to be counted ... */
	uint32_t dial_max;   /* ... and may be at most; 0: the context closes */
	uint64_t lookups;    /* of named peers, by entries */
	struct list secondary;    /* struct secondary: links of peers with several */
	struct engine_port *port; /* where the engine brings back what it has moved; or NULL */
	struct list spent;        /* requests that have been told to one of these: to be dropped */
	struct list retired;      /* requests that have been dropped: the next are made of them */
	uint32_t retired_count;

	struct scan *scan;      /* the polling thread's, without the lock; or NULL */
	struct domain *domains; /* fabrics opened so far (domain.c) */
	/* The socket in which a bell waits, where there is only one such; or NULL. */
	struct watch *bell;
	int epoll, kick;    /* kick: wakes the sleeping thread of a context with several */
	uint32_t wait;      /* SLMPM_WAIT_* */
	uint32_t header;    /* enum config_header: whom packets say they are for */
	uint32_t idle;      /* progress calls without result since the last look at descriptors */
	uint64_t inspected; /* at the descriptors by slmpm_progress: ticks */
	uint64_t turned; /* when a peer that is received from all the time last gave way: ticks */
	bool due;        /* one is to give way now (progress_turn) */
	uint32_t scans;  /* by a receive that waits: IDLE_SCANS, or _BRIEF */
	uint32_t oversubscribed; /* more processes than processors, by the last yields */
	uint32_t switches;       /* yields that let another run */
	uint32_t turns; /* threads that had waited for the lock, or the polling one, and had it */
	/* Until then somebody computes here, and a yield costs his whole turn; how long that
	 * was. */
	uint64_t preempted, preempted_ns;
	/* Until then that of `server` does not poll, for the same reason; 0: its polling has paid. */
	uint64_t displaced;
	_Atomic uintptr_t server; /* lock_self of the engine's thread that serves; or 0 */
	uint64_t yielded;         /* time of the last yield */
	/* Of a loop of the application's own (slmpm_spin); when it was told to yield, or 0. */
	struct idle own;
	uint64_t yielding;
	struct spin spin;
	uint64_t sleeps;
	uint64_t wakes_at; /* while one does: by itself, ns */

	struct {                     /* looks at the links (slmpm/monitor) */
		uint64_t inspected;  /* ticks */
		uint64_t traffic;    /* by then */
		uint32_t next;       /* whose turn it is */
		uint32_t passed;     /* short calls since one of them has looked */
		uint64_t not_before; /* ticks: after a sleep, no look amid traffic before */
		bool after_silence;  /* the look under way: the one before was long ago */
		uint32_t silences;   /* that a look came behind */
		bool opportunistic;  /* the one under way reads no answer soon */
		struct monitor_pages *pages;
		uint64_t summed;            /* ns: for the job's aggregate */
		struct aggregate_part *own; /* or NULL */
	} monitor;
	struct mapping stats; /* struct slmpm_stats_page */
	uint32_t stats_used;
	uint32_t stats_queues;      /* a bit for each place that one has */
	uint32_t landings;          /* payloads that a fabric is putting into their places */
	struct fabric_config shape; /* of rings */
	struct {
		int fd;      /* -1: nobody has asked for the descriptor */
		uint64_t at; /* when it rings: ns */
	} alarm;
	struct list groups;  /* struct group */
	uint32_t collecting; /* of them, with an operation under way */
	uint32_t sharers;  /* members of one for each processor, where there are several; else 0 */
	uint64_t computed; /* a `preempted` that is known to have passed */
	struct list stalled;  /* struct groups: peers with packets of theirs that found no room */
	struct list pairing;  /* struct member: connections that are to be made, ... */
	struct list paired;   /* ... struct pair: and those that have been */
	bool unpaired;        /* some of them have ended */
	struct list overlays; /* struct overlay */
	bool depositing;      /* puts to many are under way */
	bool calls_back;      /* the application has functions that are run for these */
	/* Apart from what its holder reads and writes, as lines are fetched in pairs: others try for
	 * it meanwhile. With a size of 1024 a handle's context is found by a shift. */
	_Alignas(128) struct lock lock;
	pthread_cond_t changed;
};

extern struct handle_table context_table;

/* The context of a handle ({0}: the default one), or NULL with *RC and the detail set. */
struct context *context_get(slmpm_ctx ctx, int *rc);
/* The same for who is called all the time. */
static inline struct context *context_get_quickly(slmpm_ctx handle, int *rc)
{
	struct context *ctx = handle_get_sized(&context_table, handle.id, sizeof(*ctx));

	return LIKELY(ctx != NULL) ? ctx : context_get(handle, rc);
}
/* From now on CTX has several threads: a thread of the library's besides the one that is in it
 * here, which has the lock from then on. */
void context_to_threads(struct context *ctx);
int context_add(struct context *ctx, struct endpoint *ep);
void context_remove(struct context *ctx, struct endpoint *ep);
/* The I-th is not live any more. */
void context_retire(struct context *ctx, uint32_t i);
/* A child of fork drops what is its parent's from now on; its handles answer "forked" (fork.c). */
void fork_watch(void);
/* In it: this thread has no default one. */
void context_forked(void);

/* Other threads wait for the lock. */
static inline bool context_is_wanted(const struct context *ctx)
{
	return lock_is_wanted(&ctx->lock);
}

/* By the mutex. Not COLD: gcc would take every caller for cold. */
void context_take_lock(struct context *ctx);
/* Of several threads. */
static inline void context_lock_shared(struct context *ctx)
{
	if (!lock_enter(&ctx->lock))
		context_take_lock(ctx);
}

static inline void context_lock(struct context *ctx)
{
	if (UNLIKELY(ctx->multiple))
		context_lock_shared(ctx);
}

/* By the engine's thread, which this one is. No context of a single one has such. */
static inline bool context_is_server(const struct context *ctx)
{
	/* Each thread only looks for itself, which is what it has stored. */
	uintptr_t server = atomic_load_explicit(&ctx->server, memory_order_relaxed);

	return UNLIKELY(server != 0) && server == lock_self();
}

/* A new object is of CTX: another thread may inspect its place by a handle of the one before. */
static inline void context_own(struct context **of, struct context *ctx)
{
	__atomic_store_n(of, ctx, __ATOMIC_RELAXED);
}

/* The object of ID in a TABLE with contexts, its context locked; NULL: none, and *RC. */
void *context_lock_object(struct handle_table *table, uint64_t id, int *rc);
/* The same where many calls are short, of a TYPE from HANDLE_TABLE_FROM. */
#define CONTEXT_LOCK_OBJECT(table, type, id, rc)                                                   \
	((type *)context_lock_sized(table, id, sizeof(type), offsetof(type, ctx), rc))
static inline void *context_lock_sized(struct handle_table *table, uint64_t id, size_t size,
				       size_t context, int *rc)
{
	unsigned char *object = handle_get_sized(table, id, size);

	if (LIKELY(object != NULL)) {
		struct context *const *ctx = (void *)(object + context);

		if (LIKELY(!__atomic_load_n(ctx, __ATOMIC_RELAXED)->multiple))
			return object;
	}
	return context_lock_object(table, id, rc);
}

/* Others may have what they wait for: wakes them, and the one that polls if it sleeps. */
void context_wake(struct context *ctx);
static inline void context_changed(struct context *ctx)
{
	if (UNLIKELY(ctx->waiting || ctx->away))
		context_wake(ctx);
}

/* The same of what is no work for the engine's thread; what is makes a channel ready. */
static inline void context_told(struct context *ctx)
{
	if (UNLIKELY(ctx->waiting || ctx->wakes))
		context_wake(ctx);
}

/* A channel has become ready while the engine's thread was away, and is still: asked once. */
static inline bool context_leaves_work(struct context *ctx)
{
	bool leaves = ctx->ready_since && !list_empty(&ctx->ready);

	ctx->ready_since = false;
	return leaves;
}

/* -SLMPM_ESTATE with the detail set inside a handler of an active message, else 0. */
COLD int context_in_handler(const char *call);
static inline int context_forbids(const struct context *ctx, const char *call)
{
	return UNLIKELY(ctx->handling) ? context_in_handler(call) : 0;
}

/* Another thread is away, and the one that has the lock may have taken what was to wake it, or
 * leave work for it. */
void context_rouse(struct context *ctx);

/* The words that a thread scans without the lock are out of date: it is through with them. */
void context_end_scan(struct context *ctx);

static inline void context_unlock(struct context *ctx)
{
	if (LIKELY(!ctx->multiple))
		return;
	if (ctx->away)
		context_rouse(ctx);
	lock_leave(&ctx->lock);
}

#endif
