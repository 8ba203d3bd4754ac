/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's part: starts a controller, sends it requests, many at a time, and takes their ends.
 * What is read lands in one region of memory that the controller has the key of.
 */
#ifndef DISK_CLIENT_H
#define DISK_CLIENT_H

#include "apps/disk/disk.h"

#define DISK_WINDOW 64 /* requests under way, at most */

struct disk_client;

struct disk_client_options {
	const char
		*controller; /* the program; NULL: disk_controller beside this one, else in PATH */
	char *const *argv;   /* its arguments: the drives; NULL at the end */
	size_t memory;       /* bytes of the region */
	bool foreign;        /* the region is the application's own memory, not mapped by both */
};

struct disk_result {
	uint64_t cookie;
	enum disk_status status;
	uint32_t bytes; /* that were read or written */
	struct disk_info info;
	char detail[64];
};

/*
 * All return 0 or more, or the library's negative code, told on standard error: the controller is
 * lost then. What a request itself meets is in its result's status.
 */
int disk_start(struct disk_client **client, const struct disk_client_options *options);
/* Ends the controller; its exit code. */
int disk_stop(struct disk_client *client);
/* From now on requests carry a key that opens nothing. */
void disk_spoil_key(struct disk_client *client);
/* The region of options->memory bytes. */
char *disk_memory(const struct disk_client *client);

/* Sends a request. -SLMPM_EAGAIN: DISK_WINDOW of them are under way. ADDRESS is an offset in the
 * region; DATA stays as it is until the request has ended. */
int disk_read(struct disk_client *client, uint32_t drive, struct disk_place from, uint32_t sectors,
	      uint64_t address, uint32_t bytes, uint64_t cookie);
int disk_write(struct disk_client *client, uint32_t drive, struct disk_place to, uint32_t sectors,
	       const void *data, uint32_t bytes, uint64_t cookie);
int disk_sync(struct disk_client *client, uint32_t drive, uint64_t cookie);
/* The next request that has ended, in whichever order: 1, or 0 when none is under way. */
int disk_next(struct disk_client *client, struct disk_result *result);
/* What drive it is, with nothing else under way. */
int disk_identify(struct disk_client *client, uint32_t drive, struct disk_result *result);

#endif
