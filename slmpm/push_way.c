/* SPDX-License-Identifier: BSD-3-Clause */
/* A large message's way, in packets or fetched, by what each has cost the sender until it could go on. */
#include "slmpm/bulk.h"
#include "slmpm/wait.h"

bool push_is_shorter(const struct endpoint *ep, uint64_t length)
{
	return !ep->bulk || choice_is_other(choice_of(ep->bulk->choices, length));
}

void push_tried(struct endpoint *ep, uint64_t length)
{
	choice_taken(choice_of(ep->bulk->choices, length));
}

void push_learn(struct endpoint *ep, const struct push *p)
{
	uint64_t length = p->r->length;

	choice_learn(choice_of(ep->bulk->choices, length), true, wait_now() - p->since, length);
}

void push_packets(struct endpoint *ep, const struct request *r)
{
	struct bulk *b = r->length >= ep->fetch_min && !r->wire ? bulk_of(ep) : NULL;

	if (!b)
		return;
	choice_taken(choice_of(b->choices, r->length));
	b->timed = r->seq;
	b->since = wait_now();
}

void push_sent(struct endpoint *ep, const struct request *r)
{
	struct bulk *b = ep->bulk;
	uint64_t ns;

	if (!b || b->timed != r->seq)
		return;
	ns = wait_now() - b->since;
	choice_learn(choice_of(b->choices, r->length), false,
		     ns + ns * ep->packet_max / r->length, /* the reader's last one */
		     r->length);
}
