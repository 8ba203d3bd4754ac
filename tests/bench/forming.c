/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group of many processes on two processors: from the first call until the last member has done
 * its first barrier and exchange of 8 bytes with each, and what memory that takes.
 */
#include <slmpm.h>
#include <slmpm_group.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/work.h"

enum { FOUNDER, PATIENCE_MS = 30000 };

static struct each {
	double begin[MEMBERS], end[MEMBERS], bytes[MEMBERS];
} * each;

static slmpm_peer peers[MEMBERS]; /* of the founder; of others the first alone */

static void connect_all(int number)
{
	slmpm_listener listener;
	char url[48];

	snprintf(url, sizeof url, "shm:forming-%d", (int)getppid());
	if (number == FOUNDER)
		ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "slmpm_listen");
	meet(MEMBERS);
	for (int i = 1; number == FOUNDER && i < MEMBERS; i++)
		ok(slmpm_accept(listener, &peers[i], PATIENCE_MS), "slmpm_accept");
	if (number != FOUNDER)
		ok(slmpm_connect(&peers[0], (slmpm_ctx){0}, url, PATIENCE_MS), "slmpm_connect");
	meet(2 * MEMBERS);
}

static double field_of(const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	size_t n = strlen(key);
	double kib = 0;
	char line[256];

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, key, n) == 0)
			(void)sscanf(line + n, "%lf", &kib);
	if (file)
		fclose(file);
	return kib * 1024;
}

/* Its own, its share of what several have mapped, and its page tables. */
static double memory(void)
{
	return field_of("/proc/self/smaps_rollup", "Pss:") +
	       field_of("/proc/self/status", "VmPTE:");
}

static void first_operations(slmpm_group group)
{
	uint64_t out[MEMBERS], in[MEMBERS];

	for (uint64_t i = 0; i < MEMBERS; i++)
		out[i] = i;
	ok(slmpm_barrier(group, PATIENCE_MS), "slmpm_barrier");
	ok(slmpm_alltoall(group, out, in, 1, SLMPM_UINT64, PATIENCE_MS), "slmpm_alltoall");
}

static void run_member(int number)
{
	slmpm_group group;
	double before;

	bind_to_both();
	connect_all(number);
	before = memory();
	meet(3 * MEMBERS);
	each->begin[number] = now_ns();
	if (number == FOUNDER)
		ok(slmpm_group_create(&group, (slmpm_ctx){0}, peers, MEMBERS, 1, PATIENCE_MS),
		   "slmpm_group_create");
	else
		ok(slmpm_group_join(&group, peers[0], 1, PATIENCE_MS), "slmpm_group_join");
	first_operations(group);
	each->end[number] = now_ns();
	meet(4 * MEMBERS);
	each->bytes[number] = memory() - before;
	meet(5 * MEMBERS);
}

bool forming(double *ns, double *bytes)
{
	double begin, end;

	if (!each)
		each = mmap(NULL, sizeof *each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	if (each == MAP_FAILED || !run_processes(MEMBERS, run_member))
		return false;
	begin = each->begin[0];
	end = *bytes = 0;
	for (int i = 0; i < MEMBERS; i++) {
		begin = each->begin[i] < begin ? each->begin[i] : begin;
		end = each->end[i] > end ? each->end[i] : end;
		*bytes += each->bytes[i] / MEMBERS;
	}
	*ns = end - begin;
	return true;
}
