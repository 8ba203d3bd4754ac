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
	await_inspect(&b->awaits);
}

/* What waits here to be sent goes behind the word that says that the stream is known. */
static uint64_t count_waiting(const struct endpoint *ep, uint32_t stream)
{
	uint64_t n = 0;

	LIST_EACH_ENTRY(struct request, r, &ep->link.queue, node) {
		if (r->kind != REQUEST_SEND || r->stream != stream || r->wire || r->lent ||
		    r->numbered)
			continue;
		r->bound_stream = true;
		n++;
	}
	return n + ((uint32_t)ep->bundle.route == stream ? ep->bundle.count : 0);
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
	/* Answers that we owe and it does not read are bounded, too. */
	bool more = !b && (h->extent || ep->rooms->bindings->count == BINDINGS_MAX ||
			   link_deferred(ep, WIRE_BOUND) > BINDINGS_MAX);

	if (PEER_FAULT(more || h->length || h->imm || h->extent > 1 ||
		       h->stream > SLMPM_STREAM_MAX)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	if (h->extent) {
		binding_free(ep, b);
		return;
	}
	if (!b && !(b = binding_new(ep, h->stream))) {
		endpoint_no_memory(ep);
		return;
	}
	b->allowed = h->seq;
	await_inspect(&b->awaits);
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
	if (ep->rooms->bindings->asked == BINDINGS_MAX)
		return error_set(SLMPM_EAGAIN, "%s knows nothing of %d receive queues yet",
				 ep->life->name, BINDINGS_MAX);
	return 0;
}

void binding_begin(struct endpoint *ep, uint32_t stream, uint64_t allowed)
{
	ep->rooms->bindings->in++;
	ep->rooms->bindings->asked++;
	link_control_whole(ep, WIRE_BIND, allowed, stream, 0, NULL, 0);
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
	if (PEER_FAULT(h->length || h->imm || h->extent || h->seq || !ep->rooms->bindings->asked)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	ep->rooms->bindings->asked--;
	parts.stream_known(ep, h->stream);
}
