/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of slmpm_demo share: the files, the host's work, and how both sides speak. */
#ifndef DEMO_H
#define DEMO_H

#include <slmpm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/lib/hist.h"

/*
 * Host to accelerator: a slot's stream carries the bytes of one file after another; the immediate
 * says where one ends. Accelerator to host: on ANSWER_STREAM one answer a file, in a slot's order,
 * the slot in the immediate: the digest, then the count of bytes hashed as eight bytes, low first.
 * Bytes that were put: the message says how many, as eight bytes, and where they lie follows from
 * the slot; the accelerator says on ANSWER_STREAM when it has hashed them.
 */
#define IMM_LAST      1u /* the file ends with this message */
#define IMM_FORGET    2u /* the file cannot be read further: no answer */
#define IMM_BYE       4u /* no more files: answer with counters and end */
#define IMM_PLACED    8u /* the bytes lie in the slot's next place */
#define IMM_COUNTERS  UINT32_MAX
#define IMM_TAKEN     0x10000u /* beside a slot: a place of it is free again */
#define ANSWER_STREAM 1000u

#define CHUNK            32768 /* bytes of a message: what may arrive before its receive is posted */
#define CHUNK_LARGE      (1024 * 1024) /* of one of a large file's: the library chooses how it travels */
#define LARGE            (1024 * 1024)
#define LARGE_MAX        256               /* slots in all with memory for such messages */
#define PLACE            (CHUNK_LARGE / 2) /* of a slot's in the accelerator's region */
#define PLACES           2                 /* filled in turn */
#define DIGEST_SIZE      32
#define ANSWER_SIZE      (DIGEST_SIZE + 8)
#define ACCELERATORS_MAX 64
#define WINDOW_MAX       64
#define WINDOW           4 /* files on their way to one accelerator at once */

/* ---- files (files.c) ---- */

enum file_state { FILE_WAITING, FILE_GIVEN, FILE_DONE, FILE_FAILED };

struct file {
	char *path;
	uint64_t size; /* as found by the walk; hashed once done */
	enum file_state state;
	unsigned char digest[DIGEST_SIZE];
};

struct files {
	struct file *at;
	size_t count, room;
	uint64_t bytes;
	size_t failed;
};

/* Collects the regular files at and below PATH; what cannot be read is warned of and counted. */
int files_walk(struct files *files, const char *path);
void files_warn(struct files *files, const char *path, const char *why);
void files_free(struct files *files);

/* ---- digests (digest.c) ---- */

struct digest; /* one SHA-256 under way */

struct digest *digest_new(void);
void digest_free(struct digest *d);
void digest_add(struct digest *d, const void *data, size_t len);
void digest_drop(struct digest *d);
/* The result and the count of bytes; begins anew. */
uint64_t digest_end(struct digest *d, unsigned char result[DIGEST_SIZE]);
/* As sha256sum prints it; names with a backslash or a line end escaped likewise. */
void digest_print(const unsigned char digest[DIGEST_SIZE], const char *path);

/* ---- the run (host.c, accelerator.c, screen.c) ---- */

/* How messages travelled: packets through the ring; announced and fetched by the receiver, of which
 * some with a share pushed by the sender; put into a region. */
enum protocol { SMT, RGET, RGET_SHARED, PUT, PROTOCOLS };

struct tally {
	uint64_t files, bytes, messages, remote_writes, remote_reads, redone, here;
	uint64_t protocol_messages[PROTOCOLS], protocol_bytes[PROTOCOLS];
	uint64_t ring_samples;
	double ring_sum, ring_most; /* shares of the ring in use */
	struct hist latency;        /* ns from a file's last byte to its digest */
	double seconds;
	unsigned accelerators, lost;
};

/* How large files go: as messages, by what the library chooses or by one of its ways; or put. */
enum way { WAY_AUTO, WAY_SMT, WAY_RGET, WAY_PUT, WAYS };

struct options {
	unsigned accelerators, window;
	enum way way;
	bool quiet;
};

/* Where the bytes of SLOT's message number TURN lie, among those that are put. */
static inline uint64_t place_of(unsigned slot, uint64_t turn)
{
	return (slot * (uint64_t)PLACES + turn % PLACES) * PLACE;
}

/* Eight bytes, low first. */
static inline void count_write(unsigned char text[8], uint64_t count)
{
	for (int i = 0; i < 8; i++)
		text[i] = (unsigned char)(count >> 8 * i);
}

static inline uint64_t count_read(const unsigned char text[8])
{
	uint64_t count = 0;

	for (int i = 0; i < 8; i++)
		count |= (uint64_t)text[i] << 8 * i;
	return count;
}

int host_run(const struct options *options, struct files *files, struct tally *tally);
/* SLOTS: of the region that large files are put into; 0: none. */
int accelerator_run(unsigned slots);

void screen_progress(const struct files *files, const struct tally *tally);
void screen_clear(void);
void screen_table(const struct files *files, const struct tally *tally);

uint64_t now_ns(void);

#endif
