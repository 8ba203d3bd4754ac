/* SPDX-License-Identifier: BSD-3-Clause */
/* A trial of collectives by messages (calibrate.c): which kinds and sizes. */
#ifndef INFO_COLLECT_H
#define INFO_COLLECT_H

#include <stdio.h>

#define COLLECT_LEAST 512 /* bytes, all that one member has at one end */
#define COLLECT_SIZES 12  /* powers of two to 1 MiB */
#define COLLECT_KINDS 12
enum collect_set {
	COLLECT_SHORT,
	COLLECT_LONG,
	COLLECT_RANKED_SHORT,
	COLLECT_RANKED_LONG,
	COLLECT_SETS
};

#define COLLECT_FOLLOW "--calibrate-member"
#define COLLECT_CASE   100 /* and the kind: the number of a case in a line of a trial */

/* For about so many milliseconds; RANKED: sums that keep to the order of the ranks. As
 * trial_drive. */
int collect_drive(int ranked, int ms, FILE *out);
/* A member that it starts. */
int collect_follow(void);

#endif
