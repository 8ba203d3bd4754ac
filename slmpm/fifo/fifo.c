/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts into a FIFO, and a context's reception FIFO: what arrives, is taken, and becomes of it. */
#include "slmpm/fifo/fifo.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/wait.h"
#include "slmpm/message/message.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/part.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/sendrecv/sendrecv.h"

/* Little-endian. */
struct fifo_put {
	struct wire_target target;
	uint64_t tag; /* the answer's; 0: none is wanted */
	uint32_t imm, zero;
};
_Static_assert(sizeof(struct fifo_put) == FIFO_HEAD, "wire layout");

struct fifo_entry {
	struct handle handle;
	struct context *ctx; /* stays: another thread may read it just as it is freed */
	struct list node;    /* of the context's FIFO until it is taken; or alone */
	struct list of_peer; /* of the endpoint's */
	struct endpoint *ep;
	uint64_t mem, offset, len; /* as its origin proposes; a handle */
	unsigned char *memory;     /* head and bytes: freed with it */
	const unsigned char *data;
	uint64_t tag, charge;
	uint32_t imm;
	struct request *store; /* it is being stored, and nobody's any more ... */
	struct region *region; /* ... there */
	bool is_long;          /* announced: the credit does not bound it */
};

static struct handle_table fifo_table = HANDLE_TABLE_FROM("FIFO entry", struct fifo_entry, node);

/* ---- the side that puts ---------------------------------------------------------------------- */

static int fifo_put_check(const struct operation *o)
{
	const struct endpoint *ep = o->remote->ep;
	uint64_t most = SLMPM_MESSAGE_MAX - sizeof(struct fifo_put);

	if (!ep->active)
		return error_set(SLMPM_ENOTSUP, "%s does not know active messages", ep->life->name);
	if (o->full.flags & (SLMPM_FENCE | SLMPM_BARRIER | SLMPM_NOTIFY | SLMPM_VIA_MASK))
		return error_set(SLMPM_EINVAL, "%s: flags 0x%x", o->call, o->full.flags);
	if (o->span_count != 1)
		return error_set(SLMPM_EINVAL, "%s: %d spans for one entry of a FIFO", o->call,
				 o->span_count);
	if (o->length > most)
		return error_set(SLMPM_ELIMIT, "%s: %llu bytes, at most %llu into a FIFO", o->call,
				 (unsigned long long)o->length, (unsigned long long)most);
	return 0;
}

static int fifo_put_prepare(struct request *r, const struct operation *o)
{
	const struct remote *remote = o->remote;
	struct endpoint *ep = remote->ep;
	struct fifo_put head = {
		.target = rma_target(remote, o->spans->offset, o->spans->len),
		.imm = LITTLE_32(o->full.imm),
	};
	int rc;

	if (o->full.flags & SLMPM_REMOTE)
		r->fifo.tag = wire_next(&ep->rooms->am->tags);
	head.tag = LITTLE_64(r->fifo.tag);
	rc = am_fill(r, ep, FIFO_PUT, &head, sizeof(head), o->pieces, o->piece_count, false);
	r->fifo.put = true;
	r->flags = (uint8_t)(o->full.flags & SLMPM_MORE);
	r->hint = mode_hint(o->full.flags & SLMPM_ON_LINK_MASK ? o->full.flags :
								 o->full.flags | remote->asked);
	r->result.op = SLMPM_OP_PUT;
	return rc;
}

int fifo_put(const struct operation *o)
{
	struct endpoint *ep = o->remote->ep;
	struct request stack = {.piece_count = 0}, *r = &stack;
	slmpm_peer peer = {handle_id(ep)};
	int rc = fifo_put_check(o);

	if (rc < 0)
		return rc;
	if (!completion_blocks(&o->full, o->req))
		r = request_new(ep->ctx);
	if (!r)
		return -SLMPM_ENOMEM;
	rc = message_begin(r, fifo_put_prepare(r, o), &o->full, o->req);
	if (rc == 0 && endpoint_of(peer) == ep) { /* else another thread has closed it meanwhile */
		ep->stats->puts++;
		ep->stats->put_bytes += o->length;
		ep->stats->fifo_puts++;
		ep->stats->fifo_bytes += o->length;
	}
	return rc;
}

/* Out of the FIFO; its origin learns STATUS, if it wants to, and has its credit back. */
static void fifo_dispose(struct fifo_entry *e, int status)
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

void fifo_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		  unsigned char *memory, uint64_t charge)
{
	struct context *ctx = ep->ctx;
	const struct grant *g;
	struct fifo_entry *e;
	struct fifo_put q;
	int status = 0;

	if (!take_head(ep, stream, data, total, &q)) {
		free(memory);
		return;
	}
	g = region_check(ep, q.target.grant, q.target.secret, SLMPM_WRITE, q.target.offset,
			 q.target.length, &status);
	if (!g || ep->closing) { /* refused; or nobody is to have it any more */
		free(memory);
		am_ack_settle(ep, q.tag, charge, g ? -SLMPM_ECLOSED : status);
		return;
	}
	if (!memory) { /* with its head, so that what is handed out is never at NULL */
		memory = malloc(total);
		if (memory)
			memcpy(memory, data, total);
	}
	e = memory ? handle_new(&fifo_table) : NULL;
	if (!e) {
		free(memory);
		endpoint_no_memory(ep);
		return;
	}
	if (e->ctx != ctx) /* else who reads the last one here is not disturbed */
		context_own(&e->ctx, ctx);
	e->ep = ep;
	e->mem = handle_id(g->region);
	e->offset = q.target.offset;
	e->len = q.target.length;
	e->memory = memory;
	e->data = memory + sizeof(q);
	e->tag = q.tag;
	e->charge = charge;
	e->imm = q.imm;
	e->is_long = charge < wire_charge(total);
	ep->rooms->am->longs += e->is_long;
	list_append(&ctx->fifo, &e->node);
	list_append(&ep->rooms->am->entries, &e->of_peer);
	ep->stats->fifo_entries++;
	ctx->news = true;
	context_changed(ctx);
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

/* ---- what becomes of it: stored by the engine or here, or dropped --------------------------- */

/* Locks its context; NULL: nothing is locked, the detail is set in *RC. */
static struct fifo_entry *entry_lock(const char *call, const struct slmpm_fifo *entry, int *rc)
{
	struct fifo_entry *e;

	if (!entry) {
		*rc = error_set(SLMPM_EINVAL, "%s: no entry", call);
		return NULL;
	}
	e = context_lock_object(&fifo_table, entry->id, rc);
	/* One that was not taken has been given to nobody. */
	if (!e || (list_empty(&e->node) && !e->store))
		return e;
	context_unlock(e->ctx);
	*rc = error_set(SLMPM_EHANDLE, "%s: the entry is in use", call);
	return NULL;
}

/* The engine's hook, and that of what was stored at once. */
static void stored(struct request *r)
{
	struct fifo_entry *e = r->fifo.entry;
	struct endpoint *ep = e->ep;

	r->fifo.entry = NULL;
	e->region->storing--;
	fifo_dispose(e, r->result.status);
	if (ep->state == SLMPM_PEER_UP)
		rma_wake(ep); /* a flush waits for all that the engine moves */
}

static struct request *fifo_store_prepare(struct fifo_entry *e, struct region *region,
					  uint64_t offset)
{
	const struct slmpm_iov piece = {(void *)(uintptr_t)e->data, e->len};
	struct request *r = request_new(e->ctx);

	if (!r)
		return NULL;
	(void)request_init(r, REQUEST_PUT, e->ctx, e->ep, 0, &piece, 1);
	list_init(&r->rma.live);
	r->result.op = SLMPM_OP_STORE;
	r->result.len = e->len;
	r->result.imm = e->imm;
	r->numbered = true; /* it is not taken back */
	r->fifo.entry = e;
	r->ended = stored;
	r->rma.to = (unsigned char *)region_at(region, offset);
	r->rma.one.len = e->len;
	r->rma.spans = &r->rma.one;
	r->rma.span_count = 1;
	return r;
}

/* Without blocking. */
static int fifo_store_begin(struct fifo_entry *e, struct region *region, uint64_t offset,
			    const struct slmpm_how *how, slmpm_req *req)
{
	struct request *r = fifo_store_prepare(e, region, offset);
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = completion_bind(r, how, req);
	if (rc < 0) {
		request_drop(r);
		return rc;
	}
	if (req)
		req->id = handle_id(r);
	e->store = r;
	e->region = region;
	region->storing++;
	if (e->ep->state == SLMPM_PEER_UP && engine_takes(e->len) &&
	    engine_start(r, NULL, NULL) == 0)
		return 0;
	memcpy(r->rma.to, e->data, e->len);
	request_finish(r, 0);
	return 0;
}

static int fifo_store_store(struct fifo_entry *e, slmpm_mem mem, uint64_t offset,
			    const struct slmpm_how *how, slmpm_req *req)
{
	struct region *region = region_get(mem);

	if (!region)
		return handle_error(&region_table, mem.id);
	if (region->ctx != e->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_fifo_store: a region of another context");
	if (region->word)
		return error_set(SLMPM_EACCES, "slmpm_fifo_store: a counter is no memory");
	if (offset > region->memory.size || e->len > region->memory.size - offset)
		return error_set(SLMPM_EINVAL,
				 "slmpm_fifo_store: %llu bytes at %llu of a region of %llu",
				 (unsigned long long)e->len, (unsigned long long)offset,
				 (unsigned long long)region->memory.size);
	if (!completion_blocks(how, req))
		return fifo_store_begin(e, region, offset, how, req);
	memcpy(region_at(region, offset), e->data, e->len);
	part_landed(e->ctx, region_at(region, offset), e->len);
	fifo_dispose(e, 0);
	return 0;
}

int slmpm_fifo_store(struct slmpm_fifo *entry, slmpm_mem mem, uint64_t offset,
		     const struct slmpm_how *how, slmpm_req *req)
{
	struct slmpm_how full;
	struct context *ctx;
	int rc = 0;
	struct fifo_entry *e = entry_lock("slmpm_fifo_store", entry, &rc);

	if (!e)
		return rc;
	ctx = e->ctx;
	rc = how_take("slmpm_fifo_store", &full, how, 0);
	if (rc == 0)
		rc = fifo_store_store(e, mem, offset, &full, req);
	if (rc == 0)
		*entry = (struct slmpm_fifo){.id = 0};
	context_unlock(ctx);
	return rc;
}

int slmpm_fifo_drop(struct slmpm_fifo *entry)
{
	struct context *ctx;
	int rc = 0;
	struct fifo_entry *e = entry_lock("slmpm_fifo_drop", entry, &rc);

	if (!e)
		return rc;
	ctx = e->ctx;
	fifo_dispose(e, 0);
	*entry = (struct slmpm_fifo){.id = 0};
	context_unlock(ctx);
	return 0;
}

/* ---- ends ----------------------------------------------------------------------------------- */

void fifo_end(struct endpoint *ep)
{
	LIST_EACH(of_peer, &ep->rooms->am->entries) {
		struct request *r = LIST_ENTRY(of_peer, struct fifo_entry, of_peer)->store;

		if (!r)
			continue;
		(void)engine_stop(r); /* the rest at once: nobody calls the engine any more */
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
