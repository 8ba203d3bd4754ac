/* SPDX-License-Identifier: BSD-3-Clause */
/* What a spawned process is started with: its program, arguments, environment, descriptors. */
#ifndef SLMPM_LAUNCH_H
#define SLMPM_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

#include <slmpm.h>

#include "slmpm/base/cpus.h"
#include "slmpm/launch/process.h"

/* How the child finds what it inherited; the caller's environment cannot replace them. */
#define PARENT_VARIABLE     "SLMPM_PARENT"     /* FD:INODE of its socket */
#define DEATH_PIPE_VARIABLE "SLMPM_DEATH_PIPE" /* the descriptor whose end kills it */

struct place;

struct launch {
	/* What is given: */
	int fd;                  /* the child's end of its socket */
	const struct cpus *cpus; /* NULL: this thread's */
	bool dies_with_host;
	uint32_t element; /* as slmpm_run is told of it: where, ... */
	const char *host; /* ... NULL: here */
	const char *name;
	/* What becomes of it: */
	char program[PATH_MAX];
	char **argv;
	char **envp;
	char parent[64], death_pipe[64];
	char *wrapped; /* storage of a wrapper's words */
	const char *cwd;
	int death_pipe_fd;
	int moved[2]; /* copies of those that were among 0, 1 and 2; 0: none */
	int out, err; /* of standard output and error; -1: this process's */
};

/* PROG as the absolute path of a file that can be executed; PATH is searched for one without a slash.
 * Negative errno. */
int launch_find(const char *prog, char out[PATH_MAX]);
/* Starts PROG as P, as O says, which may be NULL. Negative errno: P has but its end of the parent-death pipe. */
int launch_run(struct launch *l, struct process *p, const char *prog, char *const argv[],
	       const struct slmpm_spawn_options *o);

/* As topology_find; -SLMPM_EINVAL also where there is no topology, nor such an element. */
int element_find(uint32_t *element, const struct place **place);

#endif
