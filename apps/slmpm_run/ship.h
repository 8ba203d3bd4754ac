/* SPDX-License-Identifier: BSD-3-Clause */
/* Files on their way: offered by digest, sent only where the other side has no such file. */
#ifndef SLMPM_RUN_SHIP_H
#define SLMPM_RUN_SHIP_H

#include "apps/slmpm_run/frame.h"

#define OFFER_ALWAYS 1u /* send it, whatever lies there */

struct offer {
	uint32_t flags, mode;
	uint64_t size;
	unsigned char digest[DIGEST_SIZE];
	const char *path; /* where the same file may lie over there */
	const char *name; /* where it is put: "program/x", "lib/x" or "cwd/x" */
};

/* Digest and size of an open regular file, from its beginning. Negative errno. */
int ship_digest(int fd, unsigned char digest[DIGEST_SIZE], uint64_t *size);

/* ---- the relay's side ---- */

/* Offers the file PATH as NAME and sends it if that is wanted. 1 sent, 0 it is there; negative
 * errno, WHY says what happened then. */
int ship_file(int out, struct inlet *in, const char *path, const char *name, uint32_t flags,
	      char why[256]);

/* ---- the agent's ---- */

#define SHIP_NAME 288 /* "program/" and the longest name */

/* Answers the offer in F, and receives the file below FOLDER if it is wanted. NAME as offered;
 * *USED is where it lies then, to be freed. 1 received, 0 it was there; negative errno and WHY. */
int ship_take(int out, struct inlet *in, const struct frame *f, const char *folder,
	      char name[SHIP_NAME], char **used, char why[256]);

/* ---- what a program needs (needed.c) ---- */

/* Calls EACH(path, name, arg) for every shared library that PROGRAM is linked with, directly or
 * not, and that lies where it says itself or where SEARCH ("a:b", or NULL) says: not for those of
 * the system. EACH returns negative to stop. */
int needed_each(const char *program, const char *search,
		int (*each)(const char *path, const char *name, void *arg), void *arg);

#endif
