/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator as the host knows it, and its slots: streams on which files go to it. */
#ifndef DEMO_SLOT_H
#define DEMO_SLOT_H

#include "apps/slmpm_demo/ledger.h"
#include "apps/slmpm_demo/stress.h"

#define GIVEN_MAX 16   /* files of one slot whose digest is awaited */
#define LENT_MAX  1024 /* and of the one whose files go in loans */

struct given {
	size_t file;
	uint64_t sent_ns; /* when its last byte was handed over; 0: not yet */
};

struct slot { /* one stream to an accelerator: a file being read, earlier ones awaited */
	int fd;
	bool open;
	uint64_t first, next; /* of given, modulo LENT_MAX */
	struct given given[LENT_MAX];
	char *chunk;
	size_t room, step;   /* of the chunk; bytes of a message of this file */
	bool large, placed;  /* this file goes in pieces of more than CHUNK at most, is put */
	uint64_t left;       /* bytes to be read, as far as is known; 0: until there are none */
	uint64_t put, taken; /* into places, or loans, and hashed there */
	uint32_t imm;        /* of the message that is to follow such a put */
	unsigned char said[8];
};

struct accelerator {
	slmpm_peer peer;
	slmpm_rmem places; /* its region, where large files are put */
	unsigned index;
	int pid;
	char name[64], fate[160];
	char fabrics[4][16]; /* of its links, as far as asked for */
	struct slot slot[WINDOW_MAX];
	unsigned char answer[PIECES * ANSWER_SIZE + 1];
	bool broken, gone; /* takes no more; is not, or no longer, there */
	bool ready, lends; /* has said that it is there; files go in loans */
	struct {           /* that is open, and ready to go */
		void *data;
		size_t len;
	} loan;
	slmpm_cq sent; /* completions of loans */
	bool moved;    /* something has come or gone, in this round */
	struct strain strain;
	struct counts counts; /* of its files, as the host knows */
};

/* Sends, or puts, the next piece of the file in slot K, by REQ: true when there was one. */
bool slot_feed(struct accelerator *acc, unsigned k, struct ledger *l, slmpm_req *req);
/* What was put is there: says so. */
void slot_say(struct accelerator *acc, unsigned k, slmpm_req *req);
void slot_close(struct slot *s, struct ledger *l);
/* Is its next piece a long one, if there is place for that, as far as can be said? */
bool slot_is_long(const struct slot *s);

#endif
