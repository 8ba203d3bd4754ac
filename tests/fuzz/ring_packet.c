/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Any bytes as a ring's memory: reader and writer work on them and must stay within it. As it
 * stands it replays honest images with a few bytes changed, or the files named. To search with
 * libFuzzer, from the top of the repository (-w FOLDER writes the honest images as a corpus):
 *
 *	clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -DSEARCH -I. \
 *		tests/fuzz/ring_packet.c tests/lib/ring_pair.c shm/ring.c -o ring_packet
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/test.h"

/* In front of the segments' bytes; then actions, one a byte, until the input ends. */
struct image {
	uint8_t log2_segments; /* modulo: N from 2 to 64 */
	uint8_t log2_size;     /* modulo: 64 to 512 bytes */
	uint8_t threshold;
	uint8_t batch;
	uint32_t epoch;
	uint64_t start;
	uint64_t produced; /* less the start, both */
	uint64_t consumed;
};

#define HELD_MOST 8

struct bench {
	struct ring_pair pair;
	struct ring_packet held[HELD_MOST];
	uint32_t holding;
	uint64_t delivered;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void peek(struct bench *b)
{
	struct ring_reader *r = &b->pair.r;
	uint64_t n = r->mask + 1, before = r->read;
	struct ring_packet p;
	unsigned char *copy;
	int rc;

	if (b->holding == HELD_MOST)
		return;
	rc = ring_peek(r, &p);
	CHECK(rc == 0 || rc == 1 || rc == -EPROTO, "peek gave %d", rc);
	CHECK((rc < 0) == (rc == -EPROTO && r->violation != RING_SOUND),
	      "a violation without name");
	CHECK(r->read - before <= n && r->read - r->consumed <= n, "read beyond the ring");
	if (rc != 1)
		return;
	CHECK(p.length + RING_WORD <= (uint64_t)p.segments << r->shift, "longer than its segments");
	CHECK((p.total & r->mask) + p.segments <= n, "a packet that wraps");
	CHECK(p.segments <= r->max && p.total + p.segments == r->read + 1, "totals do not add up");
	copy = malloc(p.length + 1u);
	CHECK(copy, "out of memory");
	memcpy(copy, p.data, p.length);
	free(copy);
	b->held[b->holding++] = p;
	b->delivered++;
}

static void release(struct bench *b, uint32_t which)
{
	if (!b->holding)
		return;
	which %= b->holding;
	ring_release(&b->pair.r, &b->held[which]);
	b->held[which] = b->held[--b->holding];
	CHECK(b->pair.r.read - b->pair.r.consumed <= b->pair.r.mask + 1,
	      "released beyond the read");
}

static void send_some(struct bench *b, uint32_t bytes)
{
	struct ring_writer *w = &b->pair.w;
	unsigned char *data = ring_reserve(w, bytes);

	if (data) {
		memset(data, 0x11, bytes);
		ring_commit(w, bytes / 2, 1);
	}
	CHECK(w->produced - w->consumed <= w->mask + 1, "written beyond the ring");
}

static void act(struct bench *b, uint8_t action)
{
	switch (action & 7) {
	case 0:
	case 1:
	case 2: peek(b); break;
	case 3:
	case 4: release(b, action >> 3); break;
	case 5: send_some(b, (uint32_t)(action >> 3) * 40); break;
	case 6: CHECK(ring_unread(&b->pair.r) <= b->pair.r.mask + 1, "too much unread"); break;
	default: CHECK(ring_room(&b->pair.w) <= b->pair.w.mask + 1, "too much room");
	}
}

static void open_image(struct bench *b, const struct image *head)
{
	struct ring_setup setup = {
		.shape = {2u << head->log2_segments % 6, 64u << head->log2_size % 4},
		.epoch = head->epoch,
		.start = head->start,
		.threshold = head->threshold,
		.batch = head->batch,
	};

	memset(b, 0, sizeof(*b));
	ring_pair_open(&b->pair, &setup);
	atomic_store(&ring_words_of(b->pair.inbound)->produced,
		     LITTLE_64(head->start + head->produced));
	atomic_store(&ring_words_of(b->pair.back)->consumed,
		     LITTLE_64(head->start + head->consumed));
}

static uint64_t packets_seen;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image head;
	struct bench b;
	size_t bytes;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	open_image(&b, &head);
	bytes = (size_t)b.pair.shape.segments * b.pair.shape.segment_size;
	if (bytes > size)
		bytes = size;
	memcpy(b.pair.inbound + RING_SEGMENTS_OFFSET, data, bytes);
	for (size_t i = bytes; i < size && i < bytes + 4096; i++)
		act(&b, data[i]);
	for (uint32_t i = 0; i < 2 * b.pair.shape.segments; i++) {
		peek(&b);
		release(&b, i);
	}
	packets_seen += b.delivered;
	ring_pair_close(&b.pair);
	return 0;
}

#ifndef SEARCH
#define IMAGE_MOST (sizeof(struct image) + 64 * 512 + 64)

/* What an honest writer leaves: some packets, then random actions. */
static size_t honest_image(struct rng *g, uint8_t *out)
{
	struct image head = {.log2_segments = (uint8_t)rng_below(g, 6)};
	size_t bytes, actions = rng_below(g, 64);
	struct bench b;

	/* One by one: the order within an initializer is the compiler's, the run would differ. */
	head.log2_size = (uint8_t)rng_below(g, 4);
	head.threshold = (uint8_t)rng_below(g, 64);
	head.batch = (uint8_t)rng_below(g, 8);
	head.epoch = (uint32_t)rng_next(g);
	head.start = rng_one_in(g, 2) ? rng_next(g) : (uint64_t)0 - rng_below(g, 64);
	open_image(&b, &head);
	bytes = (size_t)b.pair.shape.segments * b.pair.shape.segment_size;
	for (uint32_t i = rng_below(g, 64); i > 0; i--) {
		uint32_t length = rng_below(g, ring_bytes_of(&b.pair.shape, b.pair.w.max));

		(void)ring_put(&b.pair.w, rng_next(g), length);
	}
	head.produced = b.pair.w.produced - head.start;
	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), b.pair.inbound + RING_SEGMENTS_OFFSET, bytes);
	ring_pair_close(&b.pair);
	for (size_t i = 0; i < actions; i++)
		out[sizeof(head) + bytes + i] = (uint8_t)rng_next(g);
	return sizeof(head) + bytes + actions;
}

static void change(struct rng *g, uint8_t *image, size_t size)
{
	for (uint32_t changes = rng_below(g, 6); changes > 0; changes--) {
		size_t at = rng_below(g, (uint32_t)size);

		switch (rng_below(g, 4)) {
		case 0: image[at] = (uint8_t)rng_next(g); break;
		case 1: image[at] ^= (uint8_t)(1u << rng_below(g, 8)); break;
		case 2: image[rng_below(g, sizeof(struct image))] = (uint8_t)rng_next(g); break;
		default: /* a commit word is at the start of a segment */
			at = sizeof(struct image) + (at - at % 64) % (size - sizeof(struct image));
			if (at + 8 <= size)
				image[at + rng_below(g, 8)] ^= (uint8_t)rng_next(g);
		}
	}
}

static void replay_file(const char *path)
{
	static uint8_t image[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t size;

	CHECK(f, "cannot open %s", path);
	size = fread(image, 1, sizeof(image), f);
	fclose(f);
	LLVMFuzzerTestOneInput(image, size);
}

static void write_corpus(struct rng *g, const char *folder)
{
	static uint8_t image[IMAGE_MOST];

	for (int i = 0; i < 64; i++) {
		size_t size = honest_image(g, image);
		char path[4096];
		FILE *f;

		snprintf(path, sizeof(path), "%s/honest-%02d", folder, i);
		f = fopen(path, "wb");
		CHECK(f && fwrite(image, 1, size, f) == size && fclose(f) == 0, "cannot write %s",
		      path);
	}
}

int main(int argc, char **argv)
{
	static uint8_t image[IMAGE_MOST];
	struct rng g;

	if (argc > 2 && !strcmp(argv[1], "-w")) {
		g.state = 1;
		write_corpus(&g, argv[2]);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		replay_file(argv[i]);
	if (argc > 1)
		return 0;
	g.state = rng_run_seed(0x66757a7a);
	for (int i = 0; i < 60000; i++) {
		size_t size = honest_image(&g, image);

		if (i % 8) /* every eighth stays as it is */
			change(&g, image, size);
		LLVMFuzzerTestOneInput(image, size);
	}
	CHECK(packets_seen > 60000, "only %llu packets seen", (unsigned long long)packets_seen);
	printf("60000 images, %llu packets in them\n", (unsigned long long)packets_seen);
	return 0;
}
#endif
