/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues as slmpm_info and slmpm_stat show them: figures, and words for what they wait for. */
#ifndef APPS_LIB_QUEUES_H
#define APPS_LIB_QUEUES_H

#include <slmpm.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define QUEUE_FIGURE(name, help)                                                                   \
	{                                                                                          \
#name, help, offsetof(struct slmpm_stats_queue, name)                              \
	}
static const struct {
	const char *name, *help;
	size_t at;
} queue_figures[] = {
	QUEUE_FIGURE(posted, "Entries posted"),
	QUEUE_FIGURE(enabled, "Entries that may begin"),
	QUEUE_FIGURE(begun, "Entries begun"),
	QUEUE_FIGURE(done, "Entries done"),
	QUEUE_FIGURE(failed, "Entries that have failed"),
	QUEUE_FIGURE(by_engine, "Entries begun by the thread of the engine"),
};
#define QUEUE_FIGURES (sizeof(queue_figures) / sizeof(*queue_figures))

static inline uint64_t queue_figure(const struct slmpm_stats_queue *q, size_t i)
{
	uint64_t value;

	memcpy(&value, (const char *)q + queue_figures[i].at, sizeof(value));
	return value;
}

/* "counter", "cq", "posted", ..., "receive", "peer": what it waits for. */
static inline const char *queue_subject(const struct slmpm_stats_wait *w)
{
	static const char *const indices[] = {
		[SLMPM_WQ_POSTED] = "posted",
		[SLMPM_WQ_ENABLED] = "enabled",
		[SLMPM_WQ_BEGUN] = "begun",
		[SLMPM_WQ_DONE] = "done",
	};

	switch (w->kind) {
	case SLMPM_SUBJECT_COUNTER: return "counter";
	case SLMPM_SUBJECT_CQ: return "cq";
	case SLMPM_SUBJECT_WQ:
		return w->index >= SLMPM_WQ_POSTED && w->index <= SLMPM_WQ_DONE ?
			       indices[w->index] :
			       "wq";
	case SLMPM_SUBJECT_RECEIVE: return "receive";
	case SLMPM_SUBJECT_PEER: return "peer";
	default: return "?";
	}
}

/* So long it has stood there; 0 of what cannot be. */
static inline double queue_seconds(const struct slmpm_stats_wait *w)
{
	struct timespec t;
	double s;

	clock_gettime(CLOCK_MONOTONIC, &t);
	s = (double)t.tv_sec + (double)t.tv_nsec / 1e9 - (double)w->since_ns / 1e9;
	return s > 0 && s < 1e9 ? s : 0;
}

/* Behind the last link that something of it has gone by; 0: it is not spread, or nothing has. */
static inline int queue_links(const struct slmpm_stats_queue *q)
{
	int n = SLMPM_LINK_ROOM;

	while (n && !q->by_link[n - 1])
		n--;
	return n;
}

#endif
