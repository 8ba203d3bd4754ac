/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator as the host knows it, and its slots: streams on which files go to it. */
#ifndef DEMO_SLOT_H
#define DEMO_SLOT_H

#include "apps/slmpm_demo/ledger.h"

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

/* Sends the next piece of the file in slot K, by REQ: true when there was one. */
bool slot_feed(struct accelerator *acc, unsigned k, struct ledger *l, slmpm_req *req);
void slot_close(struct slot *s, struct ledger *l);

#endif
