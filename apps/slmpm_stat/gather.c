/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes there are, and the links that they show. Nothing in there is believed. */
#include "apps/slmpm_stat/stat.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 1024 /* of a process: more than it can show is not read */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What it calls itself; who was started by a descriptor, or by /proc/self/exe, is called "exe" there. */
static void name(struct link *l)
{
	char path[64], file[PATH_MAX], *base;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", l->pid);
	f = fopen(path, "re");
	if (!f || !fgets(l->program, sizeof(l->program), f))
		snprintf(l->program, sizeof(l->program), "?");
	if (f)
		fclose(f);
	l->program[strcspn(l->program, "\n")] = 0;
	if (strcmp(l->program, "exe") != 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/exe", l->pid);
	n = readlink(path, file, sizeof(file) - 1);
	file[n > 0 ? n : 0] = 0;
	base = strrchr(file, '/');
	if (base)
		snprintf(l->program, sizeof(l->program), "%.31s", base + 1);
}

/* Its name, and whose it is. */
static void describe(struct link *l)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", l->pid);
	l->uid = stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
	name(l);
	word_tame(l->program);
}

static struct link *add(struct gathered *g)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 64;
		struct link *links = realloc(g->links, room * sizeof(*links));

		if (!links)
			return NULL;
		g->links = links;
		g->room = room;
	}
	return &g->links[g->count++];
}

static bool is_live(const struct slmpm_monitor *m)
{
	return m->state == SLMPM_PEER_UP || m->state == SLMPM_PEER_CONNECTING;
}

int gather_process(struct gathered *g, int pid)
{
	struct link process = {.pid = pid};
	struct slmpm_monitors *monitors;
	int rc = slmpm_monitors_open(pid, &monitors);

	if (rc < 0)
		return rc;
	describe(&process);
	g->processes++;
	for (int i = 0; i < LINKS_MAX; i++) {
		struct slmpm_monitor m = {.size = 0};
		struct link *l;

		rc = slmpm_monitors_read(monitors, i, &m, sizeof(m));
		if (rc == -SLMPM_ENOENT)
			break;
		if (rc != 1 || (!g->all && !is_live(&m)))
			continue;
		l = add(g);
		if (!l)
			break;
		*l = process;
		l->place = i;
		l->m = m;
		word_tame(l->m.name);
		word_tame(l->m.link);
		for (uint32_t k = 0; k < SLMPM_MONITOR_PATHS; k++)
			word_tame(l->m.paths[k].link);
		l->age = now() - (double)m.taken_ns / 1e9;
		l->age = l->age > 0 && l->age < 1e9 ? l->age : 0;
	}
	jobs_add(g, monitors);
	gather_totals(g, pid, process.program);
	gather_queues(g, pid, process.program);
	gather_groups(g, pid, process.program);
	slmpm_monitors_close(monitors);
	return 0;
}

void gather_all(struct gathered *g)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (!*end && pid > 0)
			(void)gather_process(g, (int)pid);
	}
	if (dir)
		closedir(dir);
}

static enum sort order;

static double weight(const struct link *l)
{
	switch (order) {
	case SORT_QUEUE: return (double)l->m.queue_depth;
	case SORT_RING: return (double)word_permille(l->m.out_unread, l->m.out_segments);
	case SORT_LATENCY: return (double)l->m.echo_ns;
	case SORT_RATE: return (double)l->m.sent_rate + (double)l->m.received_rate;
	case SORT_BYTES: return (double)l->m.sent_byte_rate + (double)l->m.received_byte_rate;
	default: return 0;
	}
}

static int compare(const void *first, const void *second)
{
	const struct link *a = first, *b = second;
	double more = weight(b) - weight(a);

	if (more < 0 || more > 0)
		return more > 0 ? 1 : -1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a < b ? -1 : 1;
}

void gather_sort(struct gathered *g, enum sort by)
{
	order = by;
	if (g->count)
		qsort(g->links, g->count, sizeof(*g->links), compare);
}

void gather_drop(struct gathered *g)
{
	free(g->links);
	free(g->jobs);
	free(g->totals);
	free(g->queues);
	free(g->groups);
	*g = (struct gathered){.all = g->all};
}
