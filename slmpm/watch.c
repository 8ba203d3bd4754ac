/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors in a context's epoll set. */
#include "slmpm/watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

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
