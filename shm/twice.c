/* SPDX-License-Identifier: BSD-3-Clause */
/* One sealed object at two addresses, side by side. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shm/twice.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/mapping.h"

static int map_twice(struct twice *m, int fd, size_t size)
{
	unsigned char *base =
		mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	for (int half = 0; half < 2; half++) {
		if (mmap(base + (size_t)half * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
			int rc = -errno;

			munmap(base, 2 * size);
			return rc;
		}
	}
	/* A forked child shares no stream with us; a core dump needs none of it. */
	(void)madvise(base, 2 * size, MADV_DONTFORK);
	(void)madvise(base, 2 * size, MADV_DONTDUMP);
	*m = (struct twice){.base = base, .size = size};
	return 0;
}

int twice_create(struct twice *m, const char *label, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapping once;
	int rc;

	*m = (struct twice){0};
	size = (size + page - 1) / page * page;
	rc = mapping_create(&once, label, size); /* its pages present */
	if (rc < 0)
		return rc;
	rc = map_twice(m, once.fd, size);
	mapping_destroy(&once);
	return rc;
}

void twice_destroy(struct twice *m)
{
	if (m->base)
		munmap(m->base, 2 * m->size);
	*m = (struct twice){0};
}
