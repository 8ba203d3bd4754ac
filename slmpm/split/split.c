/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of a split copy tell each other, and the order in which they do (split.h). */
#include "slmpm/split/split.h"

#include <stdatomic.h>

#include "slmpm/link/bundle.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"

bool split_hold(struct endpoint *ep, struct split_room *room, uint32_t *held, int n)
{
	if (!n)
		return true;
	if ((n > 0 && room->held + (uint32_t)n > room->max) || !link_hold_back(ep, n))
		return false;
	room->held += (uint32_t)n;
	*held += (uint32_t)n;
	return true;
}

/* A loan lies open in the ring, behind what was said before: nothing goes there now. */
static bool in_the_way(const struct endpoint *ep)
{
	return ep->lent == LENT_PACKET;
}

static bool split_post(struct endpoint *ep, struct packet *p, struct request *r)
{
	if (link_post_request(ep, p, r) != 1)
		return false;
	ep->link.run = 0;
	return true;
}

bool split_notify(struct endpoint *ep, struct packet *p, struct request *r)
{
	if (ep->bundle.count && !bundle_flush(ep))
		return false; /* it was promised its share of the credit */
	if (!list_empty(&ep->link.deferred) || in_the_way(ep) || !link_is_read_next(ep))
		return false;
	if (ep->rooms->secondary) /* not for later, for want of room */
		p->flags |= FABRIC_ONLY;
	return split_post(ep, p, r);
}

bool split_conclude(struct endpoint *ep, struct split_room *room, uint32_t *held, struct packet *p)
{
	if (!*held || in_the_way(ep))
		return false;
	(void)split_hold(ep, room, held, -1);
	if (split_post(ep, p, NULL))
		return true;
	(void)split_hold(ep, room, held, 1); /* the link is broken */
	return false;
}

bool split_notify_held(struct endpoint *ep, struct split_room *room, uint32_t *held,
		       struct packet *p)
{
	return link_is_read_next(ep) && split_conclude(ep, room, held, p);
}

bool split_catch_up(struct endpoint *ep)
{
	/* Pairs with the same fence of the peer, between what it says and what it takes in. */
	atomic_thread_fence(memory_order_seq_cst);
	return split_look(ep);
}

bool split_look(struct endpoint *ep)
{
	/* What was said before lies in the ring; more may come as fast as it is taken. */
	uint64_t most = ep->link.port->counts.in_segments;
	bool *enomem = &ep->ctx->enomem, before = *enomem, all = false;

	/* What was copied was loaded before the ring is looked at: a peer that leaves says so before
	 * it stores there again (CLOSE, and the release fence behind it). */
	atomic_thread_fence(memory_order_acquire);
	*enomem = false;
	for (uint64_t i = 0; i < most && ep->state == SLMPM_PEER_UP && !all && !*enomem; i++)
		all = progress_inspect(ep);
	*enomem |= before;
	return all && ep->state == SLMPM_PEER_UP;
}
