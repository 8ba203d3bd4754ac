/* SPDX-License-Identifier: BSD-3-Clause */
/* One piece of memory at two addresses, side by side. */
#include "shm/double_mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shm/mapping.h"

/*
 * Anonymous: the kernel has accounted for all of it when this returns, so that its pages may come with
 * their use and never want room for which SIGBUS would be sent; a memfd's are accounted for one by one.
 */
static int map_anonymous(unsigned char *base, const char *label, size_t size)
{
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return -errno;
	/* Of length 0, shared memory is moved nowhere and is in both places. */
	if (mremap(base, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, base + size) == MAP_FAILED)
		return -ENOTSUP;
#ifdef PR_SET_VMA
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, base, 2 * size, label); /* from 6.2 */
#else
	(void)label;
#endif
	return 0;
}

/* Where nothing can be in two places so, as in an emulator: every page now. */
static int map_present(unsigned char *base, const char *label, size_t size)
{
	struct mapping once;
	int rc = mapping_create(&once, label, size);

	for (size_t half = 0; half < 2 && rc == 0; half++)
		if (mmap(base + half * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, once.fd, 0) == MAP_FAILED)
			rc = -errno;
	mapping_destroy(&once);
	return rc;
}

int double_mapping_create(struct double_mapping *m, const char *label, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *base;
	int rc;

	*m = (struct double_mapping){0};
	size = (size + page - 1) / page * page;
	base = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	rc = map_anonymous(base, label, size);
	if (rc == -ENOTSUP)
		rc = map_present(base, label, size);
	if (rc < 0) {
		munmap(base, 2 * size);
		return rc;
	}
	/* A forked child shares no stream with us; a core dump needs none of it. */
	(void)madvise(base, 2 * size, MADV_DONTFORK);
	(void)madvise(base, 2 * size, MADV_DONTDUMP);
	*m = (struct double_mapping){.base = base, .size = size};
	return 0;
}

void double_mapping_destroy(struct double_mapping *m)
{
	if (m->base)
		munmap(m->base, 2 * m->size);
	*m = (struct double_mapping){0};
}
