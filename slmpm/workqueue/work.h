/* SPDX-License-Identifier: BSD-3-Clause */
/* A work request that a work queue has taken; what it does is done by the calls' own ways. */
#ifndef SLMPM_WORK_H
#define SLMPM_WORK_H

#include "slmpm/endpoint.h"

/* Work of one kind may be under way together, for it keeps its order on the way; what follows of
 * another kind waits for its end. */
enum work_kind { WORK_MESSAGE, WORK_GET, WORK_PUT, WORK_REMOTE_PUT, WORK_ATOMIC, WORK_ALONE };

struct work {             /* a work request that was taken */
	struct list node; /* of those that wait or have begun, or idle; a receive is in none */
	struct slmpm_wr wr;
	void *owned; /* of one that waits: its pieces and its head */
	bool receive, ended;
	struct slmpm_done done; /* ended, but not those in front of it */
};

/* -SLMPM_E*, the detail set, when it cannot be posted to PEER's queue. */
int work_check(const struct slmpm_wr *wr, slmpm_peer peer);
/* Begins it, its end told to ctx->begins with COOKIE, perhaps before this returns. */
int work_begin(const struct slmpm_wr *wr, slmpm_peer peer, uint64_t cookie);
enum work_kind work_kind_of(const struct slmpm_wr *wr);
/* It waits: what the caller's array and head say is kept. False: no memory. */
bool work_keep(struct work *w);

#endif
