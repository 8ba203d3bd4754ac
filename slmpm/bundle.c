/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles: posting what is staged, taking apart what arrives. */
#include "slmpm/bundle.h"

#include "slmpm/inbound.h"
#include "slmpm/link.h"
#include "slmpm/progress.h"

bool bundle_flush(struct endpoint *ep)
{
	struct bundle *b = &ep->bundle;
	struct packet p = {
		.opcode = b->count == 1 ? WIRE_SEND_ONLY : WIRE_BUNDLE,
		.length = b->bytes,
		.data = b->data,
		.seq = ep->sent - b->count + 1,
		.route = b->route,
		.extent = b->length,
	};

	if (link_post_request(ep, &p, NULL) != 1)
		return false;
	b->count = b->bytes = 0;
	return true;
}

bool bundle_open(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct unpack *u = &ep->unpack;
	uint64_t length = a->head[2];

	if (!length || length > BUNDLE_MESSAGE_MAX || a->length > BUNDLE_BYTES ||
	    a->length % length || !a->length || (uint32_t)a->head[1] == SLMPM_ANY_STREAM ||
	    a->head[0] != ep->received + 1) {
		endpoint_poison(ep, "bundle");
		return false;
	}
	u->at = a->data;
	u->length = (uint32_t)length;
	u->left = a->length / u->length;
	u->route = a->head[1];
	u->arrival = *a;
	ep->stats->received_packets++;
	return true;
}

int bundle_unpack_rest(struct endpoint *ep)
{
	struct unpack *u = &ep->unpack;
	int n = 0;

	while (u->left && ep->state == SLMPM_PEER_UP) {
		u->left--;
		inbound_bundled(ep, u->route, u->at, u->length);
		u->at += u->length;
		n++;
		if (!u->left)
			progress_release(ep, &u->arrival);
	}
	return n;
}
