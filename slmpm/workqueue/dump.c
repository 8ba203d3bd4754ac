/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs written as text, and as graphs. */
#include "slmpm/workqueue/text.h"
#include "slmpm/workqueue/workqueue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"

struct dump {
	struct text_names names;
	char *buf;
	size_t size, len; /* how long all of it is so far */
	bool graph;
	const struct workqueue *wq;
	struct work **entries; /* of that queue, by number */
	uint32_t count;
};

__attribute__((format(printf, 2, 3))) static void dump_add(struct dump *d, const char *format, ...)
{
	size_t room = d->len < d->size ? d->size - d->len : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(room ? d->buf + d->len : NULL, room, format, args);
	va_end(args);
	d->len += n > 0 ? (size_t)n : 0;
}

/* ---- a request's words ---------------------------------------------------------------------- */

/* "?" and the number, which no text may have, where it has no name. */
static void dump_handle(struct dump *d, uint32_t kind, uint64_t id)
{
	const struct slmpm_name *n = text_find_handle(&d->names, kind, id);

	if (n)
		dump_add(d, "%s", n->name);
	else
		dump_add(d, "?%llx", (unsigned long long)id);
}

static void dump_memory(struct dump *d, const void *base, size_t len, bool with_len)
{
	const struct slmpm_name *n = text_find_memory(&d->names, base, len);

	if (!base)
		dump_add(d, "none");
	else if (n)
		dump_add(d, "%s+%zu", n->name, (size_t)((uintptr_t)base - (uintptr_t)n->base));
	else
		dump_add(d, "?%llx+0", (unsigned long long)(uintptr_t)base);
	if (base && with_len)
		dump_add(d, ":%zu", len);
}

static void dump_pieces(struct dump *d, const struct slmpm_wr *wr)
{
	for (int i = 0; i < wr->iov_count; i++) {
		dump_add(d, i ? "," : "");
		dump_memory(d, wr->iov[i].base, wr->iov[i].len, true);
	}
}

static void dump_head(struct dump *d, const struct slmpm_wr *wr)
{
	const unsigned char *head = wr->head;

	for (uint32_t i = 0; i < wr->head_len; i++)
		dump_add(d, "%02x", head[i]);
}

static void dump_choice(struct dump *d, enum text_kind kind, uint64_t number)
{
	const char *choice = text_choice(kind, number);

	if (choice)
		dump_add(d, "%s", choice);
	else
		dump_add(d, "%llu", (unsigned long long)number);
}

/* What is a number; 0: it is not written. */
static uint64_t dump_number(const struct text_word *word, const struct slmpm_wr *wr)
{
	const char *at = (const char *)wr + word->member;
	uint32_t word32;
	uint64_t word64;

	memcpy(&word32, at, sizeof(word32));
	switch (word->kind) {
	case TEXT_FLAG: return wr->flags & word->of;
	case TEXT_VIA: return (wr->flags & SLMPM_VIA_MASK) / SLMPM_VIA(0);
	case TEXT_LINK: return (wr->flags & SLMPM_ON_LINK_MASK) / SLMPM_ON_LINK(0);
	case TEXT_PIECES: return (uint64_t)wr->iov_count;
	case TEXT_HEAD: return wr->head_len;
	case TEXT_OLD: return wr->old != NULL;
	case TEXT_U64:
	case TEXT_HANDLE: memcpy(&word64, at, sizeof(word64)); return word64;
	default: return word32;
	}
}

static void dump_value(struct dump *d, const struct text_word *word, const struct slmpm_wr *wr,
		       uint64_t number)
{
	bool any = word->of == SLMPM_NAME_PEER && work_is_any((slmpm_peer){number});

	switch (word->kind) {
	case TEXT_FLAG: break;
	case TEXT_VIA:
	case TEXT_INDEX:
	case TEXT_ATOMIC: dump_choice(d, word->kind, number); break;
	case TEXT_LINK: dump_add(d, "%u", (uint32_t)number - 1); break;
	case TEXT_I32: dump_add(d, "%d", (int32_t)(uint32_t)number); break;
	case TEXT_PIECES: dump_pieces(d, wr); break;
	case TEXT_HEAD: dump_head(d, wr); break;
	case TEXT_OLD: dump_memory(d, wr->old, wr->bits / 8, false); break;
	case TEXT_HANDLE:
		if (word->of == SLMPM_NAME_PEER && !any)
			number = endpoint_plain((slmpm_peer){number}).id;
		if (any)
			dump_add(d, "any");
		else
			dump_handle(d, word->of, number);
		break;
	default: dump_add(d, "%llu", (unsigned long long)number); break;
	}
}

/* Of a receive queue the peer and the stream are the queue's. */
static bool dump_has(const struct dump *d, const struct text_word *word, const struct slmpm_wr *wr)
{
	return word->ops & 1u << wr->op && !(d->wq->flags & SLMPM_WQ_RECEIVE &&
					     (word->member == offsetof(struct slmpm_wr, peer) ||
					      word->member == offsetof(struct slmpm_wr, stream)));
}

static void dump_request(struct dump *d, const struct slmpm_wr *wr, const char *between)
{
	const char *op = text_op_name(wr->op);

	if (op)
		dump_add(d, "%s", op);
	else
		dump_add(d, "?operation=%u", wr->op); /* which slmpm_wq_load refuses */
	for (size_t i = 0; i < text_word_count; i++) {
		const struct text_word *word = &text_words[i];
		uint64_t number = dump_has(d, word, wr) ? dump_number(word, wr) : 0;

		if (!number && !(word->always && word->ops & 1u << wr->op))
			continue;
		dump_add(d, "%s%s%s", between, word->name, word->kind == TEXT_FLAG ? "" : "=");
		dump_value(d, word, wr, number);
	}
}

/* ---- a queue -------------------------------------------------------------------------------- */

/* What has begun and is not kept has its pieces where the caller had them. */
static bool dump_shows(const struct workqueue *wq, const struct work *w)
{
	bool stands = w->state == WORK_BEGUN && wq->channels[w->wr.channel].at == w;

	return w->state == WORK_WAITS || stands ||
	       (wq->flags & SLMPM_WQ_KEPT && w->state != WORK_IDLE);
}

static int compare_numbers(const void *left, const void *right)
{
	const struct work *const *a = left, *const *b = right;

	return (*a)->number < (*b)->number ? -1 : (*a)->number > (*b)->number;
}

static bool dump_collect(struct dump *d, const struct workqueue *wq)
{
	d->wq = wq;
	d->count = 0;
	d->entries = calloc(wq->used + 1, sizeof(struct work *));
	for (uint32_t i = 0; d->entries && wq->used && i < wq->depth; i++)
		if (dump_shows(wq, &wq->work[i]))
			d->entries[d->count++] = &wq->work[i];
	if (d->count)
		qsort(d->entries, d->count, sizeof(struct work *), compare_numbers);
	return d->entries;
}

static void dump_lines(struct dump *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		dump_request(d, &d->entries[i]->wr, " ");
		dump_add(d, "\n");
	}
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void graph_entry(struct dump *d, const struct work *w)
{
	dump_add(d, "\"");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, " %llu\"", (unsigned long long)work_number(d->wq, w));
}

/* A total that entries wait for and move. */
static void graph_total(struct dump *d, const char *kind, uint32_t of, uint64_t id)
{
	dump_add(d, "\"%s ", kind);
	dump_handle(d, of, id);
	dump_add(d, "\"");
}

static void graph_named(struct dump *d, const struct slmpm_wr *wr)
{
	if (wr->ctr.id)
		graph_total(d, "counter", SLMPM_NAME_CTR, wr->ctr.id);
	else if (wr->cq.id)
		graph_total(d, "completions", SLMPM_NAME_CQ, wr->cq.id);
	else
		graph_total(d, "queue", SLMPM_NAME_WQ, wr->wq.id);
}

static void graph_edge(struct dump *d, const struct work *w)
{
	const struct slmpm_wr *wr = &w->wr;
	bool waits = wr->op == SLMPM_OP_WAIT, relative = wr->flags & SLMPM_RELATIVE;
	bool ends = !waits && wr->op != SLMPM_OP_ENABLE && wr->op != SLMPM_OP_COUNT;
	const char *index = waits && wr->wq.id ? text_choice(TEXT_INDEX, wr->index) : "";

	if (!(wr->ctr.id | wr->cq.id | wr->wq.id))
		return;
	dump_add(d, "\t");
	if (waits)
		graph_named(d, wr);
	else
		graph_entry(d, w);
	dump_add(d, " -> ");
	if (waits)
		graph_entry(d, w);
	else
		graph_named(d, wr);
	dump_add(d, " [style=dashed, label=\"%s%s%s%llu\"];\n", index, *index ? " " : "",
		 ends || relative ? "+" : "", ends ? 1 : (unsigned long long)wr->value);
}

/* To the next of its channel. */
static void graph_next(struct dump *d, const struct work *w)
{
	if (!w->next)
		return;
	dump_add(d, "\t");
	graph_entry(d, w);
	dump_add(d, " -> ");
	graph_entry(d, w->next);
	dump_add(d, ";\n");
}

/* A managed queue's first from its total. */
static void graph_enabled(struct dump *d)
{
	if (!(d->wq->flags & SLMPM_WQ_MANAGED) || !d->count)
		return;
	dump_add(d, "\t");
	graph_total(d, "queue", SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, " -> ");
	graph_entry(d, d->entries[0]);
	dump_add(d, " [style=dotted];\n");
}

static void dump_graph(struct dump *d)
{
	dump_add(d, "\tsubgraph \"cluster ");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, "\" {\n\t\tlabel=\"");
	dump_handle(d, SLMPM_NAME_WQ, handle_id(d->wq));
	dump_add(d, "\";\n");
	for (uint32_t i = 0; i < d->count; i++) {
		dump_add(d, "\t\t");
		graph_entry(d, d->entries[i]);
		dump_add(d, " [shape=box, label=\"");
		dump_request(d, &d->entries[i]->wr, "\\n");
		dump_add(d, "\"];\n");
	}
	dump_add(d, "\t}\n");
	graph_enabled(d);
	for (uint32_t i = 0; i < d->count; i++) {
		graph_next(d, d->entries[i]);
		graph_edge(d, d->entries[i]);
	}
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int dump_queue(struct dump *d, slmpm_wq handle, bool headed)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	if (!dump_collect(d, wq)) {
		rc = error_set(SLMPM_ENOMEM, "for the text of a work queue");
	} else if (d->graph) {
		dump_graph(d);
	} else {
		if (headed) {
			dump_add(d, "queue ");
			dump_handle(d, SLMPM_NAME_WQ, handle.id);
			dump_add(d, "\n");
		}
		dump_lines(d);
	}
	context_unlock(wq->ctx);
	free(d->entries);
	return rc;
}

int64_t slmpm_wq_dump(const slmpm_wq *queues, int n, const struct slmpm_name *names, int count,
		      uint32_t flags, char *buf, size_t size)
{
	struct dump d = {
		.names = {.all = names, .count = count},
		.buf = buf,
		.size = size,
		.graph = flags & SLMPM_PROGRAM_GRAPH,
	};
	int rc;

	if (!queues || n <= 0 || (size && !buf) || flags & ~SLMPM_PROGRAM_GRAPH)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_dump: %d queues at %p, %zu bytes at %p, flags 0x%x", n,
				 (const void *)queues, size, (void *)buf, flags);
	rc = text_take_names("slmpm_wq_dump", &d.names);
	if (size)
		*buf = '\0';
	if (d.graph)
		dump_add(&d, "digraph program {\n");
	for (int i = 0; rc == 0 && i < n; i++)
		rc = dump_queue(&d, queues[i], n > 1);
	if (d.graph)
		dump_add(&d, "}\n");
	text_drop_names(&d.names);
	return rc < 0 ? rc : (int64_t)d.len;
}
