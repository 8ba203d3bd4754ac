/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs written as text (dump.c), and as graphs of the same words (graph.c). */
#ifndef SLMPM_WORKQUEUE_DUMP_H
#define SLMPM_WORKQUEUE_DUMP_H

#include "slmpm/workqueue/text.h"
#include "slmpm/workqueue/workqueue.h"

struct dump {
	struct text_names names;
	char *buf;
	size_t size, len; /* how long all of it is so far */
	bool graph;
	const struct workqueue *wq;
	struct work **entries; /* of that queue, by number */
	uint32_t count;
};

__attribute__((format(printf, 2, 3))) void dump_add(struct dump *d, const char *format, ...);
/* "?" and the number, which no text may have, where it has no name. */
void dump_handle(struct dump *d, uint32_t kind, uint64_t id);
/* What W does, with BETWEEN between its words. */
void dump_request(struct dump *d, const struct work *w, const char *between);
/* The entries of one queue, and what they wait for. */
void dump_graph(struct dump *d);

#endif
