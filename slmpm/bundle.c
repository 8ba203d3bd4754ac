/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles: posting what is staged, taking apart what arrives. */
#include "slmpm/bundle.h"

#include "slmpm/arrival.h"
#include "slmpm/link.h"
#include "slmpm/progress.h"

bool bundle_begin(struct endpoint *ep, uint64_t route, size_t len)
{
	struct bundle *b = &ep->bundle;
	uint64_t covered = (ep->credit - (ep->charged - ep->credited)) / wire_charge(len);
	uint64_t most = len < BUNDLE_FEW / BUNDLE_BURST ? BUNDLE_FEW : BUNDLE_BURST * len;
	uint64_t room = (most < b->most ? most : b->most) / len;

	b->route = route;
	b->length = (uint32_t)len;
	b->at = b->data;
	b->count = 0;
	b->left = (uint32_t)(covered < room ? covered : room);
	return b->left > 0;
}

bool bundle_flush(struct endpoint *ep)
{
	struct bundle *b = &ep->bundle;
	uint64_t bytes = (uint64_t)(b->at - b->data);
	struct packet p = {
		.opcode = b->count == 1 ? WIRE_SEND_ONLY : WIRE_BUNDLE,
		.length = (uint32_t)bytes,
		.data = b->data,
		.seq = ep->sent + 1,
		.route = b->route,
		.extent = b->length,
	};

	if (link_post_request(ep, &p, NULL) != 1)
		return false;
	ep->sent += b->count;
	ep->charged += bytes + (uint64_t)b->count * WIRE_ENVELOPE;
	ep->stats->sent_messages += b->count;
	ep->stats->sent_bytes += bytes;
	b->count = b->left = 0;
	return true;
}

bool bundle_open(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct unpack *u = &ep->unpack;
	uint64_t length = a->head[2];

	if (PEER_FAULT(!length || length > BUNDLE_MESSAGE_MAX || a->length > BUNDLE_BYTES ||
		       a->length % length || !a->length ||
		       (uint32_t)a->head[1] == SLMPM_ANY_STREAM ||
		       a->head[0] != ep->received + 1)) {
		endpoint_poison(ep, "bundle");
		return false;
	}
	u->at = a->data;
	u->length = (uint32_t)length;
	u->left = u->unaccounted = a->length / u->length;
	u->route = a->head[1];
	u->arrival = *a;
	return true;
}

/* Accounts for what bundle_take has taken so far. */
static void account(struct endpoint *ep)
{
	struct unpack *u = &ep->unpack;
	uint32_t n = u->unaccounted - u->left;

	u->unaccounted = u->left;
	ep->received += n;
	ep->stats->received_messages += n;
	ep->stats->received_bytes += (uint64_t)n * u->length;
	inbound_direct(ep, n * wire_charge(u->length));
}

int64_t bundle_end(struct endpoint *ep)
{
	int64_t len = ep->unpack.length;

	progress_release(ep, &ep->unpack.arrival);
	account(ep);
	return len;
}

int bundle_unpack(struct endpoint *ep, bool all)
{
	struct unpack *u = &ep->unpack;
	int n = 0;

	if (!u->left)
		return 0;
	account(ep);
	while (u->left && ep->state == SLMPM_PEER_UP && (all || !ep->ctx->finished)) {
		u->unaccounted = --u->left;
		arrival_bundled(ep, u->route, u->at, u->length);
		u->at += u->length;
		n++;
		if (!u->left)
			progress_release(ep, &u->arrival);
	}
	return n;
}
