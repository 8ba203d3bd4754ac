/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slmpm_run above this process, where there is one (SLMPM_JOB): it is told what is started and how it
 * ended, and takes the output where it wants to. Nothing here fails: a job that cannot be reached is
 * done without.
 */
#ifndef SLMPM_JOB_H
#define SLMPM_JOB_H

#include <stdint.h>
#include <sys/types.h>

#define JOB_VARIABLE "SLMPM_JOB" /* "path" of its socket, or "+path": it takes output */

struct job_start {
	int job;      /* connected, or -1 */
	int read[2];  /* of the pipes for standard output and error; -1: as they are */
	int out, err; /* their other ends, for the new process */
};

/* Before a start. */
void job_prepare(struct job_start *s);
/* After it; PID 0: it failed. Closes all of it. */
void job_started(struct job_start *s, uint32_t element, pid_t pid, const char *host,
		 const char *program);
/* STATUS as of waitpid; -1: it was none of a program's. */
void job_ended(pid_t pid, int status);

#endif
