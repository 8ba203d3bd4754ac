/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files nobody has had yet, which are being hashed, which are done; digests in their
 * order. */
#ifndef DEMO_LEDGER_H
#define DEMO_LEDGER_H

#include "apps/slmpm_demo/demo.h"

struct ledger {
	const struct options *options;
	struct files *files;
	struct tally *tally;
	size_t next;              /* file that nobody has had */
	size_t again;             /* the first that a lost accelerator had, or NO_FILE */
	unsigned open;            /* files being read */
	size_t finished, printed; /* files done or failed; printed in their order */
};

/* All are done or failed, and there are no more. */
bool ledger_is_over(const struct ledger *l);
/* The next file that is not worked at. */
bool ledger_next(struct ledger *l, size_t *file);
/* It was to be worked at, and is not. */
void ledger_again(struct ledger *l, size_t file);
/* FILE's digest is there; what can be printed by now is. */
void ledger_done(struct ledger *l, size_t file, uint64_t bytes);
/* There will be none. */
void ledger_failed(struct ledger *l, size_t file, int error);
/* Hashes what is left, in this process. */
void ledger_hash_here(struct ledger *l);

/* Reads until LEN bytes or the file's end, which is where a read stops short that has reached the
 * bytes EXPECTED. */
ssize_t read_full(int fd, char *to, size_t len, uint64_t expected);

#endif
