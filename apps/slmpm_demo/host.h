/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's state: accelerators, their slots, the files given and to be given (host.c, slot.c). */
#ifndef DEMO_HOST_H
#define DEMO_HOST_H

#include "apps/slmpm_demo/demo.h"

#define GIVEN_MAX 16 /* files of one slot whose digest is awaited */

struct given {
	size_t file;
	uint64_t sent_ns; /* when its last byte was handed over; 0: not yet */
};

struct slot { /* one stream to an accelerator: a file being read, earlier ones awaited */
	int fd;
	bool open;
	uint64_t first, next; /* of given, modulo GIVEN_MAX */
	struct given given[GIVEN_MAX];
	char *chunk;
	size_t room, step;   /* of the chunk; bytes of a message of this file */
	bool placed;         /* this file is put */
	uint64_t put, taken; /* into places, and hashed there */
	unsigned char said[8];
};

struct accelerator {
	slmpm_peer peer;
	slmpm_rmem places; /* its region, where large files are put */
	char name[64], fate[160];
	struct slot slot[WINDOW_MAX];
	unsigned char answer[ANSWER_SIZE + 64];
	bool broken, gone; /* takes no more; is not, or no longer, there */
};

struct host {
	const struct options *options;
	struct files *files;
	struct tally *tally;
	slmpm_ctx ctx;
	struct accelerator *accel;
	slmpm_req *req;        /* accelerator by accelerator: its receive, then its slots' sends */
	unsigned living, open; /* accelerators; files being read */
	size_t next;           /* file that nobody has had */
	size_t *again, again_count; /* files that a lost accelerator had */
	size_t finished, printed;   /* files done or failed; printed in their order */
};

static inline slmpm_req *req_of(struct host *h, unsigned a, unsigned k)
{
	return &h->req[a * (h->options->window + 1) + k];
}

/* Sends the next piece of the file in accelerator A's slot K: true when there was one. */
bool slot_feed(struct host *h, unsigned a, unsigned k);
void slot_close(struct host *h, struct slot *s);
/* The next file that nobody works at. */
bool file_next(struct host *h, size_t *file);
/* FILE's digest is there; what can be printed by now is. */
void file_done(struct host *h, size_t file, uint64_t bytes);
/* Hashes what is left, in this process. */
void hash_here(struct host *h);

#endif
