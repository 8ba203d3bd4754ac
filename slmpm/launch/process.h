/* SPDX-License-Identifier: BSD-3-Clause */
/* The process behind an endpoint that slmpm_spawn started. */
#ifndef SLMPM_PROCESS_H
#define SLMPM_PROCESS_H

#include <signal.h>

#include "slmpm/endpoint.h"

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

#endif
