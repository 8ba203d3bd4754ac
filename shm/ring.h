/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segmented ring: one writer, one reader, in memory that the reader owns and the writer only
 * stores into. Neither side ever loads from the other's memory.
 *
 * The j-th segment written (from 1) lies at j mod N. A packet is k consecutive segments and never
 * wraps; its first word, the commit word, is stored last with release order:
 *
 *     bit 63   62   61..54  53..32   31..0
 *         PAD  0    kind    length   tag = total of the first segment ^ epoch
 *
 * The reader accepts exactly three values there: open (0), the tag of one lap ago, the new tag.
 * So that an interior segment's old payload can never be mistaken for one, the writer remembers
 * which first words hold payload (`stale`) and clears the next packet's before it commits.
 *
 * Totals are 64-bit, free-running and compared by difference only. The private structures below
 * never leave their process; the peer can write nothing in them.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "shm/bits.h"
#include "shm/order.h"

#define RING_PAD         (UINT64_C(1) << 63)
#define RING_LENGTH_BITS 22
#define RING_LENGTH_MAX  ((UINT32_C(1) << RING_LENGTH_BITS) - 1)
#define RING_WORD        8 /* bytes of the commit word */

/* The shared words in front of the segments, each on lines of its own; all written by the peer. */
struct ring_words {
	_Alignas(128) _Atomic uint64_t produced; /* of this ring: its writer's total */
	_Alignas(128) _Atomic uint64_t consumed; /* of the ring the other way: its reader's total */
	_Alignas(128) _Atomic uint64_t asleep;   /* odd while the peer sleeps (doorbell.h) */
};
_Static_assert(sizeof(struct ring_words) == 384, "shared layout");
#define RING_SEGMENTS_OFFSET 4096 /* of the first segment from the words */

struct ring_shape {
	uint32_t segments;     /* N: a power of two from 2 */
	uint32_t segment_size; /* bytes: a power of two from 64 */
};

/* Why a total was published; the counters show what laziness saves. */
enum ring_cause {
	RING_THRESHOLD, /* the unread share as the writer sees it reached the threshold */
	RING_SLEEP,     /* likewise, but without a batch: before sleeping */
	RING_FLUSH,     /* close, or the caller wants the figure out now */
	RING_EVERY,     /* selected: after every read */
	RING_CAUSES
};

/* What the peer did wrong; the channel is poisoned, the process goes on. */
enum ring_violation {
	RING_SOUND,
	RING_BAD_TAG,      /* a commit word that is neither open, old nor new */
	RING_BAD_LENGTH,   /* a packet that wraps, is too long or overruns what is held; bit 62 */
	RING_BAD_PRODUCED, /* the published total went back or beyond the ring */
	RING_BAD_CONSUMED, /* more read than was written, or less than before */
	RING_VIOLATIONS
};

struct ring_writer {
	unsigned char *segments; /* the peer's memory: stores only */
	uint64_t mask;           /* N - 1 */
	uint64_t produced;       /* J */
	uint64_t consumed;       /* shadow of the peer's K, less what is held back */
	uint64_t *stale;         /* a bit a segment: its first word holds payload */
	uint32_t shift;          /* log2 of the segment size */
	uint32_t epoch;
	uint32_t reserved;  /* segments reserved and not yet committed */
	uint32_t max;       /* segments of the longest packet */
	uint32_t lag;       /* publish `produced` at least every so many segments */
	uint32_t held_back; /* segments that ring_reserve leaves free */
	enum ring_violation violation;
	uint64_t announced;                  /* `produced` as last published */
	_Atomic uint64_t *produced_out;      /* where it is published: the peer's memory */
	const _Atomic uint64_t *consumed_in; /* where K arrives: own memory */
	uint64_t writes;                     /* remote stores: packets, pads, published totals */
	uint64_t publications;
};

struct ring_reader {
	const unsigned char *segments; /* own memory, written by the peer */
	uint64_t mask;
	uint64_t read;     /* total taken by ring_peek */
	uint64_t consumed; /* K: the released prefix of it */
	uint32_t shift;
	uint32_t epoch;
	uint32_t max;
	uint32_t batch;     /* publish K in pieces of at least so many segments ... */
	uint32_t threshold; /* ... once J - K published reaches this; 0: after every read */
	enum ring_violation violation;
	uint64_t published; /* K as last published */
	uint32_t gaps;      /* segments released out of order, before the prefix reached them */
	uint64_t *done;     /* a bit a segment for those */
	uint64_t produced;  /* shadow of the peer's J, as last looked at */
	_Atomic uint64_t *consumed_out;      /* where K is published: the peer's memory */
	const _Atomic uint64_t *produced_in; /* where J arrives: own memory */
	uint64_t writes;
	uint64_t publications[RING_CAUSES];
};

/* A packet as ring_peek hands it out; valid until released. The bytes are the peer's to change. */
struct ring_packet {
	const unsigned char *data; /* behind the commit word */
	uint64_t total;            /* of its first segment: names it in ring_release */
	uint32_t length;           /* bytes of data */
	uint32_t segments;
	uint8_t kind;
};

/* What one side of a connection needs to set a writer or a reader up. */
struct ring_setup {
	struct ring_shape shape;
	uint32_t epoch; /* the connection's, so that no other connection's page looks committed */
	uint64_t start; /* both totals begin here: 0, but for tests of the wrap-around */
	void *segments; /* the segments' first byte */
	uint64_t *bits; /* ring_bits_size(shape) zeroed bytes of private memory */
	_Atomic uint64_t *out;      /* own total is published here: the peer's memory */
	const _Atomic uint64_t *in; /* the peer's total arrives here: own memory */
	uint32_t threshold;         /* reader: publish K at so many unread; 0 after every read */
	uint32_t batch;             /* reader: but at least so many at once */
};

/* 0, or -EINVAL when the shape is not allowed. */
int ring_shape_check(const struct ring_shape *shape);
/* Bytes of shared memory: the words and the segments. */
size_t ring_size(const struct ring_shape *shape);
size_t ring_bits_size(const struct ring_shape *shape);
/* Segments of the longest packet: N/4, and N/2 for N <= 4. */
uint32_t ring_packet_max(const struct ring_shape *shape);

void ring_writer_init(struct ring_writer *w, const struct ring_setup *setup);
void ring_reader_init(struct ring_reader *r, const struct ring_setup *setup);

void ring_publish_produced(struct ring_writer *w);
void ring_publish_consumed(struct ring_reader *r, enum ring_cause cause);
/* Before the reader sleeps: a writer that waits for room, or soon does, must find K. */
void ring_settle(struct ring_reader *r);
/* J - K by the reader's account, with the published total looked at: for the monitor. */
uint64_t ring_unread(struct ring_reader *r);
/* N - unread by the writer's account, with the peer's total looked at; what is held back is
 * room. */
uint64_t ring_room(struct ring_writer *w);
/*
 * From now on ring_reserve leaves N segments free. Where a packet found room under it, one of a
 * segment does so whenever N has been lowered by one since: it never needs a pad.
 */
void ring_hold_back(struct ring_writer *w, uint32_t n);

/* Cold halves of the inline functions below. */
bool ring_make_room(struct ring_writer *w, uint32_t k);
void ring_mark_stale(struct ring_writer *w, uint64_t from, uint32_t count);
void ring_clear(struct ring_writer *w, uint64_t at);
void ring_clear_ahead(struct ring_writer *w, uint32_t k);
bool ring_bad_tag(struct ring_reader *r);
#define RING_PADDED 2
int ring_unusual(struct ring_reader *r, uint64_t word, uint32_t k);
void ring_release_gap(struct ring_reader *r, const struct ring_packet *p);
void ring_consider(struct ring_reader *r);

static inline uint64_t ring_at(uint64_t total, uint64_t mask)
{
	return total & mask;
}

static inline uint32_t ring_tag(uint64_t total, uint32_t epoch)
{
	return (uint32_t)total ^ epoch;
}

/* Segments of a packet with so many bytes behind its commit word. */
static inline uint32_t ring_span(uint32_t bytes, uint32_t shift)
{
	/* Of 64 bits: near 2^32 the sum would come out small, and the packet look short. */
	return (uint32_t)(((uint64_t)bytes + RING_WORD + (1u << shift) - 1) >> shift);
}

/*
 * Room for a packet of BYTES behind the commit word; returns where they go, or NULL when there is
 * none yet (or BYTES is over the longest packet). Write-only memory of the peer. A second reserve
 * before the commit replaces the first.
 */
static inline void *ring_reserve(struct ring_writer *w, uint32_t bytes)
{
	uint32_t k = ring_span(bytes, w->shift);
	uint64_t at = ring_at(w->produced + 1, w->mask);

	if (UNLIKELY(at + k > w->mask + 1 || k > w->max ||
		     w->produced + k - w->consumed > w->mask + 1)) {
		if (!ring_make_room(w, k))
			return NULL;
		at = ring_at(w->produced + 1, w->mask);
	}
	/* Else what a longer one before it scribbled is forgotten. */
	if (k > w->reserved || !ORDER_RULE(mark_replaced))
		w->reserved = k;
	return w->segments + (at << w->shift) + RING_WORD;
}

/* Short packets mark within one word of bits; the call is for the rest. */
static inline void ring_mark_interior(struct ring_writer *w, uint64_t from, uint32_t count)
{
	if (UNLIKELY(!bits_set_in_word(w->stale, from, count)))
		ring_mark_stale(w, from, count);
}

/*
 * Publishes the reserved packet, shortened to BYTES if one likes, with KIND (not 0). The reader may
 * have it from here on, whatever happens to this process.
 */
static inline void ring_commit(struct ring_writer *w, uint32_t bytes, uint8_t kind)
{
	uint64_t total = w->produced + 1;
	uint64_t at = ring_at(total, w->mask);
	uint32_t k = ring_span(bytes, w->shift);
	uint64_t next = ring_at(total + k, w->mask);
	uint64_t word = (uint64_t)kind << 54 | (uint64_t)bytes << 32 | ring_tag(total, w->epoch);
	bool stale;

	if (w->reserved > 1 && ORDER_RULE(mark_interior))
		ring_mark_interior(w, at + 1, w->reserved - 1);
	stale = bit_is_set(w->stale, next) && ORDER_RULE(clear_successor);
	/* Ordered before the commit word by its release. */
	if (UNLIKELY(stale))
		ring_clear(w, next);
	/* Pairs with the acquire in ring_peek: the payload and the cleared successor come first. */
	ORDER_STORE(commit, (_Atomic uint64_t *)(void *)(w->segments + (at << w->shift)),
		    LITTLE_64(word), memory_order_release);
	w->reserved = 0;
	w->produced += k;
	w->writes++;
	if (UNLIKELY(stale))
		ring_clear_ahead(w, k);
	if (UNLIKELY(w->produced - w->announced >= w->lag) && ORDER_RULE(lag))
		ring_publish_produced(w);
}

/* Gives a reservation back; what was scribbled into it can never look committed. */
static inline void ring_abort(struct ring_writer *w)
{
	if (w->reserved > 1 && ORDER_RULE(mark_aborted))
		ring_mark_interior(w, ring_at(w->produced + 1, w->mask) + 1, w->reserved - 1);
	w->reserved = 0;
}

/* R4: WORD is not the new tag: is it open, or one lap old, so that the new one may still come? */
static inline bool ring_awaits(const struct ring_reader *r, uint64_t word)
{
	return !PEER_FAULT(word != 0 && (uint32_t)word != ring_tag(r->read - r->mask, r->epoch));
}

/*
 * The next packet: 1 and *P filled, 0 when there is none yet, -EPROTO when the peer's words are
 * impossible (r->violation says how). Packets may be held and released in any order.
 */
static inline int ring_peek(struct ring_reader *r, struct ring_packet *p)
{
	for (;;) {
		uint64_t total = r->read + 1;
		uint64_t at = ring_at(total, r->mask);
		const unsigned char *first = r->segments + (at << r->shift);
		/* Pairs with the release in ring_commit. */
		uint64_t word = LITTLE_64(ORDER_LOAD(
			peek, (const _Atomic uint64_t *)(const void *)first, memory_order_acquire));
		uint32_t length, k;

		/* Who waits comes by here again and again: before anything else is computed. */
		if ((uint32_t)word != ring_tag(total, r->epoch))
			return UNLIKELY(!ring_awaits(r, word)) && ring_bad_tag(r) ? -EPROTO : 0;
		length = (uint32_t)(word >> 32) & RING_LENGTH_MAX;
		k = ring_span(length, r->shift);
		/* A flag, or no kind: an open word looks new where the new tag is 0. */
		if (UNLIKELY((word >> 54) - 1 > 254 ||
			     PEER_FAULT(at + k > r->mask + 1 || k > r->max ||
					r->read + k - r->consumed > r->mask + 1))) {
			int rc = ring_unusual(r, word, k);
			if (rc < 0)
				return -EPROTO;
			if (rc == 0)
				return 0;
			if (rc == RING_PADDED)
				continue;
		}
		p->data = first + RING_WORD;
		p->total = total;
		p->length = length;
		p->segments = k;
		p->kind = (uint8_t)(word >> 54);
		r->read += k;
		return 1;
	}
}

/* The commit word of the next packet, which is *NOTHING until that comes; NULL: it has come. A word
 * that differs says that ring_peek is worth while, and no more: it is read by no rule. */
static inline const _Atomic uint64_t *ring_awaited(const struct ring_reader *r, uint64_t *nothing)
{
	uint64_t total = r->read + 1;
	const unsigned char *first = r->segments + (ring_at(total, r->mask) << r->shift);
	const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)first;

	*nothing = atomic_load_explicit(word, memory_order_relaxed);
	return (uint32_t)LITTLE_64(*nothing) == ring_tag(total, r->epoch) ? NULL : word;
}

/* Gives the packet's segments back to the writer, who learns of it when K is published. */
static inline void ring_release(struct ring_reader *r, const struct ring_packet *p)
{
	if (LIKELY(p->total == r->consumed + 1 && !r->gaps) || !ORDER_RULE(gap))
		r->consumed += p->segments;
	else
		ring_release_gap(r, p);
	if (UNLIKELY(r->consumed - r->published >= r->batch) && ORDER_RULE(consider))
		ring_consider(r);
}

#endif
