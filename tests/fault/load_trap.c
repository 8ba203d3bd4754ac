/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * Neither side of a ring ever loads from the other's memory. Each object is mapped twice, as in two
 * processes; the view of the side that must only store is trapped.
 */
#include <string.h>

#include "shm/doorbell.h"
#include "shm/mapping.h"
#include "tests/lib/ring_pair.h"
#include "tests/lib/test.h"
#include "tests/lib/trap.h"

#define SEGMENTS     64
#define SEGMENT_SIZE 128
#define OBJECT       (RING_SEGMENTS_OFFSET + (size_t)SEGMENTS * SEGMENT_SIZE)
#define MESSAGES     400

/* One object per direction, each as its owner and as its peer sees it. */
struct twice {
	struct mapping own, peer;
};

static struct twice ring, back;
static uint64_t stale[1], done[1];
static struct ring_writer w;
static struct ring_reader r;
static unsigned char payload[SEGMENTS / 4 * SEGMENT_SIZE];

static void map_twice(struct twice *t)
{
	CHECK(mapping_create(&t->own, "load_trap", OBJECT) == 0, "no shared memory");
	CHECK(mapping_attach(&t->peer, t->own.fd, OBJECT, MAPPING_WRITE) == 0, "no second view");
}

static void open_ring(uint32_t threshold)
{
	struct ring_setup setup = {
		.shape = {SEGMENTS, SEGMENT_SIZE},
		.epoch = 0xbb67ae85,
		.start = UINT32_MAX - 100,
		.threshold = threshold,
		.batch = SEGMENTS / 16,
	};

	map_twice(&ring);
	map_twice(&back);
	memset(stale, 0, sizeof(stale));
	memset(done, 0, sizeof(done));
	setup.bits = stale;
	ring_lay_writer(&w, setup, ring.peer.base, back.own.base);
	setup.bits = done;
	ring_lay_reader(&r, setup, ring.own.base, back.peer.base);
	/* From here on both views of the peer's memory are traps. */
	trap_loads(ring.peer.base, OBJECT);
	trap_loads(back.peer.base, OBJECT);
}

static struct trap_counts close_ring(void)
{
	struct trap_counts counts = trap_end();

	mapping_destroy(&ring.own);
	mapping_destroy(&ring.peer);
	mapping_destroy(&back.own);
	mapping_destroy(&back.peer);
	return counts;
}

/* Every length class of the C library's copy, whole packets, short ones, aborted ones, pads. */
static bool send_message(uint32_t i)
{
	uint32_t longest = ring_bytes_of(&(struct ring_shape){SEGMENTS, SEGMENT_SIZE}, w.max);
	uint32_t bytes = i * i * 7 % (longest + 1);
	void *data = ring_reserve(&w, bytes);

	if (!data)
		return false;
	memcpy(data, payload, bytes);
	if (i % 17 == 3) {
		ring_abort(&w);
		data = ring_reserve(&w, bytes);
		memset(data, (int)i, bytes);
	}
	ring_commit(&w, i % 11 == 5 ? bytes / 2 : bytes, 1);
	return true;
}

static uint32_t traffic(uint32_t threshold)
{
	static const atomic_int nobody = -1;
	struct doorbell to_reader = {.asleep_in = &ring_words_of(back.own.base)->asleep,
				     .asleep_out = &ring_words_of(ring.peer.base)->asleep,
				     .fd = &nobody};
	struct doorbell to_writer = {.asleep_in = &ring_words_of(ring.own.base)->asleep,
				     .asleep_out = &ring_words_of(back.peer.base)->asleep,
				     .fd = &nobody};
	struct ring_packet p;
	uint32_t sent = 0, got = 0;

	while (sent < MESSAGES) {
		while (sent < MESSAGES && send_message(sent)) {
			doorbell_check(&to_reader);
			sent++;
		}
		ring_publish_produced(&w);
		doorbell_announce(&to_reader); /* the writer sleeps */
		while (ring_peek(&r, &p) == 1) {
			ring_release(&r, &p);
			doorbell_check(&to_writer);
			got++;
		}
		ring_publish_consumed(&r, threshold ? RING_SLEEP : RING_FLUSH);
		doorbell_announce(&to_writer);
		doorbell_retract(&to_writer);
		doorbell_retract(&to_reader);
		(void)ring_room(&w);
		(void)ring_unread(&r);
	}
	while (ring_peek(&r, &p) == 1)
		got++;
	CHECK(!w.violation && !r.violation, "violation %d, %d", w.violation, r.violation);
	return got;
}

static void no_load(uint32_t threshold)
{
	struct trap_counts counts;
	uintptr_t base;

	open_ring(threshold);
	base = (uintptr_t)ring.peer.base;
	CHECK(traffic(threshold) == MESSAGES, "messages were lost");
	counts = close_ring();
	CHECK(counts.loads == 0, "%llu loads from the peer's memory, the first by %#llx at +%#llx",
	      (unsigned long long)counts.loads, (unsigned long long)counts.first_load,
	      (unsigned long long)(counts.address - base));
	CHECK(counts.stores > w.writes + r.writes, "%llu stores are too few to be true",
	      (unsigned long long)counts.stores);
	printf("threshold %2u: %u messages, %llu stores trapped, no load\n", threshold, MESSAGES,
	       (unsigned long long)counts.stores);
}

/* ---- does the trap work? ---- */

static volatile uint64_t sink;

static void load_word(volatile uint64_t *word)
{
	sink = *word;
}

static void copy_out(volatile uint64_t *word)
{
	memcpy(payload, (const void *)(uintptr_t)word, 300);
}

static void count_up(volatile uint64_t *word)
{
	atomic_fetch_add((_Atomic uint64_t *)word, 1);
}

static void set_a_bit(volatile uint64_t *word)
{
#ifdef __x86_64__
	__asm__ volatile("orq $4, %0" : "+m"(*word));
#else
	*word |= 4;
#endif
}

static void store_word(volatile uint64_t *word)
{
	*word = 7;
}

static void copy_in(volatile uint64_t *word)
{
	memcpy((void *)(uintptr_t)word, payload, 300);
}

static void planted(const char *name, void (*touch)(volatile uint64_t *), bool load)
{
	struct trap_counts counts;

	open_ring(0);
	touch((volatile uint64_t *)((unsigned char *)ring.peer.base + RING_SEGMENTS_OFFSET + 64));
	counts = close_ring();
	CHECK((counts.loads > 0) == load, "%s: %llu loads seen", name,
	      (unsigned long long)counts.loads);
	CHECK(load || counts.stores > 0, "%s: no store seen", name);
	printf("planted %-22s %s\n", name, load ? "noticed" : "let through");
}

int main(void)
{
	if (!trap_possible())
		test_skip("no trap that tells loads from stores on this machine");
	memset(payload, 0x5c, sizeof(payload));
	planted("load", load_word, true);
	planted("copy out", copy_out, true);
	planted("atomic addition", count_up, true);
	planted("read-modify-write", set_a_bit, true);
	planted("store", store_word, false);
	planted("copy in", copy_in, false);
	no_load(0);
	no_load(SEGMENTS / 2);
	no_load(SEGMENTS * 3 / 4);
	return 0;
}
