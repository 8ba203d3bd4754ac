/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context's descriptors, and sleep on them: in a call that waits, or in the application's own
 * loop. The order: announce it to the peers (and pay for the barrier), scan the rings once more,
 * sleep. A peer that commits after the scan sees the announcement and rings.
 */
#include "slmpm/link/wait.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "shm/barrier.h"
#include "slmpm/watch.h"
#include "slmpm/bond/bond.h"
#include "slmpm/domain.h"
#include "slmpm/link/link.h"
#include "slmpm/link/inspect.h"
#include "slmpm/part.h"
#include "slmpm/link/progress.h"

#define EVENTS    16
#define SHOWN_NS  UINT64_C(20000000)
#define TURN_NS   UINT64_C(1000000) /* of a thread that has been woken */
#define ENOMEM_NS UINT64_C(5000000) /* between tries for memory */

/* ---- descriptors ---------------------------------------------------------------------------- */

static bool wait_sleep_is_bell(const struct epoll_event *event)
{
	return ((const struct watch *)event->data.ptr)->bell;
}

/* Who ends by one of them may have another: nobody is freed in between. */
static void dispatch_all(struct context *ctx, struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		struct watch *w = events[i].data.ptr;

		w->ready(ctx, w);
	}
	if (UNLIKELY(ctx->refused))
		parts.forget_refused(ctx);
	if (UNLIKELY(ctx->ended))
		endpoint_reclaim(ctx);
}

/* Those that no call waits for: the next, 0 when one has just passed. */
static uint64_t inner_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	PART_EACH(part, parts.deadlines) {
		uint64_t at = (*part)(ctx, now);

		next = at < next ? at : next;
	}
	if (ctx->enomem) { /* each try says so again */
		ctx->enomem = false;
		next = next < now + ENOMEM_NS ? next : now + ENOMEM_NS;
	}
	return next;
}

/* A try behind those may have been in vain, too. */
static uint64_t or_next_try(const struct context *ctx, uint64_t now, uint64_t until)
{
	return UNLIKELY(ctx->enomem) && now + ENOMEM_NS < until ? now + ENOMEM_NS : until;
}

static bool has_deadlines(const struct context *ctx)
{
	return ctx->paused || ctx->kills || ctx->enomem || ctx->asking || ctx->unpaired ||
	       ctx->collecting || ctx->depositing || !list_empty(&ctx->deadlines) ||
	       !list_empty(&ctx->secondary) || !list_empty(&ctx->remote_peers) ||
	       !list_empty(&ctx->timed) || !list_empty(&ctx->unused) ||
	       !list_empty(&ctx->to_dial) || !list_empty(&ctx->dials) ||
	       !list_empty(&ctx->stalled) || !list_empty(&ctx->pairing);
}

/* Descriptors and deadlines: how many had something to say. */
static int wait_sleep_inspect(struct context *ctx)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(ctx->epoll, events, EVENTS, 0);

	dispatch_all(ctx, events, n);
	n = n < 0 ? 0 : n;
	if (has_deadlines(ctx) && !inner_deadlines(ctx, clock_now()))
		n++;
	return n;
}

/* The message came first: what rang is still to be read, and is no news. */
static void take_bells(struct context *ctx)
{
	struct epoll_event event = {.data.ptr = ctx->bell};

	if (!ctx->rung)
		return;
	ctx->rung = false;
	if (!ctx->bell) {
		(void)wait_sleep_inspect(ctx);
		return;
	}
	ctx->bell = NULL;
	dispatch_all(ctx, &event, 1); /* a call less than to ask for it */
}

int wait_inspect(struct context *ctx)
{
	if (ctx->handling) /* its caller looks later */
		return 0;
	inspect_tick_amid(ctx);
	if (ctx->sleeping) /* another thread's: a bell taken here would not wake it */
		return 0;
	for (uint32_t i = 0; i < ctx->live; i++)
		watermark_mark(ctx->endpoints[i]);
	take_bells(ctx);
	return wait_sleep_inspect(ctx);
}

/* ---- sleeping ------------------------------------------------------------------------------- */

static void wait_arm(struct context *ctx)
{
	bool unfenced;

	ctx->armed = true;
	for (uint32_t i = 0; i < ctx->live; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP)
			progress_settle(ctx->endpoints[i]);
	/* What the barrier costs is paid by all processes that run: one for all. */
	unfenced = ctx->collecting && parts.collect_arm(ctx, true);
	if (!domain_arm(ctx, true) && unfenced)
		barrier_all();
	for (uint32_t i = 0; i < ctx->live; i++)
		endpoint_stats(ctx->endpoints[i]);
	if (ctx->stats_queues)
		parts.publish(ctx);
}

void wait_disarm(struct context *ctx)
{
	ctx->armed = false;
	(void)domain_arm(ctx, false);
	if (ctx->collecting)
		(void)parts.collect_arm(ctx, false);
}

uint64_t wait_room(const struct endpoint *ep)
{
	const struct fabric_link *link = ep->link.port, *path;
	uint64_t sent, acknowledged = 0, sum = link->room;

	if (!bond_is(ep->link.port))
		return sum;
	for (uint32_t p = 0; p < BOND_PATHS; p++)
		if ((path = bond_port(link, p)))
			sum += path->room;
	bond_position(link, &sent, &acknowledged);
	return sum + acknowledged;
}

static uint64_t room(const struct context *ctx)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ctx->live; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP)
			sum += wait_room(ctx->endpoints[i]);
	return sum;
}

/* Is there work although no bell rang? What came before the announcement rings none; and what was
 * refused may be taken after what has come. */
static bool has_work(struct context *ctx, wait_test *test, void *arg)
{
	uint64_t before = room(ctx);

	if (progress_context(ctx) || progress_read_ahead(ctx) || test(arg) || room(ctx) != before)
		return true;
	context_changed(ctx); /* and those behind us test for themselves */
	return false;
}

/* The sleep was a yield and a scan of the descriptors: the next messages do not pay for those. */
static void woken(struct context *ctx)
{
	ctx->idle = 0;
	ctx->yielded = clock_now();
	ctx->rounds = 0;
	inspect_woken(ctx);
}

bool wait_sleep(struct context *ctx, uint64_t now, uint64_t deadline, wait_test *test, void *arg)
{
	struct epoll_event events[EVENTS];
	uint64_t until;
	int n;

	(void)inner_deadlines(ctx, now);
	if (ctx->quiet)
		inspect_tick_often(ctx);
	else
		inspect_tick(ctx);
	take_bells(ctx); /* now, when no peer waits for us */
	wait_arm(ctx);
	if (has_work(ctx, test, arg)) {
		wait_disarm(ctx);
		return true;
	}
	until = inner_deadlines(ctx, now); /* only now: a link may just have been found lost */
	/* What is said there may take in what no descriptor shows any more. */
	if (!list_empty(&ctx->secondary) && has_work(ctx, test, arg)) {
		wait_disarm(ctx);
		return true;
	}
	until = or_next_try(ctx, now, until);
	until = deadline < until ? deadline : until;
	if (ctx->news && ctx->port)
		parts.show(ctx);
	/* Once more, and what others see is how things are: of operations of groups what has come
	 * since, of which no endpoint counts anything. */
	if ((!parts.is_shown(ctx) || (ctx->collecting && !ctx->quiet)) && now + SHOWN_NS < until)
		until = now + SHOWN_NS;
	/* By itself: what was tested, or is due, has received for room, or has sent. */
	if (domain_has_roused(ctx)) {
		wait_disarm(ctx);
		return true;
	}
	ctx->sleeps++;
	ctx->wakes_at = until;
	ctx->away = ctx->sleeping = true;
	ctx->wakes = !lock_is_guest(&ctx->lock);
	ctx->ready_since = false;
	context_unlock(ctx);
	/* What has been done since NOW may have taken its time. */
	n = epoll_wait(ctx->epoll, events, EVENTS, clock_ms(clock_now(), until, -1));
	context_lock(ctx);
	ctx->away = ctx->sleeping = ctx->wakes = false;
	ctx->quiet = n == 0;
	wait_disarm(ctx);
	/* Where there are several threads another may have closed what the event points at. */
	ctx->bell = !ctx->multiple && n == 1 && wait_sleep_is_bell(&events[0]) ?
			    events[0].data.ptr :
			    NULL;
	woken(ctx);
	/* The message first: what rang is only the bell. */
	if (n > 0 && progress_context(ctx))
		ctx->rung = true;
	else if (n > 0 && ctx->multiple) /* another thread may have closed what they point at */
		(void)wait_sleep_inspect(ctx);
	else
		dispatch_all(ctx, events, n);
	context_changed(ctx);
	return ctx->rung;
}

/* ---- the application's own loop ------------------------------------------------------------- */

/* Deadlines that no call waits for end the sleep. False: nothing would, or one has just passed. */
static bool set_alarm(struct context *ctx)
{
	uint64_t until, now;

	if (ctx->sleeping || ctx->handling || !has_deadlines(ctx))
		return true;
	now = clock_now();
	until = inner_deadlines(ctx, now);
	/* What is said there may take in what no descriptor shows any more. */
	if (!until || (!list_empty(&ctx->secondary) && progress_context(ctx)))
		return false;
	return alarm_set(ctx, or_next_try(ctx, now, until));
}

/* Another thread sleeps, and has been woken, but has not had the lock yet: what woke it is there
 * until then, and would wake the application again and again, which keeps the lock from it. */
static void let_sleeper_in(struct context *ctx)
{
	struct epoll_event event;

	if (ctx->sleeping && !ctx->handling && epoll_wait(ctx->epoll, &event, 1, 0) > 0)
		(void)wait_for_poller(ctx, clock_now() + TURN_NS);
}

bool wait_announce(struct context *ctx)
{
	uint64_t before;
	bool news;

	let_sleeper_in(ctx);
	inspect_tick_often(ctx);
	ctx->news |= wait_inspect(ctx) > 0; /* takes the bells out, which have done their work */
	/* A bell taken since has used that announcement up; that of a sleeping thread stands. */
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	before = room(ctx);
	wait_arm(ctx);
	if (!progress_context(ctx))
		ctx->news |= progress_read_ahead(ctx) > 0 || room(ctx) != before;
	ctx->news |= !set_alarm(ctx);
	news = ctx->news;
	ctx->news = false;
	return !news;
}
