/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that end in a managed receive queue: its owner's word, and what a sender makes of it. */
#include "slmpm/link/binding.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"

void binding_init(struct endpoint *ep)
{
	list_init(&ep->rooms->bindings->out);
	list_init(&ep->rooms->bindings->reservations);
}

/* ---- of who sends -------------------------------------------------------------------------- */

struct binding *binding_find(const struct endpoint *ep, uint32_t stream)
{
	LIST_EACH_ENTRY(struct binding, b, &ep->rooms->bindings->out, node)
		if (b->stream == stream)
			return b;
	return NULL;
}

/* One more may be sent: those who wait look for themselves, for another may be first. */
static void binding_wake(struct binding *b)
{
	if (!binding_allows(b))
		return;
	LIST_EACH_ENTRY(struct await, a, &b->awaits, node) {
		list_remove(&a->node);
		a->over(a);
	}
}

int binding_refusal(uint32_t stream, const char *peer)
{
	return error_set(SLMPM_EDISABLED,
			 "stream %u ends in a receive queue of %s, whose next entry is disabled",
			 stream, peer);
}

int binding_enter(struct endpoint *ep, struct request *r)
{
	struct binding *b = binding_of(ep, r->stream);

	if (b && b->shared.is && !binding_allows(b)) { /* nor while others wait */
		claim_enter(b, r);
		return 1;
	}
	if (b && !binding_allows(b))
		return binding_refusal(r->stream, ep->life->name);
	if (b)
		b->sent++;
	r->bound_stream = true;
	return 0;
}

/* That of a loan; NULL: it goes before the word that STREAM's is known, or there is none. */
static struct binding *binding_of_loan(struct endpoint *ep, uint32_t stream, bool in_ring)
{
	struct binding *b = binding_of(ep, stream);

	return b && in_ring && link_defers(ep, WIRE_BOUND, stream, 0) ? NULL : b;
}

int binding_take_loan(struct endpoint *ep, uint32_t stream, bool in_ring)
{
	struct binding *b = binding_of_loan(ep, stream, in_ring);

	if (b && b->shared.is && !binding_allows(b))
		return claim_loan(b);
	if (b && !binding_allows(b))
		return binding_refusal(stream, ep->life->name);
	if (b) {
		b->sent++;
		b->shared.loan = CLAIM_NONE;
	}
	return 0;
}

void binding_return_loan(struct endpoint *ep, uint32_t stream, bool in_ring)
{
	if (binding_of_loan(ep, stream, in_ring))
		binding_return(ep, stream);
}

void binding_return(struct endpoint *ep, uint32_t stream)
{
	struct binding *b = binding_of(ep, stream);

	if (!b)
		return;
	b->sent--;
	binding_wake(b);
	if (b->shared.is)
		(void)claim_serve(b);
}

void binding_wait(struct binding *b, struct await *a)
{
	a->total = &b->allowed;
	a->start = 0;
	a->value = b->sent + 1;
	list_append(&b->awaits, &a->node);
	if (b->shared.is)
		claim_later(b);
}

bool binding_has_deferred(const struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct binding, b, &ep->rooms->bindings->out, node)
		if (b->shared.is && !list_empty(&b->shared.waiting))
			return true;
	return false;
}

/* Of LIST: how many of its messages have not begun. */
static uint64_t mark_list(const struct list *list, uint32_t stream)
{
	uint64_t n = 0;

	LIST_EACH_ENTRY(struct request, r, list, node) {
		if (r->kind != REQUEST_SEND || r->stream != stream || (r->wire && !r->lends))
			continue;
		r->bound_stream = !r->lends; /* a loan of which a part has gone is not taken back */
		n += !r->numbered;
	}
	return n;
}

/* What waits here to be sent goes behind the word that says that the stream is known. What has
 * begun counts at the other side, as does a burst's bundle, which goes before that word; if it is
 * taken back, it is to count here as one less. */
static uint64_t count_waiting(const struct endpoint *ep, uint32_t stream)
{
	return mark_list(&ep->link.queue, stream) + mark_list(&ep->link.announced, stream);
}

static struct binding *binding_new(struct endpoint *ep, uint32_t stream, bool shared)
{
	struct binding *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->ep = ep;
	b->stream = stream;
	b->sent = count_waiting(ep, stream);
	b->shared.is = shared;
	b->shared.wanted = b->sent;
	list_init(&b->shared.waiting);
	list_init(&b->shared.unused);
	list_init(&b->awaits);
	list_append(&ep->rooms->bindings->out, &b->node);
	ep->rooms->bindings->count++;
	endpoint_block(ep, BLOCK_BOUND, true);
	link_control_whole(ep, WIRE_BOUND, shared ? b->sent : 0, stream, 0, NULL, 0);
	return b;
}

static void binding_free(struct endpoint *ep, struct binding *b)
{
	LIST_EACH_ENTRY(struct await, a, &b->awaits, node) {
		list_remove(&a->node);
		a->over(a);
	}
	list_remove(&b->node);
	list_remove(&b->shared.unused);
	endpoint_block(ep, BLOCK_BOUND, --ep->rooms->bindings->count);
	if (b->shared.is)
		claim_end(b);
	free(b);
}

/* Of none that is known: another may begin. Answers that we owe and it does not read are bounded,
 * too. */
static bool may_begin(const struct endpoint *ep, uint64_t how)
{
	return (how == BIND_TOTAL || how == BIND_SHARED) &&
	       ep->rooms->bindings->count < BINDINGS_MAX &&
	       link_deferred(ep, WIRE_BOUND) <= BINDINGS_MAX;
}

/* What is reserved grows, and is refused where it was claimed. */
static bool may_follow(const struct binding *b, uint64_t how, uint64_t allowed)
{
	if (how == BIND_GONE)
		return true;
	if (!b->shared.is)
		return how == BIND_TOTAL;
	return allowed - b->allowed <= 2 * CLAIM_MOST &&
	       (how == BIND_SHARED || (how == BIND_REFUSED && b->shared.asks));
}

void binding_told(struct endpoint *ep, const struct head *h)
{
	struct binding *b = binding_find(ep, h->stream);
	uint64_t how = h->extent & WIRE_LENGTH_MASK;
	bool may = b ? may_follow(b, how, h->seq) : may_begin(ep, how);

	if (PEER_FAULT(!may || h->length || h->imm || h->stream > SLMPM_STREAM_MAX ||
		       (!b && how == BIND_SHARED && h->seq))) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	if (how == BIND_GONE) {
		binding_free(ep, b);
		return;
	}
	if (!b) {
		b = binding_new(ep, h->stream, how == BIND_SHARED);
		if (!b)
			endpoint_no_memory(ep);
		else
			b->allowed = b->shared.is ? b->sent : h->seq;
		return;
	}
	if (b->shared.is) {
		claim_answered(b, h->seq, how == BIND_REFUSED);
		b = binding_find(ep, h->stream); /* the peer may have ended meanwhile */
	} else {
		b->allowed = h->seq;
	}
	if (!b)
		return;
	binding_wake(b);
	if (b->shared.is) /* others may have what they waited for */
		claim_later(b);
}

void binding_end(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct binding, b, &ep->rooms->bindings->out, node)
		binding_free(ep, b);
}

/* ---- of who receives ----------------------------------------------------------------------- */

int binding_room(const struct endpoint *ep, uint32_t shared)
{
	if (ep->rooms->bindings->in + shared >= BINDINGS_MAX)
		return error_set(SLMPM_ELIMIT, "%s has %d streams that end in receive queues",
				 ep->life->name, BINDINGS_MAX);
	return 0;
}

bool binding_may_begin(const struct endpoint *ep)
{
	return ep->rooms->bindings->told - ep->rooms->bindings->known < BINDINGS_MAX;
}

void binding_hold(struct endpoint *ep)
{
	ep->rooms->bindings->in++;
}

uint64_t binding_begin(struct endpoint *ep, uint32_t stream, uint64_t allowed, uint64_t how)
{
	ep->rooms->bindings->told++;
	link_control_whole(ep, WIRE_BIND, allowed, stream, how, NULL, 0);
	return ep->rooms->bindings->told;
}

void binding_allow(struct endpoint *ep, uint32_t stream, uint64_t allowed, uint64_t how)
{
	link_control_latest(ep, WIRE_BIND, allowed, stream, how);
}

void binding_release(struct endpoint *ep, uint32_t stream)
{
	ep->rooms->bindings->in--;
	link_control_whole(ep, WIRE_BIND, 0, stream, BIND_GONE, NULL, 0);
}

void binding_release_shared(struct endpoint *ep, uint32_t stream)
{
	ep->rooms->bindings->released = true;
	link_control_whole(ep, WIRE_BIND, 0, stream, BIND_GONE, NULL, 0);
}

void binding_known(struct endpoint *ep, const struct head *h)
{
	struct bindings *b = ep->rooms->bindings;

	if (PEER_FAULT(h->length || h->imm || h->extent & WIRE_LENGTH_MASK || h->seq > CLAIM_MOST ||
		       b->known == b->told)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	parts.stream_known(ep, ++b->known, h->seq);
}

void binding_claimed(struct endpoint *ep, const struct head *h)
{
	uint64_t how = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(h->length || h->imm || how > CLAIM_BACK)) {
		endpoint_poison(ep, "claim of a receive queue's entries");
		return;
	}
	parts.stream_claimed(ep, h->stream, h->seq, how);
}
