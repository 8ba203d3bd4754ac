/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory there is to be had. Pages of shared memory are refused by no limit of a file
 * system: what is asked for beyond that the kernel takes from others, by ending them.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/compiler.h"
#include "shm/mapping.h"

/* Of both versions of control groups. */
static const struct cgroup_files {
	const char *line, *folder, *limit, *used, *cached[2], *name;
} cgroups[] = {
	{"0::",
	 "/sys/fs/cgroup",
	 "memory.max",
	 "memory.current",
	 {"inactive_file ", "active_file "},
	 "memory.max of a control group"},
	{"memory:",
	 "/sys/fs/cgroup/memory",
	 "memory.limit_in_bytes",
	 "memory.usage_in_bytes",
	 {"total_inactive_file ", "total_active_file "},
	 "memory.limit_in_bytes of a control group"},
};

/* The number behind KEY in a line of PATH, or the first one where KEY is ""; UINT64_MAX: there is
 * none. */
static uint64_t number_in(const char *path, const char *key)
{
	uint64_t n = UINT64_MAX;
	FILE *f = fopen(path, "re");
	char line[128];

	while (f && n == UINT64_MAX && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			(void)sscanf(line + strlen(key), "%" SCNu64, &n);
	if (f)
		fclose(f);
	return n;
}

static uint64_t known_or_zero(uint64_t n)
{
	return n == UINT64_MAX ? 0 : n;
}

static void bound_by(struct spare *s, uint64_t bytes, const char *by)
{
	if (bytes < s->bytes)
		*s = (struct spare){bytes, by};
}

/* What the machine has. */
static void bound_by_machine(struct spare *s, const char *root)
{
	char path[PATH_MAX];
	uint64_t kib;

	(void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	kib = number_in(path, "MemAvailable:");
	if (kib < UINT64_MAX / 1024)
		bound_by(s, (kib + known_or_zero(number_in(path, "SwapFree:"))) * 1024,
			 "MemAvailable and SwapFree of /proc/meminfo");
}

/* What the control group in FOLDER may still have: its files in memory give way. */
static void bound_by_folder(struct spare *s, const struct cgroup_files *c, const char *folder)
{
	char path[PATH_MAX + 64];
	uint64_t limit, used, cached = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, c->limit);
	limit = number_in(path, "");
	(void)snprintf(path, sizeof(path), "%s/%s", folder, c->used);
	used = number_in(path, "");
	if (limit == UINT64_MAX || used == UINT64_MAX)
		return;
	(void)snprintf(path, sizeof(path), "%s/memory.stat", folder);
	for (int i = 0; i < 2; i++)
		cached += known_or_zero(number_in(path, c->cached[i]));
	used -= least_of(cached, used);
	bound_by(s, limit - least_of(used, limit), c->name);
}

/* That of this process, and those around it. In a container the path may be that of its host: then
 * only the outermost folder is there. */
static void bound_by_cgroup(struct spare *s, const struct cgroup_files *c, const char *root,
			    const char *of)
{
	char folder[PATH_MAX];
	size_t top = (size_t)snprintf(folder, sizeof(folder), "%s%s", root, c->folder), at;

	at = top + (size_t)snprintf(folder + top, sizeof(folder) - top, "%s", of);
	if (at >= sizeof(folder))
		return;
	for (;;) {
		bound_by_folder(s, c, folder);
		while (at > top && folder[--at] != '/')
			;
		if (!folder[top])
			return;
		folder[at] = 0;
	}
}

static void bound_by_cgroups(struct spare *s, const char *root)
{
	char path[PATH_MAX], line[PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		for (int i = 0; i < 2; i++) {
			const char *at = strstr(line, cgroups[i].line);

			if (at)
				bound_by_cgroup(s, &cgroups[i], root, at + strlen(cgroups[i].line));
		}
	}
	if (f)
		fclose(f);
}

struct spare mapping_spare(const char *root)
{
	struct spare s = {UINT64_MAX, "nothing"};

	bound_by_machine(&s, root);
	bound_by_cgroups(&s, root);
	return s;
}
