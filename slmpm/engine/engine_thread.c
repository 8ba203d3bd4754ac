/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's thread and its injection FIFO: one lock guards that and all reception FIFOs. */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/engine/engine.h"
#include "slmpm/engine/transfer.h"
#include "slmpm/base/clock.h"

#define TURN_NS  100000 /* of one that makes progress: the least that the kernel takes */
#define STAYS_NS 20000  /* awake, after the last transfer: waking takes longer than most of them */

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

/* ---- the thread -------------------------------------------------------------------------- */

/* Bound to the one processor of the thread that needed it, it would do nothing while that one
 * computes: the kernel leaves those that the process may have at all. LEAVE: but not that one, if
 * there is another. Awake the kernel would move it, but where it is woken it waits its turn. */
void engine_unbind(bool leave)
{
	cpu_set_t own, all;

	if (sched_getaffinity(0, sizeof(own), &own) != 0 || CPU_COUNT(&own) > 1)
		return;
	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all);
	if (!leave || sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	CPU_XOR(&all, &all, &own);
	if (CPU_COUNT(&all))
		(void)sched_setaffinity(0, sizeof(all), &all);
}

/* As of sched_setattr(2), which glibc may lack. */
struct turns {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t length, deadline, period;
};

/* Kernels before 6.12 take no notice. */
void engine_shorten_turns(void)
{
	struct turns t = {.size = 0};

	if (syscall(SYS_sched_getattr, 0, &t, sizeof(t), 0) != 0 || t.policy != SCHED_OTHER)
		return;
	t.length = TURN_NS;
	(void)syscall(SYS_sched_setattr, 0, &t, 0);
}

/* Whoever injects does so under the lock, and then finds the thread here, or asleep. */
static void await_work(void)
{
	unsigned seen = atomic_load_explicit(&engine.calls, memory_order_relaxed);
	uint64_t until = clock_now() + STAYS_NS;

	pthread_mutex_unlock(&engine.lock);
	while (atomic_load_explicit(&engine.calls, memory_order_relaxed) == seen &&
	       clock_now() < until)
		sched_yield(); /* it may have no processor of its own */
	pthread_mutex_lock(&engine.lock);
	if (atomic_load_explicit(&engine.calls, memory_order_relaxed) == seen)
		pthread_cond_wait(&engine.work, &engine.lock);
}

static void inject(struct transfer *t)
{
	list_append(&engine.injected, &t->node);
	atomic_fetch_add_explicit(&engine.calls, 1, memory_order_relaxed);
	pthread_cond_signal(&engine.work);
}

/* Of PORT; or NULL: of any. */
static struct transfer *first_injected(const struct engine_port *port)
{
	LIST_EACH_ENTRY(struct transfer, t, &engine.injected, node)
		if (!port || t->port == port)
			return t;
	return NULL;
}

/* Without the lock. *MOVED: the mover's bytes, of by_thread and helped. */
static void move_piece(struct transfer *t, uint64_t *moved)
{
	struct transfer piece = *t;
	uint64_t from = t->at;
	int rc;

	list_remove(&t->node);
	transfer_skip(t);
	t->movers++;
	if (transfer_pieces(t) > 1)
		inject(t); /* the others have their turn, and another mover may join */
	pthread_mutex_unlock(&engine.lock);
	rc = transfer_move(&piece);
	pthread_mutex_lock(&engine.lock);
	t->movers--;
	*moved += piece.at - from;
	if (rc >= 0)
		return;
	t->status = rc;
	t->at = piece.at < t->at ? piece.at : t->at;
	list_remove(&t->node);
}

/* Behind each piece: true where T has landed by it. */
static bool lands(struct transfer *t)
{
	if (t->movers || t->gone) /* whoever forgot it has it */
		return false;
	if (!t->status && transfer_pieces(t)) {
		if (transfer_pieces(t) == 1)
			inject(t);
		return false;
	}
	list_append(&t->port->landed, &t->node);
	return true;
}

static void *run(void *arg)
{
	(void)arg;
	engine_unbind(false);
	pthread_mutex_lock(&engine.lock);
	while (!engine.stop) {
		struct transfer *t = engine.hand = first_injected(NULL);

		if (!t) {
			await_work();
			continue;
		}
		move_piece(t, &t->by_thread);
		engine.hand = NULL;
		pthread_cond_broadcast(&engine.idle);
		/* The list is read under the lock; this only says that it is worth taking, and
		 * that the descriptor says so already. */
		if (lands(t) &&
		    !atomic_exchange_explicit(&t->port->any, true, memory_order_relaxed))
			(void)eventfd_write(t->port->watch.fd, 1);
	}
	pthread_mutex_unlock(&engine.lock);
	return NULL;
}

int engine_start_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* how a tracked mirror may learn that it stores there */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

bool engine_thread_runs(void)
{
	bool runs;

	pthread_mutex_lock(&engine.lock);
	while (engine.stop) /* the last one ends: what is injected now it would not look at */
		pthread_cond_wait(&engine.idle, &engine.lock);
	if (!engine.runs)
		engine.runs = engine_start_thread(&engine.thread, run, NULL) == 0;
	runs = engine.runs;
	pthread_mutex_unlock(&engine.lock);
	return runs;
}

void engine_enter(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.ports++;
	pthread_mutex_unlock(&engine.lock);
}

void engine_leave(void)
{
	pthread_t thread;
	bool last;

	pthread_mutex_lock(&engine.lock);
	while (engine.stop) /* another has just ended the thread, and joins it */
		pthread_cond_wait(&engine.idle, &engine.lock);
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

/* ---- its FIFOs --------------------------------------------------------------------------- */

void engine_inject(struct transfer *t)
{
	pthread_mutex_lock(&engine.lock);
	inject(t);
	pthread_mutex_unlock(&engine.lock);
}

bool engine_move_one(const struct engine_port *port, bool any)
{
	struct transfer *t;
	bool may;

	pthread_mutex_lock(&engine.lock);
	t = first_injected(port);
	may = t && (t->own || any);
	if (may)
		move_piece(t, &t->helped);
	if (may && lands(t)) /* the caller inspects what has landed */
		atomic_store_explicit(&t->port->any, true, memory_order_relaxed);
	pthread_mutex_unlock(&engine.lock);
	return may;
}

struct transfer *engine_take_landed(struct engine_port *port)
{
	struct transfer *t = NULL;

	pthread_mutex_lock(&engine.lock);
	if (!list_empty(&port->landed)) {
		t = LIST_ENTRY(port->landed.next, struct transfer, node);
		list_remove(&t->node);
	}
	if (list_empty(&port->landed))
		atomic_store_explicit(&port->any, false, memory_order_relaxed);
	pthread_mutex_unlock(&engine.lock);
	return t;
}

void engine_recall(struct transfer *t)
{
	pthread_mutex_lock(&engine.lock);
	t->gone = true;
	list_remove(&t->node);
	while (engine.hand == t)
		pthread_cond_wait(&engine.idle, &engine.lock);
	pthread_mutex_unlock(&engine.lock);
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
