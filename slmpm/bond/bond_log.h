/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond's log: packets in the order they were posted, until the peer has acknowledged them. */
#ifndef SLMPM_BOND_LOG_H
#define SLMPM_BOND_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "fabrics/fabric.h"
#include "shm/copy.h"

#define BOND_ENTRY 32 /* bytes that a packet takes beside its payload; what all is rounded to */
#define BOND_MARKS 8

struct bond_entry { /* followed by its payload */
	_Alignas(BOND_ENTRY) uint32_t length;
	uint8_t kind; /* 0: fills the log's end */
	uint64_t head[FABRIC_HEAD_WORDS];
};
_Static_assert(sizeof(struct bond_entry) == BOND_ENTRY, "payload is aligned");

struct bond_log {
	unsigned char *base;
	uint64_t size;       /* a power of two */
	uint64_t head, tail; /* bytes put and given back since the beginning */
	uint64_t open;       /* where the entry reserved lies */
	uint64_t put, given; /* packets before the head, before the tail */
	/* Places between, the earliest first: the tail moves from one to the next, so that nobody
	 * need read again what has left the cache. */
	struct {
		uint64_t packet, place;
	} mark[BOND_MARKS];
	uint32_t marks;
};

static inline uint64_t bond_entry_size(uint32_t length)
{
	return BOND_ENTRY + ((uint64_t)length + BOND_ENTRY - 1) / BOND_ENTRY * BOND_ENTRY;
}

/* Where the log begins, where totals begin with START. */
static inline uint64_t bond_log_place(uint64_t start)
{
	return start & ~(uint64_t)(BOND_ENTRY - 1);
}

static inline struct bond_entry *bond_log_at(const struct bond_log *l, uint64_t place)
{
	return (struct bond_entry *)(void *)(l->base + (place & (l->size - 1)));
}

static inline void *bond_entry_data(struct bond_entry *e)
{
	return e + 1;
}

/* LEAST bytes or more; totals begin with START: 0 or -ENOMEM. */
int bond_log_open(struct bond_log *l, uint64_t least, uint64_t start);
void bond_log_close(struct bond_log *l);
/* What is left before the end, and too short for the entry reserved. */
void bond_log_pad(struct bond_log *l);
/* The tail may come here, once all that is in it has been acknowledged. */
void bond_log_mark(struct bond_log *l);
/* The first N packets of all are not needed any more: as far as the last mark before, and no
 * further. */
void bond_log_retire(struct bond_log *l, uint64_t n);
/* And further: packet by packet, as far as they are kept. */
void bond_log_trim(struct bond_log *l, uint64_t n);
/* The packet at *AT, which moves on behind it; from the tail to the head. */
struct bond_entry *bond_log_next(const struct bond_log *l, uint64_t *at);

/* Room for a packet of LENGTH bytes with SPARE bytes left behind it. Another reservation replaces
 * it. */
static inline bool bond_log_reserve(struct bond_log *l, uint32_t length, uint64_t spare)
{
	uint64_t size = bond_entry_size(length);
	uint64_t left = l->size - (l->head & (l->size - 1));
	uint64_t skip = size > left ? left : 0;

	if (l->head - l->tail + skip + size + spare > l->size)
		return false;
	l->open = l->head + skip;
	return true;
}

/* Where the payload of what was reserved lies. */
static inline void *bond_log_open_data(const struct bond_log *l)
{
	return bond_entry_data(bond_log_at(l, l->open));
}

/* What was reserved is a packet now, of no more than LENGTH; its payload is there. */
static inline void bond_log_commit(struct bond_log *l, const struct fabric_wr *wr)
{
	struct bond_entry *e = bond_log_at(l, l->open);

	if (__builtin_expect(l->open != l->head, 0))
		bond_log_pad(l);
	e->length = wr->length;
	e->kind = wr->kind;
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
		uint64_t word = wr->head[i];

		/* One by one: of two at once, just written one by one, a load would wait for every
		 * store before it, those to the peer's ring too. */
		__asm__ volatile("" : "+r"(word));
		e->head[i] = word;
	}
	l->head = l->open + bond_entry_size(wr->length);
	l->put++;
}

/* A packet that is not kept, nor is any before it. */
static inline void bond_log_skip(struct bond_log *l)
{
	l->tail = l->head;
	l->given = ++l->put;
	l->marks = 0;
}

#endif
