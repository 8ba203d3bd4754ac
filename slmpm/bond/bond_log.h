/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond's log: packets in the order they were posted, until the peer has acknowledged them. */
#ifndef SLMPM_BOND_LOG_H
#define SLMPM_BOND_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "fabrics/fabric.h"

#define BOND_ENTRY                                                                                 \
	64 /* bytes that a packet takes beside its payload; what everything is rounded to */

struct bond_entry {                         /* followed by its payload */
	_Alignas(BOND_ENTRY) uint64_t size; /* of all of it; multiple of BOND_ENTRY */
	uint32_t length;
	uint8_t kind; /* 0: fills the log's end */
	uint64_t head[FABRIC_HEAD_WORDS];
};
_Static_assert(sizeof(struct bond_entry) == BOND_ENTRY, "payload is aligned");

struct bond_log {
	unsigned char *base;
	uint64_t size;       /* a power of two */
	uint64_t head, tail; /* bytes put and given back since the beginning */
	uint64_t open;       /* where the entry reserved lies */
};

static inline uint64_t bond_entry_size(uint32_t length)
{
	return BOND_ENTRY + ((uint64_t)length + BOND_ENTRY - 1) / BOND_ENTRY * BOND_ENTRY;
}

static inline void *bond_entry_data(struct bond_entry *e)
{
	return e + 1;
}

/* LEAST bytes or more: 0 or -ENOMEM. */
int bond_log_open(struct bond_log *l, uint64_t least);
void bond_log_close(struct bond_log *l);
/* Room for a packet of LENGTH bytes with SPARE bytes left behind it, or NULL. Another reservation
 * replaces it. */
struct bond_entry *bond_log_reserve(struct bond_log *l, uint32_t length, uint64_t spare);
/* What was reserved is a packet now, of no more than LENGTH. */
void bond_log_commit(struct bond_log *l, const struct fabric_wr *wr);
/* The packet at *AT, which moves on behind it; from the tail to the head. */
struct bond_entry *bond_log_next(const struct bond_log *l, uint64_t *at);
/* The first N are not needed any more. */
void bond_log_retire(struct bond_log *l, uint64_t n);

#endif
