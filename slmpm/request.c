/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: their pieces of memory, their end. */
#include "slmpm/request.h"

#include <stdlib.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/base/checksum.h"
#include "slmpm/base/error.h"
#include "slmpm/stats.h"

struct handle_table request_table = HANDLE_TABLE("request", struct request);

enum mode_op request_mode_op(enum request_kind kind)
{
	return kind == REQUEST_PUT    ? MODE_PUT :
	       kind == REQUEST_GET    ? MODE_GET :
	       kind == REQUEST_ATOMIC ? MODE_ATOMIC :
					MODE_SEND;
}

#define RETIRED 256 /* kept by a context at most: the others are any context's */

static struct request *take_retired(struct context *ctx)
{
	struct list *last = ctx->retired.prev;

	list_remove(last);
	ctx->retired_count--;
	return LIST_ENTRY(last, struct request, node);
}

struct request *request_new(struct context *ctx)
{
	struct request *r;

	if (LIKELY(ctx->retired_count)) {
		r = take_retired(ctx);
		handle_renew(&request_table, r);
	} else {
		r = handle_new(&request_table);
	}
	if (r)
		r->home = handle_id(ctx);
	else
		error_set(SLMPM_ENOMEM, "for a request");
	return r;
}

/* One that outlives its context may find another there, which is not its own. */
static void request_free(struct request *r)
{
	struct context *ctx = r->ctx;

	if (!ctx || handle_id(ctx) != r->home || ctx->retired_count == RETIRED) {
		handle_free(&request_table, r);
		return;
	}
	handle_retire(r);
	list_append(&ctx->retired, &r->node);
	ctx->retired_count++;
}

void requests_release(struct context *ctx)
{
	while (ctx->retired_count)
		handle_free(&request_table, take_retired(ctx));
}

int request_init(struct request *r, enum request_kind kind, struct context *ctx,
		 struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov, int n)
{
	uint64_t total = 0;

	list_init(&r->node);
	r->kind = kind;
	r->ctx = ctx;
	r->ep = ep;
	r->stream = stream;
	r->result.op = kind == REQUEST_SEND                         ? SLMPM_OP_SEND :
		       kind == REQUEST_RECV || kind == REQUEST_HOLD ? SLMPM_OP_RECV :
		       kind == REQUEST_COLLECTIVE                   ? SLMPM_OP_COLLECTIVE :
								      0;
	if (n < 0 || (n && !iov))
		return error_set(SLMPM_EINVAL, "%d pieces at %p", n, (const void *)iov);
	for (int i = 0; i < n; i++) {
		if (iov[i].len && !iov[i].base)
			return error_set(SLMPM_EINVAL, "piece %d is NULL", i);
		if (iov[i].len > SLMPM_MESSAGE_MAX - total && kind == REQUEST_SEND)
			return error_set(SLMPM_ELIMIT, "%llu bytes, at most %llu in a message",
					 (unsigned long long)(total + iov[i].len),
					 (unsigned long long)SLMPM_MESSAGE_MAX);
		total = iov[i].len < UINT64_MAX - total ? total + iov[i].len : UINT64_MAX;
	}
	r->length = total;
	r->pieces = r->few;
	r->piece_count = n;
	if (n > REQUEST_IOV) {
		r->pieces = malloc((size_t)n * sizeof(*iov));
		if (!r->pieces) {
			r->piece_count = 0;
			return error_set(SLMPM_ENOMEM, "for %d pieces", n);
		}
	}
	if (n)
		memcpy(r->pieces, iov, (size_t)n * sizeof(*iov));
	return 0;
}

int request_submit(struct request *r)
{
	const struct endpoint *ep = r->ep;
	bool receives = r->kind == REQUEST_RECV || r->kind == REQUEST_HOLD;

	if (!receives && (ep->closing || endpoint_has_ended(ep)))
		return ep->closing && ep->state == SLMPM_PEER_UP ?
			       error_set(SLMPM_ECLOSED, "%s is being closed", ep->life->name) :
			       endpoint_error(r->ep);
	return request_ops[r->kind].submit(r);
}

static void mode_done(struct request *r)
{
	enum mode_op op = request_mode_op(r->kind);

	if (UNLIKELY(r->ep->rooms->secondary) && r->result.status == 0)
		r->result.flags |= SLMPM_ON_LINK(r->mode.link);
	mode_count(&r->ep->rooms->figures->modes, op, r->mode);
	r->result.protocol = (uint16_t)mode_protocol(op, (enum mode_route)r->mode.way);
	r->result.reason = r->mode.reason;
}

/* Does anybody want to know before the result stands? */
static inline bool is_observed(const struct request *r)
{
	return r->kind >= REQUEST_PUT || UNLIKELY(r->began || r->ctx->careful);
}

void request_observed(struct request *r)
{
	PART_EACH(part, parts.finishes)
		(*part)(r);
}

void request_finish(struct request *r, int status)
{
	if (UNLIKELY(r->fifo.tag) && parts.awaits(r, status))
		return;
	r->result.status = status;
	if (is_observed(r))
		request_observed(r);
	r->done = true;
	r->ctx->finished = true;
	if (r->ep && !r->result.peer.id)
		r->result.peer.id = handle_id(r->ep);
	if (r->kind == REQUEST_SEND) {
		r->result.len = r->length;
		r->result.stream = r->stream;
	}
	if (r->mode.way)
		mode_done(r);
	if (r->wire & WIRE_FLAG_ACTIVE)
		parts.active_finished(r);
	if (r->bound)
		parts.deliver(r);
	context_changed(r->ctx);
	if (r->ended)
		r->ended(r);
}

void request_drop(struct request *r)
{
	if (r->bound)
		parts.unnotify(&r->notified);
	if (r->pieces != r->few)
		free(r->pieces);
	r->pieces = r->few;
	free(r->owned);
	r->owned = NULL;
	if (handle_is_live(r))
		request_free(r);
}

void *request_walk_on(struct request_walk *w, uint64_t most, uint64_t *n)
{
	for (; w->piece < w->r->piece_count; w->piece++) {
		const struct slmpm_iov *piece = &w->r->pieces[w->piece];

		if (w->offset < piece->len) {
			void *run = (unsigned char *)piece->base + w->offset;

			*n = piece->len - w->offset < most ? piece->len - w->offset : most;
			w->offset += *n;
			return run;
		}
		w->offset -= piece->len;
	}
	return NULL;
}

uint32_t request_checksum(uint32_t sum, const struct request *r, uint64_t offset, uint64_t n)
{
	struct request_walk walk = {r, 0, offset};
	uint64_t take;
	void *run;

	for (; n && (run = request_walk_on(&walk, n, &take)); n -= take)
		sum = checksum(sum, run, take);
	return sum;
}

void *request_run_on(const struct request *r, uint64_t offset, uint64_t most, uint64_t *n)
{
	struct request_walk walk = {r, 0, offset};

	*n = 0;
	return request_walk_on(&walk, most, n);
}

void *request_run(const struct request *r, uint64_t offset, uint64_t n)
{
	uint64_t found;
	void *run = request_run_on(r, offset, n, &found);

	return run && found == n ? run : NULL;
}

void request_gather(const struct request *r, uint64_t offset, void *to, uint64_t n)
{
	struct request_walk walk = {r, 0, offset};
	unsigned char *at = to;
	uint64_t take;
	void *run;

	for (; n && (run = request_walk_on(&walk, n, &take)); n -= take, at += take)
		copy_bytes(at, run, take);
}

void request_scatter(const struct request *r, uint64_t offset, const void *from, uint64_t n)
{
	struct request_walk walk = {r, 0, offset};
	const unsigned char *at = from;
	uint64_t take;
	void *run;

	for (; n && (run = request_walk_on(&walk, n, &take)); n -= take, at += take)
		copy_bytes(run, at, take);
}
