/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs written as text. */
#include "slmpm/workqueue/dump.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/calc/calc.h"

void dump_add(struct dump *d, const char *format, ...)
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

void dump_handle(struct dump *d, uint32_t kind, uint64_t id)
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

/* ---- a calculation's words ------------------------------------------------------------------- */

static void dump_count(struct dump *d, const struct slmpm_calc *c)
{
	for (int i = 0; i < 3 && c->count[i]; i++)
		dump_add(d, "%s%llu", i ? "*" : "", (unsigned long long)c->count[i]);
}

static void dump_strides(struct dump *d, const struct slmpm_operand *o)
{
	int n = 3;

	while (n && !o->stride[n - 1])
		n--;
	for (int i = 0; i < n; i++)
		dump_add(d, "/%lld", (long long)o->stride[i]);
}

/* Its memory is that in which all of it lies. */
static void dump_near(struct dump *d, const struct slmpm_operand *o, const struct calc_shape *shape)
{
	uint64_t at = (uintptr_t)o->at, lo, hi;
	const struct slmpm_name *n;

	(void)calc_reach(o, shape, &lo, &hi);
	n = text_find_memory(&d->names, (char *)o->at - (at - lo), hi - lo);
	if (n)
		dump_add(d, "%s+%zu", n->name, (size_t)(at - (uintptr_t)n->base));
	else
		dump_add(d, "?%llx+0", (unsigned long long)at);
}

static void dump_far(struct dump *d, const struct slmpm_operand *o)
{
	dump_add(d, ">");
	dump_handle(d, SLMPM_NAME_RMEM, o->rmem.id);
	dump_add(d, "+%llu", (unsigned long long)o->offset);
}

static void dump_arrival(struct dump *d, const struct slmpm_operand *o)
{
	dump_add(d, "<");
	if (o->wq.id) {
		dump_handle(d, SLMPM_NAME_WQ, o->wq.id);
		return;
	}
	if (work_is_any(o->peer))
		dump_add(d, "any");
	else
		dump_handle(d, SLMPM_NAME_PEER, o->peer.id);
	dump_add(d, "+%u", o->stream);
}

static void dump_operand(struct dump *d, const struct slmpm_operand *o,
			 const struct calc_shape *shape)
{
	if (o->rmem.id)
		dump_far(d, o);
	else if (calc_arrives(o))
		dump_arrival(d, o);
	else
		dump_near(d, o, shape);
	if (o->flags)
		dump_add(d, o->flags == SLMPM_OPERAND_BIG_ENDIAN ? ":big" : ":little");
	dump_strides(d, o);
	if (o->indices) {
		dump_add(d, "[");
		dump_memory(d, o->indices, shape->total * sizeof(*o->indices), false);
		dump_add(d, "]");
	} else if (o->index) {
		dump_add(d, "@%llu", (unsigned long long)o->index);
	}
}

static void dump_operands(struct dump *d, const struct slmpm_calc *c,
			  const struct slmpm_operand *list, int n)
{
	struct calc_shape shape;

	(void)calc_shape_of(&shape, c);
	for (int i = 0; i < n; i++) {
		dump_add(d, i ? "," : "");
		dump_operand(d, &list[i], &shape);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

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
	case TEXT_CALC: return wr->calc->op;
	case TEXT_TYPE: return wr->calc->type;
	case TEXT_COUNT: return wr->calc->count[0];
	case TEXT_ARGS: return (uint64_t)wr->calc->arg_count;
	case TEXT_TARGETS: return (uint64_t)wr->calc->target_count;
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
	case TEXT_ATOMIC:
	case TEXT_CALC:
	case TEXT_TYPE: dump_choice(d, word->kind, number); break;
	case TEXT_COUNT: dump_count(d, wr->calc); break;
	case TEXT_ARGS: dump_operands(d, wr->calc, wr->calc->args, (int)number); break;
	case TEXT_TARGETS: dump_operands(d, wr->calc, wr->calc->targets, (int)number); break;
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

static void dump_wr(struct dump *d, const struct slmpm_wr *wr, const char *between)
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

void dump_request(struct dump *d, const struct work *w, const char *between)
{
	struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX];
	struct slmpm_calc calc;
	struct slmpm_wr wr = w->wr;

	if (wr.op == SLMPM_OP_CALC) {
		calculation_given(w, &calc, operands);
		wr.calc = &calc;
	}
	dump_wr(d, &wr, between);
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
		dump_request(d, d->entries[i], " ");
		dump_add(d, "\n");
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

	if (n <= 0)
		return error_set(SLMPM_EINVAL, "slmpm_wq_dump: %d queues, at least 1", n);
	if (!queues || (size && !buf))
		return error_set(SLMPM_EINVAL, "slmpm_wq_dump: the %s NULL",
				 queues ? "buffer, of more than 0 bytes, is" : "queues are");
	if (flags & ~SLMPM_PROGRAM_GRAPH)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_dump: flags 0x%x: there is no 0x%x, only "
				 "SLMPM_PROGRAM_GRAPH",
				 flags, flags & ~SLMPM_PROGRAM_GRAPH);
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
