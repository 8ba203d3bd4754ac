/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrored memory. A mirror is memory of the application's; an attachment joins it to one of a
 * peer's. Each attachment knows which bytes have changed here and not been sent; what is sent are
 * the bytes as they are then, so that many changes become one and nothing is ever queued.
 *
 * Why both ends have the same bytes in the end. The leader stores what comes, in the order in which
 * it comes, and its packets say how many of the follower's it had stored before. The follower skips
 * those bytes that it has changed itself and that the leader had not stored by then: the leader
 * will store them later, and so they are newer in the leader's order.
 */
#ifndef SLMPM_MIRROR_ROOM_H
#define SLMPM_MIRROR_ROOM_H

#include <string.h>

#include "slmpm/endpoint.h"
#include "slmpm/track/dirty.h"
#include "slmpm/mirror/intervals.h"

#define MIRROR_ROLES (SLMPM_MIRROR_LEAD | SLMPM_MIRROR_FOLLOW)

#define MIRRORS_MAX   256   /* attachments of an endpoint, and as many that it asks for */
#define MIRROR_PACKET 32768 /* bytes of a packet */
#define MIRROR_LIST   4096  /* of one of many short changes */
#define MIRROR_ECHO   1024  /* changes after which they are acknowledged */

struct head;
struct request;
struct snapshot;
struct tracker;

struct mirror {
	struct handle handle;
	struct context *ctx; /* stays: another thread may read it just as it is freed */
	struct list node;    /* of the context's */
	unsigned char *base;
	/* What is sent: the memory, or its twin. A change that is undone while it is sent, and done
	 * again, would not differ from the twin. */
	const unsigned char *source;
	uint64_t size;
	struct slmpm_span *spans; /* what belongs to it: ascending, apart */
	uint32_t span_count;
	uint32_t span_sum;     /* 0: none were given, all of it does */
	struct attachment *to; /* the only one, where a change goes the fast path; or NULL */
	struct list attachments;
	uint64_t sequence;       /* of publications, here */
	bool loose;              /* something has changed that belongs to none yet */
	bool group;              /* between begin and end */
	uint32_t coming;         /* attachments of which a publication is here in part */
	_Atomic uint64_t turn;   /* odd meanwhile; for who reads without the lock */
	struct list snapshots;   /* struct snapshot: who waits for one */
	struct tracker *tracker; /* or NULL */
};

enum attachment_state {
	ATTACHMENT_ASKED, /* the peer has not asked yet */
	ATTACHMENT_JOINED,
	ATTACHMENT_ENDING, /* nothing of the mirror's any more: what still comes is dropped */
	ATTACHMENT_STALE   /* nothing of an endpoint's any more */
};

struct attachment {
	struct list of_mirror;
	struct mirror *mirror; /* NULL: ENDING */
	struct endpoint *ep;   /* NULL: STALE */
	struct mirrors *all;   /* the endpoint's; NULL: STALE */
	uint64_t peer;         /* its handle, also afterwards */
	uint32_t tag, how;
	uint8_t state; /* enum attachment_state */
	bool both;
	bool only;    /* nobody else changes the mirror: what comes has a fast path */
	bool pending; /* counted by the endpoint: something is to be sent */
	uint32_t slot, peer_slot;
	int error;       /* STALE */
	bool cut;        /* STALE: its last publication is here in part */
	const char *why; /* the two do not fit */

	/* out */
	struct dirty dirty;
	uint64_t cursor;            /* publications go through the memory once, from front to end */
	uint64_t sending;           /* the number of the one under way; 0: none is */
	uint64_t sent;              /* the last whole one */
	uint32_t numbered;          /* packets */
	struct intervals intervals; /* of a follower whose changes count */
	uint64_t sent_bytes, sent_packets;

	/* in */
	uint64_t sequence; /* the last whole one; 0: none has been here */
	uint64_t coming;   /* the number of that which is here in part; 0: none is */
	uint32_t taken;    /* packets */
	uint32_t unechoed; /* changes since the last were acknowledged */
	uint64_t came;     /* ns: when */
	uint64_t received_bytes, received_packets;
};

struct wanted { /* the peer has asked for one that is not here */
	struct list node;
	uint64_t size;
	uint32_t tag, how, slot, span_sum;
};

struct mirrors { /* of an endpoint */
	struct attachment *slots[MIRRORS_MAX];
	struct list wanted;
	uint32_t wanted_count;
	uint32_t pending; /* attachments with something to send */
	uint32_t turn;    /* who is the first to send */
	uint32_t top;     /* no slot from here on has ever been used */
};

extern struct handle_table mirror_table;

static inline struct mirror *mirror_get(slmpm_mirror handle)
{
	return handle_get_sized(&mirror_table, handle.id, sizeof(struct mirror));
}
/* With the context locked; NULL: nothing is locked, the detail is set and *RC. */
static inline struct mirror *mirror_lock(slmpm_mirror handle, int *rc)
{
	return (struct mirror *)context_lock_object(&mirror_table, handle.id, rc);
}
/* The attachment to PEER, or with {0} to the leader; NULL. */
struct attachment *mirror_find(const struct mirror *m, slmpm_peer peer);
int mirror_not_attached(const char *call);
/* Where AT lies in it, if LEN bytes there do; UINT64_MAX. */
static inline uint64_t mirror_offset(const struct mirror *m, const void *at, uint64_t len)
{
	uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)m->base);

	return offset <= m->size && len <= m->size - offset ? offset : UINT64_MAX;
}
/* All of LO to before HI belongs to it. */
bool mirror_covers(const struct mirror *m, uint64_t lo, uint64_t hi);
/* Of *LO to before *HI that which lies in span I; false: nothing does. */
static inline bool mirror_clip(const struct mirror *m, uint32_t i, uint64_t *lo, uint64_t *hi)
{
	uint64_t from = m->spans[i].offset, to = from + m->spans[i].len;

	*lo = from < *lo ? *lo : from;
	*hi = to > *hi ? *hi : to;
	return *lo < *hi;
}

/* ---- attachments ---------------------------------------------------------------------------- */

/* May it send what changes here? */
static inline bool attachment_sends(const struct attachment *a)
{
	return a->state == ATTACHMENT_JOINED && (a->how & SLMPM_MIRROR_LEAD || a->both);
}
/* Has it deferred acknowledging the follower's changes, where no change does so? */
static inline bool attachment_has_deferred(const struct attachment *a)
{
	return a->how & SLMPM_MIRROR_LEAD && a->unechoed >= MIRROR_ECHO;
}
/* It has, or has no more, something to send. */
static inline void attachment_pend(struct attachment *a, bool pending)
{
	struct endpoint *ep = a->ep;

	if (a->pending == pending)
		return;
	a->pending = pending;
	if (pending) {
		a->all->pending++;
		endpoint_block(ep, BLOCK_MIRRORS, true);
	} else {
		endpoint_block(ep, BLOCK_MIRRORS, --a->all->pending);
	}
}
/* Bytes of a packet of changes, at most. */
static inline uint32_t attachment_room(const struct attachment *a)
{
	uint32_t most = a->ep->packet_max;

	return (most < MIRROR_PACKET ? most : MIRROR_PACKET) & ~7U;
}
/* Can a follower remember what another packet brings? */
static inline bool attachment_may_fly(struct attachment *a)
{
	return !a->intervals.runs || intervals_have_room(&a->intervals, MIRROR_LIST / 16);
}
/* A packet of changes has gone out. */
static inline void attachment_posted(struct attachment *a)
{
	a->ep->link.run = 0;
	a->unechoed = 0;
	a->numbered++;
	a->sent_packets++;
}
/* From LO to before HI went in it. */
static inline void attachment_fly(struct attachment *a, uint64_t lo, uint64_t hi)
{
	if (a->intervals.runs)
		intervals_add(&a->intervals, lo, hi, a->numbered);
}
/* The peer's word on it ends, for ERROR: it stays with the mirror. */
void attachment_stale(struct attachment *a, int error);
/* Leaves the mirror, and the endpoint as soon as that has answered. */
void attachment_leave(struct attachment *a);

/* Asked for; mirrors_of(EP) is there, and has room. NULL: no memory. */
struct attachment *attachment_new(struct mirror *m, struct endpoint *ep, uint32_t tag,
				  uint32_t how);
/* A change of it has been lost on the way: the mirror is notified, the peer is left. */
void attachment_lose(struct attachment *a);
/* What has been asked for here and what the peer asks for are one, if they fit. */
void attachment_join(struct attachment *a, struct wanted *w);
/* NULL: none. */
struct attachment *attachment_with_tag(const struct mirrors *all, uint32_t tag);
struct wanted *wanted_with(const struct mirrors *all, uint32_t tag);
void wanted_free(struct mirrors *all, struct wanted *w);
/* Made when first needed; NULL: no memory. */
struct mirrors *mirrors_of(struct endpoint *ep);
/* The one of TAG is left, or the peer's leaving is answered. */
void mirror_send_end(struct endpoint *ep, uint32_t tag, bool answer);

/* ---- changes -------------------------------------------------------------------------------- */

/* One to A, of what lies in its mirror's spans. */
static inline void mirror_note_for(struct attachment *a, uint64_t lo, uint64_t hi)
{
	dirty_add(&a->dirty, lo, hi);
	if (!a->pending && !a->mirror->group)
		attachment_pend(a, true);
}
/* To be sent to all peers but FROM (or NULL). */
void mirror_note(struct mirror *m, uint64_t lo, uint64_t hi, const struct attachment *from);
static inline bool mirror_is_word(uint64_t offset, uint64_t n)
{
	return n == sizeof(uint64_t) && !(offset & (n - 1));
}
typedef uint64_t mirror_word __attribute__((may_alias));
/* As in mirror_store: at a multiple of 8. */
static inline void mirror_store_word(void *to, const void *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	__atomic_store_n((mirror_word *)to, word, __ATOMIC_RELAXED);
}
/* Words are stored as such, at once; N bytes. */
void mirror_store(void *to, const void *from, uint64_t n);
void mirror_load(void *to, const void *from, uint64_t n);

/* ---- for the endpoint ----------------------------------------------------------------------- */

static inline bool mirror_waits(const struct endpoint *ep)
{
	return ep->rooms->mirrors && ep->rooms->mirrors->pending;
}
/* Is there something now? Who is tracked waits for what may yet be found. */
bool mirror_has_deferred(const struct endpoint *ep);
/* So that it is found before the end. */
void mirror_scan_last(struct endpoint *ep);
/* ns, coarsely. */
uint64_t mirror_now(void);
/* As far as there is room: packets posted. */
int mirror_push(struct endpoint *ep);
void mirror_arrived(struct endpoint *ep, const struct head *h);
static inline bool mirror_is_change(uint8_t kind)
{
	return kind >= WIRE_MIRROR_PART && kind <= WIRE_MIRROR_LIST_LAST;
}
/* A, which is a change, if nothing about it is rare: taken and released. CAME: mirror_now of
 * just before; or 0. */
bool mirror_take_shortly(struct endpoint *ep, const struct fabric_arrival *a, uint64_t came);
/* It ends, and its handle does. */
void mirror_end(struct endpoint *ep);
void mirror_shut(struct context *ctx);
/* It has several threads now: a change goes the fast path no more. */
void mirror_close_shortcuts(struct context *ctx);
/* In a child: closes what would keep the parent's memory watched. */
void mirror_forked(struct context *ctx);
/* N bytes at AT have been written by the module itself. */
void mirror_landed(struct context *ctx, const void *at, uint64_t n);
/* R ends: so has what it brought into memory, perhaps a part of it. */
void mirror_finished(struct request *r);
/* Does one lie there? */
bool mirror_lies(const struct context *ctx, const void *at, uint64_t n);

/* ---- between mirror*.c ---------------------------------------------------------------------- */

/* Nothing of a publication of A's is here in part any more. */
void mirror_close(struct attachment *a);
/* The leader has stored so many. False: that cannot be. */
bool mirror_echoed(struct attachment *a, uint32_t stored);

/* ---- who waits for a publication, or for a snapshot (read.c) -------------------------------- */

/* Takes the snapshots that can be taken just now: a publication is here as a whole. */
void read_serve(struct mirror *m);
/* The mirror ends. */
void read_end(struct mirror *m);

#endif
