/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes: which protocol a call asks for, which one was chosen instead, and why. A part of
 * <slmpm.h>.
 *
 * A send asks for SMT (shared-memory transfer: packets in the peer's ring), a put for PUT, a get
 * for GET; flags of slmpm_how ask for another. The request is followed unless a threshold
 * (SLMPM_MODE_*), what has been measured, or what there is says otherwise. The order of messages
 * holds whatever is chosen.
 */
#ifndef SLMPM_API_MODE_H
#define SLMPM_API_MODE_H

#include <stdint.h>

/* How bytes go from one process to the other. */
enum slmpm_protocol {
	SLMPM_BY_SMT = 0,    /* messages, in packets through the peer's ring */
	SLMPM_BY_RGET = 1,   /* long messages that the peer fetches */
	SLMPM_BY_PUT = 2,    /* puts into memory within direct reach */
	SLMPM_BY_GET = 3,    /* gets out of such */
	SLMPM_BY_REQUEST = 4 /* puts and gets by requests in packets, for want of such reach */
};
#define SLMPM_PROTOCOLS 5

/*
 * slmpm_how.flags, slmpm_wr.flags: a hint, one enum slmpm_protocol. Of a message: SMT, or RGET, the
 * peer fetches it. Of a one-sided operation: PUT or GET, directly (which of them is all the same),
 * or SMT or REQUEST, by requests through the ring.
 */
#define SLMPM_VIA(protocol) (((uint32_t)(protocol) + 1) << 8)
#define SLMPM_VIA_MASK      (7u << 8)
/* And that hint, or what the call asks for without one, is never overruled: SLMPM_ENOTSUP where
 * it is impossible, SLMPM_ESTATE where its link does not stand. A message then waits until its
 * protocol can take it. */
#define SLMPM_STRICT        (1u << 11)
/*
 * By link N of several (SLMPM_LINKS), from 0; with SLMPM_STRICT by no other. Of a one-sided
 * operation: directly where memory is mapped by that link, by request else. Changing the link takes
 * what was sent before to have left the old one.
 *
 * A strict one whose link does not stand when its turn comes, or is lost while it waits for its
 * turn, ends at once with SLMPM_ESTATE, and nothing of it has gone; whether that link will come
 * back is not waited for (SLMPM_EVENT_LINK_UP tells). One that has begun when its link is lost is
 * carried on by the others, like all that was given to a link: it arrives once, whole and in its
 * order.
 */
#define SLMPM_ON_LINK(n)    (((uint32_t)(n) + 1) << 12)
#define SLMPM_ON_LINK_MASK  (7u << 12)

/* Why a protocol was chosen. */
enum slmpm_reason {
	SLMPM_REASON_NONE = 0,    /* nothing was chosen */
	SLMPM_REASON_SHORT = 1,   /* small, nothing before it waits: nothing else is looked at */
	SLMPM_REASON_CALL = 2,    /* what the call asks for */
	SLMPM_REASON_HINT = 3,    /* what the flags ask for */
	SLMPM_REASON_STRICT = 4,  /* likewise, and nobody may say otherwise */
	SLMPM_REASON_ONLY = 5,    /* there is no other way */
	SLMPM_REASON_SETTING = 6, /* a setting says so */
	SLMPM_REASON_SIZE = 7,    /* over a threshold of size: moved by others than the call */
	SLMPM_REASON_FASTER = 8,  /* has taken less time of late */
	SLMPM_REASON_TRIAL = 9,   /* to find out what it takes */
	SLMPM_REASON_RING = 10,   /* the ring is fuller than SLMPM_MODE_RING */
	SLMPM_REASON_QUEUE =
		11, /* the transmit queue is longer than SLMPM_MODE_QUEUE; or the engine's than
				   * SLMPM_MODE_DMA, and the ring has little to do */
	SLMPM_REASON_BOTH = 12,   /* queue and ring are over their thresholds: another fabric */
	SLMPM_REASON_ORDER = 13,  /* what it has to follow went that way */
	SLMPM_REASON_ABSENT = 14, /* the peer did not come for it, or could not take it otherwise */
	SLMPM_REASON_LINK = 15,   /* another link has less to do */
	SLMPM_REASON_ENGINE = 16, /* the peer's engine does it: this side has none */
	SLMPM_REASON_UNREACHABLE =
		17, /* the peer's engine does not reach the memory here: the call copies */
	SLMPM_REASON_AGGREGATE =
		18 /* what all instances of the application see (SLMPM_AGGREGATE) */
};

#define SLMPM_REASONS 19

#include <slmpm.h> /* here: its other parts use the numbers above */

#ifdef __cplusplus
extern "C" {
#endif

struct slmpm_mode { /* what was chosen for an operation */
	uint32_t size;
	uint32_t op;      /* enum slmpm_op; 0: nothing yet */
	int32_t protocol; /* enum slmpm_protocol; -1: nothing yet */
	uint32_t reason;  /* enum slmpm_reason */
	uint32_t link;    /* number of the link, where there are several */
	uint32_t reserved;
	char fabric[16];
};

/* Of a request under way or done, until it is reported. What is chosen may change until it has
 * begun, and once more where the peer does not come for a message or cannot take it. */
SLMPM_API int slmpm_req_mode(slmpm_req req, struct slmpm_mode *mode);
/* Of the last operation to PEER that has ended and for which there was something to choose: a short
 * one that could go at once is none. */
SLMPM_API int slmpm_peer_mode(slmpm_peer peer, struct slmpm_mode *mode);
/* "short", "call", ...; NULL for another number. */
SLMPM_API const char *slmpm_reason_name(int reason);
/* SLMPM_VIA and SLMPM_ON_LINK for languages that know no macros; 0 for what is no protocol or
 * link. */
SLMPM_API uint32_t slmpm_via(int protocol);
SLMPM_API uint32_t slmpm_on_link(int link);

#ifdef __cplusplus
}
#endif

#endif
