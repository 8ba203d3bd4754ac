/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bundles: short messages of a burst (SLMPM_MORE) that share one packet, so that their lines travel
 * full and the commit is paid once. Each keeps its own envelope.
 */
#ifndef SLMPM_BUNDLE_H
#define SLMPM_BUNDLE_H

#include <string.h>

#include "slmpm/endpoint.h"

#define BUNDLE_MESSAGE_MAX 128 /* longer ones gain nothing from it */

/* Posts what is staged; false when the link has no room yet. */
bool bundle_flush(struct endpoint *ep);
/* Starts reading a bundle; false: the peer's figures are impossible. */
bool bundle_open(struct endpoint *ep, const struct fabric_arrival *a);
/* Dispatches what is left of an opened bundle; the number of messages. */
int bundle_unpack_rest(struct endpoint *ep);

/* Whether a message can join what is staged. */
static inline bool bundle_fits(const struct bundle *b, uint64_t route, size_t len)
{
	return !b->count || (b->route == route && b->length == len && b->bytes + len <= b->most);
}

static inline void bundle_add(struct bundle *b, uint64_t route, const void *buf, size_t len)
{
	unsigned char *to = b->data + b->bytes;

	if (len == 8)
		memcpy(to, buf, 8);
	else
		memcpy(to, buf, len);
	b->route = route;
	b->length = (uint32_t)len;
	b->bytes += (uint32_t)len;
	b->count++;
}

#endif
