/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams that end in a managed receive queue of any peer, at a sender: its messages wait here for
 * entries that the owner reserves for them. One claim is under way at a time, for all that wait; if
 * the owner has too few, what waits by then is refused, so that nothing passes what was refused.
 * What is reserved and not used goes back after a while. Decision 0038 has the reasons.
 */
#include "slmpm/base/clock.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"

#define UNUSED_NS 10000000 /* who tries again and again, or has just been woken, is faster */

/* Of STREAM; HOW: enum wire_claim. */
static void claim_say(struct binding *b, uint64_t total, uint64_t how)
{
	link_control_latest(b->ep, WIRE_CLAIM, total, b->stream, how);
}

/* The answer to the last claim is here, or there was none. */
static void claim_now(struct binding *b)
{
	uint64_t wanting = b->shared.waiting_count + (b->shared.loan == CLAIM_ASKS);

	if (b->shared.asks || !wanting || binding_allows(b))
		return;
	b->shared.asks = true;
	b->shared.asked = b->sent + wanting;
	claim_say(b, b->shared.asked, CLAIM_NOW);
}

void claim_later(struct binding *b)
{
	uint64_t total = b->sent;

	LIST_EACH(at, &b->awaits)
		total++;
	if (list_empty(&b->awaits) || (int64_t)(total - b->shared.wanted) <= 0)
		return;
	b->shared.wanted = total;
	claim_say(b, total, CLAIM_WAIT);
}

/* ---- what waits ------------------------------------------------------------------------------ */

void claim_enter(struct binding *b, struct request *r)
{
	r->claims = true;
	list_append(&b->shared.waiting, &r->node);
	b->shared.waiting_count++;
	claim_now(b);
}

static void claim_remove(struct binding *b, struct request *r)
{
	list_remove(&r->node);
	r->claims = false;
	b->shared.waiting_count--;
}

void claim_leave(struct endpoint *ep, struct request *r)
{
	claim_remove(binding_find(ep, r->stream), r);
}

bool claim_is_free(const struct endpoint *ep, uint32_t stream)
{
	const struct binding *b = binding_of(ep, stream);

	return !b || list_empty(&b->shared.waiting);
}

int claim_loan(struct binding *b)
{
	if (b->shared.loan == CLAIM_REFUSED) {
		b->shared.loan = CLAIM_NONE;
		return binding_refusal(b->stream, b->ep->life->name);
	}
	b->shared.loan = CLAIM_ASKS;
	claim_now(b);
	return -SLMPM_EAGAIN;
}

void claim_leave_loan(struct endpoint *ep, uint32_t stream)
{
	struct binding *b = binding_of(ep, stream);

	if (b)
		b->shared.loan = CLAIM_NONE;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* More than what waits can take. */
static void note_unused(struct binding *b)
{
	if (!binding_allows(b) || !list_empty(&b->shared.unused))
		return;
	b->shared.deadline = clock_now() + UNUSED_NS;
	list_append(&b->ep->ctx->unused, &b->shared.unused);
	context_changed(b->ep->ctx); /* a sleeper does not know of it */
}

int claim_serve(struct binding *b)
{
	int n = 0;

	LIST_EACH_ENTRY(struct request, r, &b->shared.waiting, node) {
		if (!binding_allows(b))
			break;
		claim_remove(b, r);
		r->bound_stream = true;
		b->sent++;
		link_enqueue(b->ep, r);
		n++;
	}
	note_unused(b);
	return n;
}

/* Those of LIST, which is no binding's any more, end. */
static void finish_all(struct list *list, int status)
{
	while (!list_empty(list)) {
		struct request *r = LIST_ENTRY(list->next, struct request, node);

		list_remove(&r->node);
		if (status == -SLMPM_EDISABLED)
			r->length = 0; /* nothing of it was sent */
		request_finish(r, status);
	}
}

/* Those of B that wait go over to LIST. */
static void take_waiting(struct binding *b, struct list *list)
{
	list_init(list);
	LIST_EACH_ENTRY(struct request, r, &b->shared.waiting, node) {
		claim_remove(b, r);
		list_append(list, &r->node);
	}
}

void claim_answered(struct binding *b, uint64_t allowed, bool refused)
{
	struct endpoint *ep = b->ep;
	struct list late;
	int served;

	list_init(&late);
	b->allowed = allowed;
	if (refused || (int64_t)(allowed - b->shared.asked) >= 0)
		b->shared.asks = false;
	served = claim_serve(b);
	if (refused) {
		take_waiting(b, &late);
		if (b->shared.loan == CLAIM_ASKS)
			b->shared.loan = binding_allows(b) ? CLAIM_ASKS : CLAIM_REFUSED;
	}
	claim_now(b);
	context_changed(ep->ctx);
	finish_all(&late, -SLMPM_EDISABLED);
	if (served)
		(void)link_push(ep);
}

void claim_end(struct binding *b)
{
	struct endpoint *ep = b->ep;
	struct list late;

	take_waiting(b, &late);
	if (endpoint_has_ended(ep)) {
		finish_all(&late, -ep->life->error);
		return;
	}
	link_drop_route(ep, WIRE_CLAIM, b->stream); /* they would be another's */
	LIST_EACH_ENTRY(struct request, r, &late, node) {
		list_remove(&r->node);
		link_enqueue(ep, r);
	}
	context_changed(ep->ctx);
	(void)link_push(ep);
}

/* ---- what is not used ------------------------------------------------------------------------ */

static void claim_give_back(struct binding *b)
{
	uint64_t unused = b->allowed - b->sent;

	b->sent = b->allowed;
	b->shared.given_back += unused;
	claim_say(b, b->shared.given_back, CLAIM_BACK);
}

uint64_t claim_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH_ENTRY(struct binding, b, &ctx->unused, shared.unused) {
		if (binding_allows(b) && now < b->shared.deadline) {
			next = b->shared.deadline < next ? b->shared.deadline : next;
			continue;
		}
		list_remove(&b->shared.unused);
		if (binding_allows(b)) {
			claim_give_back(b);
			return 0; /* its peer may have ended, and others with it */
		}
	}
	return next;
}
