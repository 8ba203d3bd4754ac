/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a mirror in one context: memory of each, joined, compared, parted. */
#ifndef TESTS_LIB_MIRROR_ENDS_H
#define TESTS_LIB_MIRROR_ENDS_H

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ENDS_SIZE (256 << 10)
#define BOTH      SLMPM_MIRROR_BOTH
#define LEADS     SLMPM_MIRROR_LEAD
#define FOLLOWS   SLMPM_MIRROR_FOLLOW

extern struct mirror_ends {
	slmpm_ctx ctx;
	slmpm_peer near, far; /* the follower as the leader sees it; the leader as it is seen */
	uint64_t *room[4];    /* memory, of which the first two are: */
	unsigned char *leads, *follows;
	slmpm_mirror leader, follower;
	size_t bytes; /* that are mirrored */
} ends;

void ends_open(const struct setting *s);
int ends_close(void); /* what the test's main returns */

slmpm_mirror ends_new(void *base, size_t n, const struct slmpm_mirror_options *o);
struct slmpm_mirror_info ends_info(slmpm_mirror m, slmpm_peer peer);
/* Attached, but not joined yet. */
void ends_ask(slmpm_mirror m, slmpm_peer peer, uint32_t tag, uint32_t how);
void ends_join(slmpm_mirror a, slmpm_peer to_b, slmpm_mirror b, slmpm_peer to_a, uint32_t tag,
	       uint32_t both);
/* The two mirrors of the ends. */
void ends_mirror(const struct slmpm_mirror_options *o, uint32_t both);
void ends_unmirror(void);
/* What FROM has sent is all at TO. */
void ends_settle(slmpm_mirror from, slmpm_peer to, slmpm_mirror at, slmpm_peer peer);
void ends_settle_both(void);
/* Both have the same bytes. */
void ends_same(const char *what);

#endif
