/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of payload: short ones without a call. */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stddef.h>
#include <string.h>

#define COPY_SHORT 64 /* bytes that are copied without a call */

/* Up to COPY_SHORT bytes: two overlapping moves cover each range. */
static inline void copy_short(unsigned char *t, const unsigned char *f, size_t n)
{
	if (n > 32) {
		memcpy(t, f, 32);
		memcpy(t + n - 32, f + n - 32, 32);
	} else if (n > 16) {
		memcpy(t, f, 16);
		memcpy(t + n - 16, f + n - 16, 16);
	} else if (n >= 8) {
		memcpy(t, f, 8);
		memcpy(t + n - 8, f + n - 8, 8);
	} else if (n >= 4) {
		memcpy(t, f, 4);
		memcpy(t + n - 4, f + n - 4, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	}
}

/* The bytes may be a peer's, who changes them meanwhile: their number alone decides anything. */
static inline void copy_payload(void *to, const void *from, size_t n)
{
	if (n > COPY_SHORT)
		memcpy(to, from, n);
	else
		copy_short(to, from, n);
}

#endif
