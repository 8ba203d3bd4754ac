/* SPDX-License-Identifier: BSD-3-Clause */
/* Lifetime totals of another process, which is not believed: copied, cut and made printable. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/error.h"
#include "slmpm/monitor/monitor_layout.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/stats.h"
#include "slmpm/base/clock.h"

#define TRY_NS UINT64_C(1000000000) /* its owner may be writing, and not run meanwhile */

struct view {
	const struct totals_page *page;
	size_t size;
	uint32_t entries, entry_size;
};

/* The owner cannot have the entries lie beyond SIZE: one load each. */
static bool totals_view_is_sound(struct view *v)
{
	const volatile struct totals_page *p = v->page;

	/* Pairs with the release in have_table. */
	if (__atomic_load_n(&v->page->magic, __ATOMIC_ACQUIRE) != TOTALS_MAGIC)
		return false;
	/* Pairs with the release in make_place. */
	v->entries = __atomic_load_n(&v->page->entries, __ATOMIC_ACQUIRE);
	v->entry_size = p->entry_size;
	return p->version == TOTALS_VERSION && v->entry_size >= sizeof(struct slmpm_totals) &&
	       v->entry_size % 8 == 0 && v->entries <= TOTALS_ENTRIES &&
	       (v->size - sizeof(*v->page)) / v->entry_size >= v->entries;
}

static int open_view(struct view *v, int pid)
{
	int number, fd = -1;

	if (stats_find(pid, TOTALS_LABEL, 0, &number, 1) == 1)
		fd = stats_open_found(pid, number);
	if (fd < 0)
		return error_set(SLMPM_ENOENT, "process %d shows no totals (is it yours?)", pid);
	v->page = stats_map(fd, sizeof(*v->page), &v->size);
	if (!v->page)
		return error_set(SLMPM_ENOENT, "process %d: its totals are not readable", pid);
	if (totals_view_is_sound(v))
		return 0;
	munmap((void *)(uintptr_t)v->page, v->size);
	return error_set(SLMPM_EVERSION, "process %d: totals of another version", pid);
}

/* All of it as of one moment; false: it changed all the time. */
static bool copy_table(struct slmpm_totals *to, const struct view *v)
{
	const unsigned char *from = (const unsigned char *)(v->page + 1);
	uint64_t until = clock_now() + TRY_NS;

	do {
		/* Pairs with the release in end_writing. */
		uint64_t turn = atomic_load_explicit(&v->page->turn, memory_order_acquire);

		for (uint32_t k = 0; !(turn & 1) && k < v->entries; k++)
			words_load(&to[k], from + (size_t)k * v->entry_size, sizeof(*to));
		/* Pairs with the fence in begin_writing. */
		atomic_thread_fence(memory_order_acquire);
		if (!(turn & 1) &&
		    turn == atomic_load_explicit(&v->page->turn, memory_order_relaxed))
			return true;
		(void)sched_yield();
	} while (clock_now() < until);
	return false;
}

int slmpm_totals_read(int pid, struct slmpm_totals *all, size_t size, int n)
{
	struct slmpm_totals *copy;
	struct view v = {.size = 0};
	int rc = totals_check("slmpm_totals_read", all, size, n);

	if (rc == 0)
		rc = open_view(&v, pid);
	if (rc < 0)
		return rc;
	copy = calloc(TOTALS_ENTRIES, sizeof(*copy));
	if (!copy)
		rc = error_set(SLMPM_ENOMEM, "for totals");
	else if (!copy_table(copy, &v))
		rc = error_set(SLMPM_EAGAIN, "process %d: its totals change all the time", pid);
	for (uint32_t i = 0; rc == 0 && i < v.entries; i++) {
		stats_tame(copy[i].id, sizeof(copy[i].id));
		copy[i].place = i;
	}
	if (rc == 0)
		rc = totals_give(all, size, n, copy, v.entries);
	free(copy);
	munmap((void *)(uintptr_t)v.page, v.size);
	return rc;
}
