/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel notes who writes into a page that is protected so, and goes on at once: no thread, no
 * signal, and system calls may write there, too. */
#include "slmpm/mirror/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's words, which older headers lack. */
/* Write protection: of shared memory too, of pages that are not there yet, asynchronous. */
#define FEATURES         (UINT64_C(1) << 12 | UINT64_C(1) << 13 | UINT64_C(1) << 15)
#define USER_MODE_ONLY   1
#define IS_WRITTEN       2 /* category of a page */
#define PROTECT_MATCHING 1
#define CHECK_ASYNC      2

struct region { /* struct page_region */
	uint64_t start, end, categories;
};

struct scan { /* struct pm_scan_arg */
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan)

static int watch(struct pagemap *p)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
	struct uffdio_register range = {
		.range = {.start = p->lo, .len = p->hi - p->lo},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = {.start = p->lo, .len = p->hi - p->lo},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(p->fault, UFFDIO_API, &api) != 0 ||
	    ioctl(p->fault, UFFDIO_REGISTER, &range) != 0 ||
	    ioctl(p->fault, UFFDIO_WRITEPROTECT, &protect) != 0)
		return -errno;
	return 0;
}

int pagemap_open(struct pagemap *p, const void *base, uint64_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)base;
	int rc;

	*p = (struct pagemap){
		.lo = from / page * page,
		.hi = (from + size + page - 1) / page * page,
		.map = -1,
	};
	p->fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	rc = p->fault < 0 ? -errno : watch(p);
	if (rc == 0) {
		p->map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
		rc = p->map < 0 ? -errno : 0;
	}
	if (rc < 0)
		pagemap_close(p);
	return rc;
}

void pagemap_close(struct pagemap *p)
{
	if (p->fault >= 0)
		close(p->fault);
	if (p->map >= 0)
		close(p->map);
	p->fault = p->map = -1;
}

int pagemap_next(struct pagemap *p, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	struct region found;
	struct scan scan = {
		.size = sizeof(scan),
		.flags = PROTECT_MATCHING | CHECK_ASYNC,
		.start = *at,
		.end = p->hi,
		.vec = (uintptr_t)&found,
		.vec_len = 1,
		.category_mask = IS_WRITTEN,
		.return_mask = IS_WRITTEN,
	};
	int n;

	if (*at >= p->hi)
		return 0;
	n = ioctl(p->map, SCAN, &scan);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	*lo = found.start;
	*hi = found.end;
	*at = scan.walk_end > found.end ? found.end : scan.walk_end;
	return 1;
}

/* Two pages, of which the second is written: it is told once. */
static int try(unsigned char *pages, uintptr_t page)
{
	struct pagemap p;
	uintptr_t at, lo = 0, hi = 0;
	int rc = pagemap_open(&p, pages, 2 * page);

	if (rc < 0)
		return rc;
	for (at = p.lo; rc >= 0 && (rc = pagemap_next(&p, &at, &lo, &hi)) > 0;)
		;
	((volatile unsigned char *)pages)[page] = 1;
	at = p.lo;
	if (rc >= 0)
		rc = pagemap_next(&p, &at, &lo, &hi);
	if (rc == 1 && (lo != p.lo + page || hi != p.hi))
		rc = -ENOTSUP;
	if (rc == 1)
		rc = pagemap_next(&p, &at, &lo, &hi) == 0 ? 1 : -ENOTSUP;
	at = p.lo;
	if (rc == 1)
		rc = pagemap_next(&p, &at, &lo, &hi) == 0 ? 1 : -ENOTSUP;
	pagemap_close(&p);
	return rc == 1 ? 0 : rc == 0 ? -ENOTSUP : rc;
}

int pagemap_works(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (pages == MAP_FAILED)
		return -errno;
	rc = try(pages, page);
	(void)munmap(pages, 2 * page);
	return rc;
}
