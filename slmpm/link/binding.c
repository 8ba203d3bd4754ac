/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that end in a managed receive queue: its owner's word, and what a sender makes of it. */
#include "slmpm/link/binding.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"

void binding_init(struct endpoint *ep)
{
	list_init(&ep->rooms->bindings->out);
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

int binding_take(struct endpoint *ep, uint32_t stream)
{
	struct binding *b = binding_of(ep, stream);

	if (b && !binding_allows(b))
		return error_set(SLMPM_EDISABLED,
				 "stream %u ends in a receive queue of %s, whose next entry is "
				 "disabled",
				 stream, ep->life->name);
	if (b)
		b->sent++;
	return 0;
}

void binding_return(struct endpoint *ep, uint32_t stream)
{
	struct binding *b = binding_of(ep, stream);

	if (!b)
		return;
	b->sent--;
	binding_wake(b);
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

static struct binding *binding_new(struct endpoint *ep, uint32_t stream)
{
	struct binding *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->stream = stream;
	b->sent = count_waiting(ep, stream);
	list_init(&b->awaits);
	list_append(&ep->rooms->bindings->out, &b->node);
	ep->rooms->bindings->count++;
	endpoint_block(ep, BLOCK_BOUND, true);
	link_control_whole(ep, WIRE_BOUND, 0, stream, 0, NULL, 0);
	return b;
}

static void binding_free(struct endpoint *ep, struct binding *b)
{
	LIST_EACH_ENTRY(struct await, a, &b->awaits, node) {
		list_remove(&a->node);
		a->over(a);
	}
	list_remove(&b->node);
	free(b);
	endpoint_block(ep, BLOCK_BOUND, --ep->rooms->bindings->count);
}

void binding_told(struct endpoint *ep, const struct head *h)
{
	struct binding *b = binding_find(ep, h->stream);
	uint64_t over = h->extent & WIRE_LENGTH_MASK;
	/* Answers that we owe and it does not read are bounded, too. */
	bool more = !b && (over || ep->rooms->bindings->count == BINDINGS_MAX ||
			   link_deferred(ep, WIRE_BOUND) > BINDINGS_MAX);

	if (PEER_FAULT(more || h->length || h->imm || over > 1 || h->stream > SLMPM_STREAM_MAX)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	if (over) {
		binding_free(ep, b);
		return;
	}
	if (!b && !(b = binding_new(ep, h->stream))) {
		endpoint_no_memory(ep);
		return;
	}
	b->allowed = h->seq;
	binding_wake(b);
}

void binding_end(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct binding, b, &ep->rooms->bindings->out, node)
		binding_free(ep, b);
}

/* ---- of who receives ----------------------------------------------------------------------- */

int binding_room(const struct endpoint *ep)
{
	if (ep->rooms->bindings->in == BINDINGS_MAX)
		return error_set(SLMPM_ELIMIT, "%s has %d streams that end in receive queues",
				 ep->life->name, BINDINGS_MAX);
	if (ep->rooms->bindings->told - ep->rooms->bindings->known == BINDINGS_MAX)
		return error_set(SLMPM_EAGAIN, "%s knows nothing of %d receive queues yet",
				 ep->life->name, BINDINGS_MAX);
	return 0;
}

void binding_hold(struct endpoint *ep)
{
	ep->rooms->bindings->in++;
}

uint64_t binding_begin(struct endpoint *ep, uint32_t stream, uint64_t allowed)
{
	ep->rooms->bindings->told++;
	link_control_whole(ep, WIRE_BIND, allowed, stream, 0, NULL, 0);
	return ep->rooms->bindings->told;
}

void binding_allow(struct endpoint *ep, uint32_t stream, uint64_t allowed)
{
	link_control_latest(ep, WIRE_BIND, allowed, stream);
}

void binding_release(struct endpoint *ep, uint32_t stream)
{
	ep->rooms->bindings->in--;
	link_control_whole(ep, WIRE_BIND, 0, stream, 1, NULL, 0);
}

void binding_known(struct endpoint *ep, const struct head *h)
{
	struct bindings *b = ep->rooms->bindings;

	if (PEER_FAULT(h->length || h->imm || h->extent & WIRE_LENGTH_MASK || h->seq ||
		       b->known == b->told)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	parts.stream_known(ep, ++b->known);
}
