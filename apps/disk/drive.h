/* SPDX-License-Identifier: BSD-3-Clause */
/* A drive of the controller: a file or a block device, seen as cylinders, surfaces and sectors. */
#ifndef DISK_DRIVE_H
#define DISK_DRIVE_H

#include "apps/disk/disk.h"

struct drive {
	const char *path;
	int fd;
	bool read_only;
	bool given;    /* the geometry is the user's, not made up for the file */
	int64_t wants; /* bytes that the file is made to have; -1: what it has */
	struct disk_geometry geometry;
	uint64_t bytes; /* that there are when it is opened */
};

/* Opens the file and checks what is said of it. 0, or -1: told on standard error. */
int drive_open(struct drive *d);
/*
 * Where a request's sectors lie: *OFFSET in the file, *THERE bytes of them (less than the sectors
 * have where the drive ends within its last one).
 */
enum disk_status drive_locate(const struct drive *d, const struct disk_request *r, uint64_t *offset,
			      uint32_t *there);

#endif
