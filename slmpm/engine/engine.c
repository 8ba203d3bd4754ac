/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's transfers: how they begin, move and end (engine.h). */
#include "slmpm/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/base/config.h"
#include "slmpm/link/link.h"
#include "slmpm/request.h"
#include "slmpm/engine/transfer.h"

#define PIECE ((uint64_t)256 << 10) /* so long does one that is forgotten go on at most */

bool engine_takes(uint64_t length)
{
	return config_get()->engine != ENGINE_NONE && length;
}

bool engine_wants(uint64_t length)
{
	return engine_takes(length) && length >= (uint64_t)config_get()->engine_min;
}

/* ---- moving ------------------------------------------------------------------------------ */

static int engine_reach(struct transfer *t, uint64_t offset, void *here, uint64_t n)
{
	if (t->access &&
	    atomic_load_explicit(t->access, memory_order_relaxed) != FABRIC_ACCESS_DIRECT)
		return -ENOTSUP; /* by packets, all of it: the owner says what may be done */
	if (!t->to)
		return link_reach(t->ep, t->op, &t->memory, offset, here, n);
	copy_bytes(t->to + offset, here, n);
	return 1;
}

int transfer_move(struct transfer *t)
{
	const struct rma_work *w = &t->r->rma;
	struct request_walk walk = {t->r, 0, t->at};
	uint64_t left = PIECE;

	while (t->span < w->span_count) {
		const struct slmpm_span *span = &w->spans[t->span];
		uint64_t n = span->len - t->in_span;
		void *here;
		int rc;

		if (!n) {
			t->span++;
			t->in_span = 0;
			continue;
		}
		if (!left)
			return 1;
		here = request_walk_on(&walk, n < left ? n : left, &n);
		if (!here)
			return -EFAULT;
		rc = engine_reach(t, span->offset + t->in_span, here, n);
		if (rc != 1)
			return rc;
		t->in_span += n;
		t->at += n;
		left -= n;
	}
	return 0;
}

void transfer_skip(struct transfer *t)
{
	const struct rma_work *w = &t->r->rma;

	for (uint64_t n, left = PIECE; left && t->span < w->span_count; left -= n) {
		uint64_t rest = w->spans[t->span].len - t->in_span;

		n = rest < left ? rest : left;
		t->in_span += n;
		t->at += n;
		if (n < rest)
			continue;
		t->span++;
		t->in_span = 0;
	}
}

int transfer_pieces(const struct transfer *t)
{
	uint64_t rest = t->r->length - t->at;

	if (!rest)
		return 0;
	return rest <= PIECE ? 1 : 2;
}

/* ---- requests ---------------------------------------------------------------------------- */

int engine_start(struct request *r, const struct fabric_memory *memory,
		 const _Atomic unsigned char *access)
{
	struct rma_work *w = &r->rma;
	bool runs = config_get()->engine != ENGINE_THREAD || engine_thread_runs();
	struct transfer *t = runs ? calloc(1, sizeof(*t)) : NULL;

	if (!t)
		return -SLMPM_ENOMEM;
	t->port = r->ctx->port;
	t->ep = r->ep;
	t->access = access;
	t->to = w->to;
	t->r = r;
	t->op = request_fabric_op(r->kind);
	t->own = !w->for_peer;
	w->transfer = t;
	w->parts = 1;
	w->span = w->span_count;
	if (memory)
		t->memory = *memory;
	endpoint_move(r->ep, 1);
	engine_inject(t);
	return 0;
}

static void engine_count(const struct transfer *t)
{
	struct slmpm_stats *s = t->ep->stats;
	bool out = t->op == FABRIC_WRITE && !t->to;

	*(out ? &s->engine_out : &s->engine_in) += 1;
	*(out ? &s->engine_out_bytes : &s->engine_in_bytes) += t->by_thread;
	*(out ? &s->helped_out_bytes : &s->helped_in_bytes) += t->helped;
}

/* It is in no list and in nobody's hand any more. */
static void transfer_free(struct transfer *t)
{
	struct endpoint *ep = t->ep;

	t->r->rma.transfer = NULL;
	engine_count(t);
	endpoint_move(ep, -1);
	free(t);
}

uint64_t engine_stop(struct request *r)
{
	struct transfer *t = r->rma.transfer;
	uint64_t at;

	if (!t)
		return 0;
	engine_recall(t);
	at = t->at;
	transfer_free(t);
	return at;
}

int engine_copy(struct request *r, const struct fabric_memory *memory,
		const _Atomic unsigned char *access, uint64_t from)
{
	struct transfer t = {
		.ep = r->ep,
		.access = access,
		.r = r,
		.memory = *memory,
		.op = request_fabric_op(r->kind),
		.in_span = from,
		.at = from,
	};
	int rc = memory->ops >> t.op & 1 ? 1 : -ENOTSUP;

	while (rc == 1)
		rc = transfer_move(&t);
	return rc;
}

int engine_step(struct endpoint *ep)
{
	struct context *ctx = ep->ctx;
	struct engine_port *port = ctx->port;
	int n = 0;

	if (!ep->moving || !port)
		return 0;
	/* Who waits moves a piece itself: of its own transfers, which nobody forgets meanwhile.
	 * What a peer asked for is left to the thread where there are others, whose messages would
	 * wait for each piece. */
	if (config_get()->engine == ENGINE_INLINE)
		n += engine_move_one(port, true);
	else if (ctx->polling && !ctx->multiple)
		n += engine_move_one(port, ctx->count == 1);
	/* Seen late, it is seen at the next pass, or by the eventfd. */
	while (atomic_load_explicit(&port->any, memory_order_relaxed)) {
		struct transfer *t = engine_take_landed(port);
		struct request *r = t ? t->r : NULL;
		int rc = t ? t->status : 0;

		if (!t)
			break;
		transfer_free(t);
		parts.moved(r, rc);
		n++;
	}
	return n;
}
