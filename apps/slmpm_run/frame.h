/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a relay, on the host's machine, and an agent, where the accelerator runs, say to each other
 * over the standard input and output of a remote command: frames of a length, a type and a payload.
 * Both sides check what the other says as if it came from anybody.
 *
 *     agent    HELLO                     that it is one, and its version
 *     relay  START                     what is to be run
 *     relay  FILE   agent  ANSWER      a file it needs, by name and digest; whether it is wanted
 *     relay  DATA ...                  its bytes, if so
 *     relay  GO                        these were all
 *     agent    STARTED or FAILED
 *     agent    OUT, ERR   relay SIGNAL as they come
 *     agent    END                       how it ended
 */
#ifndef SLMPM_RUN_FRAME_H
#define SLMPM_RUN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 1
#define FRAME_MAGIC   "slmpm-agent"
#define FRAME_HEAD    5
#define FRAME_MAX     (8u << 20) /* payload; START carries a whole environment */
#define FRAME_DATA    (256u << 10)
#define DIGEST_SIZE   32

enum frame_type {
	FRAME_HELLO = 1, /* magic, then the version as text */
	FRAME_START,     /* records */
	FRAME_FILE,      /* struct offer, packed, then path and name, each with its 0 */
	FRAME_ANSWER,    /* 1 byte: it is wanted */
	FRAME_DATA_PART,
	FRAME_GO,
	FRAME_STARTED, /* the process's number, 4 bytes */
	FRAME_FAILED,  /* put_error, 4 bytes, then text */
	FRAME_OUT,
	FRAME_ERR,
	FRAME_SIGNAL, /* 4 bytes */
	FRAME_END,    /* 4 bytes: 0 exited, 1 by a signal; 4 bytes: which */
	FRAME_TYPES
};

struct frame {
	enum frame_type type;
	uint32_t length;
	unsigned char *data; /* with a 0 behind it; until the next frame */
};

/* One direction of a connection: frames out of bytes. */
struct inlet {
	int fd;
	unsigned char *bytes;
	size_t have, room, taken; /* taken: of the frame handed out last */
};

/* 1 a frame, 0 not yet (only with a deadline passed, or WAIT_MS 0), -EPIPE the end, or negative
 * errno: -EPROTO for what is none. WAIT_MS < 0: for ever. */
int inlet_next(struct inlet *in, struct frame *f, int wait_ms);
void inlet_free(struct inlet *in);
/* Writes all of it, waiting up to WAIT_MS each time nothing moves. Negative errno. */
int frame_send(int fd, enum frame_type type, const void *data, size_t length, int wait_ms);

void put_32(unsigned char *to, uint32_t value);
uint32_t get_32(const unsigned char *from);
void put_64(unsigned char *to, uint64_t value);
uint64_t get_64(const unsigned char *from);
/* An error's number less SLMPM_ERROR_BASE; one that is none of them reads as SLMPM_ESYSTEM. */
void put_error(unsigned char *to, int error);
int get_error(const unsigned char *from);

/* ---- records: KEY=VALUE, a 0 behind each, what START and the library's request consist of ---- */

struct records {
	char *text;
	size_t length;
};

/* Are they well formed, each with its key? */
bool records_good(const struct records *r);
/* The first value of KEY, or NULL. */
const char *records_value(const struct records *r, const char *key);
/* Values of KEY, in their order, NULL at the end; to be freed, the values not. NULL: no memory. */
char **records_all(const struct records *r, const char *key);
/* Adds one; false: no memory. */
bool records_add(struct records *r, const char *key, const char *value);

#endif
