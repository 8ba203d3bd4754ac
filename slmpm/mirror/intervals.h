/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a follower has changed and sent, and the leader need not have stored yet: runs of bytes,
 * ascending and apart, each with the number of the last packet in which it went. So who changes few
 * places again and again has few of them, however far the leader is behind.
 */
#ifndef SLMPM_MIRROR_INTERVALS_H
#define SLMPM_MIRROR_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#define INTERVALS_MAX 4096

struct interval {
	uint64_t lo, hi;
	uint32_t number;
};

struct intervals {
	struct interval *runs; /* room for INTERVALS_MAX; NULL: nobody asks */
	uint32_t count;
	uint32_t stored; /* packets the leader has: what was last changed in them counts no more */
	uint32_t swept;  /* as many, when what counts no more was last removed */
};

/* A negative errno. */
int intervals_init(struct intervals *f);
void intervals_free(struct intervals *f);
/* For N further runs? What counts no more is removed for it. */
bool intervals_have_room(struct intervals *f, uint32_t n);
/* From LO to before HI has gone in packet NUMBER, the latest; there is room. */
void intervals_add(struct intervals *f, uint64_t lo, uint64_t hi, uint32_t number);
/* The leader has the first STORED of NUMBERED packets. */
void intervals_stored(struct intervals *f, uint32_t stored, uint32_t numbered);
/* The first run that ends behind FROM, but for what of it lies before FROM; false: none begins
 * before END. What counts no more behind that is not gone through. */
bool intervals_next(const struct intervals *f, uint64_t from, uint64_t end, uint64_t *lo,
		    uint64_t *hi);

#endif
