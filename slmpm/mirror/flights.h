/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a follower has changed and sent, and the leader need not have stored yet: runs of bytes,
 * ascending and apart, each with the number of the last packet in which it went. So who changes few
 * places again and again has few of them, however far the leader is behind.
 */
#ifndef SLMPM_MIRROR_FLIGHTS_H
#define SLMPM_MIRROR_FLIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#define FLIGHTS_MAX 4096

struct flight {
	uint64_t lo, hi;
	uint32_t number;
};

struct flights {
	struct flight *runs; /* room for FLIGHTS_MAX; NULL: nobody asks */
	uint32_t count;
	uint32_t
		stored; /* packets that the leader has: what was last changed in them counts no more */
	uint32_t swept; /* as many, when what counts no more was last removed */
};

/* A negative errno. */
int flights_init(struct flights *f);
void flights_free(struct flights *f);
/* For N further runs? What counts no more is removed for it. */
bool flights_have_room(struct flights *f, uint32_t n);
/* From LO to before HI has gone in packet NUMBER, the latest; there is room. */
void flights_add(struct flights *f, uint64_t lo, uint64_t hi, uint32_t number);
/* The leader has the first STORED of NUMBERED packets. */
void flights_stored(struct flights *f, uint32_t stored, uint32_t numbered);
/* The first run that ends behind FROM, but for what of it lies before FROM; false: none begins before END. What counts
 * no more behind that is not gone through. */
bool flights_next(const struct flights *f, uint64_t from, uint64_t end, uint64_t *lo, uint64_t *hi);

#endif
