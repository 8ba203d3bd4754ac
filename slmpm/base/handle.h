/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles {index, generation} and the tables behind them. Objects of a table keep their address
 * and their type for ever, so that a stale handle finds a slot with another generation: an error,
 * never a crash. Generations of two tables begin far apart: a handle of another kind is as stale.
 */
#ifndef SLMPM_BASE_HANDLE_H
#define SLMPM_BASE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE_CHUNK     64
#define HANDLE_CHUNKS    4096
#define HANDLE_ALIGNMENT 128 /* of a chunk: a pair of lines */

struct handle {                      /* first member of each object */
	_Atomic uint32_t generation; /* odd: live */
	uint32_t index;
	uint32_t forked; /* the generation that a parent process knew it by */
	uint32_t next_free;
};

struct handle_table {
	const char *noun;
	size_t object_size;
	size_t kept;               /* bytes in front that a new object takes over from the last */
	size_t context;            /* where its context stands, among those; 0: it has none */
	pthread_mutex_t lock;      /* for allocation only */
	uint32_t count;            /* slots ever used */
	uint32_t first_free;       /* index + 1 */
	uint32_t first;            /* generation of a new slot: even */
	struct handle_table *next; /* of those of which objects have been wanted */
	_Atomic(unsigned char *) chunks[HANDLE_CHUNKS];
};

/* Members in front of FIRST stay as the last object left them, for who still looks at that one.
 * Each lies in a SLOT. */
#define HANDLE_TABLE_IN(text, slot, type, first)                                                   \
	{                                                                                          \
		.noun = (text), .object_size = sizeof(slot), .kept = offsetof(type, first),        \
		.context = offsetof(type, ctx), .lock = PTHREAD_MUTEX_INITIALIZER                  \
	}
#define HANDLE_TABLE_FROM(text, type, first) HANDLE_TABLE_IN(text, type, type, first)
#define HANDLE_TABLE(text, type)                                                                   \
	{                                                                                          \
		.noun = (text), .object_size = sizeof(type), .kept = sizeof(struct handle),        \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                  \
	}

/* What is allocated for a chunk, the FIRST or another. */
size_t handle_chunk_size(const struct handle_table *t, bool first);
/* A live object, zeroed behind what is kept; NULL when memory or the table is exhausted. */
void *handle_new(struct handle_table *t);
void handle_free(struct handle_table *t, void *object);
/* For an owner who takes the same object again, and needs no lock of the table's for that: its
 * handle is stale from now on; live again, and it zeroed, as a new one. */
void handle_retire(void *object);
void handle_renew(const struct handle_table *t, void *object);
/* The slot of INDEX whether live or not; NULL if there is none. For walking a table. */
void *handle_slot(struct handle_table *t, uint32_t index);
/* In the child after fork: all handles, of each table, answer EFORKED from here on. */
void handle_fork(void);
/* Why handle_get failed: -SLMPM_EHANDLE or -SLMPM_EFORKED, with the detail set. */
int handle_error(struct handle_table *t, uint64_t id);

static inline bool handle_is_live(const void *object)
{
	const struct handle *h = object;

	return atomic_load_explicit(&h->generation, memory_order_relaxed) & 1;
}

static inline uint64_t handle_id(const void *object)
{
	const struct handle *h = object;

	return (uint64_t)atomic_load_explicit(&h->generation, memory_order_relaxed) << 32 |
	       h->index;
}

/* The object of a live handle, else NULL. SIZE: that of the table's objects; hot callers know it
 * beforehand, which saves a load and a multiplication in front of everything else. */
static inline void *handle_get_sized(struct handle_table *t, uint64_t id, size_t size)
{
	uint32_t index = (uint32_t)id;
	unsigned char *chunk;
	struct handle *h;

	if (index >= HANDLE_CHUNK * HANDLE_CHUNKS)
		return NULL;
	/* Pairs with the release in handle_new: the chunk's slots are initialised. */
	chunk = atomic_load_explicit(&t->chunks[index / HANDLE_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	h = (struct handle *)(void *)(chunk + index % HANDLE_CHUNK * size);
	if (atomic_load_explicit(&h->generation, memory_order_relaxed) != id >> 32 ||
	    !(id >> 32 & 1))
		return NULL;
	return h;
}

static inline void *handle_get(struct handle_table *t, uint64_t id)
{
	return handle_get_sized(t, id, t->object_size);
}

#endif
