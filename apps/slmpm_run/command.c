/* SPDX-License-Identifier: BSD-3-Clause */
/* The remote command: how it is started, and what its end says. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"

const char *delivery_value(const struct delivery *d, const char *key)
{
	const char *text = records_value(&d->request, key);

	return text ? text : "";
}

/* What comes from the other side may be anything: a terminal is to see none but characters of
 * text. */
int delivery_fail(struct delivery *d, int error, const char *format, ...)
{
	int n = snprintf(d->why, sizeof(d->why), "%.64s: ", delivery_value(d, "host"));
	va_list args;

	va_start(args, format);
	vsnprintf(d->why + n, sizeof(d->why) - (size_t)n, format, args);
	va_end(args);
	for (char *c = d->why; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return error;
}

/* WORD with each %h as the host. */
static char *expand(const char *word, const char *host)
{
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size);

	for (; to && *word; word++) {
		if (word[0] == '%' && (word[1] == 'h' || word[1] == '%'))
			fputs(*++word == 'h' ? host : "%", to);
		else
			fputc(*word, to);
	}
	if (!to || fclose(to) != 0)
		return NULL;
	return out;
}

/* Its words, then the agent's; words are separated by blanks, nothing is quoted. */
static char **make_command(const struct delivery *d)
{
	const char *agent = *delivery_value(d, "agent") ? delivery_value(d, "agent") : NAME;
	char *line, *save = NULL, **words;
	size_t n = 0, room;

	if (asprintf(&line, "%s %s --agent", delivery_value(d, "remote"), agent) < 0)
		return NULL;
	room = strlen(line) / 2 + 2;
	words = calloc(room, sizeof(*words));
	for (char *w = strtok_r(line, " \t", &save); words && w; w = strtok_r(NULL, " \t", &save))
		words[n++] = expand(w, delivery_value(d, "host"));
	free(line);
	return words;
}

/* In a process group of its own: an interrupt from a terminal is passed on, not lived through. One
 * that does not look at its input ends with this process all the same. */
static void become(char **words, int fd, int report, pid_t parent)
{
	char path[PATH_MAX];
	const char *file = program_search(words[0], path);
	int error = ENOENT;

	(void)setpgid(0, 0);
	(void)signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0)
		error = file ? (execv(file, words), errno) : ENOENT;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

/* 0, or the errno of what could not be. */
static int spawn(struct delivery *d, char **words, int fd)
{
	pid_t self = getpid();
	int report[2], error = 0;

	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	d->pid = fork();
	if (d->pid == 0)
		become(words, fd, report[1], self);
	close(report[1]);
	if (d->pid < 0 || read(report[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = d->pid < 0 ? errno : 0;
	else
		(void)waitpid(d->pid, NULL, 0);
	if (error)
		d->pid = 0;
	close(report[0]);
	return error;
}

int delivery_start(struct delivery *d)
{
	char **words = make_command(d);
	int fds[2] = {-1, -1}, rc = 0;

	if (!words || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		rc = delivery_fail(d, SLMPM_ESYSTEM, "no connection to a remote command: %s",
				   strerror(errno));
	if (rc == 0) {
		int error = spawn(d, words, fds[1]);

		if (error)
			rc = delivery_fail(d, error == ENOENT ? SLMPM_ENOENT : SLMPM_ENOEXEC,
					   "the remote command \"%s\" cannot be started: %s",
					   words[0], strerror(error));
		close(fds[1]);
		d->fd = fds[0];
		d->in.fd = fds[0];
	}
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
	return rc;
}

int delivery_gone(struct delivery *d, const char *when)
{
	const char *agent = *delivery_value(d, "agent") ? delivery_value(d, "agent") : NAME;
	int status = 0;

	(void)shutdown(d->fd, SHUT_RDWR);
	(void)waitpid(d->pid, &status, 0);
	d->pid = 0;
	if (WIFSIGNALED(status))
		return delivery_fail(d, SLMPM_ESYSTEM,
				     "the remote command was ended by signal %d %s",
				     WTERMSIG(status), when);
	if (WEXITSTATUS(status) == 127)
		return delivery_fail(d, SLMPM_ENOENT,
				     "exit status 127 %s: no \"%.60s\" there? (topology: agent)",
				     when, agent);
	return delivery_fail(d, SLMPM_ENOENT,
			     "the remote command \"%.80s\" ended with status %d %s",
			     delivery_value(d, "remote"), WEXITSTATUS(status), when);
}
