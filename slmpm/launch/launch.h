/* SPDX-License-Identifier: BSD-3-Clause */
/* A spawned process: what it is started with, here or elsewhere, its end, who is notified of it. */
#ifndef SLMPM_LAUNCH_H
#define SLMPM_LAUNCH_H

#include <limits.h>
#include <signal.h>

#include "slmpm/base/cpus.h"
#include "slmpm/endpoint.h"
#include "slmpm/net/topology.h"

/* ---- process.c: the process behind an endpoint that slmpm_spawn started ---------------------- */

struct arrive;

struct process {
	pid_t pid;
	int pidfd;
	int death_pipe; /* write end; the child dies when the last copy closes */
	bool here;      /* a program of ours on this machine, and counted as busy */
	bool reaped;
	bool unknown; /* by somebody else: how it ended is not known */
	siginfo_t end;
	uint64_t kill_at;      /* SIGKILL is due then; 0: not */
	struct arrive *arrive; /* of one that runs elsewhere: its way back */
};

/* How it ended, in words ("killed by signal 9"), without reaping it; true: normally, with 0. */
bool process_describe(struct endpoint *ep, char *text, size_t size);
/* Sends the SIGKILLs whose grace is over; when the next is due, or UINT64_MAX. */
uint64_t process_deadlines(struct context *ctx, uint64_t now);
void process_free(struct endpoint *ep);
/* In a forked child: the parent-death pipe is the parent's alone. */
void process_forked(struct endpoint *ep);
void parent_forked(void);
void element_forked(void);

/* ---- launch.c ------------------------------------------------------------------------------- */

/* How the child finds what it inherited; the caller's environment cannot replace them. */
#define PARENT_VARIABLE     "SLMPM_PARENT"     /* FD:INODE of its socket */
#define DEATH_PIPE_VARIABLE "SLMPM_DEATH_PIPE" /* the descriptor whose end kills it */

struct launch_list { /* strings, a 0 behind each, and their addresses */
	char *text;
	size_t length;
	char **vector;
};

struct launch {
	/* What is given: */
	int fd;                  /* the child's end of its socket */
	const struct cpus *cpus; /* NULL: this thread's */
	uint32_t element;        /* for slmpm_run: where, ... */
	const char *host;        /* ... NULL: here */
	const char *name;
	/* What becomes of it: */
	char program[PATH_MAX];
	struct launch_list argv, envp;
	const char *cwd;
	int death_pipe_fd;
	int moved[2]; /* copies of those that were among 0, 1 and 2; 0: none */
	int out, err; /* of standard output and error; -1: this process's */
};

/* The absolute path of an executable PROG, searched in PATH if it has no slash. Negative errno. */
int launch_find(const char *prog, char out[PATH_MAX]);
/* PROG, but where it lies below /proc/self: what that means here. */
const char *launch_own_program(const char *prog, char path[PATH_MAX]);
/* Starts PROG as P, as O says. Negative errno: P has but its end of the parent-death pipe. */
int launch_run(struct launch *l, struct process *p, const char *prog, char *const argv[],
	       const struct slmpm_spawn_options *o);

/* As topology_find; -SLMPM_EINVAL also where there is no topology, nor such an element. */
int element_find(uint32_t *element, const struct place **place);

/* ---- job.c: slmpm_run above this process, where there is one -------------------------------- */

/* It hears of starts and ends, may take the output, and is done without if it cannot be reached. */

#define JOB_VARIABLE "SLMPM_JOB" /* "path" of its socket, or "+path": it takes output */

struct job_start {
	int job;            /* connected, or -1 */
	int out[2], err[2]; /* pipes for standard output and error; -1: as they are */
};

/* Before a start. */
void job_prepare(struct job_start *s);
/* After it; PID 0: it failed. Closes all of it. */
void job_started(struct job_start *s, uint32_t element, pid_t pid, const char *host,
		 const char *program);
/* STATUS as of waitpid; -1: it was none of a program's. */
void job_ended(pid_t pid, int status);

/* ---- remote.c: starts on other hosts -------------------------------------------------------- */

/* slmpm_spawn for ELEMENT, which lies at PLACE. A relay process here (slmpm_run --relay) stands for
 * it. Waits until the program runs there. */
int remote_spawn(slmpm_peer *peer, struct context *ctx, const char *prog, char *const argv[],
		 const struct slmpm_spawn_options *o, uint32_t element, const struct place *place);

/* ---- remote_request.c: what the relay has to start ------------------------------------------- */

struct remote_request {
	const struct place *place;
	const char *prog;
	char *const *argv;
	const struct slmpm_spawn_options *options;
	const char *url, *secret; /* the way back */
};

/* *TEXT, to be freed, of *LENGTH bytes. Negative SLMPM_E* with the detail set. */
int remote_request_make(const struct remote_request *r, char **text, size_t *length);

#endif
