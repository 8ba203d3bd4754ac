/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel notes who writes into a page that is protected so, and goes on at once: no thread, no
 * signal, and system calls may write there, too. */
#include <stdlib.h>

#include "slmpm/track/finder.h"
#include "slmpm/track/uffd.h"

/* The kernel's words, which older headers lack. */
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

struct map {
	struct pages pages;
	int fault, map; /* descriptors */
};

static void track_pagemap_forked(struct pages *pages)
{
	struct map *m = (struct map *)pages;

	if (m->fault >= 0)
		close(m->fault);
	if (m->map >= 0)
		close(m->map);
	m->fault = m->map = -1;
}

static void close_map(struct pages *pages)
{
	track_pagemap_forked(pages);
	free(pages);
}

static int open_map(struct pages **pages, const struct range *range)
{
	const uint64_t features = UFFD_SHARED | UFFD_UNPOPULATED | UFFD_ASYNC;
	struct map *m = malloc(sizeof(*m));
	uint64_t has;
	int rc;

	if (!m)
		return -ENOMEM;
	*m = (struct map){{&track_pagemap, range->lo, range->hi}, -1, -1};
	m->fault = uffd_open(UFFD_USERS_ALONE, features, &has);
	rc = m->fault < 0 ? m->fault : uffd_watch(m->fault, range->lo, range->hi);
	if (rc == 0) {
		m->map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
		rc = m->map < 0 ? -errno : 0;
	}
	if (rc < 0)
		close_map(&m->pages);
	else
		*pages = &m->pages;
	return rc;
}

static int track_pagemap_next(struct pages *pages, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	struct map *m = (struct map *)pages;
	struct region found;
	struct scan scan = {
		.size = sizeof(scan),
		.flags = PROTECT_MATCHING | CHECK_ASYNC,
		.start = *at,
		.end = pages->hi,
		.vec = (uintptr_t)&found,
		.vec_len = 1,
		.category_mask = IS_WRITTEN,
		.return_mask = IS_WRITTEN,
	};
	int n;

	if (*at >= pages->hi)
		return 0;
	n = ioctl(m->map, SCAN, &scan);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	*lo = found.start;
	*hi = found.end;
	*at = scan.walk_end > found.end ? found.end : scan.walk_end;
	return 1;
}

const struct finder track_pagemap = {
	.name = "pagemap",
	.open = open_map,
	.close = close_map,
	.forked = track_pagemap_forked,
	.next = track_pagemap_next,
};
