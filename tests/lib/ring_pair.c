/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of one ring, laid out by hand. */
#include "tests/lib/ring_pair.h"

#include <string.h>

#include "tests/lib/test.h"

#define GAP_BYTE 0xa5

static void *zeroed(size_t size)
{
	void *p = aligned_alloc(128, (size + 127) / 128 * 128);

	CHECK(p, "out of memory");
	return memset(p, 0, size);
}

struct ring_words *ring_words_of(void *object)
{
	return object;
}

void ring_lay_writer(struct ring_writer *w, struct ring_setup setup, void *peer, void *own)
{
	setup.segments = (unsigned char *)peer + RING_SEGMENTS_OFFSET;
	setup.out = &ring_words_of(peer)->produced;
	setup.in = &ring_words_of(own)->consumed;
	atomic_store(&ring_words_of(own)->consumed, LITTLE_64(setup.start));
	ring_writer_init(w, &setup);
}

void ring_lay_reader(struct ring_reader *r, struct ring_setup setup, void *own, void *peer)
{
	setup.segments = (unsigned char *)own + RING_SEGMENTS_OFFSET;
	setup.out = &ring_words_of(peer)->consumed;
	setup.in = &ring_words_of(own)->produced;
	atomic_store(&ring_words_of(own)->produced, LITTLE_64(setup.start));
	ring_reader_init(r, &setup);
}

void ring_pair_open(struct ring_pair *p, const struct ring_setup *setup)
{
	struct ring_setup side = *setup;

	CHECK(ring_shape_check(&setup->shape) == 0, "shape refused");
	*p = (struct ring_pair){
		.shape = setup->shape,
		.inbound = zeroed(ring_size(&setup->shape)),
		.back = zeroed(sizeof(struct ring_words)),
		.stale = calloc(1, ring_bits_size(&setup->shape)),
		.done = calloc(1, ring_bits_size(&setup->shape)),
	};
	memset(p->inbound + sizeof(struct ring_words), GAP_BYTE,
	       RING_SEGMENTS_OFFSET - sizeof(struct ring_words));
	side.bits = p->stale;
	ring_lay_writer(&p->w, side, p->inbound, p->back);
	side.bits = p->done;
	ring_lay_reader(&p->r, side, p->inbound, p->back);
}

void ring_pair_close(struct ring_pair *p)
{
	for (size_t i = sizeof(struct ring_words); i < RING_SEGMENTS_OFFSET; i++)
		CHECK(p->inbound[i] == GAP_BYTE, "byte %zu in front of the segments written", i);
	free(p->inbound);
	free(p->back);
	free(p->stale);
	free(p->done);
}

void ring_fill(void *data, uint64_t seed, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		((unsigned char *)data)[i] = ring_pattern(seed, i);
}

bool ring_filled(const void *data, uint64_t seed, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (((const unsigned char *)data)[i] != ring_pattern(seed, i))
			return false;
	return true;
}

bool ring_put(struct ring_writer *w, uint64_t seed, uint32_t bytes)
{
	void *data = ring_reserve(w, bytes);

	if (!data)
		return false;
	ring_fill(data, seed, bytes);
	ring_commit(w, bytes, (uint8_t)(seed % 255 + 1));
	return true;
}

void ring_expect(struct ring_reader *r, struct ring_packet *p, uint64_t seed, uint32_t bytes)
{
	int rc = ring_peek(r, p);

	CHECK(rc == 1, "peek gave %d (violation %d) where packet %llu was due", rc, r->violation,
	      (unsigned long long)seed);
	CHECK(p->length == bytes, "%u bytes instead of %u", p->length, bytes);
	CHECK(p->kind == seed % 255 + 1, "kind %u of another packet", p->kind);
	CHECK(ring_filled(p->data, seed, bytes), "packet %llu came torn", (unsigned long long)seed);
}

void ring_take(struct ring_reader *r, uint64_t seed, uint32_t bytes)
{
	struct ring_packet p;

	ring_expect(r, &p, seed, bytes);
	ring_release(r, &p);
}

void ring_expect_none(struct ring_reader *r)
{
	struct ring_packet none;
	int rc = ring_peek(r, &none);

	CHECK(rc == 0 && r->violation == RING_SOUND, "peek gave %d (violation %d) at the end", rc,
	      r->violation);
}

uint64_t ring_word(uint64_t total, uint32_t epoch, uint32_t length, uint8_t kind)
{
	return (uint64_t)kind << 54 | (uint64_t)length << 32 | ring_tag(total, epoch);
}

void ring_forge(const struct ring_writer *w, void *data, uint32_t bytes, uint32_t laps)
{
	const uint32_t size = 1u << w->shift;
	uint64_t total = w->produced + 1 + laps * (w->mask + 1);

	for (uint32_t at = size - RING_WORD, i = 1; at + 8 <= bytes; at += size, i++) {
		uint64_t word = LITTLE_64(ring_word(total + i, w->epoch, 3, 9));

		memcpy((unsigned char *)data + at, &word, sizeof(word));
	}
}

_Atomic uint64_t *ring_first_word(void *segments, const struct ring_shape *shape, uint64_t at)
{
	return (_Atomic uint64_t *)(void *)((unsigned char *)segments +
					    (size_t)at * shape->segment_size);
}
