/* SPDX-License-Identifier: BSD-3-Clause */
/* One timer for all deadlines of a context. Where one is put off it rings once for nothing: that is cheaper than
 * to move it each time. */
#include "slmpm/alarm.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "slmpm/watch.h"

#define SECOND UINT64_C(1000000000)

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
