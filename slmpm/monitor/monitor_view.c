/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another process's pages, read-only (monitor_layout.h). A hostile owner can neither cut them, as
 * they are sealed, nor have anything read outside of them, and texts end where they should.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/error.h"
#include "slmpm/monitor/monitor_layout.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"

struct view {
	struct monitor_page head; /* as it was when it was mapped */
	unsigned char *base;
	size_t size;
};

struct slmpm_monitors {
	int pid, count;
	struct view views[MONITOR_PAGES];
};

/* ---- finding them ---------------------------------------------------------------------------- */

/* The process's number as itself sees it: another one inside of a container. */
static uint32_t pid_inside(int pid)
{
	char path[64], line[256];
	unsigned long inside = (unsigned long)pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			inside = strtoul(last + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return (uint32_t)inside;
}

static bool monitor_view_is_sound(const struct view *v, uint32_t inside)
{
	const struct monitor_page *p = &v->head;

	if (p->magic != MONITOR_MAGIC || p->version != MONITOR_VERSION || p->pid != inside)
		return false;
	if (p->aggregate_place % 8 || p->aggregate_place > 1 << 20 ||
	    p->aggregate_known > p->aggregate_place)
		return false;
	return p->place_size % 8 == 0 && p->known <= p->place_size && p->known >= 64 &&
	       p->place_size <= 1 << 20 && p->entry_size % 8 == 0 && p->entry_size <= 1 << 22 &&
	       p->entry_size >= sizeof(struct monitor_entry) + 2 * (size_t)p->place_size &&
	       p->entries <= (v->size - sizeof(*p)) / p->entry_size;
}

/* 1 mapped; 0: no page of PID's own; -SLMPM_EVERSION: but one. */
static int map_page(struct view *v, int fd, uint32_t inside)
{
	v->base = stats_map(fd, sizeof(v->head), &v->size);
	if (!v->base)
		return 0;
	/* Pairs with the store in new_page: what is there before may be half of a head. */
	v->head.magic = __atomic_load_n((const uint64_t *)(void *)v->base, __ATOMIC_ACQUIRE);
	if (v->head.magic == MONITOR_MAGIC)
		memcpy(&v->head, v->base, sizeof(v->head));
	if (monitor_view_is_sound(v, inside))
		return 1;
	munmap(v->base, v->size);
	return v->head.magic == MONITOR_MAGIC && v->head.version != MONITOR_VERSION ?
		       -SLMPM_EVERSION :
		       0;
}

static int open_all(struct slmpm_monitors *m)
{
	uint32_t inside = pid_inside(m->pid);
	int numbers[MONITOR_PAGES], n, rc = 0;

	n = stats_find(m->pid, MONITOR_LABEL, 0, numbers, MONITOR_PAGES);
	if (n == -EACCES)
		return error_set(SLMPM_EACCES, "process %d is another user's", m->pid);
	if (n < 0)
		return error_set(SLMPM_ENOENT, "there is no process %d", m->pid);
	for (int i = 0; i < n; i++) {
		int fd = stats_open_found(m->pid, numbers[i]);
		int mapped = fd < 0 ? 0 : map_page(&m->views[m->count], fd, inside);

		rc = mapped < 0 ? mapped : rc;
		m->count += mapped > 0;
	}
	if (m->count)
		return 0;
	return rc < 0 ? error_set(SLMPM_EVERSION, "process %d: links as another version shows them",
				  m->pid) :
			error_set(SLMPM_ENOENT, "process %d shows no links", m->pid);
}

int slmpm_monitors_open(int pid, struct slmpm_monitors **out)
{
	struct slmpm_monitors *m;
	int rc;

	if (!out || pid <= 0)
		return error_set(SLMPM_EINVAL, "slmpm_monitors_open: process %d, result at %p", pid,
				 (void *)out);
	m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(SLMPM_ENOMEM, "for the monitors of process %d", pid);
	m->pid = pid;
	rc = open_all(m);
	if (rc < 0)
		slmpm_monitors_close(m);
	else
		*out = m;
	return rc;
}

void slmpm_monitors_close(struct slmpm_monitors *m)
{
	for (int i = 0; m && i < m->count; i++)
		munmap(m->views[i].base, m->views[i].size);
	free(m);
}

/* ---- reading them ---------------------------------------------------------------------------- */

static struct monitor_entry *entry_of(const struct view *v, size_t i)
{
	return (struct monitor_entry *)(void *)(v->base + sizeof(v->head) + i * v->head.entry_size);
}

/* Entry I of V has no memory: a look at it would take some, of which there may be none left. */
static bool is_absent(const struct view *v, uint32_t i)
{
	const struct monitor_page *page = (const void *)v->base;

	/* Pairs with the release in make_entry. */
	return i < 32 && __atomic_load_n(&page->absent, __ATOMIC_ACQUIRE) >> i & 1;
}

/* *I becomes its number in VIEW. */
static struct monitor_entry *entry_at(struct slmpm_monitors *m, int *i, const struct view **view)
{
	for (int k = 0; k < m->count && *i >= 0; k++) {
		*view = &m->views[k];
		if ((uint32_t)*i < m->views[k].head.entries)
			return entry_of(*view, (size_t)*i);
		*i -= (int)m->views[k].head.entries;
	}
	return NULL;
}

/* Behind the entries; NULL: the page has none. */
static struct monitor_entry *aggregate_in(const struct view *v)
{
	const struct monitor_page *p = &v->head;
	size_t at = sizeof(*p) + (size_t)p->entries * p->entry_size;

	if (p->aggregate_known < 8 ||
	    v->size - at < sizeof(struct monitor_entry) + 2 * (size_t)p->aggregate_place)
		return NULL;
	return entry_of(v, p->entries);
}

int slmpm_monitors_read(struct slmpm_monitors *m, int i, struct slmpm_monitor *out, size_t size)
{
	struct slmpm_monitor all = {.size = 0};
	const struct view *v = NULL;
	struct monitor_entry *e;
	int rc, at = i;
	size_t known;

	if (!m)
		return error_set(SLMPM_EINVAL, "slmpm_monitors_read: nothing to read");
	if (sized_check("slmpm_monitors_read", out, size, sizeof(all)) < 0)
		return -SLMPM_EINVAL;
	e = entry_at(m, &at, &v);
	if (!e)
		return error_set(SLMPM_ENOENT, "process %d: link %d", m->pid, i);
	if (is_absent(v, (uint32_t)at))
		return 0;
	known = v->head.known / 8 * 8;
	rc = places_read(&e->turn, e + 1, v->head.place_size, &all,
			 known < sizeof(all) ? known : sizeof(all));
	if (rc < 0)
		return error_set(SLMPM_EAGAIN, "process %d: link %d changes all the time", m->pid,
				 i);
	if (rc == 0)
		return 0;
	stats_tame(all.link, sizeof(all.link));
	stats_tame(all.name, sizeof(all.name));
	all.path_count =
		all.path_count < SLMPM_MONITOR_PATHS ? all.path_count : SLMPM_MONITOR_PATHS;
	for (uint32_t k = 0; k < SLMPM_MONITOR_PATHS; k++)
		stats_tame(all.paths[k].link, sizeof(all.paths[k].link));
	sized_give(out, size, &all, sizeof(all));
	return 1;
}

/* The younger of what two contexts show cannot be told: the one that knows more. */
static int read_aggregate(struct slmpm_monitors *m, struct slmpm_aggregate *best)
{
	int found = 0;

	for (int i = 0; i < m->count; i++) {
		struct slmpm_aggregate aggregate = {.size = 0};
		const struct monitor_page *p = &m->views[i].head;
		struct monitor_entry *e = aggregate_in(&m->views[i]);
		size_t known = p->aggregate_known / 8 * 8;
		int rc = e ? places_read(&e->turn, e + 1, p->aggregate_place, &aggregate,
					 known < sizeof(aggregate) ? known : sizeof(aggregate)) :
			     0;

		if (rc < 0 && !found)
			found = rc;
		if (rc != 1 || (found == 1 && aggregate.instances <= best->instances))
			continue;
		*best = aggregate;
		found = 1;
	}
	return found;
}

int slmpm_monitors_aggregate(struct slmpm_monitors *m, struct slmpm_aggregate *out, size_t size)
{
	struct slmpm_aggregate all;
	int rc;

	if (!m)
		return error_set(SLMPM_EINVAL, "slmpm_monitors_aggregate: nothing to read");
	if (sized_check("slmpm_monitors_aggregate", out, size, sizeof(all)) < 0)
		return -SLMPM_EINVAL;
	rc = read_aggregate(m, &all);
	if (rc < 0)
		return error_set(SLMPM_EAGAIN, "process %d: its aggregate changes all the time",
				 m->pid);
	if (rc == 0)
		return 0;
	for (int i = 0; i < SLMPM_AGGREGATE_FABRICS; i++)
		stats_tame(all.fabrics[i].name, sizeof(all.fabrics[i].name));
	sized_give(out, size, &all, sizeof(all));
	return 1;
}
