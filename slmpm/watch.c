/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors in a context's epoll set. */
#include "slmpm/watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

int watch_add(struct context *ctx, struct watch *w)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(ctx->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0 ? 0 : -errno;
}

void watch_remove(struct context *ctx, struct watch *w)
{
	if (w->fd >= 0)
		(void)epoll_ctl(ctx->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

void watch_for_end(struct context *ctx, struct watch *w, bool only)
{
	struct epoll_event event = {.events = only ? EPOLLRDHUP : EPOLLIN, .data.ptr = w};

	if (w->fd >= 0)
		(void)epoll_ctl(ctx->epoll, EPOLL_CTL_MOD, w->fd, &event);
}

void watch_for_room(struct context *ctx, struct watch *w, bool on)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};

	if (on)
		event.events |= EPOLLOUT;
	if (w->fd >= 0)
		(void)epoll_ctl(ctx->epoll, EPOLL_CTL_MOD, w->fd, &event);
}

void watch_close(struct context *ctx, struct watch *w)
{
	watch_remove(ctx, w);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}
