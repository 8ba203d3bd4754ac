/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: own ones, the grants that peers have to them, and peers' regions as reached from
 * here. A grant is a key: 128 random bits for one peer, one region and some rights. Where the
 * fabric can map the region into the peer, the mapping goes with the key; what reaches a region
 * without mapping names the key each time, and region_check is where it is looked at (R9).
 */
#ifndef SLMPM_MEMORY_H
#define SLMPM_MEMORY_H

#include "slmpm/endpoint.h"

#define KEY_SECRET 16

struct counter;
struct queue;

struct region { /* of this process */
	struct handle handle;
	struct context *ctx;
	struct fabric_memory memory;
	uint32_t access; /* SLMPM_READ, SLMPM_WRITE: the most that a key may give */
	bool allocated;
	struct list grants;      /* struct grant */
	struct counter *counter; /* told of notified puts; or NULL */
	struct queue *queue;
};

struct grant { /* what one peer may do with one region */
	struct list of_region, of_peer;
	struct region *region;
	struct endpoint *ep;
	uint32_t id; /* within the endpoint; never used again */
	uint32_t access;
	unsigned char secret[KEY_SECRET];
	bool mapped;   /* the peer has been given the mapping */
	bool accepted; /* the peer holds it open */
};

struct remote { /* a peer's region, behind slmpm_rmem */
	struct handle handle;
	struct endpoint *ep;
	struct list node; /* of the endpoint's */
	uint32_t grant, access;
	uint64_t size, address;
	unsigned char secret[KEY_SECRET];
	struct fabric_memory memory; /* memory.ops: what the fabric does on it; 0: by requests */
	uint32_t active;             /* operations under way */
	bool revoked;
};

extern struct handle_table region_table, remote_table;

static inline struct remote *remote_get(slmpm_rmem rmem)
{
	return (struct remote *)handle_get(&remote_table, rmem.id);
}

/* A peer's request from ring: the grant ID of EP when SECRET is its key (compared in constant time),
 * ACCESS is among its rights and LEN bytes at OFFSET lie in the region, also for LEN 0; else NULL
 * and the refusal is counted, *STATUS is -SLMPM_EACCES or -SLMPM_EINVAL. */
struct grant *region_check(struct endpoint *ep, uint32_t id, const unsigned char *secret,
			   uint32_t access, uint64_t offset, uint64_t len, int *status);

static inline void *region_at(const struct region *region, uint64_t offset)
{
	return (unsigned char *)region->memory.base + offset;
}

/* At the endpoint's end: its grants and the regions of its own are gone. */
void memory_end(struct endpoint *ep);

#endif
