/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory fabric's own structures: shm.c moves bytes, shm_connect.c sets them up,
 * shm_memory.c has memory regions. */
#ifndef FABRICS_SHM_H
#define FABRICS_SHM_H

#include <sys/queue.h>

#include "fabrics/publication.h"
#include "shm/attach.h"
#include "shm/doorbell.h"
#include "shm/mapping.h"

/* In the page of the ring's words: access words, for its owner's operations on the peer's
 * memory. */
#define SHM_ACCESS_OFFSET 512
_Static_assert(SHM_ACCESS_OFFSET >= sizeof(struct ring_words) &&
		       SHM_ACCESS_OFFSET + FABRIC_ACCESS_WORDS <= RING_SEGMENTS_OFFSET,
	       "shared layout");

#define STAGED_MAX     256
#define LOAN_ALIGNMENT 32 /* of payload in the ring, and where it is staged */

struct shm_domain {
	struct fabric_domain base;
	bool membarrier;                      /* both halves work in this process */
	LIST_HEAD(shm_links, shm_link) links; /* connected */
};

enum shm_attach { ATTACH_UNTRIED, ATTACH_WORKS, ATTACH_REFUSED };

struct shm_link {
	struct fabric_link base;
	/* hot */
	struct ring_writer writer;
	struct ring_reader reader;
	struct doorbell bell;
	void *built;       /* an open reservation */
	bool has_deferred; /* a bell: a post said MORE */
	/*
	 * A short packet is built here after all: its first line would be fetched by the waiting
	 * reader while it is written, and come back for the commit word.
	 */
	bool staged;
	unsigned char staging[STAGED_MAX + LOAN_ALIGNMENT];
	/* cold */
	struct mapping own, peer; /* the peer's descriptor until its seals have been seen closed */
	uint64_t settled;         /* what was produced when this side last fell asleep */
	struct ring_shape own_shape, peer_shape;
	uint64_t own_epoch, peer_epoch;
	struct attach_probe probe; /* of the peer's process, from its first grant */
	/* enum shm_attach: found out by the first transfer, in whatever thread that runs. Relaxed: it
	 * stands for nothing else, and two that try at once find the same. */
	_Atomic uint32_t attach;
	/* /proc/PID/mem, read-only, where attach works, plus 1; 0: none. It stays that process's
	 * memory when another process has the number. */
	_Atomic int memory_fd;
	_Atomic bool ended; /* an operation has found that process gone */
	struct fabric_memory peer_access;
	LIST_ENTRY(shm_link) entry; /* le_prev: NULL where it is not connected */
};

int shm_address(struct fabric_link *link, int round, struct fabric_blob *out);
int shm_connect(struct fabric_link *link, int round, struct fabric_blob *in);
void shm_disconnect(struct fabric_link *link);

int shm_alloc(struct fabric_domain *domain, struct fabric_memory *m);
int shm_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
	    struct fabric_blob *blob);
void shm_dereg(struct fabric_domain *domain, struct fabric_memory *m);
/* Post of WRITE, READ and ATOMIC. */
int shm_reach(struct shm_link *l, const struct fabric_wr *wr);
/* At the end of the link: closes /proc/PID/mem. */
void shm_close_memory(struct shm_link *l);

#endif
