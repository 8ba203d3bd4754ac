/* SPDX-License-Identifier: BSD-3-Clause */
/* A group of another process, which is not believed: copied, cut and made printable. */
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/error.h"
#include "slmpm/base/places.h"
#include "slmpm/base/sized.h"
#include "slmpm/group/page_layout.h"
#include "slmpm/stats.h"

#define CALL "slmpm_groups_read"

/* One of another version may be as short as its magic number says. */
static bool view_is_sound(const struct shown_page *page, size_t size)
{
	/* Pairs with the release in page_make. */
	if (atomic_load_explicit(&page->magic, memory_order_acquire) != PAGE_MAGIC)
		return false;
	return page->version == PAGE_VERSION && page->size == sizeof(page->places[0]) &&
	       size >= sizeof(*page);
}

/* Its words, as far as they say how many others follow; and its texts. */
static void tame_shown(struct slmpm_group_shown *g)
{
	if (g->operation_count > SLMPM_SHOWN_OPERATIONS)
		g->operation_count = SLMPM_SHOWN_OPERATIONS;
	if (g->member_count > SLMPM_SHOWN_MEMBERS)
		g->member_count = SLMPM_SHOWN_MEMBERS;
	memset(&g->operation[g->operation_count], 0,
	       (SLMPM_SHOWN_OPERATIONS - g->operation_count) * sizeof(g->operation[0]));
	memset(&g->member[g->member_count], 0,
	       (SLMPM_SHOWN_MEMBERS - g->member_count) * sizeof(g->member[0]));
	for (uint32_t i = 0; i < g->member_count; i++)
		stats_tame(g->member[i].host, sizeof(g->member[i].host));
}

static int read_page(const struct shown_page *page, size_t size, int pid,
		     struct slmpm_group_shown *all)
{
	int rc;

	if (!view_is_sound(page, size))
		return error_set(SLMPM_EVERSION, "process %d: a group of another version", pid);
	rc = places_read(&page->turn, page->places, sizeof(page->places[0]), all, sizeof(*all));
	if (rc < 0)
		return error_set(SLMPM_EAGAIN, "process %d: its group changes all the time", pid);
	/* Not shown yet. */
	if (rc == 0 || all->size < sizeof(*all))
		return error_set(SLMPM_EAGAIN, "process %d: a group that has just begun", pid);
	tame_shown(all);
	return 0;
}

int slmpm_groups_read(int pid, int i, struct slmpm_group_shown *group, size_t size)
{
	const struct shown_page *page = NULL;
	struct slmpm_group_shown all;
	size_t length = 0;
	int number, rc, fd = -1;

	if (sized_check(CALL, group, size, sizeof(all)) < 0)
		return -SLMPM_EINVAL;
	if (i < 0)
		return error_set(SLMPM_EINVAL, CALL ": group %d", i);
	if (stats_find(pid, PAGE_LABEL, i, &number, 1) == 1)
		fd = stats_open_found(pid, number);
	if (fd >= 0)
		page = stats_map(fd, sizeof(*page), &length);
	if (!page)
		return error_set(SLMPM_ENOENT, "process %d shows no group %d", pid, i);
	rc = read_page(page, length, pid, &all);
	munmap((void *)(uintptr_t)page, length);
	if (rc == 0)
		sized_give(group, size, &all, sizeof(all));
	return rc;
}
