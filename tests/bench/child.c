/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts, asks and stops the programs that serve. */
#include "tests/bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int child_start(struct child *c, const char *command, int log)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return -1;
	*c = (struct child){.in = to[1], .out = from[0]};
	c->pid = fork();
	if (c->pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* an interrupted run leaves nobody behind */
		dup2(to[0], 0);
		dup2(from[1], 1);
		dup2(log, 2);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	if (c->pid < 0) {
		close(to[1]);
		close(from[0]);
		c->pid = 0;
		return -1;
	}
	return 0;
}

/* The next line, into line; libraries may chatter on standard output, so only answers count. */
static int next_answer(struct child *c, char *line, size_t room)
{
	char *end;

	while ((end = memchr(c->text, '\n', c->have))) {
		size_t len = (size_t)(end - c->text);
		int is_answer = c->text[0] == '{' && len < room;

		if (is_answer) {
			memcpy(line, c->text, len);
			line[len] = 0;
		}
		c->have -= len + 1;
		memmove(c->text, end + 1, c->have);
		if (is_answer)
			return 1;
	}
	return 0;
}

int child_tell(struct child *c, const char *order)
{
	return write(c->in, order, strlen(order)) == (ssize_t)strlen(order) ? 0 : -1;
}

const char *child_hear(struct child *c, int timeout_ms, const char **why)
{
	static char line[2048];
	long end = now_ms() + timeout_ms;

	*why = "has ended";
	while (!next_answer(c, line, sizeof line)) {
		struct pollfd p = {.fd = c->out, .events = POLLIN};
		long left = end - now_ms();
		ssize_t k;

		if (c->have == sizeof c->text)
			c->have = 0; /* no answer is that long */
		if (left <= 0 || (poll(&p, 1, (int)left) == 0)) {
			*why = "does not answer";
			return NULL;
		}
		k = read(c->out, c->text + c->have, sizeof c->text - c->have);
		if (k == 0 || (k < 0 && errno != EINTR))
			return NULL;
		c->have += k > 0 ? (size_t)k : 0;
	}
	return line;
}

const char *child_ask(struct child *c, const char *order, int timeout_ms, const char **why)
{
	*why = "has ended";
	return child_tell(c, order) ? NULL : child_hear(c, timeout_ms, why);
}

static int gone_within(struct child *c, int ms)
{
	long end = now_ms() + ms;

	do {
		if (waitpid(c->pid, NULL, WNOHANG) != 0)
			return 1;
		poll(NULL, 0,
		     10); /* several children, one parent: no event tells of just this one */
	} while (now_ms() < end);
	return 0;
}

void child_stop(struct child *c)
{
	if (!c->pid)
		return;
	close(c->in);
	if (!gone_within(c, 3000)) {
		kill(-c->pid, SIGTERM);
		if (!gone_within(c, 2000)) {
			kill(-c->pid, SIGKILL);
			waitpid(c->pid, NULL, 0);
		}
	}
	close(c->out);
	c->pid = 0;
}

void child_step_forward(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	setpriority(PRIO_PROCESS, 0, -20);
	if (fd >= 0) {
		if (write(fd, "-20", 3) < 0)
			fputs("no higher priority for this session\n", stderr);
		close(fd);
	}
}

double answer_number(const char *answer, const char *key)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	at = strstr(answer, quoted);
	if (!at)
		return -2;
	at += strlen(quoted);
	while (*at == ' ')
		at++;
	return strncmp(at, "null", 4) == 0 ? -1 : strtod(at, NULL);
}
