/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of bursts share: both ends in one context, and buffers in a row. */
#ifndef TESTS_API_BURST_H
#define TESTS_API_BURST_H

#include <string.h>

#include "tests/lib/actor.h"

#define MOST  300 /* messages of a burst */
#define SHORT 400 /* bytes of one, at most, where all must fit the smallest credit */
#define ANY   SLMPM_ANY_STREAM

static slmpm_ctx ctx;
static slmpm_peer a, b; /* each other's */
static unsigned char out[MOST * SHORT], in[MOST * SHORT];
static struct slmpm_iov from[MOST], into[MOST];

/* N buffers of LEN bytes, one behind the other or with gaps. */
static inline void lay_out(struct slmpm_iov *m, int n, unsigned char *at, size_t len, size_t gap)
{
	for (int i = 0; i < n; i++, at += len + gap)
		m[i] = (struct slmpm_iov){at, len};
}

/* Empty buffers, as a receive wants them. */
static inline void make_room(int n, size_t len)
{
	memset(in, 0xee, (size_t)n * len);
	lay_out(into, n, in, len, 0);
}

static inline void nothing_there(slmpm_peer peer)
{
	make_room(1, SHORT);
	EXPECT(slmpm_recv_burst(peer, ANY, into, 1, NULL, 0), -SLMPM_EAGAIN);
}

#endif
