/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's two FIFOs and its thread (engine.h). */
#include "slmpm/engine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "slmpm/config.h"
#include "slmpm/error.h"
#include "slmpm/link.h"
#include "slmpm/memory.h"
#include "slmpm/rma.h"
#include "slmpm/wait.h"
#include "slmpm/watch.h"

#define PIECE ((uint64_t)256 << 10) /* so long does one that is forgotten go on at most */

enum { ENGINE_NONE, ENGINE_INLINE, ENGINE_THREAD }; /* SLMPM_ENGINE */

/*
 * A descriptor. While the thread has it in hand, all but `gone` and `node` are the thread's;
 * otherwise it is in one of the FIFOs and belongs to whoever holds the engine's lock. The request
 * and the remote region stay as they are until it has come back.
 */
struct transfer {
	struct list node; /* injection, reception; or alone, in hand */
	struct engine_port *port;
	struct endpoint *ep;
	struct remote *remote; /* NULL: a store here ... */
	unsigned char *to;     /* ... to this place */
	struct request *r;
	struct fabric_memory memory; /* a copy: the fabric may write to it */
	enum fabric_op op;
	bool gone; /* forgotten while it was in hand */
	int status;
	int span;             /* what goes next: in the spans ... */
	uint64_t in_span, at; /* ... and in the request's bytes */
};

struct engine_port { /* a context's side of the engine */
	struct context *ctx;
	struct list landed;  /* the reception FIFO; engine.lock */
	struct list waiting; /* inline: the injection FIFO; the context's */
	atomic_bool any;     /* something has landed */
	struct watch watch;  /* an eventfd that says so */
	pthread_t server;
	bool served, stop; /* the context's lock */
};

#define STAYS_NS 20000 /* awake, after the last transfer: waking takes longer than most of them */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, idle; /* something was injected; nothing is in hand */
	struct list injected;
	atomic_uint calls; /* something was injected, or it is to stop: so often */
	struct transfer *hand;
	uint32_t ports; /* that may use the thread */
	bool runs, stop;
	pthread_t thread;
} engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.injected = {&engine.injected, &engine.injected},
};

bool engine_wants(uint64_t length)
{
	const struct config *config = config_get();

	return config->engine != ENGINE_NONE && length && length >= (uint64_t)config->engine_min;
}

/* ---- moving --------------------------------------------------------------------------------- */

static int reach(struct transfer *t, uint64_t offset, void *here, uint64_t n)
{
	if (t->remote)
		return link_reach(t->ep, t->op, &t->memory, offset, here, n);
	memcpy(t->to + offset, here, n);
	return 1;
}

/* Up to PIECE bytes: 1 there are more, 0 that was all, or negative as of the fabric. */
static int move_piece(struct transfer *t)
{
	const struct rma_work *w = &t->r->rma;
	struct request_walk walk = {t->r, 0, t->at};
	uint64_t left = PIECE;

	while (t->span < w->span_count) {
		const struct slmpm_span *span = &w->spans[t->span];
		uint64_t n = span->len - t->in_span;
		void *here;
		int rc;

		if (!n) {
			t->span++;
			t->in_span = 0;
			continue;
		}
		if (!left)
			return 1;
		here = request_walk_on(&walk, n < left ? n : left, &n);
		if (!here)
			return -EFAULT;
		rc = reach(t, span->offset + t->in_span, here, n);
		if (rc != 1)
			return rc;
		t->in_span += n;
		t->at += n;
		left -= n;
	}
	return 0;
}

/* Bound to the one processor of the thread that needed it, it would move nothing while that one
 * computes: the kernel leaves those that the process may have at all. */
static void unbind(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) > 1)
		return;
	memset(&set, 0xff, sizeof(set));
	(void)sched_setaffinity(0, sizeof(set), &set);
}

/* Whoever injects does so under the lock, and then finds the thread here, or asleep. */
static void await_work(void)
{
	unsigned seen = atomic_load_explicit(&engine.calls, memory_order_relaxed);
	uint64_t until = wait_now() + STAYS_NS;

	pthread_mutex_unlock(&engine.lock);
	while (atomic_load_explicit(&engine.calls, memory_order_relaxed) == seen &&
	       wait_now() < until)
		sched_yield(); /* it may have no processor of its own */
	pthread_mutex_lock(&engine.lock);
	if (atomic_load_explicit(&engine.calls, memory_order_relaxed) == seen)
		pthread_cond_wait(&engine.work, &engine.lock);
}

static void *run(void *arg)
{
	static const uint64_t one = 1;

	(void)arg;
	unbind();
	pthread_mutex_lock(&engine.lock);
	while (!engine.stop) {
		struct transfer *t;
		int rc;

		if (list_empty(&engine.injected)) {
			await_work();
			continue;
		}
		t = engine.hand = LIST_ENTRY(engine.injected.next, struct transfer, node);
		list_remove(&t->node);
		pthread_mutex_unlock(&engine.lock);
		rc = move_piece(t);
		pthread_mutex_lock(&engine.lock);
		engine.hand = NULL;
		pthread_cond_broadcast(&engine.idle);
		if (t->gone)
			continue; /* whoever forgot it has it */
		if (rc == 1) {
			list_append(&engine.injected, &t->node); /* the others have their turn */
			continue;
		}
		t->status = rc;
		list_append(&t->port->landed, &t->node);
		/* The list is read under the lock; this only says that it is worth taking, and
		 * that the descriptor says so already. */
		if (!atomic_exchange_explicit(&t->port->any, true, memory_order_relaxed))
			(void)!write(t->port->watch.fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&engine.lock);
	return NULL;
}

/* A thread that takes no signal of the application's. */
static int start_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

/* ---- ports ---------------------------------------------------------------------------------- */

static struct engine_port *port_new(struct context *ctx)
{
	struct engine_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->ctx = ctx;
	list_init(&port->landed);
	list_init(&port->waiting);
	port->watch = (struct watch){WATCH_ENGINE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), ctx};
	if (port->watch.fd < 0 || watch_add(ctx, &port->watch) < 0) {
		if (port->watch.fd >= 0)
			close(port->watch.fd);
		free(port);
		return NULL;
	}
	pthread_mutex_lock(&engine.lock);
	engine.ports++;
	pthread_mutex_unlock(&engine.lock);
	return port;
}

/* It runs from the first transfer on until the last port is closed. */
static bool thread_runs(void)
{
	bool runs;

	pthread_mutex_lock(&engine.lock);
	while (engine.stop) /* the last one ends: what is injected now it would not look at */
		pthread_cond_wait(&engine.idle, &engine.lock);
	if (!engine.runs)
		engine.runs = start_thread(&engine.thread, run, NULL) == 0;
	runs = engine.runs;
	pthread_mutex_unlock(&engine.lock);
	return runs;
}

void engine_close(struct context *ctx)
{
	struct engine_port *port = ctx->port;
	pthread_t thread;
	bool last;

	if (!port)
		return;
	watch_close(ctx, &port->watch);
	free(port);
	ctx->port = NULL;
	pthread_mutex_lock(&engine.lock);
	last = !--engine.ports && engine.runs;
	engine.stop = last;
	thread = engine.thread;
	atomic_fetch_add_explicit(&engine.calls, 1, memory_order_relaxed);
	pthread_cond_signal(&engine.work);
	pthread_mutex_unlock(&engine.lock);
	if (!last)
		return;
	pthread_join(thread, NULL);
	pthread_mutex_lock(&engine.lock);
	engine.stop = engine.runs = false;
	pthread_cond_broadcast(&engine.idle);
	pthread_mutex_unlock(&engine.lock);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void inject(struct transfer *t)
{
	pthread_mutex_lock(&engine.lock);
	list_append(&engine.injected, &t->node);
	atomic_fetch_add_explicit(&engine.calls, 1, memory_order_relaxed);
	pthread_cond_signal(&engine.work);
	pthread_mutex_unlock(&engine.lock);
}

int engine_start(struct request *r)
{
	struct rma_work *w = &r->rma;
	bool thread = config_get()->engine == ENGINE_THREAD;
	struct engine_port *port = r->ctx->port;
	struct transfer *t = !thread || thread_runs() ? calloc(1, sizeof(*t)) : NULL;

	if (!t)
		return -SLMPM_ENOMEM;
	t->port = port;
	t->ep = r->ep;
	t->remote = w->remote;
	t->to = w->to;
	t->r = r;
	t->op = r->kind == REQUEST_PUT ? FABRIC_WRITE : FABRIC_READ;
	w->transfer = t;
	w->parts = 1;
	w->span = w->span_count;
	if (t->remote) {
		t->memory = t->remote->memory;
		t->remote->copying++;
	}
	r->ep->rma->moving++;
	endpoint_refresh(r->ep);
	if (!thread) {
		list_append(&port->waiting, &t->node);
		return 0;
	}
	inject(t);
	return 0;
}

/* It is in no list and in nobody's hand any more. */
static void transfer_free(struct transfer *t)
{
	struct endpoint *ep = t->ep;

	t->r->rma.transfer = NULL;
	ep->rma->moving--;
	if (t->remote)
		memory_copied(t->remote);
	free(t);
	endpoint_refresh(ep);
}

void engine_forget(struct request *r)
{
	struct transfer *t = r->rma.transfer;

	if (!t)
		return;
	pthread_mutex_lock(&engine.lock);
	t->gone = true;
	while (engine.hand == t)
		pthread_cond_wait(&engine.idle, &engine.lock);
	list_remove(&t->node);
	pthread_mutex_unlock(&engine.lock);
	transfer_free(t);
}

void engine_end(struct endpoint *ep)
{
	if (!ep->rma->moving)
		return;
	LIST_EACH(at, &ep->rma->live) {
		struct rma_work *w = LIST_ENTRY(at, struct rma_work, live);

		engine_forget(LIST_ENTRY(w, struct request, rma));
	}
}

static int status_of(int rc)
{
	return rc == 0       ? 0 :
	       rc == -EFAULT ? -SLMPM_EINVAL :
	       rc == -ESRCH  ? -SLMPM_EDEAD :
			       -SLMPM_ESYSTEM;
}

static void land(struct transfer *t)
{
	struct request *r = t->r;
	int rc = t->status;

	if (rc == -EPERM) /* not directly any more, and nobody else says so on that copy */
		t->remote->memory.ops = 0;
	transfer_free(t);
	if (rc == -EPERM || rc == -ENOTSUP) {
		rma_retry(r);
		return;
	}
	/* Pairs with the release before what a get has read; what the thread has stored came with
	 * the lock. */
	if (r->kind == REQUEST_GET)
		atomic_thread_fence(memory_order_acquire);
	rma_part_done(r, status_of(rc), 0);
}

static int step_inline(struct engine_port *port)
{
	struct transfer *t = LIST_ENTRY(port->waiting.next, struct transfer, node);
	int rc = move_piece(t);

	list_remove(&t->node);
	if (rc == 1) {
		list_append(&port->waiting, &t->node);
	} else {
		t->status = rc;
		land(t);
	}
	return 1;
}

/* Who waits moves a piece itself: of its own transfers, which nobody forgets meanwhile. */
static int help(struct engine_port *port)
{
	struct transfer *t = NULL;

	pthread_mutex_lock(&engine.lock);
	if (!list_empty(&engine.injected))
		t = LIST_ENTRY(engine.injected.next, struct transfer, node);
	if (t && t->port == port)
		list_remove(&t->node);
	else
		t = NULL;
	pthread_mutex_unlock(&engine.lock);
	if (!t)
		return 0;
	t->status = move_piece(t);
	if (t->status == 1)
		inject(t);
	else
		land(t);
	return 1;
}

int engine_step(struct context *ctx)
{
	struct engine_port *port = ctx->port;
	int n = 0;

	if (!port)
		return 0;
	if (!list_empty(&port->waiting))
		n += step_inline(port);
	else if (ctx->polling && !ctx->multiple)
		n += help(port);
	/* Seen late, it is seen at the next pass, or by the eventfd. */
	while (atomic_load_explicit(&port->any, memory_order_relaxed)) {
		struct transfer *t = NULL;

		pthread_mutex_lock(&engine.lock);
		if (!list_empty(&port->landed)) {
			t = LIST_ENTRY(port->landed.next, struct transfer, node);
			list_remove(&t->node);
		}
		if (list_empty(&port->landed))
			atomic_store_explicit(&port->any, false, memory_order_relaxed);
		pthread_mutex_unlock(&engine.lock);
		if (!t)
			break;
		land(t);
		n++;
	}
	return n;
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
	rc = start_thread(&ctx->port->server, serve, ctx->port);
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

/* The child has neither the thread nor any of the requests. */
void engine_fork(void)
{
	pthread_mutex_init(&engine.lock, NULL);
	pthread_cond_init(&engine.work, NULL);
	pthread_cond_init(&engine.idle, NULL);
	list_init(&engine.injected);
	engine.hand = NULL;
	engine.ports = 0;
	engine.runs = engine.stop = false;
}
