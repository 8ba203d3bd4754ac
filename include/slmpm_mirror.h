/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrored memory: what one process changes appears in the memory of others, so that every remote
 * value of interest is read by a plain load. A part of <slmpm.h>; slmpm_mirror(7) states exactly
 * what such a load may see.
 *
 * Of the two ends of an attachment one leads and one follows: the leader's bytes are there first,
 * and the order in which changes reach the leader's memory is the order of both.
 */
#ifndef SLMPM_API_MIRROR_H
#define SLMPM_API_MIRROR_H

#include <slmpm_memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	uint64_t id;
} slmpm_mirror; /* memory of this process that is kept equal to that of others */

struct slmpm_mirror_options {
	uint32_t size;
	uint32_t track;                 /* enum slmpm_mirror_track */
	const struct slmpm_span *spans; /* only these parts of the memory; ... */
	uint32_t span_count;            /* ... 0: all of it. The same at both ends, ascending */
	uint32_t reserved;              /* zero, or SLMPM_EINVAL */
};

/*
 * SIZE bytes of the application's from BASE on, a multiple of 8, are to be mirrored; nothing is
 * yet. They must stay until it is destroyed. OPTIONS may be NULL. SLMPM_EBUSY: a peer reaches a
 * region there by itself, or another mirror lies there; of this context, for what is another's
 * nobody looks. Does not block.
 */
SLMPM_API int slmpm_mirror_create(slmpm_ctx ctx, void *base, size_t size,
				  const struct slmpm_mirror_options *options, slmpm_mirror *mirror);
/* Detached from all peers; the memory stays as it is. Does not block. */
SLMPM_API int slmpm_mirror_destroy(slmpm_mirror mirror);

#define SLMPM_MIRROR_LEAD   1u
#define SLMPM_MIRROR_FOLLOW 2u /* at most one peer of a mirror leads it */
#define SLMPM_MIRROR_BOTH   4u /* the follower's changes count, too; both say so */

/*
 * Joins the mirror to the one that PEER attaches here under the same TAG, of the same size and
 * spans; one of them leads. Returns once they are joined and, where this one follows, the leader's
 * bytes are all here. SLMPM_ETIMEOUT: it stays asked for; the same call again goes on waiting.
 * SLMPM_EBUSY: another mirror has this tag, this one has a leader, or one of that tag is just being
 * detached. SLMPM_EINVAL: the two do not fit (the detail says why); SLMPM_ENOTSUP: the peer's
 * library is older. Changes go by the link in use, whatever the handle asks for.
 */
SLMPM_API int slmpm_mirror_attach(slmpm_mirror mirror, slmpm_peer peer, uint32_t tag, uint32_t how,
				  int timeout_ms);
/* Ends that, or what is left of it when PEER has ended; the memory stays as it is. What has not
 * been flushed may not be sent any more. Does not block. */
SLMPM_API int slmpm_mirror_detach(slmpm_mirror mirror, slmpm_peer peer);

/* ---- Changes -------------------------------------------------------------------------------- */

/*
 * Each changes this process's memory at AT, which lies in the mirror's, and notes what has changed:
 * it travels with the next call that makes progress, or with slmpm_mirror_flush; what is changed
 * several times before travels once. They never block and never fail for want of memory.
 * SLMPM_EINVAL: outside of the mirror. What puts, gets, receives and atomic operations of the
 * mirror's context bring into the memory is noted by itself; what those of another context do is a
 * change like the application's own.
 */
SLMPM_API int slmpm_mirror_store8(slmpm_mirror mirror, void *at, uint8_t value);
SLMPM_API int slmpm_mirror_store16(slmpm_mirror mirror, void *at, uint16_t value);
SLMPM_API int slmpm_mirror_store32(slmpm_mirror mirror, void *at, uint32_t value);
SLMPM_API int slmpm_mirror_store64(slmpm_mirror mirror, void *at, uint64_t value);
SLMPM_API int slmpm_mirror_copy(slmpm_mirror mirror, void *at, const void *from, size_t len);
SLMPM_API int slmpm_mirror_set(slmpm_mirror mirror, void *at, int byte, size_t len);
/* Within the mirror, also where the two overlap. */
SLMPM_API int slmpm_mirror_move(slmpm_mirror mirror, void *at, const void *from, size_t len);
/* Nothing but the note: the application has changed LEN bytes at AT by itself. To be called before
 * the next progress, where a peer changes them, too. */
SLMPM_API int slmpm_mirror_changed(slmpm_mirror mirror, void *at, size_t len);

/*
 * What is changed between the two is one publication: nothing of it travels before the end, and a
 * reader of the peers can tell. The begin waits until what was changed before is on its way to all
 * peers, which never stops (SLMPM_ETIMEOUT: it has not begun). The end returns 0 and does not
 * block.
 */
SLMPM_API int slmpm_mirror_begin(slmpm_mirror mirror, int timeout_ms);
SLMPM_API int slmpm_mirror_end(slmpm_mirror mirror);
/* Until all changes are on their way: a message that is sent to a peer afterwards is received after
 * they are there. SLMPM_ESTATE: between begin and end, or in a handler that would have to wait. */
SLMPM_API int slmpm_mirror_flush(slmpm_mirror mirror, int timeout_ms);

/* ---- Reading -------------------------------------------------------------------------------- */

/*
 * Waits until PEER's publications here have passed number *SEQUENCE, and sets it to the last that
 * is here as a whole. SLMPM_EDEAD, SLMPM_ECLOSED: no other will come. PEER {0}: the leader.
 */
SLMPM_API int slmpm_mirror_wait(slmpm_mirror mirror, slmpm_peer peer, uint64_t *sequence,
				int timeout_ms);
/*
 * Copies N spans of the mirror, one behind the other, to TO, as they are when PEER's publication
 * *SEQUENCE (set; may be NULL) is here as a whole and nothing of a later one is. SLMPM_ETIMEOUT;
 * the peer's error: it ended while a publication was coming.
 */
SLMPM_API int slmpm_mirror_snapshot(slmpm_mirror mirror, slmpm_peer peer,
				    const struct slmpm_span *spans, int n, void *to,
				    uint64_t *sequence, int timeout_ms);
/*
 * For threads that read while another makes progress, without a lock: what is loaded between enter,
 * which sets *TURN, and a leave that returns 0, belongs together. Both may say SLMPM_EAGAIN,
 * without a detail: a publication is just coming in; enter again.
 */
SLMPM_API int slmpm_mirror_enter(slmpm_mirror mirror, uint64_t *turn);
SLMPM_API int slmpm_mirror_leave(slmpm_mirror mirror, uint64_t turn);

enum slmpm_mirror_state {
	SLMPM_MIRROR_ASKED = 1,   /* the peer has not attached its own yet */
	SLMPM_MIRROR_FILLING = 2, /* the leader's bytes are not all here */
	SLMPM_MIRROR_LIVE = 3,
	SLMPM_MIRROR_STALE = 4 /* the peer has ended or detached: nothing will change any more */
};

struct slmpm_mirror_info {
	uint32_t size;
	uint32_t state; /* enum slmpm_mirror_state */
	uint32_t how;   /* as attached: SLMPM_MIRROR_LEAD, ... */
	uint32_t tag;
	int32_t error;     /* STALE: what slmpm_mirror_wait returns, negative */
	uint32_t whole;    /* 1: no publication of the peer's is here in part */
	uint64_t sequence; /* the peer's last publication that is here as a whole; 0: none */
	uint64_t sent;     /* this side's last that is on its way to the peer as a whole */
	uint64_t age_ns;   /* since anything came from the peer; UINT64_MAX: nothing has */
	uint64_t waiting;  /* bytes that have changed here and not been sent */
	uint64_t sent_bytes, sent_packets, received_bytes, received_packets;
	char track[16]; /* how changes are found: "explicit", "pagemap", "fault", ... */
};

/* The attachment to PEER; {0}: to the leader. Set info->size. SLMPM_EINVAL: there is none. */
SLMPM_API int slmpm_mirror_query(slmpm_mirror mirror, slmpm_peer peer,
				 struct slmpm_mirror_info *info);

/* ---- Automatic tracking --------------------------------------------------------------------- */

enum slmpm_mirror_track {
	SLMPM_TRACK_NONE = 0,    /* the application tells what it changes */
	SLMPM_TRACK_AUTO = 1,    /* the first of these that works here, or as SLMPM_TRACK says: */
	SLMPM_TRACK_PAGEMAP = 2, /* userfaultfd write protection, asynchronous; PAGEMAP_SCAN */
	SLMPM_TRACK_FAULT = 3,   /* userfaultfd write protection; a thread opens pages */
	SLMPM_TRACK_SIGNAL = 4,  /* page protection; a handler of SIGSEGV opens pages */
	SLMPM_TRACK_TWIN = 5     /* no help: all of it is compared */
};

/*
 * System calls that write into a mirror tracked by SIGNAL fail with EFAULT, and so do those by
 * FAULT where only privileged processes may know what the kernel writes, until slmpm_mirror_changed
 * is called for the place; then it is open until the next look. slmpm_mirror(7) has the rest.
 *
 * A tracked mirror finds what the application's plain stores have changed when it looks: in begin,
 * end, flush, this call, and while progress is made. In all cases a twin, a second copy of the
 * memory, tells which bytes of a page have. Returns how many bytes have changed.
 */
SLMPM_API int64_t slmpm_mirror_scan(slmpm_mirror mirror);
/* Does TRACK work here, by a real try: 0, or SLMPM_ENOTSUP with the reason as detail. */
SLMPM_API int slmpm_mirror_track_works(int track);

#ifdef __cplusplus
}
#endif

#endif
