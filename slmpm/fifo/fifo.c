/* SPDX-License-Identifier: BSD-3-Clause */
/* The reception FIFO of a context: what arrives in it, and what its processor takes out. */
#include "slmpm/fifo/fifo.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/link/wait.h"

struct handle_table fifo_table = HANDLE_TABLE_FROM("FIFO entry", struct fifo_entry, node);

/* ---- what arrives --------------------------------------------------------------------------- */

static bool take_head(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		      struct fifo_put *q)
{
	if (PEER_FAULT(stream >> 16 != sizeof(*q)))
		return endpoint_poison(ep, "head of a FIFO entry");
	memcpy(q, data, sizeof(*q));
	rma_target_in(&q->target);
	q->tag = LITTLE_64(q->tag);
	q->imm = LITTLE_32(q->imm);
	if (PEER_FAULT(q->target.length != total - sizeof(*q) || q->target.zero || q->zero))
		return endpoint_poison(ep, "length of a FIFO entry");
	return true;
}

/* Behind its head, so that what is handed out is never at NULL. */
static unsigned char *fifo_copy(const void *data, uint64_t total)
{
	unsigned char *memory = malloc(total);

	if (memory)
		memcpy(memory, data, total);
	return memory;
}

static void fifo_own_put(struct endpoint *ep, const struct fifo_put *q, const void *data,
			 uint64_t total, unsigned char *memory, uint64_t charge)
{
	struct context *ctx = ep->ctx;
	int status = 0;
	const struct grant *g = region_check(ep, q->target.grant, q->target.secret, SLMPM_WRITE,
					     q->target.offset, q->target.length, &status);
	struct fifo_entry *e;

	if (!g || ep->closing) { /* refused; or nobody is to have it any more */
		free(memory);
		am_ack_settle(ep, q->tag, charge, g ? -SLMPM_ECLOSED : status);
		return;
	}
	if (!memory)
		memory = fifo_copy(data, total);
	e = memory ? handle_new(&fifo_table) : NULL;
	if (!e) {
		free(memory);
		endpoint_no_memory(ep);
		return;
	}
	if (e->ctx != ctx) /* else who looks at the last one here is not disturbed */
		e->ctx = ctx;
	e->ep = ep;
	e->mem = handle_id(g->region);
	e->offset = q->target.offset;
	e->len = q->target.length;
	e->memory = memory;
	e->data = memory + sizeof(*q);
	e->tag = q->tag;
	e->charge = charge;
	e->imm = q->imm;
	e->is_long = charge < wire_charge(total);
	ep->rooms->am->longs += e->is_long;
	list_append(&ctx->fifo, &e->node);
	list_append(&ep->rooms->am->entries, &e->of_peer);
	ep->stats->fifo_entries++;
	ctx->news = true;
	context_changed(ctx);
}

void fifo_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		  unsigned char *memory, uint64_t charge)
{
	struct fifo_put q;

	if (take_head(ep, stream, data, total, &q))
		fifo_own_put(ep, &q, data, total, memory, charge);
	else
		free(memory);
}

/* ---- taking --------------------------------------------------------------------------------- */

struct taking {
	struct context *ctx;
	struct endpoint *ep; /* NULL: of any peer */
	slmpm_peer peer;
	struct fifo_entry *entry;
};

static bool fifo_find(void *arg)
{
	struct taking *t = arg;

	t->entry = NULL;
	LIST_EACH_ENTRY(struct fifo_entry, e, &t->ctx->fifo, node) {
		if (t->ep && e->ep != t->ep)
			continue;
		t->entry = e;
		return true;
	}
	return (t->ep && endpoint_of(t->peer) != t->ep) || context_source_ended(t->ctx, t->ep) < 0;
}

static int fifo_own_take(struct taking *t, struct slmpm_fifo *entry, int timeout_ms)
{
	int rc = wait_until(t->ctx, fifo_find, t, timeout_ms);
	struct fifo_entry *e = t->entry;

	if (t->ep && endpoint_of(t->peer) != t->ep)
		return endpoint_bad_handle(t->peer);
	if (!e && rc == 0)
		return context_source_ended(t->ctx, t->ep);
	if (!e)
		return late_from(t->ctx, t->ep, timeout_ms, "no FIFO entry from");
	list_remove(&e->node);
	*entry = (struct slmpm_fifo){
		.id = handle_id(e),
		.peer = {handle_id(e->ep)},
		.mem = {e->mem},
		.offset = e->offset,
		.data = e->data,
		.len = e->len,
		.imm = e->imm,
	};
	return 0;
}

int slmpm_fifo_take(slmpm_peer peer, struct slmpm_fifo *entry, int timeout_ms)
{
	struct taking t = {.peer = peer};
	int rc = 0;

	if (!entry)
		return error_set(SLMPM_EINVAL, "slmpm_fifo_take: nowhere to put the entry");
	t.ctx = message_source(peer, &t.ep, &rc);
	if (!t.ctx)
		return rc;
	rc = timeout_ms ? context_forbids(t.ctx, "slmpm_fifo_take") : 0;
	if (rc == 0)
		rc = fifo_own_take(&t, entry, timeout_ms);
	context_unlock(t.ctx);
	return rc;
}

/* ---- ends ----------------------------------------------------------------------------------- */

void fifo_dispose(struct fifo_entry *e, int status)
{
	struct endpoint *ep = e->ep;
	uint64_t tag = e->tag, charge = e->charge;
	bool is_long = e->is_long;

	list_remove(&e->node);
	list_remove(&e->of_peer);
	free(e->memory);
	handle_free(&fifo_table, e);
	am_ack_settle(ep, tag, charge, status);
	ep->rooms->am->longs -= is_long;
	if (is_long && !ep->rooms->am->longs)
		am_ack_clear_next(ep);
}

void fifo_end(struct endpoint *ep)
{
	LIST_EACH(of_peer, &ep->rooms->am->entries) {
		struct request *r = LIST_ENTRY(of_peer, struct fifo_entry, of_peer)->store;

		if (!r)
			continue;
		(void)engine_stop(
			r); /* the rest at once: nobody calls the engine for it any more */
		memcpy(r->rma.to, r->pieces->base, r->length);
		request_finish(r, 0);
	}
}

void fifo_forget(struct endpoint *ep)
{
	while (!list_empty(&ep->rooms->am->entries))
		fifo_dispose(LIST_ENTRY(ep->rooms->am->entries.next, struct fifo_entry, of_peer),
			     0);
}
