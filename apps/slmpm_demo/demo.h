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
#include "apps/slmpm_demo/counts.h"
#include "apps/slmpm_demo/traffic.h"

/*
 * Host to accelerator: a slot's stream carries the bytes of one file after another; the immediate
 * says where one ends. Accelerator to host: on ANSWER_STREAM one answer a file, in a slot's order,
 * the slot in the immediate: the digest, then the count of bytes hashed as eight bytes, low first.
 * Bytes that were put: the message says how many, as eight bytes, and where they lie follows from
 * the slot; the accelerator says on ANSWER_STREAM when it has hashed them, and, first of all, that
 * it is there. A loan, on the first slot's stream, is full of files: pieces, each behind a line
 * with its length and immediate; what ends in it is answered at once, one answer behind the other.
 */
#define IMM_LAST      1u  /* the file ends with this message */
#define IMM_FORGET    2u  /* the file cannot be read further: no answer */
#define IMM_BYE       4u  /* no more files: answer with counters and end */
#define IMM_PLACED    8u  /* the bytes lie in the slot's next place */
#define IMM_BALLAST   16u /* of no use but to weigh (stress.h) */
#define IMM_PIECES    32u /* a loan */
#define IMM_COUNTERS  UINT32_MAX
#define IMM_TAKEN     0x10000u /* beside a slot: a place of it, or a loan, is free again */
#define IMM_READY     0x20000u /* the accelerator is there */
#define ANSWER_STREAM 1000u

#define CHUNK            32768         /* bytes of a message: what may arrive without a receive */
#define CHUNK_LARGE      (1024 * 1024) /* of a large file's: the library chooses its route */
#define LARGE            (1024 * 1024)
#define LARGE_MAX        256               /* slots in all with memory for such messages */
#define PLACE            (CHUNK_LARGE / 2) /* of a slot's in the accelerator's region */
#define PLACES           2                 /* filled in turn */
#define LENT             (512 * 1024)      /* of a loan: the next one finds the same memory */
#define LOANS            4  /* times the window: full ones of an accelerator that it hashes */
#define LINE             64 /* bytes, in front of each piece; where that ends is rounded up to it */
#define PIECES           64 /* in a loan, at most */
#define DIGEST_SIZE      32
#define ANSWER_SIZE      (DIGEST_SIZE + 8)
#define ACCELERATORS_MAX 64
#define WINDOW_MAX       64
#define WINDOW           4 /* files on their way to one accelerator at once */

/* ---- files (files.c) ---- */

#define NO_FILE SIZE_MAX

enum file_state { FILE_WAITING, FILE_GIVEN, FILE_DONE, FILE_FAILED };

struct file {
	char *path;
	uint64_t size; /* as found by the walk; hashed once done */
	size_t again;  /* the next that is to be done again, or NO_FILE */
	enum file_state state;
	unsigned char digest[DIGEST_SIZE];
};

struct files {
	struct file *at;
	size_t count, room;
	uint64_t bytes;
	size_t failed;
	bool all;     /* there are no more, */
	bool lacks;   /* for want of memory */
	char **paths; /* not walked yet, up to a NULL; */
	char *path;   /* the one under way, */
	void *walk;   /* by fts(3), or NULL */
};

/* The next regular file at and below the paths joins the list, unless the end is wanted; what
 * cannot be read is warned of and counted. False: there is none, or it has been said why. */
bool files_more(struct files *files);
/* A descriptor for a folder or file when loans have taken all others: it is kept from now on, and
 * given up where ERROR is for want of one: try again. */
void files_reserve(void);
bool files_may_retry(int error);
void files_warn(struct files *files, const char *path, const char *why);
void files_free(struct files *files);

/* ---- digests (digest.c) ---- */

struct digest; /* one SHA-256 under way */

struct digest *digest_new(void);
void digest_free(struct digest *d);
void digest_add(struct digest *d, const void *data, size_t len);
void digest_drop(struct digest *d);
/* The result and the count of bytes; begins again. */
uint64_t digest_end(struct digest *d, unsigned char result[DIGEST_SIZE]);

/* ---- standard output (output.c) ---- */

/* As sha256sum prints it; names with a backslash or a line end escaped likewise. */
void output_digest(const unsigned char digest[DIGEST_SIZE], const char *path);
void output_flush(void);
/* What went wrong with it first, an errno; or 0. */
int output_error(void);

/* ---- the run (host.c, accelerator.c, screen.c, table.c) ---- */

struct tally {
	uint64_t files, bytes, remote_writes, remote_reads, redone, here;
	uint64_t sent, received, puts;          /* messages of the host's; puts */
	uint64_t pushed_messages, pushed_bytes; /* fetched ones of which the host wrote a share */
	struct traffic traffic;
	uint64_t ring_samples;
	double ring_sum, ring_most; /* shares of the ring in use */
	struct hist latency;        /* ns from a file's last byte to its digest */
	double seconds;
	unsigned accelerators, lost;
	uint64_t bursts, moved, ballast_messages, ballast_puts, ballast_bytes; /* stress.h */
	bool interrupted;
	struct counts counts;  /* of all files, as the host has received their digests */
	struct counts reduced; /* --reduce: the same, of the accelerators' own counts */
	char not_reduced[160]; /* or why there are none */
};

/* How large files go: as messages, by what the library chooses or by one of its ways; or put. Or
 * how all do: in loans. None is asked for: loans, where accelerators map them. */
enum way { WAY_NONE, WHEN_AUTO, WAY_SMT, WAY_RGET, WAY_PUT, WAY_LOAN, WAYS };
enum fabric { FABRIC_ANY, FABRIC_SHM, FABRIC_TCP, FABRIC_BOTH, FABRICS };
enum stress { STRESS_NONE, STRESS_RING, STRESS_QUEUE, STRESS_LINK, STRESSES };

struct options {
	unsigned accelerators, window;
	enum way way;
	enum fabric fabric;
	enum stress stress;
	bool quiet, reduce, tuned; /* --mode has been given */
};

/* ---- settings.c: for the library, by the environment, and so for accelerators, too ---- */

/* What MODE, "auto" or "smt" or "ring=50" and so on with commas between, stands for; or what is wrong
 * with it. */
const char *settings_mode(const char *mode);
/* What the options ask for; or why they do not go together. */
const char *settings_apply(struct options *options);

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

/* Hashes what is at and below PATHS, up to a NULL. */
int host_run(const struct options *options, char **paths, struct files *files, struct tally *tally);
/* SLOTS: of the region that large files are put into; 0: none. */
int accelerator_run(unsigned slots, bool reduces);

/* How many files have been found under PATH and the ones before it. */
void screen_walk(const struct files *files, const char *path);
void screen_progress(const struct files *files, const struct tally *tally);
void screen_clear(void);
/* 12345678 as "12.3 MB". */
const char *screen_amount(char text[24], double bytes);
/* 0, or 1: what was reduced is not what the host has counted. */
int table_print(const struct options *options, const struct files *files, const struct tally *t);

uint64_t now_ns(void);

/* ---- the end before the end (ending.c) ---- */

void ending_await(void);
/* The signal that asked for it, or 0. */
int ending(void);

#endif
