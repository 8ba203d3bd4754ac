/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of puts that both sides copy: a region where they land, and a source that the peer
 * maps. */
#ifndef TESTS_LIB_SHARE_PAIR_H
#define TESTS_LIB_SHARE_PAIR_H

#include "tests/lib/actor.h"

#define SHARE_PAGE 4096u

struct share_side {
	slmpm_ctx ctx;
	slmpm_peer peer;
	size_t size;
	slmpm_mem landing, source;
	unsigned char *landed, *from;
	slmpm_rmem to, open; /* where puts go; the peer's source, which is only mapped */
};

/* Both ends of PEER in context CTX call it; SIZE bytes each. Each has mapped the other's and said
 * so; from then on puts are shared, until a call waits and finds the machine busy. */
void share_side_open(struct share_side *s, slmpm_ctx ctx, slmpm_peer peer, size_t size);
/* Whether the peer lives or not. */
void share_side_close(struct share_side *s);
/* Another source in place of the one that the peer still maps. */
void share_side_renew(struct share_side *s);
/* An empty message of STREAM, without such a wait. */
void share_side_await(const struct share_side *s, uint32_t stream);

/* A put from here stops copying at the page at AT, until PASSES(arg) holds, 500 ms at most. */
void share_gate(unsigned char *at, bool (*passes)(void *arg), void *arg);
/* And is open again. */
void share_gate_open(void);

#endif
