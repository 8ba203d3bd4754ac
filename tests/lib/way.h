/* SPDX-License-Identifier: BSD-3-Clause */
/* The same test of one-sided operations on every way that they can go; a region and who reaches
 * it. */
#ifndef TESTS_LIB_WAY_H
#define TESTS_LIB_WAY_H

#include "tests/lib/actor.h"

struct way {
	const char *name;
	bool registered;  /* regions of the application's own memory, not of the library's */
	bool slow;        /* few bytes */
	const char *path; /* what slmpm_rmem_query must say; attach may be refused by the machine */
	const char *set[8];
};

/* BODY on each, in a process of its own, at most SECONDS long (more under a sanitizer): what main
 * returns. Before any slmpm_* call. SLMPM_TEST_WAY names the only one to run. */
int way_each(int (*body)(const struct way *w), unsigned seconds);
/* The one that this process runs on; in what actor_spawn starts, too. */
const struct way *way_current(void);
/* No request is made of the target. */
bool way_is_direct(void);

/* New memory of SIZE bytes and a region of it, as the way wants. */
unsigned char *way_region(slmpm_ctx ctx, size_t size, uint32_t access, slmpm_mem *mem);
/* And what PEER, which is NEAR's end of a pair in one context, reaches of it. */
slmpm_rmem way_reach(slmpm_mem mem, slmpm_peer near, slmpm_peer peer, uint32_t access);
/* Between processes: the key to MEM goes to PEER as a message of STREAM, and is opened there. */
void way_give(slmpm_mem mem, slmpm_peer peer, uint32_t stream);
slmpm_rmem way_open(slmpm_peer peer, uint32_t stream);
/* Can memory be mapped over the fabric of SLMPM_FABRIC? Only then does what should be go that
 * way. */
bool way_maps(void);
/* "map", or what there is instead. */
const char *way_mapped(void);
/* It goes that way. */
void way_check(slmpm_rmem rmem);
/* How RMEM is reached now, until it is asked again; and the keys to MEM that are open. */
const char *way_path(slmpm_rmem rmem);
uint64_t way_acceptors(slmpm_mem mem);

#endif
