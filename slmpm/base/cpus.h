/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors of a program started here: by SLMPM_CPUS, or the topology's entry for its host. */
#ifndef SLMPM_BASE_CPUS_H
#define SLMPM_BASE_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define CPUS_MAX 8192 /* as many as the kernel can be built for */

typedef cpu_set_t cpus_mask[CPUS_MAX / CPU_SETSIZE];

struct cpus {
	bool stay;     /* the program gets those of the thread that starts it */
	bool whole;    /* which are all of the cpuset */
	cpus_mask own; /* the thread's */
	cpus_mask set; /* the program's */
	char why[112];
};

/* Is TEXT auto, inherit, cpuset or a list like 0-3,8? Else why not. */
bool cpus_readable(const char *text, char why[80]);
/* By HINT, which NAME says in what is complained of. Negative, the detail set: it cannot be had. */
int cpus_choose(struct cpus *c, const char *name, const char *hint);
/* "0-3,8: why" */
void cpus_describe(const struct cpus *c, char *text, size_t size);
/* What this thread starts in between gets them. Negative errno. */
int cpus_enter(const struct cpus *c);
void cpus_leave(const struct cpus *c);
/* So many more programs run here that this process has started. */
void cpus_started(int more);

#endif
