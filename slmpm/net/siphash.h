/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 with 128 bits of result: a keyed hash that only who knows the key can make. */
#ifndef SLMPM_NET_SIPHASH_H
#define SLMPM_NET_SIPHASH_H

#include <stddef.h>

#define SIPHASH_SIZE 16 /* bytes, of the key and of the result */

void siphash(const unsigned char key[SIPHASH_SIZE], const void *data, size_t n,
	     unsigned char out[SIPHASH_SIZE]);

#endif
