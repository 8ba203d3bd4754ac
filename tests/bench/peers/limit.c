/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this machine allows: payload and sequence word side by side in a shared ring of slots, one
 * copy in, one copy out, nothing else. Larger messages go in chunks, so that both sides copy at
 * once. "touching" sends nothing in a touched stream: one side writes its buffer, the other sums
 * its own. "asleep" and "polling" wait for a message in a futex: at once, or after as long as
 * waking takes twice.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/peers/pair.h"

#define RING       ((size_t)512 << 10)
#define LINE       ((size_t)64)
#define WORD       sizeof(uint64_t)
#define POLLING_NS 100000

struct direction { /* one for each side to write */
	_Alignas(128) _Atomic uint64_t credit;
	_Alignas(128) _Atomic uint32_t asleep;
	_Alignas(4096) char slot[RING];
};

struct end {
	struct direction *d;
	size_t len, chunk, stride;
	uint64_t count, pos, base, seen;
};

static struct direction *both;
static struct end out, in;
static uint64_t polling_ns; /* before a sleep */

static void before(void)
{
	both = pair_shared(2 * sizeof *both);
}

static void open_side(int side)
{
	out = (struct end){.d = &both[side]};
	in = (struct end){.d = &both[!side]};
}

static void polling_open(int side)
{
	open_side(side);
	polling_ns = POLLING_NS;
}

static size_t chunk_of(size_t len)
{
	return len <= 16384 ? len : len <= 65536 ? 16384 : 32768;
}

/*
 * A new length lays the slots out again. Nothing is in flight then, and sequence words go on from a
 * multiple above all earlier ones; old payload can not look like one, its bytes being small. Lower
 * halves begin elsewhere too: a futex compares those alone.
 */
static void layout(struct end *e, size_t len)
{
	e->len = len;
	e->chunk = chunk_of(len);
	e->stride = (e->chunk + WORD + LINE - 1) / LINE * LINE;
	e->count = RING / e->stride;
	e->base = ((e->base + e->pos) | 0xffffffff) + 1;
	e->base += (e->base >> 32 & 0xff) << 24;
	e->pos = e->seen = 0;
}

/* Its word has changed: pairs with the fence in wait_asleep(), so that either side sees what the
 * other did. */
static void wake(_Atomic uint64_t *word)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&out.d->asleep, memory_order_relaxed))
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps unless WORD is what is to come; a futex compares the lower half, of which no two of a slot
 * are alike in a row. */
static void wait_asleep(_Atomic uint64_t *word, uint64_t want)
{
	uint64_t end = polling_ns ? now_ns() + polling_ns : 0, seen;

	for (unsigned inspections = 1; polling_ns; inspections++) {
		if (atomic_load_explicit(word, memory_order_acquire) == want)
			return;
		if (inspections % 64 == 0 && now_ns() > end)
			break;
	}
	atomic_store_explicit(&in.d->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with that in wake() */
	while ((seen = atomic_load_explicit(word, memory_order_acquire)) != want)
		syscall(SYS_futex, word, FUTEX_WAIT, (uint32_t)seen, NULL, NULL, 0);
	atomic_store_explicit(&in.d->asleep, 0, memory_order_relaxed);
}

static inline __attribute__((always_inline)) void write_ring(const void *buf, size_t len,
							     int sleeping)
{
	struct end *e = &out;

	if (len != e->len)
		layout(e, len);
	for (size_t off = 0; off < len; off += e->chunk) {
		size_t part = len - off < e->chunk ? len - off : e->chunk;
		char *p = e->d->slot + e->pos % e->count * e->stride;

		while (e->pos - e->seen >= e->count) {
			uint64_t c = atomic_load_explicit(&e->d->credit, memory_order_acquire);

			if (c >= e->base)
				e->seen = c - e->base;
		}
		if (part == WORD)
			memcpy(p + WORD, buf, WORD);
		else
			memcpy(p + WORD, (const char *)buf + off, part);
		e->pos++;
		atomic_store_explicit((_Atomic uint64_t *)(void *)p, e->base + e->pos,
				      memory_order_release);
		if (sleeping)
			wake((_Atomic uint64_t *)(void *)p);
	}
}

static inline __attribute__((always_inline)) void read_ring(void *buf, size_t len, int sleeping)
{
	struct end *e = &in;

	if (len != e->len)
		layout(e, len);
	for (size_t off = 0; off < len; off += e->chunk) {
		size_t part = len - off < e->chunk ? len - off : e->chunk;
		char *p = e->d->slot + e->pos % e->count * e->stride;
		_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)p;

		while (atomic_load_explicit(word, memory_order_acquire) != e->base + e->pos + 1)
			if (sleeping)
				wait_asleep(word, e->base + e->pos + 1);
		if (part == WORD)
			memcpy(buf, p + WORD, WORD);
		else
			memcpy((char *)buf + off, p + WORD, part);
		e->pos++;
		if (e->pos % (e->count / 4) == 0)
			atomic_store_explicit(&e->d->credit, e->base + e->pos,
					      memory_order_release);
	}
}

static void put(const void *buf, size_t len)
{
	write_ring(buf, len, 0);
}

static void get(void *buf, size_t len)
{
	read_ring(buf, len, 0);
}

static void put_to_sleeper(const void *buf, size_t len)
{
	write_ring(buf, len, 1);
}

static void get_asleep(void *buf, size_t len)
{
	read_ring(buf, len, 1);
}

static void touch_send(void *buf, size_t len, uint64_t n, int touch)
{
	for (uint64_t i = 0; i < n; i++)
		if (touch)
			pair_produce(buf, len, i);
		else
			put(buf, len);
}

static void touch_recv(void *buf, size_t len, uint64_t n, int touch)
{
	for (uint64_t i = 0; i < n; i++)
		if (touch)
			pair_consume(buf, len);
		else
			get(buf, len);
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "copies", .before = before, .open = open_side, .send = put, .recv = get},
		{.name = "asleep",
		 .before = before,
		 .open = open_side,
		 .send = put_to_sleeper,
		 .recv = get_asleep},
		{.name = "polling",
		 .before = before,
		 .open = polling_open,
		 .send = put_to_sleeper,
		 .recv = get_asleep},
		{.name = "touching",
		 .before = before,
		 .open = open_side,
		 .send = put,
		 .recv = get,
		 .stream_send = touch_send,
		 .stream_recv = touch_recv,
		 .flags = PAIR_TOUCHES},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
