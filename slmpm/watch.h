/* SPDX-License-Identifier: BSD-3-Clause */
/* What a descriptor in a context's epoll set stands for. */
#ifndef SLMPM_WATCH_H
#define SLMPM_WATCH_H

#include "slmpm/context.h"

struct watch;

/* What is done once its descriptor is ready. */
typedef void watch_ready(struct context *ctx, struct watch *w);

struct watch {
	watch_ready *ready;
	int fd; /* -1: none */
	void *owner;
	bool end_only, room; /* what watch_for_end and watch_for_room have asked for */
	bool bell;           /* a peer's byte on it says that its ring has something */
};

int watch_add(struct context *ctx, struct watch *w);
void watch_remove(struct context *ctx, struct watch *w);
/* From now on only the other side's end is told; or everything again. */
void watch_for_end(struct context *ctx, struct watch *w, bool only);
/* Room to send is told, too; or no more. */
void watch_for_room(struct context *ctx, struct watch *w, bool on);
/* Removes it and closes its descriptor. */
void watch_close(struct context *ctx, struct watch *w);

/* A timer among them: a program that sleeps on the context's descriptor wakes at deadlines that no
 * other descriptor shows. False: it cannot be had now, for want of descriptors perhaps; open it in
 * time. */
bool alarm_open(struct context *ctx);
void alarm_close(struct context *ctx);
/* Rings at WHEN (clock_now), or earlier as asked before; UINT64_MAX: no need. False: not. */
bool alarm_set(struct context *ctx, uint64_t when);

#endif
