/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of handle.h: allocation, generations, fork. */
#include "slmpm/base/handle.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"

/* Generations of two tables begin so far apart, by a power of two: room for 64 tables, and for 2^25
 * objects in a slot before its handle may be one of another table's. */
#define KIND_SHIFT 26

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table *tables; /* of which objects have been wanted */

void *handle_slot(struct handle_table *t, uint32_t index)
{
	unsigned char *chunk;

	if (index >= HANDLE_CHUNK * HANDLE_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&t->chunks[index / HANDLE_CHUNK], memory_order_acquire);
	return chunk ? chunk + index % HANDLE_CHUNK * t->object_size : NULL;
}

#define APART ((size_t)132 * 1024) /* the C library maps so much by itself, and clears nothing */
#define FEW   ((size_t)16 * 1024)

/* Most programs have few objects, and these are large: slots of the first chunk that were never
 * used are not touched, so that they take no memory. */
size_t handle_chunk_size(const struct handle_table *t, bool first)
{
	size_t size = HANDLE_CHUNK * t->object_size + HANDLE_ALIGNMENT;

	return first && size > FEW && size < APART ? APART : size;
}

/* A chunk's slots are all zero. */
static bool handle_grow(struct handle_table *t)
{
	uint32_t at = t->count / HANDLE_CHUNK;
	unsigned char *chunk;

	if (at >= HANDLE_CHUNKS)
		return false;
	chunk = calloc(1, handle_chunk_size(t, at == 0));
	if (!chunk)
		return false;
	chunk += HANDLE_ALIGNMENT - (uintptr_t)chunk % HANDLE_ALIGNMENT;
	/* Pairs with the acquire in handle_get. */
	atomic_store_explicit(&t->chunks[at], chunk, memory_order_release);
	return true;
}

/* One that had an object before, else the next that never had. */
static struct handle *handle_free_slot(struct handle_table *t)
{
	struct handle *h = NULL;

	if (t->first_free) {
		h = handle_slot(t, t->first_free - 1);
		t->first_free = h->next_free;
	} else if (t->count % HANDLE_CHUNK || handle_grow(t)) {
		h = handle_slot(t, t->count);
		h->index = t->count++;
		atomic_store_explicit(&h->generation, t->first, memory_order_relaxed);
	}
	return h;
}

/* Before its lock is first taken: a child of fork makes those of all known tables anew. */
static void remember(struct handle_table *t)
{
	static uint32_t known;
	struct handle_table *at;

	pthread_mutex_lock(&lock);
	for (at = tables; at && at != t; at = at->next)
		;
	if (!at) {
		t->first = known++ << KIND_SHIFT;
		t->next = tables;
		tables = t;
	}
	pthread_mutex_unlock(&lock);
}

void *handle_new(struct handle_table *t)
{
	struct handle *h;

	if (!atomic_load_explicit(&t->chunks[0], memory_order_relaxed))
		remember(t);
	pthread_mutex_lock(&t->lock);
	h = handle_free_slot(t);
	if (h)
		handle_renew(t, h);
	pthread_mutex_unlock(&t->lock);
	return h;
}

/* Who has the object alone stores, others only look. */
static void next_generation(struct handle *h)
{
	uint32_t generation = atomic_load_explicit(&h->generation, memory_order_relaxed);

	atomic_store_explicit(&h->generation, generation + 1, memory_order_relaxed);
}

void handle_renew(const struct handle_table *t, void *object)
{
	memset((unsigned char *)object + t->kept, 0, t->object_size - t->kept);
	next_generation(object);
}

void handle_retire(void *object)
{
	next_generation(object);
}

void handle_free(struct handle_table *t, void *object)
{
	struct handle *h = object;

	pthread_mutex_lock(&t->lock);
	if (handle_is_live(h))
		handle_retire(h);
	h->next_free = t->first_free;
	t->first_free = h->index + 1;
	pthread_mutex_unlock(&t->lock);
}

static void fork_table(struct handle_table *t)
{
	pthread_mutex_init(&t->lock, NULL);
	for (uint32_t i = 0; i < t->count; i++) {
		struct handle *h = handle_slot(t, i);
		uint32_t generation = atomic_load_explicit(&h->generation, memory_order_relaxed);

		if (!(generation & 1))
			continue;
		/* Never reused: what it owned belongs to the parent. */
		h->forked = generation;
		atomic_store_explicit(&h->generation, generation + 1, memory_order_relaxed);
	}
}

void handle_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	for (struct handle_table *t = tables; t; t = t->next)
		fork_table(t);
}

/* Of which objects ID is one; NULL: of none. */
static const char *noun_of(uint64_t id)
{
	const char *noun = NULL;

	pthread_mutex_lock(&lock);
	for (struct handle_table *t = tables; t && !noun; t = t->next)
		noun = handle_get(t, id) ? t->noun : NULL;
	pthread_mutex_unlock(&lock);
	return noun;
}

int handle_error(struct handle_table *t, uint64_t id)
{
	const struct handle *h = handle_slot(t, (uint32_t)id);
	const char *noun;

	if (h && h->forked && h->forked == id >> 32)
		return error_set(SLMPM_EFORKED, "this %s belongs to the parent process", t->noun);
	if (!id)
		return error_set(SLMPM_EHANDLE, "a zero %s handle", t->noun);
	noun = noun_of(id);
	if (noun && noun != t->noun)
		return error_set(SLMPM_EHANDLE, "no such %s: the handle is that of a %s", t->noun,
				 noun);
	return error_set(SLMPM_EHANDLE, "no such %s: the handle is stale or was never one",
			 t->noun);
}
