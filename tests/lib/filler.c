/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that depend on where they are and on a seed; the same on any machine. */
#include "tests/lib/filler.h"

#include <endian.h>
#include <string.h>

/* A sanitizer inspects what they are copied to, or compared with; not each word of them here. */
#define NO_CHECKS __attribute__((no_sanitize("address", "thread", "undefined")))
#define PART      ((size_t)4096)

/* The filler's bytes from AT on, a part of N. */
NO_CHECKS static size_t make_part(unsigned char part[PART], uint64_t seed, size_t at, size_t n)
{
	n = n < PART ? n : PART;
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t x = seed + at + i;

		x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
		x = htole64(x ^ x >> 29);
		memcpy(part + i, &x, sizeof(x));
	}
	return n;
}

void actor_fill(void *to, uint64_t seed, size_t n)
{
	unsigned char part[PART];

	for (size_t i = 0, size; i < n; i += size) {
		size = make_part(part, seed, i, n - i);
		memcpy((unsigned char *)to + i, part, size);
	}
}

bool actor_filled(const void *from, uint64_t seed, size_t n)
{
	unsigned char part[PART];

	for (size_t i = 0, size; i < n; i += size) {
		size = make_part(part, seed, i, n - i);
		if (memcmp((const unsigned char *)from + i, part, size) != 0)
			return false;
	}
	return true;
}
