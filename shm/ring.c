/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring's set-up and the rare halves of ring.h: room, pads, publication, violations. */
#include "shm/ring.h"

#include <errno.h>

#define RING_SEGMENTS_MAX     (UINT32_C(1) << 24)
#define RING_SEGMENT_SIZE_MAX (UINT32_C(1) << 20)
#define RING_BYTES_MAX        (UINT64_C(1) << 32)

static bool power_of_two(uint32_t x)
{
	return x && !(x & (x - 1));
}

int ring_shape_check(const struct ring_shape *shape)
{
	if (!power_of_two(shape->segments) || shape->segments < 2 ||
	    shape->segments > RING_SEGMENTS_MAX || !power_of_two(shape->segment_size) ||
	    shape->segment_size < 64 || shape->segment_size > RING_SEGMENT_SIZE_MAX ||
	    (uint64_t)shape->segments * shape->segment_size > RING_BYTES_MAX)
		return -EINVAL;
	return 0;
}

size_t ring_size(const struct ring_shape *shape)
{
	return RING_SEGMENTS_OFFSET + (size_t)shape->segments * shape->segment_size;
}

size_t ring_bits_size(const struct ring_shape *shape)
{
	return ((size_t)shape->segments + 63) / 64 * sizeof(uint64_t);
}

uint32_t ring_packet_max(const struct ring_shape *shape)
{
	uint32_t k = shape->segments <= 4 ? shape->segments / 2 : shape->segments / 4;
	uint32_t limit = (RING_LENGTH_MAX - RING_WORD) / shape->segment_size;

	if (k > limit)
		k = limit;
	return k ? k : 1;
}

static uint32_t at_least_one(uint32_t x)
{
	return x ? x : 1;
}

void ring_writer_init(struct ring_writer *w, const struct ring_setup *s)
{
	*w = (struct ring_writer){
		.segments = s->segments,
		.mask = s->shape.segments - 1,
		.produced = s->start,
		.consumed = s->start,
		.announced = s->start,
		.stale = s->bits,
		.shift = (uint32_t)__builtin_ctz(s->shape.segment_size),
		.epoch = s->epoch,
		.max = ring_packet_max(&s->shape),
		.lag = at_least_one(s->shape.segments / 16),
		.produced_out = s->out,
		.consumed_in = s->in,
	};
}

void ring_reader_init(struct ring_reader *r, const struct ring_setup *s)
{
	uint32_t max = ring_packet_max(&s->shape);
	/* A writer that waits for a packet's room must always find K published (doc/wire.md). */
	uint32_t live = s->shape.segments - max + 1;

	*r = (struct ring_reader){
		.segments = s->segments,
		.mask = s->shape.segments - 1,
		.read = s->start,
		.consumed = s->start,
		.published = s->start,
		.produced = s->start,
		.shift = (uint32_t)__builtin_ctz(s->shape.segment_size),
		.epoch = s->epoch,
		.max = max,
		.batch = s->batch < live || !ORDER_RULE(live_batch) ? at_least_one(s->batch) : live,
		.threshold =
			s->threshold < live || !ORDER_RULE(live_threshold) ? s->threshold : live,
		.done = s->bits,
		.consumed_out = s->out,
		.produced_in = s->in,
	};
	if (!r->threshold)
		r->batch = 1;
}

COLD void ring_publish_produced(struct ring_writer *w)
{
	if (w->announced == w->produced)
		return;
	w->announced = w->produced;
	/* Pairs with the acquire in inspect_produced: the packets it counts come first. */
	ORDER_STORE(produced, w->produced_out, LITTLE_64(w->produced), memory_order_release);
	w->writes++;
	w->publications++;
}

COLD void ring_publish_consumed(struct ring_reader *r, enum ring_cause cause)
{
	if (r->published == r->consumed)
		return;
	r->published = r->consumed;
	/* Pairs with the acquire in inspect_consumed: all reading of those segments is over. */
	ORDER_STORE(consumed, r->consumed_out, LITTLE_64(r->consumed), memory_order_release);
	r->writes++;
	r->publications[cause]++;
}

/* The peer's K, checked: it may only go forward, and not beyond what was written (R3). */
static bool inspect_consumed(struct ring_writer *w)
{
	/* Pairs with the release in ring_publish_consumed: overwriting comes after its reading. */
	uint64_t k = LITTLE_64(ORDER_LOAD(consumed_in, w->consumed_in, memory_order_acquire));

	uint64_t known = w->consumed + w->held_back;

	if (PEER_FAULT(k - known > w->produced - known) && ORDER_RULE(check_consumed)) {
		w->violation = RING_BAD_CONSUMED;
		return false;
	}
	w->consumed = k - w->held_back;
	return true;
}

/* The peer's J, checked: never back, never beyond the ring (R2). */
static bool inspect_produced(struct ring_reader *r)
{
	/* Pairs with the release in ring_publish_produced. */
	uint64_t j = LITTLE_64(ORDER_LOAD(produced_in, r->produced_in, memory_order_acquire));

	if (PEER_FAULT(j - r->produced > r->mask + 1 + (r->read - r->produced) ||
		       (int64_t)(j - r->consumed) > (int64_t)(r->mask + 1)) &&
	    ORDER_RULE(check_produced)) {
		r->violation = RING_BAD_PRODUCED;
		return false;
	}
	r->produced = j;
	return true;
}

static bool ring_has_room(const struct ring_writer *w, uint32_t k)
{
	return w->produced + k - w->consumed <= w->mask + 1 || !ORDER_RULE(room);
}

/* The segments up to the end as a packet of their own, so that the next one starts at 0. */
static void put_pad(struct ring_writer *w, uint32_t k)
{
	uint64_t total = w->produced + 1;
	uint64_t at = ring_at(total, w->mask);
	uint64_t word = RING_PAD | ring_tag(total, w->epoch);

	if (k > 1 && ORDER_RULE(mark_pad))
		ring_mark_stale(w, at + 1, k - 1);
	/* The successor, segment 0, begins a packet in every lap: it needs no clearing. */
	ORDER_STORE(pad, (_Atomic uint64_t *)(void *)(w->segments + (at << w->shift)),
		    LITTLE_64(word), memory_order_relaxed); /* nothing is read behind it */
	w->reserved = 0; /* a reservation before this one lay within the pad */
	w->produced += k;
	w->writes++;
}

/*
 * Room for K segments in one piece, if the peer has made it. The pad goes out as soon as it fits,
 * before the packet behind it does: the reader can so give its segments back meanwhile.
 */
COLD bool ring_make_room(struct ring_writer *w, uint32_t k)
{
	uint64_t at = ring_at(w->produced + 1, w->mask);

	if (k > w->max || w->violation)
		return false;
	if (at + k > w->mask + 1 && ORDER_RULE(wrap)) {
		uint32_t rest = (uint32_t)(w->mask + 1 - at);

		if (!ring_has_room(w, rest) && (!inspect_consumed(w) || !ring_has_room(w, rest)) &&
		    ORDER_RULE(pad_room))
			return false;
		put_pad(w, rest);
	}
	if (ring_has_room(w, k))
		return true;
	return inspect_consumed(w) && ring_has_room(w, k);
}

/* COUNT segments from index FROM, which do not wrap. */
void ring_mark_stale(struct ring_writer *w, uint64_t from, uint32_t count)
{
	bits_set(w->stale, from, count);
}

/* What begins at AT looks open. */
HOT void ring_clear(struct ring_writer *w, uint64_t at)
{
	bit_clear(w->stale, at);
	ORDER_STORE(clear, (_Atomic uint64_t *)(void *)(w->segments + (at << w->shift)), 0,
		    memory_order_relaxed);
}

#define CLEARED 16 /* segments */

/*
 * The packet just written had to clear its successor before its commit; those to come would each
 * wait so for a line that the reader has. Where packets of K segments begin within the next 16 or
 * so, one place at least.
 */
HOT void ring_clear_ahead(struct ring_writer *w, uint32_t k)
{
	uint64_t first = w->produced + 1, total = first;

	do {
		total += k;
		/* What the reader has not given back is not ours, even stale: of a packet's interior. */
		if (total - w->consumed > w->mask + 1 && ORDER_RULE(ahead_room))
			return;
		if (bit_is_set(w->stale, ring_at(total, w->mask)))
			ring_clear(w, ring_at(total, w->mask));
	} while (total - first < CLEARED);
}

COLD bool ring_bad_tag(struct ring_reader *r)
{
	if (!ORDER_RULE(check_tag))
		return false;
	r->violation = RING_BAD_TAG;
	return true;
}

/* A new tag with a flag, no kind or an odd length: 0 open, 1 a packet, RING_PADDED, or -EPROTO. */
COLD int ring_unusual(struct ring_reader *r, uint64_t word, uint32_t k)
{
	uint64_t at = ring_at(r->read + 1, r->mask);

	if (word & RING_PAD) {
		struct ring_packet pad = {
			.total = r->read + 1,
			.segments = (uint32_t)(r->mask + 1 - at),
		};
		if (PEER_FAULT(at == 0 || word << 1 >> 33 ||
			       r->read + pad.segments - r->consumed > r->mask + 1) &&
		    ORDER_RULE(check_pad)) {
			r->violation = RING_BAD_LENGTH;
			return -EPROTO;
		}
		r->read += pad.segments;
		ring_release(r, &pad);
		return RING_PADDED;
	}
	if (!(word >> 54 & 0xff) && ORDER_RULE(open_tag)) {
		if (word == 0)
			return 0;
		r->violation = RING_BAD_TAG;
		return -EPROTO;
	}
	if (PEER_FAULT(word >> 62 || at + k > r->mask + 1 || k > r->max ||
		       r->read + k - r->consumed > r->mask + 1) &&
	    ORDER_RULE(check_length)) {
		r->violation = RING_BAD_LENGTH;
		return -EPROTO;
	}
	return 1;
}

/* P's, which may be several released at once, or over TCP one, on both sides of the ring's end. */
static void mark_done(struct ring_reader *r, const struct ring_packet *p)
{
	uint64_t from = ring_at(p->total, r->mask), left = r->mask + 1 - from;
	uint64_t before = p->segments < left ? p->segments : left;

	bits_set(r->done, from, before);
	bits_set(r->done, 0, p->segments - before);
}

/* A release out of order: K stays at the released prefix and catches up when the gap closes. */
COLD void ring_release_gap(struct ring_reader *r, const struct ring_packet *p)
{
	if (p->total == r->consumed + 1) {
		r->consumed += p->segments;
	} else {
		mark_done(r, p);
		r->gaps += p->segments;
	}
	while (r->gaps) {
		uint32_t run = bits_take_run(r->done, ring_at(r->consumed + 1, r->mask));

		if (!run)
			break;
		r->consumed += run;
		r->gaps -= run;
	}
}

/* J by the reader's account. */
static uint64_t known_produced(struct ring_reader *r)
{
	uint64_t j = r->read;

	return inspect_produced(r) && (int64_t)(r->produced - j) > 0 ? r->produced : j;
}

/* Publish when the writer sees the ring filling and a batch is there. */
HOT void ring_consider(struct ring_reader *r)
{
	uint64_t j = r->read;

	if (r->consumed - r->published < r->batch)
		return;
	if (j - r->published < r->threshold)
		j = known_produced(r);
	if (j - r->published >= r->threshold)
		ring_publish_consumed(r, r->threshold ? RING_THRESHOLD : RING_EVERY);
}

/* What has been released may be less than a batch, where packets are held. */
COLD void ring_settle(struct ring_reader *r)
{
	if (r->published == r->consumed)
		return;
	if (known_produced(r) - r->published >= r->threshold || !ORDER_RULE(settle_threshold))
		ring_publish_consumed(r, RING_SLEEP);
}

uint64_t ring_unread(struct ring_reader *r)
{
	return known_produced(r) - r->consumed;
}

uint64_t ring_room(struct ring_writer *w)
{
	if (!inspect_consumed(w))
		return 0;
	return w->mask + 1 - (w->produced - w->consumed - w->held_back);
}

/* No more than a shadow that lags behind: the fast path in ring_reserve stays as it is. */
void ring_hold_back(struct ring_writer *w, uint32_t n)
{
	w->consumed += w->held_back;
	w->consumed -= n;
	w->held_back = n;
}
