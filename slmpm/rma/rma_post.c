/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations that the fabric begins and its poll tells of (memory.later). Each run of
 * bytes that is one on both sides is an operation of the fabric's; those under way have a place
 * each in a table of the link's.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

struct posts {
	struct list waiting;                  /* requests that the fabric has not taken all of */
	uint64_t taken;                       /* bits: operations that it has, ... */
	struct request *requests[FABRIC_OPS]; /* ... whose they are, NULL: nobody's any more, ... */
	struct remote *remotes[FABRIC_OPS];   /* ... of those: the region, ... */
	struct fabric_done ops[FABRIC_OPS];   /* ... and what poll tells of them */
	uint32_t left;                        /* operations that are nobody's */
	bool begins; /* requests are being begun: no other call does that */
};
_Static_assert(FABRIC_OPS <= 64, "a bit each");

/* Something begins to move bytes of REMOTE other than by packets; it does so no more. */
static void posts_enter(struct remote *remote)
{
	remote->copying++;
	endpoint_move(remote->ep, 1);
}

static void posts_leave(struct remote *remote)
{
	endpoint_move(remote->ep, -1);
	memory_copied(remote);
}

/* R is none of the fabric's any more. */
static void leave_fabric(struct request *r)
{
	list_remove(&r->node);
	posts_leave(r->rma.remote);
}

/* Packets may reach what the fabric does not. Of what was under way on a link that is lost nobody
 * knows whether it is done: an atomic operation must not be done twice. */
static bool is_for_packets(const struct request *r, int status)
{
	return status == -EPERM || status == -ENOTSUP || status == -EFAULT ||
	       (status == -ENOLINK && r->kind != REQUEST_ATOMIC);
}

/* All that was posted of R is done, and nothing more of it is to be. */
static void fabric_over(struct request *r, uint64_t old)
{
	int status = r->rma.status;

	leave_fabric(r);
	r->rma.span = r->rma.span_count;
	if (is_for_packets(r, status)) {
		r->rma.status = 0;
		r->rma.in_span = 0;
		r->offset = 0;
		rma_retry(r);
		return;
	}
	/* Pairs with the release before what a get has read. */
	atomic_thread_fence(memory_order_acquire);
	r->rma.status = status == -ESRCH ? -SLMPM_EDEAD : status < 0 ? -SLMPM_ESYSTEM : 0;
	r->rma.parts = 1;
	rma_part_done(r, 0, old);
}

static bool is_posted(const struct request *r)
{
	return r->rma.status < 0 || r->rma.span == r->rma.span_count;
}

/* ---- begun ------------------------------------------------------------------------------- */

static void step_over(struct request *r, uint64_t n)
{
	struct rma_work *w = &r->rma;

	r->offset += n;
	w->in_span += n;
	if (w->in_span == w->spans[w->span].len) {
		w->span++;
		w->in_span = 0;
	}
}

/* While R waited for its turn the owner may have taken it back. */
static bool is_reached(const struct remote *remote, unsigned op)
{
	return remote->memory.later >> op & 1 && remote_access(remote) == FABRIC_ACCESS_DIRECT;
}

/* One operation of R's: 1 taken, -EAGAIN not now. */
static int post_contiguous(struct request *r)
{
	struct rma_work *w = &r->rma;
	struct endpoint *ep = r->ep;
	struct posts *p = ep->rma->posts;
	struct fabric_atomic a = {w->atomic, w->bits, w->operand, w->compare, 0};
	struct fabric_wr wr = {
		.op = (uint8_t)request_fabric_op(r->kind),
		.memory = &w->remote->memory,
		.offset = w->spans[w->span].offset + w->in_span,
		.size = w->spans[w->span].len,
		.into = &a,
	};
	int rc;

	if (!~p->taken)
		return -EAGAIN;
	wr.length = (uint32_t)__builtin_ctzll(~p->taken);
	if (!w->atomic && wr.size)
		wr.into = request_run_on(r, r->offset, wr.size - w->in_span, &wr.size);
	atomic_store_explicit(&p->ops[wr.length].status, FABRIC_PENDING, memory_order_relaxed);
	rc = !wr.size ? 1 : is_reached(w->remote, wr.op) ? link_begin(ep, &wr) : -EPERM;
	if (rc == -EAGAIN || rc == -EPIPE || rc == -EPROTO) /* poll tells how the link ends */
		return -EAGAIN;
	step_over(r, wr.size);
	if (rc < 0)
		w->status = rc;
	if (rc == 0) {
		p->taken |= UINT64_C(1) << wr.length;
		p->requests[wr.length] = r;
		w->parts++;
	}
	return 1;
}

/* All of R that is not with the fabric yet. False: the link takes no more. */
static bool post_rest(struct request *r, int *n)
{
	for (; !is_posted(r); ++*n)
		if (post_contiguous(r) != 1)
			return false;
	return true;
}

/* As many as the link takes. The end of one may bring others, which this goes on with. */
static int post_more(struct endpoint *ep)
{
	struct posts *p = ep->rma->posts;
	int n = 0;

	if (p->begins)
		return 0;
	p->begins = true;
	while (!list_empty(&p->waiting)) {
		struct request *r = LIST_ENTRY(p->waiting.next, struct request, node);

		if (!post_rest(r, &n))
			break;
		list_remove(&r->node);
		if (!r->rma.parts)
			fabric_over(r, 0);
	}
	p->begins = false;
	return n;
}

void rma_post_start(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct posts *p = ep->rma->posts;

	if (!p) {
		p = ep->rma->posts = calloc(1, sizeof(*p));
		if (!p) {
			rma_retry(r);
			return;
		}
		list_init(&p->waiting);
	}
	ep->link.port->ops = p->ops; /* each time: another may have come to stand before the link */
	posts_enter(r->rma.remote);
	list_append(&p->waiting, &r->node);
	(void)post_more(ep);
}

/* ---- and done ---------------------------------------------------------------------------- */

/* Its call has not waited for it. */
static void post_left_done(struct endpoint *ep, unsigned i)
{
	struct posts *p = ep->rma->posts;

	posts_leave(p->remotes[i]);
	if (--p->left)
		return;
	ep->rma->holds &= (uint8_t)~RMA_LEFT;
	context_changed(ep->ctx);
	if (ep->state == SLMPM_PEER_UP)
		rma_wake(ep);
}

static void post_done(struct endpoint *ep, unsigned i)
{
	struct posts *p = ep->rma->posts;
	const struct fabric_done *d = &p->ops[i];
	struct request *r = p->requests[i];
	int status = atomic_load_explicit(&d->status, memory_order_relaxed);

	p->taken &= ~(UINT64_C(1) << i);
	if (!r) {
		post_left_done(ep, i);
		return;
	}
	if (status < 0 && !r->rma.status)
		r->rma.status = status;
	if (!--r->rma.parts && is_posted(r))
		fabric_over(r, d->old);
}

int rma_post_step(struct endpoint *ep)
{
	struct posts *p = ep->rma->posts;
	int n = 0;

	for (uint64_t left = p ? p->taken : 0; left && ep->state == SLMPM_PEER_UP;
	     left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (atomic_load_explicit(&p->ops[i].status, memory_order_acquire) == FABRIC_PENDING)
			continue;
		post_done(ep, i);
		n++;
	}
	return p && ep->state == SLMPM_PEER_UP ? n + post_more(ep) : n;
}

/* What the fabric has begun has R's memory until it tells of its end. */
bool rma_post_take_back(struct request *r)
{
	if (r->rma.parts)
		return false;
	leave_fabric(r);
	return true;
}

/* Its operations stay the fabric's, with the memory that they name. */
struct endpoint *rma_post_abandon(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct posts *p = ep->rma->posts;

	for (uint64_t left = p->taken; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (p->requests[i] != r)
			continue;
		p->requests[i] = NULL;
		p->remotes[i] = r->rma.remote;
		p->left++;
		posts_enter(r->rma.remote);
	}
	ep->rma->holds |= RMA_LEFT;
	leave_fabric(r);
	rma_finished(r);
	return ep;
}

void rma_post_end(struct endpoint *ep)
{
	struct posts *p = ep->rma->posts;

	link_cancel(ep);
	if (!p)
		return;
	for (uint64_t left = p->taken; left; left &= left - 1)
		if (!p->requests[__builtin_ctzll(left)])
			post_left_done(ep, (unsigned)__builtin_ctzll(left));
	p->taken = 0;
	LIST_EACH_ENTRY(const struct rma_work, w, &ep->one_sided, live)
		if (w->carrier == RMA_BY_FABRIC && !w->parked)
			leave_fabric(LIST_ENTRY(w, struct request, rma));
}
