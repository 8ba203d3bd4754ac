/* SPDX-License-Identifier: BSD-3-Clause */
/* One packet a message, each over a connection of its own: so a fork, a thread or a closed descriptor
 * spoils nothing. */
#include "slmpm/launch/job.h"

#include <fcntl.h>
#include <stdbool.h>
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
		log_line(SLMPM_LOG_WARN, "slmpm_run cannot be told of a process");
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void job_prepare(struct job_start *s)
{
	bool wants_output;
	int out[2], err[2];

	*s = (struct job_start){.read = {-1, -1}, .out = -1, .err = -1};
	s->job = connect_job(&wants_output);
	if (s->job < 0 || !wants_output || pipe2(out, O_CLOEXEC) != 0)
		return;
	if (pipe2(err, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		return;
	}
	s->read[0] = out[0];
	s->read[1] = err[0];
	s->out = out[1];
	s->err = err[1];
}

void job_started(struct job_start *s, uint32_t element, pid_t pid, const char *host,
		 const char *program)
{
	char text[512], self[301];
	ssize_t n = -1;

	if (!strncmp(program, "/proc/self/", 11))
		n = readlink(program, self, sizeof(self) - 1);
	if (n > 0)
		self[n] = 0;
	if (s->job >= 0 && pid > 0) {
		snprintf(text, sizeof(text), "start %u %d %s %.300s", element, (int)pid,
			 host ? host : "-", n > 0 ? self : program);
		job_say(s->job, text, s->read, s->out >= 0 ? 2 : 0);
	}
	close_one(&s->read[0]);
	close_one(&s->read[1]);
	close_one(&s->out);
	close_one(&s->err);
	close_one(&s->job);
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
