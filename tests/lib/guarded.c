/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory with margins (guarded.h). */
#include "tests/lib/guarded.h"

#include <string.h>
#include <sys/mman.h>

#include "tests/lib/test.h"

#define MARGIN 4096
#define FILL   0x3c

unsigned char *guarded_new(size_t size)
{
	unsigned char *all = mmap(NULL, size + 2 * (size_t)MARGIN, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(all != MAP_FAILED, "no memory");
	memset(all, FILL, size + 2 * (size_t)MARGIN);
	return all + MARGIN;
}

bool guarded_is_whole(const unsigned char *base, size_t size)
{
	for (size_t i = 0; i < MARGIN; i++)
		if (*(base - 1 - i) != FILL || base[size + i] != FILL)
			return false;
	return true;
}
