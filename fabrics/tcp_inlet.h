/* SPDX-License-Identifier: BSD-3-Clause */
/* What receiving (tcp_inlet.c) and handing out (tcp_arrival.c) both know of what has come. */
#ifndef FABRICS_TCP_INLET_H
#define FABRICS_TCP_INLET_H

#include <string.h>

#include "fabrics/tcp.h"

static inline uint64_t tcp_word_at(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return LITTLE_64(word);
}

static inline uint32_t tcp_length_in(uint64_t word)
{
	return (uint32_t)(word >> TCP_LENGTH_SHIFT) & RING_LENGTH_MAX;
}

static inline uint8_t tcp_kind_in(uint64_t word)
{
	return (uint8_t)(word >> TCP_KIND_SHIFT);
}

static inline void tcp_inlet_advance(const struct tcp_inlet *in, size_t *at, size_t bytes)
{
	*at += bytes;
	if (*at >= in->size)
		*at -= in->size;
}

/* The packet that has begun is the one that was handed out without data. */
static inline bool tcp_is_landing(const struct tcp_inlet *in)
{
	return in->headed && in->landing.waits && in->landing.total == in->total;
}

/* Nothing can be received before the core says where a packet belongs. */
static inline bool tcp_must_land(const struct tcp_link *l)
{
	const struct tcp_inlet *in = &l->in;

	return in->headed && in->length >= TCP_LAND_MIN &&
	       !(tcp_is_landing(in) && in->landing.said);
}

#endif
