/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that name their addressee (SLMPM_HEADER): the accelerator of the pair, the process that
 * reads them and, where asked, the place there. Each ends with these words, which its reader
 * compares with the handshake's; one that differs ends the connection. Only such links pay for it.
 */
#ifndef SLMPM_ADDRESSEE_H
#define SLMPM_ADDRESSEE_H

#include "slmpm/endpoint.h"

/* What this side asks for, as features and as what it requires: WIRE_FEATURE_IDS, ... */
uint64_t addressee_features(const struct context *ctx);
/* The handshake has told of the peer, and both offer or want FEATURES. */
void addressee_agree(struct endpoint *ep, const struct wire_hello *hello, uint64_t features);
/* Before the first packet: they say so from now on, if that was agreed. -ENOMEM. */
int addressee_begin(struct endpoint *ep);
void addressee_free(struct endpoint *ep);
/* A word that was of one segment may be of two with this, and lie behind a pad. */
#define ADDRESSEE_WORD 3
/* Words for which room may be held back (link_hold_back) in a ring of so many SEGMENTS. Joined
 * links, which count them without the addressee, hold none back. */
static inline uint32_t addressee_hold_max(const struct endpoint *ep, uint64_t segments)
{
	uint32_t most = FABRIC_HOLD_MAX((uint32_t)segments);

	if (!ep->link.addressee)
		return most;
	return ep->rooms->secondary ? 0 : most / ADDRESSEE_WORD;
}

/* As it travels: of the packet sent last. */
const struct wire_addressee *addressee_sent(const struct fabric_link *link);
/* Of one that has come, N bytes at DATA with a head of FLAGS; false: it has none. */
bool addressee_read(struct wire_addressee *to, uint64_t flags, const void *data, uint32_t n);

#endif
