/* SPDX-License-Identifier: BSD-3-Clause */
/* What a spawned process is started with: its program, arguments, environment, descriptors. */
#ifndef SLMPM_LAUNCH_H
#define SLMPM_LAUNCH_H

#include <limits.h>
#include <sys/types.h>

#include <slmpm.h>

#include "slmpm/base/cpus.h"

/* How the child finds what it inherited; the caller's environment cannot replace them. */
#define PARENT_VARIABLE     "SLMPM_PARENT"     /* FD:INODE of its socket */
#define DEATH_PIPE_VARIABLE "SLMPM_DEATH_PIPE" /* the descriptor whose end kills it */

struct launch {
	char program[PATH_MAX];
	char **argv;
	char **envp;
	char parent[64], death_pipe[64];
	char *wrapped; /* storage of a wrapper's words */
	const char *cwd;
	int fd, death_pipe_fd;
	int moved[2];            /* copies of those that were among 0, 1 and 2; 0: none */
	const struct cpus *cpus; /* NULL: this thread's */
	int out, err;            /* of standard output and error; -1: this process's */
};

/* PROG as the absolute path of a file that can be executed; PATH is searched for one without a slash.
 * Negative errno. */
int launch_find(const char *prog, char out[PATH_MAX]);
/* For the child's ends FD and DEATH_PIPE (or -1). Negative errno; launch_free either way. */
int launch_prepare(struct launch *l, const char *prog, char *const argv[],
		   const struct slmpm_spawn_options *o, int fd, int death_pipe);
int launch_start(struct launch *l, pid_t *pid);
void launch_free(struct launch *l);

#endif
