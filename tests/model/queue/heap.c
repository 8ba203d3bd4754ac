/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is a state: blocks in rows by size, zeroed when they are freed; and tables of
 * handles, of which only the slots that were used count.
 */
#include "tests/model/queue/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"
#include "slmpm/region/memory.h"
#include "slmpm/request.h"
#include "slmpm/workqueue/workqueue.h"

#define BYTES     (512u << 10)
#define UNIT      32
#define ROWS      1024 /* blocks up to ROWS * UNIT bytes, each size its row */
#define TABLES    8
#define CHUNK_MAX (256u << 10)
#define PIECE     512  /* hashed at once */
#define KEPT      4096 /* pieces, of about 100 in a state */

struct block { /* in front of each */
	uint32_t row;
	uint32_t next; /* a free one: offset of the next, or 0 */
	uint64_t live;
};

static struct heap {
	uint32_t used;
	uint32_t rows[ROWS + 1]; /* offset of the first free block, or 0 */
} heap;

struct memory {
	unsigned char bytes[BYTES];
	/* A table's slots lie apart: 64 of them are allocated at once, and few are used. */
	unsigned char chunks[TABLES][CHUNK_MAX];
};

static struct memory memory __attribute__((aligned(HANDLE_ALIGNMENT)));
static unsigned char *const bytes = memory.bytes;
static struct handle_table *const tables[TABLES] = {&context_table, &endpoint_table,
						    &queue_table,   &counter_table,
						    &request_table, &workqueue_table,
						    &region_table,  &remote_table};
static bool inside;

/* Of a table, what changes once it has slots. */
struct table_state {
	uint32_t count, first_free;
};

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);

void heap_enter(void)
{
	inside = true;
}

void heap_leave(void)
{
	inside = false;
}

void heap_reset(void)
{
	memset(&heap, 0, sizeof(heap));
	memset(&memory, 0, sizeof(memory));
	for (int t = 0; t < TABLES; t++) {
		tables[t]->count = tables[t]->first_free = 0;
		tables[t]->chunks[0] = NULL;
	}
	heap.used = 64;
	/* All of them have slots from now on. */
	inside = true;
	for (int t = 0; t < TABLES; t++)
		handle_free(tables[t], handle_new(tables[t]));
	inside = false;
}

/* ---- allocation ----------------------------------------------------------------------------- */

static struct block *block_at(uint32_t offset)
{
	return (void *)(bytes + offset);
}

static uint32_t offset_of(const struct block *b)
{
	return (uint32_t)((const unsigned char *)b - bytes);
}

static bool is_ours(const void *at)
{
	return (uintptr_t)at - (uintptr_t)bytes < BYTES;
}

static _Noreturn void give_up(const char *why)
{
	fprintf(stderr, "model: %s\n", why);
	exit(2);
}

/* The slots of a table; or NULL. */
static void *allocate_chunk(size_t size)
{
	for (int t = 0; t < TABLES; t++)
		if (!tables[t]->chunks[0] && size == handle_chunk_size(tables[t], true))
			return size > CHUNK_MAX ? NULL : memory.chunks[t];
	return NULL;
}

static void *allocate(size_t size)
{
	uint32_t row = (uint32_t)((size + UNIT - 1) / UNIT), at;
	void *chunk = allocate_chunk(size);

	if (chunk)
		return chunk;
	if (row > ROWS)
		give_up("a block is too large");
	at = heap.rows[row];
	if (at) {
		heap.rows[row] = block_at(at)->next;
		block_at(at)->next = 0;
	} else {
		at = heap.used;
		heap.used += (uint32_t)sizeof(struct block) + row * UNIT;
		if (heap.used > BYTES)
			give_up("no room for a state");
		block_at(at)->row = row;
	}
	block_at(at)->live = 1;
	return block_at(at) + 1;
}

void *__wrap_malloc(size_t size)
{
	return inside ? allocate(size) : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return inside ? allocate(n * size) : __real_calloc(n, size);
}

void __wrap_free(void *at)
{
	struct block *b = at;
	uint32_t *place;

	if (!is_ours(at)) {
		__real_free(at);
		return;
	}
	b--;
	memset(at, 0, (size_t)b->row * UNIT);
	b->live = 0;
	/* The first in memory is used first, whenever it was freed. */
	place = &heap.rows[b->row];
	while (*place && *place < offset_of(b))
		place = &block_at(*place)->next;
	b->next = *place;
	*place = offset_of(b);
}

void *__wrap_realloc(void *at, size_t size)
{
	void *to;

	if (!inside)
		return __real_realloc(at, size);
	to = allocate(size);
	if (at) {
		size_t had = (size_t)((struct block *)at)[-1].row * UNIT;

		memcpy(to, at, had < size ? had : size);
		__wrap_free(at);
	}
	return to;
}

void heap_sort_requests(void)
{
	struct handle_table *t = &request_table;

	t->first_free = 0;
	for (uint32_t i = t->count; i-- > 0;) {
		struct handle *h = handle_slot(t, i);

		if (handle_is_live(h))
			continue;
		memset(h, 0, t->object_size);
		h->index = i;
		h->next_free = t->first_free;
		t->first_free = i + 1;
	}
}

/* ---- the state ------------------------------------------------------------------------------ */

static unsigned char *chunk_of(int t)
{
	return atomic_load_explicit(&tables[t]->chunks[0], memory_order_relaxed);
}

static size_t chunk_size(int t)
{
	return tables[t]->count * tables[t]->object_size;
}

size_t heap_size(void)
{
	size_t n = sizeof(heap) + heap.used;

	for (int t = 0; t < TABLES; t++)
		n += sizeof(struct table_state) + chunk_size(t);
	return n;
}

static unsigned char *put(unsigned char *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
	return to + n;
}

static const unsigned char *take(void *to, const unsigned char *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
	return from + n;
}

unsigned char *heap_save(unsigned char *to)
{
	to = put(to, &heap, sizeof(heap));
	to = put(to, bytes, heap.used);
	for (int t = 0; t < TABLES; t++) {
		const struct table_state s = {tables[t]->count, tables[t]->first_free};

		to = put(to, &s, sizeof(s));
		to = put(to, chunk_of(t), chunk_size(t));
	}
	return to;
}

const unsigned char *heap_restore(const unsigned char *from)
{
	uint32_t used = heap.used;

	from = take(&heap, from, sizeof(heap));
	from = take(bytes, from, heap.used);
	if (used > heap.used)
		memset(bytes + heap.used, 0, used - heap.used);
	for (int t = 0; t < TABLES; t++) {
		size_t was = chunk_size(t), is;
		struct table_state s;

		from = take(&s, from, sizeof(s));
		tables[t]->count = s.count;
		tables[t]->first_free = s.first_free;
		is = chunk_size(t);
		from = take(chunk_of(t), from, is);
		if (was > is)
			memset(chunk_of(t) + is, 0, was - is);
	}
	return from;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t heap_hash_bytes(uint64_t hash, const void *from, size_t size)
{
	const unsigned char *at = from;
	uint64_t word[4], lane = hash ^ UINT64_C(0x8bb84b93962eacc9);

	for (size_t part; size; at += part, size -= part) {
		part = size < sizeof(word) ? size : sizeof(word);
		if (part == sizeof(word)) { /* of a known size: no call */
			memcpy(word, at, sizeof(word));
		} else {
			memset(word, 0, sizeof(word));
			memcpy(word, at, part);
		}
		hash = mix(word[0] ^ UINT64_C(0x9e3779b97f4a7c15), word[1] ^ hash) + hash * 5;
		lane = mix(word[2] ^ UINT64_C(0xd6e8feb86659fd93), word[3] ^ lane) + lane * 3;
	}
	return mix(hash ^ UINT64_C(0xa0761d6478bd642f), lane);
}

/* A step changes little: the hash of a piece is kept with the bytes that it is of. */
static uint64_t hash_piece(const unsigned char *at, size_t size)
{
	static struct {
		uint64_t offset, size, hash;
		unsigned char bytes[PIECE];
	} kept[KEPT], *k;
	uint64_t offset = (uint64_t)(at - (const unsigned char *)&memory);

	k = &kept[mix(offset, UINT64_C(0xa0761d6478bd642f)) % KEPT];
	if (k->offset != offset || k->size != size || memcmp(k->bytes, at, size) != 0) {
		k->offset = offset;
		k->size = size;
		k->hash = heap_hash_bytes(offset, at, size);
		memcpy(k->bytes, at, size);
	}
	return k->hash;
}

static uint64_t hash_object(const void *object, size_t size)
{
	const unsigned char *at = object;
	uint64_t sum = 0;

	for (size_t part; size; at += part, size -= part) {
		part = size < PIECE ? size : PIECE;
		sum += hash_piece(at, part);
	}
	return sum;
}

/* What was freed, and in which order it will be used again, changes where things will lie, and
 * nothing else. */
uint64_t heap_hash(uint64_t hash)
{
	for (uint32_t at = 64; at < heap.used;) {
		const struct block *b = block_at(at);
		uint32_t size = (uint32_t)sizeof(*b) + b->row * UNIT;

		if (b->live)
			hash += hash_object(b, size);
		at += size;
	}
	for (int t = 0; t < TABLES; t++)
		for (uint32_t i = 0; i < tables[t]->count; i++) {
			const void *slot = handle_slot(tables[t], i);

			if (handle_is_live(slot))
				hash += hash_object(slot, tables[t]->object_size);
		}
	return hash;
}
