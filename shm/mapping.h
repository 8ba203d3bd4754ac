/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory without a name: sealed memfd objects, passed by descriptor. The kernel frees them
 * with the last process; nothing is left to clean up.
 */
#ifndef SHM_MAPPING_H
#define SHM_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	void *base;
	size_t size;
	int fd; /* the owner's, for passing on; -1 once closed */
};

enum mapping_access { MAPPING_READ, MAPPING_WRITE };

/*
 * A new zeroed object of SIZE bytes, mapped, its pages present, sealed against shrinking and
 * growing. -EFBIG over the file-size limit, -ENOMEM, -EMFILE and so on; nothing is left behind,
 * and M is then empty: destroying it does nothing.
 */
int mapping_create(struct mapping *m, const char *label, size_t size);
/* The same, but that only the first PRESENT bytes have memory: the rest by mapping_fill or
 * mapping_fill_part, or with its first use. */
int mapping_create_sparse(struct mapping *m, const char *label, size_t size, size_t present);
/* The same until DEADLINE (CLOCK_MONOTONIC, ns; 0: however long it takes), else -ETIMEDOUT: STEP
 * bytes are made present whenever that is, and after each so many the clock is looked at. */
int mapping_create_by(struct mapping *m, const char *label, size_t size, uint64_t deadline,
		      size_t step);
/* The same without pages, which mapping_allocate makes; until then any may be missing. */
int mapping_reserve(struct mapping *m, const char *label, size_t size);
/* The same as mapping_create, but mapped to be read: its owner stores by mapping_store alone, until
 * its seals are closed. */
int mapping_create_read(struct mapping *m, const char *label, size_t size);
int mapping_store(const struct mapping *m, size_t at, const void *from, size_t size);
struct spare {
	uint64_t bytes;
	const char *by; /* which bound that is */
};

/* What this process can still have, before the kernel ends processes for want of memory. ROOT: "";
 * or a folder in the place of the machine's files. */
struct spare mapping_spare(const char *root);
/* All pages of the object FD, SIZE bytes long, in this process's memory as far as they are not
 * there: 0, or a negative errno; -ENOMEM also where that would take more than 15 of 16 parts of
 * what mapping_spare says; until DEADLINE as above. Its seals do not matter. */
int mapping_allocate(int fd, size_t size, uint64_t deadline);
/* Owner, once the peer has mapped it: no further writable mapping, no further seals. */
int mapping_close_seals(const struct mapping *m);
/* No further seals alone: whoever has the descriptor may map it to write. */
int mapping_keep_seals(const struct mapping *m);
/* The peer's view: are those seals there? */
bool mapping_seals_closed(int fd);
/* No mapping made from now on can be written through: some kernels know no such seal. */
bool mapping_is_read_only(int fd);
/*
 * Maps a received object: refuses one whose size is not SIZE (-EPROTO), that its owner could still
 * shrink, or whose pages may run out (-EPERM), M then being empty. Keeps no descriptor; the caller
 * closes FD.
 */
int mapping_attach(struct mapping *m, int fd, size_t size, enum mapping_access access);
/* The same of the N objects FDS, each SIZE bytes long, to be read; seals that are not closed
 * (mapping_seals_closed) are -EPERM. Returns how many are mapped: those before the one for which
 * *ERROR is negative. */
size_t mapping_attach_all(struct mapping *m, const int *fds, size_t n, size_t size, int *error);
/* SIZE bytes at BASE, of a mapping, have memory from now on: 0, or -ENOMEM. With MAPPING_WRITE
 * nothing has been stored there yet. */
int mapping_fill(const void *base, size_t size, enum mapping_access access);
/* The same of SIZE bytes of M from AT on, beside which something may have been stored. */
int mapping_fill_part(const struct mapping *m, size_t at, size_t size);
/* Maps the pages of FD, which M maps, in one call in place of a fault for each amid the traffic.
 * Only where the owner of FD has allocated all of them, else false: no page is allocated here. */
bool mapping_populate(const struct mapping *m, int fd);
void mapping_destroy(struct mapping *m);

/* Private memory that is mapped twice in a row: what begins before its end goes on at its
 * beginning, in one piece. */
struct double_mapping {
	void *base;  /* 2 * size bytes of addresses */
	size_t size; /* bytes of memory: whole pages */
};

/* At least SIZE bytes, accounted for; where the kernel can, pages come with their use. A negative
 * errno leaves M empty: destroying it does nothing. */
int double_mapping_create(struct double_mapping *m, const char *label, size_t size);
void double_mapping_destroy(struct double_mapping *m);

#endif
