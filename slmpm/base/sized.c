/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of callers with another header: taken and given as far as both sides know them. */
#include "slmpm/base/sized.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "slmpm/base/error.h"

#define LEAST 8 /* the size, and a member */

static uint32_t size_of(const void *at)
{
	uint32_t size;

	memcpy(&size, at, sizeof(size));
	return size;
}

int sized_check(const char *call, const void *at, size_t size, size_t known)
{
	if (!at)
		return error_set(SLMPM_EINVAL, "%s: no structure, whose .size would be %zu", call,
				 known);
	if (!size)
		return error_set(SLMPM_EINVAL, "%s: set .size of the structure, to %zu", call,
				 known);
	if (size < LEAST || size > known + SIZED_BEYOND || size % sizeof(uint32_t))
		return error_set(SLMPM_EINVAL, "%s: .size of the structure is %zu, not %zu", call,
				 size, known);
	return 0;
}

int sized_check_own(const char *call, const void *at, size_t known)
{
	return sized_check(call, at, at ? size_of(at) : 0, known);
}

static bool is_zero(const unsigned char *at, size_t n)
{
	while (n && !*at) {
		at++;
		n--;
	}
	return !n;
}

int sized_take(const char *call, void *full, const void *given, size_t known)
{
	int rc = sized_check_own(call, given, known);
	const uint32_t own = (uint32_t)known;
	size_t size;

	if (rc < 0)
		return rc;
	size = size_of(given);
	if (size > known && !is_zero((const unsigned char *)given + known, size - known))
		return error_set(SLMPM_EINVAL,
				 "%s: .size of the structure is %zu, and sets what this library, "
				 "where it is %zu, does not know",
				 call, size, known);
	/* Within a member of 8 bytes, half a pointer, no version ends. */
	if (known % sizeof(uint64_t) == 0 && size % sizeof(uint64_t))
		return error_set(SLMPM_EINVAL,
				 "%s: .size of the structure is %zu, which ends within a member; "
				 "here it is %zu",
				 call, size, known);
	memset(full, 0, known);
	memcpy(full, given, size < known ? size : known);
	memcpy(full, &own, sizeof(own));
	return 0;
}

void sized_give(void *to, size_t size, const void *full, size_t known)
{
	const uint32_t own = (uint32_t)size;

	memcpy(to, full, size < known ? size : known);
	if (size > known)
		memset((unsigned char *)to + known, 0, size - known);
	memcpy(to, &own, sizeof(own));
}

void sized_give_own(void *to, const void *full, size_t known)
{
	sized_give(to, size_of(to), full, known);
}
