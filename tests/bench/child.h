/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that serves: started once, then asked line by line. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* of its process group; 0: not running */
	int in, out;
	size_t have;
	char text[4096]; /* read, not yet a whole line */
};

/* command goes to /bin/sh, its standard error to log. */
int child_start(struct child *c, const char *command, int log);
/* One order, one answer; NULL and *why when the child is gone or late. */
const char *child_ask(struct child *c, const char *order, int timeout_ms, const char **why);
/* Its two halves: 0 or -1, and the answer. */
int child_tell(struct child *c, const char *order);
const char *child_hear(struct child *c, int timeout_ms, const char **why);
/* End of orders; those who do not leave by themselves are killed. */
void child_stop(struct child *c);

/* Ahead of whatever else runs here, where that is allowed; children inherit it, all alike. */
void child_step_forward(void);

/* The number behind "key": in an answer; -1 when null, -2 when it is not there. */
double answer_number(const char *answer, const char *key);

#endif
