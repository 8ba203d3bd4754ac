/* SPDX-License-Identifier: BSD-3-Clause */
/* In front of the C library's allocator. */
#include "tests/lib/starve.h"

#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

static unsigned left; /* until they fail; 0: they do not */
static bool failed;

static bool fails(void)
{
	if (!left)
		return false;
	if (left > 1) {
		left--;
		return false;
	}
	failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void starve_from(unsigned n)
{
	failed = false;
	left = n;
}

bool starve_end(void)
{
	left = 0;
	return failed;
}
