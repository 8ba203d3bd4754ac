/* SPDX-License-Identifier: BSD-3-Clause */
/* shm/copy.h: each length arrives whole, and nothing beside it is touched. */
#include "shm/copy.h"
#include "tests/lib/test.h"

#define MOST (COPY_LONG + 200)

static void whole(const char *name, void (*copy)(void *to, const void *from, size_t n))
{
	unsigned char from[MOST + 64], to[MOST + 64];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)((i * 7) | 1);
	for (size_t n = 0; n <= MOST; n++) {
		size_t at = n % 19;

		memset(to, 0, sizeof(to));
		copy(to + at, from + n % 23, n);
		CHECK(!memcmp(to + at, from + n % 23, n), "%s: %zu bytes differ", name, n);
		for (size_t i = 0; i < sizeof(to); i++)
			CHECK((i >= at && i < at + n) || !to[i], "%s: %zu bytes reach %zu", name, n,
			      i);
	}
}

static void in_steps(void *to, const void *from, size_t n)
{
	copy_in_steps(to, from, n);
}

static void payload(void *to, const void *from, size_t n)
{
	copy_payload(to, from, n);
}

static void bytes(void *to, const void *from, size_t n)
{
	copy_bytes(to, from, n);
}

int main(void)
{
	whole("payload", payload);
	whole("bytes", bytes);
	whole("in steps", in_steps);
	return 0;
}
