/* SPDX-License-Identifier: BSD-3-Clause */
/* A job: a host program and what it starts, as slmpm_run sees them, and as --status shows them. */
#ifndef SLMPM_RUN_JOB_H
#define SLMPM_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/slmpm_run/folder.h"

#define MEMBERS 65536 /* remembered at most; later ones are run, but not shown */

struct member {           /* a process: the host program, or one that stands for an element */
	uint32_t element; /* 0: the host, or none */
	pid_t pid;
	int pidfd;         /* readable once it has ended; -1: it has */
	bool ended, known; /* known: `status` is */
	int status;        /* as of waitpid */
	char host[64];
	char program[64];
};

struct options {
	const char *topology, *hosts, *remote, *there, *listen, *fabric, *chdir, *ship, *output;
	unsigned elements; /* 0: not said */
	unsigned timeout_s, grace_ms;
	bool label, insecure, quiet;
	char **exports; /* NAME or NAME=VALUE */
	char **argv;    /* the host program */
};

struct job {
	const struct options *options;
	struct folder folder;
	char socket[108];
	int listening;
	struct member *members;
	size_t count;
	int *guests; /* connections: who has said nothing yet, or waits for the end; -1: free */
	size_t guest_count;
	int64_t started; /* seconds since 1970 */
	bool ending;
};

/* ---- job.c ---- */

/* Where jobs of this user have their folders. Negative errno. */
int job_root(char path[PATH_MAX]);
/* Its folder, socket and topology; the environment for the host program. False: told why. */
bool job_make(struct job *j, const struct options *o);
struct member *job_add(struct job *j, uint32_t element, pid_t pid, const char *host,
		       const char *program);
struct member *job_find(struct job *j, pid_t pid);
void member_ended(struct member *m);
/* Writes its state for others to look at. */
void job_write(const struct job *j);
void job_remove(struct job *j);

/* ---- message.c ---- */

struct collection;
/* Lets one in at the job's socket: a guest. */
void message_accept(struct job *j);
/* What a guest has to say; true: there is something new to be shown. */
bool message_take(struct job *j, size_t guest, struct collection *output);

/* ---- host.c: runs it all; the exit status ---- */

int host_run(const struct options *o);

/* ---- status.c ---- */

int status_show(void);
/* All jobs, or the one of that name. */
int status_kill(const char *job);

#endif
