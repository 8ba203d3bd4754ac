/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of a job's processes: whole lines with a label each, or files. */
#ifndef SLMPM_RUN_COLLECT_H
#define SLMPM_RUN_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_MAX_BYTES 16384 /* a longer line comes in pieces */

struct stream {
	int fd, to; /* the pipe, and where it goes; -1: at its end */
	bool whole; /* into a file: as it is */
	char label[80];
	char *line;
	size_t have;
};

struct collection {
	struct stream *streams;
	size_t count;
	const char *output; /* prefix of files, or folder; or NULL */
};

/* Takes over FD, the output (or with ERROR, the standard error) of ELEMENT, 0 the host program, at
 * HOST. False: told why; FD is closed. */
bool collect_add(struct collection *c, int fd, bool error, uint32_t element, const char *host);
/* What stream I has to say: false at its end. */
bool collect_read(struct collection *c, size_t i);
/* How many have not ended. */
size_t collect_open(const struct collection *c);
void collect_end(struct collection *c);

#endif
