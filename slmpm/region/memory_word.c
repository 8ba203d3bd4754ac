/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access words, the owner's side: one in the peer's own memory for each grant by which it reaches a region
 * itself. The peer looks there before each operation, so that a grant taken back has an end that nobody has to
 * hear of first. A peer that sets words of its own harms its own operations.
 */
#include <stdlib.h>

#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"

#define BITS 64

bool grant_word_take(struct grant *g)
{
	struct endpoint *ep = g->ep;
	uint64_t *words = ep->rooms->regions->words;

	if (!ep->link.port->access)
		return false;
	if (!words)
		words = ep->rooms->regions->words =
			calloc(FABRIC_ACCESS_WORDS / BITS, sizeof(*words));
	for (uint32_t i = 0; words && i < FABRIC_ACCESS_WORDS / BITS; i++) {
		if (!~words[i])
			continue;
		g->word = i * BITS + (uint32_t)__builtin_ctzll(~words[i]);
		g->has_word = true;
		words[i] |= UINT64_C(1) << g->word % BITS;
		grant_word_set(g, FABRIC_ACCESS_DIRECT);
		return true;
	}
	return false;
}

/* A fabric whose owner's side does what the peer has begun (fabric_memory.later) does no more of it. */
void grant_word_free(struct grant *g)
{
	if (!g->ending)
		grant_word_set(g, FABRIC_ACCESS_REVOKED);
	if (g->has_word)
		g->ep->rooms->regions->words[g->word / BITS] &= ~(UINT64_C(1) << g->word % BITS);
	g->has_word = false;
}

void grant_word_set(const struct grant *g, enum fabric_access access)
{
	if (g->has_word)
		link_set_access(g->ep, g->word, access);
}
