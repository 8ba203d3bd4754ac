/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bundles: short messages of a burst (SLMPM_MORE) that share one packet, so that their lines travel
 * full and the commit is paid once. What they cost, too: a bundle is accounted for as a whole, when
 * it leaves and when it has been read.
 */
#ifndef SLMPM_BUNDLE_H
#define SLMPM_BUNDLE_H

#include "shm/copy.h"
#include "slmpm/link/packet.h"

#define BUNDLE_MESSAGE_MAX 256 /* longer ones gain nothing from it */

/* Starts staging messages of LEN bytes; false: no credit for one, or no memory. */
bool bundle_begin(struct endpoint *ep, uint64_t route, size_t len);
/* Posts what is staged; false when the link has no room yet. */
bool bundle_flush(struct endpoint *ep);
/*
 * Posts messages of one length from several buffers as a packet, built where the peer reads it: M
 * has N, of which those up to the first that differs go, as far as credit and room allow. How many:
 * 0 where the first must go another way.
 */
int bundle_gather(struct endpoint *ep, uint64_t route, const struct slmpm_iov *m, int n);
/* The memory that messages are staged in, while none is. */
void bundle_free(struct endpoint *ep);
/* Starts reading a bundle; false: the peer's figures are impossible. */
bool bundle_open(struct endpoint *ep, const struct fabric_arrival *a);
/* The same, and dispatches its messages until a request finishes. */
void bundle_arrived(struct endpoint *ep, const struct head *h);
/* Its next messages into N buffers, up to the first that is too short, and their lengths there:
 * how many. DONE: an array of N, or NULL. */
int bundle_scatter(struct endpoint *ep, struct slmpm_iov *m, int n, struct slmpm_done *done);
/* Dispatches what is left of an opened bundle, ALL or until a request finishes; the number. */
int bundle_unpack(struct endpoint *ep, bool all);
/* The last message has been taken; returns its length. */
int64_t bundle_end(struct endpoint *ep);

/* Whether a message can join what is staged, or be the next of it. */
static inline bool bundle_fits(const struct bundle *b, uint64_t route, size_t len)
{
	return b->left && b->route == route && b->length == len;
}

static inline void bundle_count(struct bundle *b, size_t len)
{
	b->at += len;
	b->count++;
	b->left--;
}

static inline void bundle_add(struct bundle *b, const void *buf, size_t len)
{
	copy_payload(b->at, buf, len);
	bundle_count(b, len);
}

/* Takes back what was added last. */
static inline void bundle_drop(struct bundle *b)
{
	b->at -= b->length;
	b->count--;
	b->left++;
}

/* Whether the next message of an opened bundle is for STREAM. */
static inline bool bundle_is_for(const struct unpack *u, uint32_t stream)
{
	return stream == (uint32_t)u->route || stream == SLMPM_ANY_STREAM;
}

/* What came with a message of one packet, or of a bundle. */
static inline void bundle_fill_done(struct slmpm_done *done, const struct endpoint *ep,
				    uint32_t length, uint64_t route, int status)
{
	done->len = length;
	done->status = status;
	done->stream = (uint32_t)route;
	done->imm = (uint32_t)(route >> 32);
	done->flags = 0;
	done->peer.id = handle_id(ep);
	done->cookie = 0;
	done->op = SLMPM_OP_RECV;
	done->protocol = SLMPM_BY_SMT;
	done->reason = SLMPM_REASON_NONE; /* its sender's matter */
}

/* Goes on behind a message of an opened bundle, of LEN bytes, which has been copied. */
static inline int64_t bundle_taken(struct endpoint *ep, uint32_t len, struct slmpm_done *done)
{
	struct unpack *u = &ep->unpack;

	if (done)
		bundle_fill_done(done, ep, u->length, u->route, 0);
	u->at += len;
	if (UNLIKELY(!--u->left))
		return bundle_end(ep);
	return len;
}

/* The next message of an opened bundle into BUF, which is long enough. */
static inline int64_t bundle_take(struct endpoint *ep, void *buf, struct slmpm_done *done)
{
	uint32_t len = ep->unpack.length;

	copy_payload(buf, ep->unpack.at, len);
	return bundle_taken(ep, len, done);
}

#endif
