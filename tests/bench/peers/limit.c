/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this machine allows: payload and sequence word side by side in a shared ring of slots, one
 * copy in, one copy out, nothing else. Larger messages go in chunks, so that both sides copy at once.
 * "touching" sends nothing in a touched stream: one side writes its buffer, the other sums its own.
 */
#include <stdatomic.h>
#include <string.h>

#include "tests/bench/peers/pair.h"

#define RING ((size_t)512 << 10)
#define LINE ((size_t)64)
#define WORD sizeof(uint64_t)

struct direction { /* one for each side to write */
	_Alignas(128) _Atomic uint64_t credit;
	_Alignas(4096) char slot[RING];
};

struct end {
	struct direction *d;
	size_t len, chunk, stride;
	uint64_t count, pos, base, seen;
};

static struct direction *both;
static struct end out, in;

static void before(void)
{
	both = pair_shared(2 * sizeof *both);
}

static void open_side(int side)
{
	out = (struct end){.d = &both[side]};
	in = (struct end){.d = &both[!side]};
}

static size_t chunk_of(size_t len)
{
	return len <= 16384 ? len : len <= 65536 ? 16384 : 32768;
}

/*
 * A new length lays the slots out anew. Nothing is in flight then, and sequence words go on from a
 * multiple above all earlier ones; old payload can not look like one, its bytes being small.
 */
static void layout(struct end *e, size_t len)
{
	e->len = len;
	e->chunk = chunk_of(len);
	e->stride = (e->chunk + WORD + LINE - 1) / LINE * LINE;
	e->count = RING / e->stride;
	e->base = ((e->base + e->pos) | 0xffffffff) + 1;
	e->pos = e->seen = 0;
}

static void put(const void *buf, size_t len)
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
	}
}

static void get(void *buf, size_t len)
{
	struct end *e = &in;

	if (len != e->len)
		layout(e, len);
	for (size_t off = 0; off < len; off += e->chunk) {
		size_t part = len - off < e->chunk ? len - off : e->chunk;
		char *p = e->d->slot + e->pos % e->count * e->stride;
		_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)p;

		while (atomic_load_explicit(word, memory_order_acquire) != e->base + e->pos + 1)
			;
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
