/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of payload: short ones without a call. */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define COPY_SHORT 64   /* bytes that are copied without a call */
#define COPY_LONG  2048 /* from which on memcpy may leave it to the processor (rep movsb) */

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

/*
 * Out of memory that another processor is just writing, one packet behind the other: memcpy has so
 * many loads under way at once that they hold each other up, and the writer, too.
 */
void copy_in_steps(void *to, const void *from, size_t n);

/* Copies from COPY_LONG bytes on are of vectors here. */
bool copy_has_vectors(void);
/* memcpy from COPY_LONG bytes on, by whichever instructions serve this processor. */
void copy_long(void *to, const void *from, size_t n);

/* memcpy of what may be long. */
static inline void copy_bytes(void *to, const void *from, size_t n)
{
	if (n >= COPY_LONG)
		copy_long(to, from, n);
	else
		memcpy(to, from, n);
}

/* The bytes may be a peer's, who changes them meanwhile: their number alone decides anything. */
static inline void copy_payload(void *to, const void *from, size_t n)
{
	if (n > COPY_SHORT)
		copy_bytes(to, from, n);
	else
		copy_short(to, from, n);
}

#endif
