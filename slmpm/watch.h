/* SPDX-License-Identifier: BSD-3-Clause */
/* What a descriptor in a context's epoll set stands for. */
#ifndef SLMPM_WATCH_H
#define SLMPM_WATCH_H

#include "slmpm/context.h"

enum watch_kind {
	WATCH_SOCKET,
	WATCH_PROCESS,
	WATCH_LISTENER,
	WATCH_NEAR,
	WATCH_KICK,
	WATCH_ALARM,
	WATCH_ENGINE,
	WATCH_DOMAIN,
	WATCH_ARRIVE
};

struct watch {
	enum watch_kind kind;
	int fd; /* -1: none */
	void *owner;
	bool end_only, room; /* what the next two have asked for */
};

int watch_add(struct context *ctx, struct watch *w);
void watch_remove(struct context *ctx, struct watch *w);
/* From now on only the other side's end is told; or everything again. */
void watch_for_end(struct context *ctx, struct watch *w, bool only);
/* Room to send is told, too; or no more. */
void watch_for_room(struct context *ctx, struct watch *w, bool on);
/* Removes it and closes its descriptor. */
void watch_close(struct context *ctx, struct watch *w);

#endif
