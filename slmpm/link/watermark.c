/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which messages a peer has read for certain: links count packets alone, so now and then the link's
 * place is marked when so many messages have gone whole. The oldest mark comes first; those that
 * the peer has passed are removed. When all are in use the newest moves on.
 */
#include "slmpm/link/link.h"

#include "slmpm/bond/bond.h"
#include "slmpm/part.h"
#include "slmpm/stats.h"

struct place {
	uint64_t out, read;
};

/* A bond's links are counted again with each loss; its packets are not. */
static struct place watermark_place_of(struct endpoint *ep)
{
	const struct fabric_link *port = ep->link.port;
	struct place p;

	if (ep->rooms->secondary) {
		bond_position(port, &p.out, &p.read);
		return p;
	}
	link_count(ep);
	return (struct place){port->counts.produced, port->counts.consumed_seen};
}

static bool is_whole(const struct endpoint *ep)
{
	return list_empty(&ep->link.queue) && list_empty(&ep->link.announced) &&
	       !ep->bundle.count && !ep->lent && !ep->link.active &&
	       (!ep->rooms->fetch || !parts.fetches_out(ep));
}

static void watermark_pass(struct endpoint *ep, uint64_t read)
{
	struct watermark *d = ep->link.watermark;

	while (d->count && !wire_is_before(read, d->marks[d->first].place)) {
		ep->rooms->figures->arrived = d->marks[d->first].sent;
		d->first = (d->first + 1) % WATERMARK_MARKS;
		d->count--;
	}
}

static uint64_t newest(const struct endpoint *ep)
{
	const struct watermark *d = ep->link.watermark;

	return d->count ? d->marks[(d->first + d->count - 1) % WATERMARK_MARKS].sent :
			  ep->rooms->figures->arrived;
}

void watermark_mark(struct endpoint *ep)
{
	struct watermark *d = ep->link.watermark;
	uint64_t sent = ep->stats->sent_messages;
	struct place p;
	uint32_t at;

	if (ep->state != SLMPM_PEER_UP || sent == ep->rooms->figures->arrived)
		return;
	p = watermark_place_of(ep);
	watermark_pass(ep, p.read);
	if (sent == newest(ep) || !is_whole(ep))
		return;
	d->count += d->count < WATERMARK_MARKS;
	at = (d->first + d->count - 1) % WATERMARK_MARKS;
	d->marks[at].place = p.out;
	d->marks[at].sent = sent;
	watermark_pass(ep, p.read);
}

void watermark_settle(struct endpoint *ep)
{
	if (ep->state == SLMPM_PEER_UP)
		watermark_pass(ep, watermark_place_of(ep).read);
}
