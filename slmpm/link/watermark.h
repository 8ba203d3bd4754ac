/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which messages a peer has read for certain. The links tell of packets alone; so now and then it is
 * noted how far the link was when so many messages had gone whole.
 */
#ifndef SLMPM_WATERMARK_H
#define SLMPM_WATERMARK_H

#include <stdint.h>

#define WATERMARK_MARKS 16

struct endpoint;
struct context;

struct watermark { /* of an endpoint */
	struct {
		uint64_t place; /* of the link, */
		uint64_t sent;  /* and messages that lie before it */
	} marks[WATERMARK_MARKS];
	uint32_t first, count;
};

/* Where EP's link is, if nothing is under way in parts. */
void watermark_mark(struct endpoint *ep);
void watermark_mark_all(struct context *ctx);
/* What is known to be read is, last. */
void watermark_settle(struct endpoint *ep);

#endif
