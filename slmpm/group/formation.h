/* SPDX-License-Identifier: BSD-3-Clause */
/* A group that forms, as the files of who founds it see it. */
#ifndef SLMPM_FORMATION_H
#define SLMPM_FORMATION_H

#include "slmpm/group/group.h"

struct joiner {                  /* of a rank */
	struct endpoint *ep;     /* NULL: this process */
	struct joining *joining; /* NULL: it has not come */
	int board, bell;         /* to be passed on; the bell of this process alone */
	bool ready;
	bool withdrew; /* it had come, and has given up, or has done so in vain ... */
	bool expired;  /* ... at its deadline: it has waited for others as well */
	uint16_t port; /* where it listens, ... */
	uint32_t machine;
};

struct formation {
	uint32_t others, come, ready, listening;
	struct secret master;   /* of which the pairs' keys are made */
	struct joiner *joiners; /* by rank */
};

/* ---- formation.c ----------------------------------------------------------------------------- */

/* Can EP be member RANK, as far as is known? 0, or negative with the detail set. */
int joiner_suits(const struct endpoint *ep, uint32_t rank);
void joiner_close(struct joiner *s);
/* Has a join of EP's failed, which EP knows? Then it is no group's any more. */
bool formation_forget(const struct endpoint *ep, uint32_t tag, bool part);
/* Of a group that does not form, EP's join that has come, or its next. */
void formation_refuse(struct endpoint *ep, uint32_t tag, bool part, int error, const char *text);

/* ---- addresses.c ----------------------------------------------------------------------------- */

/* All have come, of whom some have no memory together. 0, or negative with the detail set. */
int addresses_begin(struct group *g);
/* All listen: this process, as a member, knows where. 0, or a negative errno. */
int addresses_known(struct group *g);

#endif
