/* SPDX-License-Identifier: BSD-3-Clause */
/* Which members of a work request, and which flags, its operation has (member.c). */
#ifndef SLMPM_MEMBER_H
#define SLMPM_MEMBER_H

#include <slmpm.h>

/* "a SEND", ...; NULL: OP is none of a work queue's. */
const char *member_title(uint32_t op);
/* WR has a flag or sets a member that its operation does not have, or its operation is none:
 * -SLMPM_EINVAL, the detail naming it; else 0. */
int member_check(const struct slmpm_wr *wr);

#endif
