/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_run: the parts of the program. */
#ifndef SLMPM_RUN_H
#define SLMPM_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "apps/slmpm_run/folder.h"
#include "apps/slmpm_run/frame.h"

#define NAME "slmpm_run"

/* ---- where the accelerator runs (agent.c, execute.c) ---- */

/* Serves one start over standard input and output. */
int agent_main(void);

struct program { /* what is to be run */
	struct records start;
	const struct folder *folder;
	char *path;     /* the file, where one was offered */
	bool moved;     /* it lies in the folder */
	bool libraries; /* some lie in the folder */
};

struct running {
	pid_t pid;
	int out, err; /* ends of its pipes */
};

/* Starts it in a session of its own. Negative SLMPM_E*, WHY says the rest. */
int program_execute(const struct program *p, struct running *r, char why[256]);
/* FILE as PATH has it, where it has no slash; NULL: nowhere. */
const char *program_search(const char *file, char out[PATH_MAX]);
/* Kills all processes below this one, whatever they have become, and waits for their ends. */
void kill_below(void);
/* The same to its children, without waiting; or another signal. */
void kill_children(void);
void signal_children(int signal_number);

/* ---- the host's side of a start (relay.c, deliver.c) ---- */

/* Serves slmpm_spawn over the socket that it left. */
int relay_main(void);

struct delivery {
	struct records request;
	pid_t pid; /* of the remote command */
	int fd;    /* to and from it */
	struct inlet in;
	char why[320];
};

/* Runs the remote command, and sends what is needed until the program runs. 0, or SLMPM_E* with
 * `why`. */
int deliver(struct delivery *d);

/* ---- command.c ---- */

/* The request's KEY, or "". */
const char *delivery_value(const struct delivery *d, const char *key);
/* Notes why, after the host's name; returns ERROR. */
__attribute__((format(printf, 3, 4))) int delivery_fail(struct delivery *d, int error,
							const char *format, ...);
/* Starts the remote command: 0, or SLMPM_E* with `why`. */
int delivery_start(struct delivery *d);
/* Nobody answers any more: waits for its end, and notes what that says. */
int delivery_gone(struct delivery *d, const char *when);

#endif
