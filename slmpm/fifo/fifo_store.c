/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a FIFO's entry that has been taken: stored by the engine or here, or dropped. */
#include <string.h>

#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/fifo/fifo.h"
#include "slmpm/region/memory.h"
#include "slmpm/message/message.h"
#include "slmpm/part.h"
#include "slmpm/rma/rma.h"
#include "slmpm/completion/completion.h"

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
	struct request *r = request_new();

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
	struct fifo_entry *e;
	struct context *ctx;
	int rc = 0;

	e = entry_lock("slmpm_fifo_store", entry, &rc);
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
	struct fifo_entry *e;
	struct context *ctx;
	int rc = 0;

	e = entry_lock("slmpm_fifo_drop", entry, &rc);
	if (!e)
		return rc;
	ctx = e->ctx;
	fifo_dispose(e, 0);
	*entry = (struct slmpm_fifo){.id = 0};
	context_unlock(ctx);
	return 0;
}
