/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of disk_copy share: what is to be copied, how far it is, what it took. */
#ifndef DISK_COPY_H
#define DISK_COPY_H

#include <stdbool.h>
#include <stdint.h>

struct copy_options {
	const char *from, *to;
	const char *geometry, *controller; /* or NULL */
	uint64_t bytes;                    /* of FROM */
	uint32_t block;                    /* of one request */
	unsigned window;                   /* blocks under way */
	bool sync, foreign, plain, quiet, beside;
};

/* Copies; 0, or 1 after saying what went wrong. */
int copy_run(const struct copy_options *options, double *seconds);
/* The same file by dd, or without one by a plain loop, to a file beside TO that is removed
 * again. */
void beside_run(const struct copy_options *options, double seconds);
/* Reads FROM, so that whoever copies first does not pay for the medium. */
void beside_warm(const struct copy_options *options);

void progress_show(uint64_t done, uint64_t all, double seconds);
void progress_clear(void);
/* "1.23 GB/s" */
const char *progress_rate(char text[32], uint64_t bytes, double seconds);
double progress_now(void);

#endif
