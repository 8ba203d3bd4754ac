/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Random traffic over many geometries beside a plain queue that says what must arrive: reserve,
 * short commit, abort, peek, hold, release in any order, publication, totals near their ends.
 */
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/test.h"

#define QUEUE 4096 /* over the most packets a ring here can hold */

struct sent {
	uint64_t seed;
	uint32_t bytes;
	uint8_t kind;
};

struct run {
	struct rng g;
	struct ring_pair pair;
	struct sent queue[QUEUE]; /* written and not yet peeked: from first to last */
	uint64_t first, last;
	struct {
		struct ring_packet packet;
		struct sent sent;
	} held[QUEUE];
	uint32_t holding;
	uint32_t hold_most;
	uint64_t done;
};

/* Words that would look committed, or one lap old, wherever in the ring they come to lie. */
static void forge(struct run *run, unsigned char *data, uint32_t bytes)
{
	uint32_t size = run->pair.shape.segment_size;
	uint64_t total = run->pair.w.produced + 1;

	for (uint32_t at = size - RING_WORD, i = 1; at + 8 <= bytes; at += size, i++) {
		uint64_t lap = rng_below(&run->g, 4) * (run->pair.w.mask + 1);
		uint64_t word = LITTLE_64(ring_word(total + i + lap, run->pair.w.epoch, 1, 1));

		memcpy(data + at, &word, sizeof(word));
	}
}

/* Even seeds are a pattern; odd ones forged words, of which only the rest is looked at. */
static void fill(struct run *run, unsigned char *data, const struct sent *s)
{
	ring_fill(data, s->seed, s->bytes);
	if (s->seed & 1)
		forge(run, data, s->bytes);
}

static bool filled(const struct run *run, const unsigned char *data, const struct sent *s)
{
	uint32_t size = run->pair.shape.segment_size;

	if (!(s->seed & 1))
		return ring_filled(data, s->seed, s->bytes);
	for (uint32_t i = 0; i < s->bytes; i++) {
		bool forged = i >= size - RING_WORD && (i + RING_WORD) % size < RING_WORD &&
			      i - (i + RING_WORD) % size + 8 <= s->bytes;

		if (!forged && data[i] != ring_pattern(s->seed, i))
			return false;
	}
	return true;
}

static void send_one(struct run *run)
{
	struct ring_writer *w = &run->pair.w;
	uint32_t longest = ring_bytes_of(&run->pair.shape, w->max);
	uint32_t bytes = rng_below(&run->g, rng_one_in(&run->g, 4) ? longest + 1 : 57);
	struct sent s = {.seed = rng_next(&run->g), .kind = (uint8_t)(1 + rng_below(&run->g, 255))};
	unsigned char *data = ring_reserve(w, bytes);

	if (!data)
		return;
	s.bytes = rng_one_in(&run->g, 5) ? rng_below(&run->g, bytes + 1) : bytes;
	if (s.bytes < bytes || rng_one_in(&run->g, 10)) { /* scribble over what is not sent */
		memset(data, 0xee, bytes);
		forge(run, data, bytes);
	}
	if (rng_one_in(&run->g, 10)) {
		ring_abort(w);
		return;
	}
	if (rng_one_in(&run->g, 10)) { /* replaced by a shorter one, which fits for sure */
		data = ring_reserve(w, s.bytes);
		CHECK(data, "a shorter reservation was refused");
	}
	fill(run, data, &s);
	ring_commit(w, s.bytes, s.kind);
	CHECK(run->last - run->first < QUEUE, "the ring took more than it can hold");
	run->queue[run->last++ % QUEUE] = s;
}

static void check_packet(struct run *run, const struct ring_packet *p, const struct sent *s)
{
	CHECK(p->length == s->bytes, "%u bytes came, %u were sent", p->length, s->bytes);
	CHECK(p->kind == s->kind, "kind %u came, %u was sent", p->kind, s->kind);
	CHECK(filled(run, p->data, s), "a packet of %u bytes came torn", s->bytes);
}

static void receive_one(struct run *run)
{
	struct ring_packet p;
	int rc;

	if (run->holding >= run->hold_most)
		return;
	rc = ring_peek(&run->pair.r, &p);
	CHECK(rc >= 0, "a sound writer was called violation %d", run->pair.r.violation);
	CHECK(rc == (run->first != run->last), "peek gave %d with %llu packets sent", rc,
	      (unsigned long long)(run->last - run->first));
	if (rc == 0)
		return;
	run->held[run->holding].packet = p;
	run->held[run->holding].sent = run->queue[run->first++ % QUEUE];
	check_packet(run, &p, &run->held[run->holding].sent);
	run->holding++;
}

static void release_one(struct run *run)
{
	uint32_t i;

	if (!run->holding)
		return;
	i = rng_below(&run->g, run->holding);
	check_packet(run, &run->held[i].packet, &run->held[i].sent); /* untouched while held */
	ring_release(&run->pair.r, &run->held[i].packet);
	run->held[i] = run->held[--run->holding];
	run->done++;
}

static void step(struct run *run)
{
	uint32_t what = rng_below(&run->g, 12);

	if (what < 5)
		send_one(run);
	else if (what < 8)
		receive_one(run);
	else if (what < 10)
		release_one(run);
	else if (what < 11)
		ring_publish_produced(&run->pair.w);
	else
		ring_publish_consumed(&run->pair.r, RING_FLUSH);
	CHECK(!run->pair.w.violation && !run->pair.r.violation, "violation %d, %d",
	      run->pair.w.violation, run->pair.r.violation);
	CHECK(run->pair.w.produced - run->pair.r.consumed <= run->pair.w.mask + 1,
	      "more in the ring than it holds");
}

static void drain(struct run *run)
{
	while (run->holding)
		release_one(run);
	while (run->first != run->last) {
		receive_one(run);
		release_one(run);
	}
	ring_publish_consumed(&run->pair.r, RING_FLUSH);
	receive_one(run); /* a last pad */
	CHECK(run->pair.r.consumed == run->pair.w.produced, "drained, but totals differ");
	CHECK(ring_room(&run->pair.w) <= run->pair.w.mask + 1, "more room than the ring has");
}

static uint64_t start_of(struct rng *g, uint32_t segments)
{
	static const uint64_t ends[] = {0, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_C(7) << 32};

	if (rng_one_in(g, 3))
		return rng_next(g);
	return ends[rng_below(g, 4)] - rng_below(g, 4 * segments);
}

static uint64_t one_geometry(struct run *run, uint32_t segments, uint32_t segment_size, int steps)
{
	struct rng g = run->g;
	struct ring_setup setup = {
		.shape = {segments, segment_size},
		.start = start_of(&g, segments),
		.epoch = (uint32_t)rng_next(&g),
		.threshold = rng_below(&g, segments + 1),
		.batch = rng_below(&g, segments + 1),
	};

	if (rng_one_in(&g, 2)) /* a tag of 0 comes up in this run */
		setup.epoch = (uint32_t)setup.start + rng_below(&g, 4 * segments);
	memset(run, 0, sizeof(*run));
	run->g = g;
	ring_pair_open(&run->pair, &setup);
	run->hold_most = 1 + rng_below(&g, rng_one_in(&g, 2) ? 3 : segments);
	for (int i = 0; i < steps; i++)
		step(run);
	drain(run);
	ring_pair_close(&run->pair);
	return run->done;
}

int main(void)
{
	static struct run run;
	uint64_t packets = 0, runs = 0;

	run.g.state = rng_run_seed(20260101);
	for (int round = 0; round < 40; round++)
		for (uint32_t segments = 2; segments <= 256; segments *= 2)
			for (uint32_t size = 64; size <= 512; size *= 2) {
				packets += one_geometry(&run, segments, size, 2000);
				runs++;
			}
	CHECK(packets > 100000, "only %llu packets went through", (unsigned long long)packets);
	printf("%llu packets through %llu rings\n", (unsigned long long)packets,
	       (unsigned long long)runs);
	return 0;
}
