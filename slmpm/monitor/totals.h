/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lifetime totals by peer, across close and connect, of the whole process. A connection's figures
 * are added when it ends, is asked for or inspected (monitor.h), under its peer's id then; none of
 * this lies on a fast path. The table is a memfd, made with the first connection, that other
 * processes read.
 */
#ifndef SLMPM_TOTALS_H
#define SLMPM_TOTALS_H

#include <slmpm.h>
#include <stdatomic.h>

#include "slmpm/endpoint.h"

#define TOTALS_LABEL   "slmpm-totals"
#define TOTALS_MAGIC   UINT64_C(0x314c5454504d4c53) /* "SLPMTTL1" */
#define TOTALS_VERSION 1
#define TOTALS_ENTRIES (SLMPM_TOTALS_MAX + 1) /* the others come first */

struct totals_page {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;     /* of the owner, as itself sees it */
	uint32_t entries; /* that follow: struct slmpm_totals, those without connections are free */
	uint32_t entry_size;   /* as the owner knows it */
	_Atomic uint64_t turn; /* odd: the owner is writing */
	uint64_t zero[4];
};
_Static_assert(sizeof(struct totals_page) == 64 && sizeof(struct slmpm_totals) % 8 == 0,
	       "page layout");

#define TOTALS_FIGURES 18 /* of statistics, that are summed over a peer's connections */

struct totals_peer {                    /* of a connection */
	char id[SLMPM_ID_SIZE];         /* under which it is counted */
	char offered[SLMPM_ID_SIZE];    /* what the peer calls itself */
	uint32_t place, tenant;         /* in the table; how many ids that place had had */
	bool counted, live;             /* its connection; as one that stands */
	uint64_t added[TOTALS_FIGURES]; /* of its figures: are there already */
};

/* EP's handshake is through; it has ended, or never came so far; and goes. */
void totals_begin(struct endpoint *ep);
void totals_end(struct endpoint *ep);
/* What EP has carried since it was added last. */
void totals_add(struct endpoint *ep);
/* Of all peers of CTX, for others to see. */
void totals_refresh(struct context *ctx);
/* Of a CALL for N of them: -SLMPM_EINVAL with the detail set where it is wrong. And up to N of a
 * TABLE: how many it has. */
int totals_check(const char *call, const struct slmpm_totals *all, size_t size, int n);
int totals_give(struct slmpm_totals *all, size_t size, int n, const struct slmpm_totals *table,
		uint32_t entries);
/* In the child after fork: the table is the parent's. */
void totals_forked(void);

#endif
