/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors in a context's epoll set, and a timer for all its deadlines. */
#include "slmpm/watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static int watch_set(struct context *ctx, struct watch *w, int op)
{
	struct epoll_event event = {.events = w->end_only ? EPOLLRDHUP : EPOLLIN, .data.ptr = w};

	if (w->room)
		event.events |= EPOLLOUT;
	return epoll_ctl(ctx->epoll, op, w->fd, &event) == 0 ? 0 : -errno;
}

int watch_add(struct context *ctx, struct watch *w)
{
	w->end_only = w->room = false;
	return watch_set(ctx, w, EPOLL_CTL_ADD);
}

void watch_remove(struct context *ctx, struct watch *w)
{
	if (ctx->bell == w)
		ctx->bell = NULL;
	if (w->fd >= 0)
		(void)epoll_ctl(ctx->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

void watch_for_end(struct context *ctx, struct watch *w, bool only)
{
	w->end_only = only;
	if (w->fd >= 0)
		(void)watch_set(ctx, w, EPOLL_CTL_MOD);
}

void watch_for_room(struct context *ctx, struct watch *w, bool on)
{
	w->room = on;
	if (w->fd >= 0)
		(void)watch_set(ctx, w, EPOLL_CTL_MOD);
}

void watch_close(struct context *ctx, struct watch *w)
{
	watch_remove(ctx, w);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* ---- the timer ------------------------------------------------------------------------------ */

/* Where a deadline is put off it rings once in vain: that is cheaper than to move it each time. */
static void alarm_rang(struct context *ctx, struct watch *w)
{
	uint64_t count;

	(void)w;
	(void)!read(ctx->alarm.fd, &count, sizeof(count));
	ctx->alarm.at = UINT64_MAX;
}

bool alarm_open(struct context *ctx)
{
	static struct watch watch = {.ready = alarm_rang, .fd = -1};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &watch};

	if (ctx->alarm.fd >= 0)
		return true;
	ctx->alarm.at = UINT64_MAX;
	ctx->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ctx->alarm.fd >= 0 && epoll_ctl(ctx->epoll, EPOLL_CTL_ADD, ctx->alarm.fd, &event) == 0)
		return true;
	alarm_close(ctx);
	return false;
}

void alarm_close(struct context *ctx)
{
	if (ctx->alarm.fd >= 0)
		close(ctx->alarm.fd);
	ctx->alarm.fd = -1;
}

bool alarm_set(struct context *ctx, uint64_t when)
{
	const struct itimerspec t = {
		.it_value.tv_sec = (time_t)(when / SECOND),
		.it_value.tv_nsec = (long)(when % SECOND),
	};

	if (when == UINT64_MAX)
		return true;
	if (!alarm_open(ctx))
		return false;
	if (when < ctx->alarm.at &&
	    timerfd_settime(ctx->alarm.fd, TFD_TIMER_ABSTIME, &t, NULL) == 0)
		ctx->alarm.at = when;
	return true;
}
