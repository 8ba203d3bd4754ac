/* SPDX-License-Identifier: BSD-3-Clause */
/* struct slmpm_how, as calls are given it. */
#ifndef SLMPM_HOW_H
#define SLMPM_HOW_H

#include <slmpm.h>
#include <stdbool.h>

/* No how, or one of this library's size without anything rare: the fast paths look no further. */
static inline bool how_is_plain(const struct slmpm_how *how)
{
	return !how || (how->size == sizeof(*how) &&
			!((how->flags & ~SLMPM_MORE) | how->ctr.id | how->cq.id));
}

/* HOW in full, zero where an older one ends or there is none; -SLMPM_EINVAL, with the detail set,
 * where it is too short or has flags beyond FLAGS. */
int how_take(const char *call, struct slmpm_how *full, const struct slmpm_how *how, uint32_t flags);

#endif
