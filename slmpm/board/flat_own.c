/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of the program's own: opaque elements of any width, in whole ones. */
#include "slmpm/board/flat_parts.h"

#define ALIGNED 64 /* what lies in a post is not */

uint64_t flat_own_most(const struct slmpm_coll *c)
{
	uint64_t width = c->combine->width;

	return width < FLAT_CHUNK ? FLAT_CHUNK / width * width : width;
}

NOINLINE void flat_combine_own(const struct flat *f, void *to, const void *a, const void *b,
			       size_t n)
{
	const struct slmpm_combine *own = f->coll->combine;
	_Alignas(ALIGNED) unsigned char left[FLAT_SHORT], right[FLAT_SHORT];

	if (n <= FLAT_SHORT) {
		memcpy(left, a, n);
		memcpy(right, b, n);
		a = left;
		b = right;
	}
	own->function(to, a, b, n / own->width, own->arg);
}
