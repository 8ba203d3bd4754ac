/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of one ring in one process, and packets whose every byte can be checked. */
#ifndef TESTS_LIB_RING_PAIR_H
#define TESTS_LIB_RING_PAIR_H

#include "shm/ring.h"

struct ring_pair {
	struct ring_shape shape;
	unsigned char *inbound; /* the reader's object: words, then segments */
	unsigned char *back;    /* the writer's: of its words only `consumed` matters */
	uint64_t *stale;
	uint64_t *done;
	struct ring_writer w;
	struct ring_reader r;
};

/*
 * Of SETUP these count: shape, epoch, start, threshold, batch. Memory comes from the heap in
 * exact sizes, so that AddressSanitizer sees one byte too many.
 */
void ring_pair_open(struct ring_pair *p, const struct ring_setup *setup);
/* Also checks that nothing was written between the words and the segments. */
void ring_pair_close(struct ring_pair *p);

/*
 * The same over memory of one's own: PEER and OWN are objects as this side maps them (words at 0,
 * segments at RING_SEGMENTS_OFFSET), SETUP->bits zeroed private memory.
 */
void ring_lay_writer(struct ring_writer *w, struct ring_setup setup, void *peer, void *own);
void ring_lay_reader(struct ring_reader *r, struct ring_setup setup, void *own, void *peer);
/* What arrives in OBJECT, for looking at it and for planting nonsense. */
struct ring_words *ring_words_of(void *object);

/* Byte I of a packet with this SEED. */
static inline unsigned char ring_pattern(uint64_t seed, uint32_t i)
{
	return (unsigned char)((seed + i) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* Fills BYTES at DATA from SEED; false when they are not that on looking. */
void ring_fill(void *data, uint64_t seed, uint32_t bytes);
bool ring_filled(const void *data, uint64_t seed, uint32_t bytes);

/* Sends BYTES of SEED; false when there is no room. */
bool ring_put(struct ring_writer *w, uint64_t seed, uint32_t bytes);
/* The next packet must be BYTES of SEED; it is kept in P, not released. */
void ring_expect(struct ring_reader *r, struct ring_packet *p, uint64_t seed, uint32_t bytes);
/* The same, released. */
void ring_take(struct ring_reader *r, uint64_t seed, uint32_t bytes);
/* There is no next one, and nothing wrong. */
void ring_expect_none(struct ring_reader *r);

/* Bytes of the longest packet of K segments. */
static inline uint32_t ring_bytes_of(const struct ring_shape *shape, uint32_t k)
{
	return k * shape->segment_size - RING_WORD;
}

/* The word a sound writer would store for such a packet. */
uint64_t ring_word(uint64_t total, uint32_t epoch, uint32_t length, uint8_t kind);
/* Fills the reservation's BYTES with words that each would look committed where they lie: now, or
 * when the reader comes by LAPS later. */
void ring_forge(const struct ring_writer *w, void *data, uint32_t bytes, uint32_t laps);
/* The first word of the segment at index AT, as the peer sees it. */
_Atomic uint64_t *ring_first_word(void *segments, const struct ring_shape *shape, uint64_t at);

#endif
