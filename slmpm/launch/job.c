/* SPDX-License-Identifier: BSD-3-Clause */
/* One packet a message, over a connection each: a fork, thread or closed descriptor spoils none. */
#include "slmpm/launch/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "slmpm/base/log.h"
#include "slmpm/net/net.h"

static int connect_job(bool *wants_output)
{
	const char *path = secure_getenv(JOB_VARIABLE);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	*wants_output = path && *path == '+';
	if (*wants_output)
		path++;
	if (!path || !*path || strlen(path) >= sizeof(sa.sun_path))
		return -1;
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void job_say(int job, const char *text, const int *fds, size_t count)
{
	if (net_send(job, text, strlen(text), fds, count) < 0)
		log_line(SLMPM_LOG_WARN, "slmpm_run cannot be notified of a process");
}

static void close_pair(int fds[2])
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void job_prepare(struct job_start *s)
{
	bool wants_output;

	*s = (struct job_start){.out = {-1, -1}, .err = {-1, -1}};
	s->job = connect_job(&wants_output);
	if (s->job >= 0 && wants_output && pipe2(s->out, O_CLOEXEC) == 0 &&
	    pipe2(s->err, O_CLOEXEC) != 0)
		close_pair(s->out);
}

void job_started(struct job_start *s, uint32_t element, pid_t pid, const char *host,
		 const char *program)
{
	const int output[] = {s->out[0], s->err[0]};
	char text[512], self[PATH_MAX];

	if (s->job >= 0 && pid > 0) {
		snprintf(text, sizeof(text), "start %u %d %s %.300s", element, (int)pid,
			 host ? host : "-", launch_own_program(program, self));
		job_say(s->job, text, output, output[0] >= 0 ? 2 : 0);
	}
	close_pair(s->out);
	close_pair(s->err);
	if (s->job >= 0)
		close(s->job);
}

void job_ended(pid_t pid, int status)
{
	char text[64];
	bool wants_output;
	int job = connect_job(&wants_output);

	if (job < 0)
		return;
	snprintf(text, sizeof(text), "end %d %d", (int)pid, status);
	job_say(job, text, NULL, 0);
	close(job);
}
