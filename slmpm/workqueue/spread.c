/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue's traffic over the links of its peers (SLMPM_WQ_SPREAD). A request asks for a link as if
 * its flags did; the bond keeps the order, and carries on by the others what a link leaves behind.
 * Each is counted by the number of its link, whosever that is: links of one number lead over one
 * network (SLMPM_LINKS).
 */
#include "slmpm/bond/bond.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/workqueue/workqueue.h"

#define RUN    16384 /* given to a link before another is looked for: a change costs two packets */
#define PACKET 64

_Static_assert(MODE_LINKS <= SLMPM_LINK_ROOM, "each link has a place in struct slmpm_wq_info");

/* One that lets the library choose. A get's bytes come by the link that its target takes; what
 * reaches the memory directly goes by none. */
static bool may_choose(const struct slmpm_wr *wr)
{
	if (wr->flags & (SLMPM_ON_LINK_MASK | SLMPM_STRICT))
		return false;
	if (wr->op == SLMPM_OP_PUT)
		return work_by_request(wr, FABRIC_WRITE);
	return wr->op == SLMPM_OP_SEND || wr->op == SLMPM_OP_AM || wr->op == SLMPM_OP_PIPE;
}

/* Of those that are UP the one with the least under way; of such the next behind the present. */
static uint32_t least_loaded(const struct workqueue *wq, uint32_t up)
{
	const uint64_t *load = wq->spread.load;
	uint32_t best = MODE_LINKS;

	for (uint32_t i = 1; i <= MODE_LINKS; i++) {
		uint32_t link = (wq->spread.link + i) % MODE_LINKS;

		if (up >> link & 1 && (best == MODE_LINKS || load[link] < load[best]))
			best = link;
	}
	return best;
}

void spread_begin(struct workqueue *wq, struct spread_part *part, const struct slmpm_wr *wr,
		  const struct endpoint *ep, uint64_t bytes)
{
	uint32_t up, link = wq->spread.link;

	part->by = 0;
	if (!ep || !may_choose(wr) || ep->state != SLMPM_PEER_UP || !bond_is(ep->link.port))
		return;
	up = bond_up(ep->link.port);
	if (!up)
		return;
	if (!(up >> link & 1) || wq->spread.run >= RUN) {
		link = least_loaded(wq, up);
		wq->spread.link = link;
		wq->spread.run = 0;
	}
	part->by = link + 1;
	part->bytes = bytes;
	wq->spread.run += bytes + PACKET;
	wq->spread.load[link] += bytes + PACKET;
}

void spread_end(struct workqueue *wq, struct spread_part *part, int status, uint32_t flags)
{
	uint32_t link = part->by - 1, by = (flags & SLMPM_ON_LINK_MASK) / SLMPM_ON_LINK(0);

	wq->spread.load[link] -= part->bytes + PACKET;
	part->by = 0;
	if (status >= 0)
		wq->spread.bytes[by && by <= MODE_LINKS ? by - 1 : link] += part->bytes;
}
