/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes: which protocol a call asks for, which one was chosen instead, and why. A part of <slmpm.h>.
 *
 * A send asks for SMT, a put for PUT, a get for GET. That is followed unless a threshold, what has been
 * measured, or what there is says otherwise. The order of messages holds whatever is chosen.
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

/* Why a protocol was chosen. */
enum slmpm_reason {
	SLMPM_REASON_NONE = 0,    /* nothing was chosen */
	SLMPM_REASON_SHORT = 1,   /* small, nothing before it waits: nothing else is looked at */
	SLMPM_REASON_CALL = 2,    /* what the call asks for */
	SLMPM_REASON_WISH = 3,    /* what the flags ask for */
	SLMPM_REASON_STRICT = 4,  /* likewise, and nobody may say otherwise */
	SLMPM_REASON_ONLY = 5,    /* there is no other way */
	SLMPM_REASON_SETTING = 6, /* a setting says so */
	SLMPM_REASON_SIZE = 7,    /* over a threshold of size: moved by others than the call */
	SLMPM_REASON_FASTER = 8,  /* has taken less time of late */
	SLMPM_REASON_TRIAL = 9,   /* to find out what it takes */
	SLMPM_REASON_RING = 10,   /* the ring is fuller than SLMPM_MODE_RING */
	SLMPM_REASON_QUEUE = 11,  /* the transmit queue is longer than SLMPM_MODE_QUEUE */
	SLMPM_REASON_DMA =
		12, /* the engine has more than SLMPM_MODE_DMA to move, the ring little */
	SLMPM_REASON_ORDER = 13,  /* what it has to follow went that way */
	SLMPM_REASON_ABSENT = 14, /* the peer did not come for it, or could not take it otherwise */
	SLMPM_REASON_LINK = 15    /* another link has less to do */
};

#define SLMPM_REASONS 16

#include <slmpm.h> /* here: its other parts use the numbers above */

#ifdef __cplusplus
extern "C" {
#endif

/* "short", "call", ...; NULL for another number. */
SLMPM_API const char *slmpm_reason_name(int reason);

#ifdef __cplusplus
}
#endif

#endif
