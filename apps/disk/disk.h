/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a host and its mass-storage controller say to each other. The host Sends a request: what to
 * do, with which drive and which sectors of it, and, for a read, where in the host's memory the
 * data shall go and the key that lets the controller write there. For a write the data follow in
 * the same Send. What was read comes as one RDMA Write under the key, whose landing completes the
 * request, its tag being the immediate; all else, and what went wrong, is told by a reply.
 */
#ifndef DISK_H
#define DISK_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

#define DISK_STREAM_REQUEST 1u
#define DISK_STREAM_REPLY   2u

#define DISK_MOST       (1u << 20) /* bytes of data of one request */
#define DISK_DRIVES_MAX 64

/* ---- geometry ---- */

struct disk_geometry {
	uint32_t cylinders, surfaces, track; /* sectors per track */
	uint32_t sector;                     /* bytes */
};

struct disk_place { /* each from 0 */
	uint32_t cylinder, surface, sector;
};

/* NULL, or what is wrong with G. */
const char *disk_geometry_check(const struct disk_geometry *g);
uint64_t disk_sectors(const struct disk_geometry *g);
/* A geometry that holds BYTES, if in less than a cylinder more; sectors are of 512 bytes. */
struct disk_geometry disk_geometry_for(uint64_t bytes);
/* The number of PLACE's sector; false: there is no such place, or fewer than N sectors from
 * there. */
bool disk_locate(const struct disk_geometry *g, const struct disk_place *place, uint32_t n,
		 uint64_t *number);
struct disk_place disk_place_of(const struct disk_geometry *g, uint64_t number);

/* ---- requests and replies: wire.c ---- */

enum disk_op {
	DISK_READ = 1,
	DISK_WRITE = 2,
	DISK_IDENTIFY = 3, /* what drive it is */
	DISK_SYNC = 4      /* what was written is on the medium */
};

/* X(name, text): how a request ended. */
#define DISK_STATUS(X)                                                                             \
	X(OK, "done")                                                                              \
	X(NO_DRIVE, "no such drive")                                                               \
	X(OUTSIDE, "outside of the drive's geometry")                                              \
	X(SHORT, "the drive's file ends before that sector")                                       \
	X(READ_ONLY, "the drive is read-only")                                                     \
	X(TOO_LONG, "more sectors than one request may have")                                      \
	X(EMPTY, "no sectors")                                                                     \
	X(LENGTH, "not as many bytes of data as sectors")                                          \
	X(KEY, "the data cannot be returned under that key")                                       \
	X(IO, "input/output error")                                                                \
	X(REQUEST, "not a request")

enum disk_status {
#define DISK_STATUS_ENUM(name, text) DISK_##name,
	DISK_STATUS(DISK_STATUS_ENUM)
#undef DISK_STATUS_ENUM
		DISK_STATUS_COUNT
};

const char *disk_status_text(enum disk_status status);

struct disk_request {
	uint32_t op, tag;
	uint32_t drive;
	struct disk_place place;
	uint32_t sectors;
	uint64_t address;     /* offset in the region that the key is of */
	struct slmpm_key key; /* the permission to write there */
};

struct disk_info {
	struct disk_geometry geometry;
	uint32_t drives; /* of this controller */
	uint32_t read_only;
	uint64_t bytes; /* the last sector may be partly there: read as if filled with zeros */
};

struct disk_reply {
	uint32_t op, tag;
	enum disk_status status;
	struct disk_info info; /* DISK_IDENTIFY */
	char detail[64];       /* what the system said */
};

#define DISK_REQUEST_SIZE (44 + SLMPM_KEY_SIZE)
#define DISK_REPLY_SIZE   (48 + 64)

void disk_request_pack(const struct disk_request *r, unsigned char at[DISK_REQUEST_SIZE]);
/* False: it is none. */
bool disk_request_unpack(struct disk_request *r, const unsigned char at[DISK_REQUEST_SIZE]);
void disk_reply_pack(const struct disk_reply *r, unsigned char at[DISK_REPLY_SIZE]);
bool disk_reply_unpack(struct disk_reply *r, const unsigned char at[DISK_REPLY_SIZE]);

#endif
