/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The relay: slmpm_spawn's child in the place of an accelerator that runs elsewhere. It passes
 * signals on and output back, and ends as the accelerator did. When it ends, the agent there ends
 * everything; so whatever ends an accelerator here ends one there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"

#define WAIT_MS 5000
#define CHUNK   4096 /* a pipe that has room takes so much without blocking */

struct relay {
	struct delivery d;
	int signals, death_pipe, job;
	int to; /* output on its way: where, what, how much of it */
	const unsigned char *data;
	uint32_t left;
};

/* As the accelerator: by the same signal, without leaving a core. */
static void end_by(int signal_number)
{
	struct rlimit none = {0, 0};
	sigset_t all;

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(signal_number, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	(void)kill(getpid(), signal_number);
	_exit(128 + signal_number);
}

/* The remote command ends with its agent; if not, it is ended. */
static void end_command(struct relay *c)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, c->d.pid, 0), .events = POLLIN};

	close(c->d.fd);
	if (c->d.pid <= 0)
		return;
	if (p.fd < 0 || poll(&p, 1, WAIT_MS) == 0)
		(void)kill(c->d.pid, SIGKILL);
	(void)waitpid(c->d.pid, NULL, 0);
}

static int lost(struct relay *c, const char *why)
{
	fprintf(stderr, NAME ": %s: %s; what ran there is ended\n",
		records_value(&c->d.request, "host"), why);
	end_command(c);
	end_by(SIGKILL);
	return 1;
}

static int ended(struct relay *c, const struct frame *f)
{
	uint32_t kind, value;

	if (f->length != 8)
		return lost(c, "its agent does not keep to the rules");
	kind = get_32(f->data);
	value = get_32(f->data + 4);
	end_command(c);
	if (kind == 0)
		return (int)(value & 0xff);
	end_by(value && value < (uint32_t)SIGRTMAX ? (int)value : SIGKILL);
	return 1;
}

/* Less than 0: go on; else the exit status. */
static int take_word(struct relay *c)
{
	struct frame f;
	int rc = inlet_next(&c->d.in, &f, 0);

	if (rc == 0)
		return -1;
	if (rc == -EPIPE)
		return lost(c, "the connection to its agent is lost");
	if (rc == 1 && f.type == FRAME_END)
		return ended(c, &f);
	if (rc < 0 || (f.type != FRAME_OUT && f.type != FRAME_ERR))
		return lost(c, "its agent does not keep to the rules");
	c->to = f.type == FRAME_OUT ? 1 : 2;
	c->data = f.data;
	c->left = f.length;
	return -1;
}

static void put_output(struct relay *c)
{
	ssize_t n = write(c->to, c->data, c->left < CHUNK ? c->left : CHUNK);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	c->left -= n > 0 ? (uint32_t)n : c->left; /* nobody reads it any more */
	c->data += n > 0 ? n : 0;
}

static void pass_signals(struct relay *c)
{
	struct signalfd_siginfo info;
	unsigned char number[4];

	while (read(c->signals, &info, sizeof(info)) == sizeof(info)) {
		put_32(number, info.ssi_signo);
		(void)frame_send(c->d.fd, FRAME_SIGNAL, number, sizeof(number), WAIT_MS);
	}
}

static int serve(struct relay *c)
{
	int rc = -1;

	while (rc < 0) {
		struct pollfd p[] = {
			{.fd = c->signals, .events = POLLIN},
			{.fd = c->death_pipe, .events = POLLIN},
			{.fd = c->job, .events = POLLIN},
			{.fd = c->left ? -1 : c->d.fd, .events = POLLIN},
			{.fd = c->left ? c->to : -1, .events = POLLOUT},
		};

		if (poll(p, 5, -1) < 0 && errno != EINTR)
			return 1;
		if (p[1].revents || p[2].revents) /* its host or job has ended, and it with it */
			end_by(SIGKILL);
		if (p[0].revents)
			pass_signals(c);
		if (p[4].revents)
			put_output(c);
		else if (p[3].revents)
			rc = take_word(c);
	}
	return rc;
}

static bool block_signals(struct relay *c)
{
	static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	c->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ?
			     signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) :
			     -1;
	return c->signals >= 0;
}

/* A connection that ends with the job's slmpm_run; -1: there is none. */
static int watch_job(void)
{
	const char *path = secure_getenv("SLMPM_JOB");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (path && *path == '+')
		path++;
	if (!path || !*path || strlen(path) >= sizeof(sa.sun_path))
		return -1;
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	    send(fd, "watch", 5, MSG_NOSIGNAL) == 5)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- the request ---------------------------------------------------------------------------- */

static int inherited(const char *variable)
{
	const char *text = secure_getenv(variable);
	int fd = text ? atoi(text) : -1;

	if (fd <= 2 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		fd = -1;
	unsetenv(variable);
	return fd;
}

static int take_request(struct relay *c, int parent)
{
	struct inlet in = {.fd = parent};
	struct records *r = &c->d.request;
	struct frame f;

	if (inlet_next(&in, &f, WAIT_MS) != 1 || f.type != FRAME_START)
		return -1;
	r->text = malloc((size_t)f.length + 1);
	if (!r->text)
		return -1;
	memcpy(r->text, f.data, (size_t)f.length + 1);
	r->length = f.length;
	inlet_free(&in);
	return records_good(r) && records_value(r, "host") && records_value(r, "remote") ? 0 : -1;
}

int relay_main(void)
{
	static struct relay c = {.d.fd = -1};
	int parent = inherited("SLMPM_PARENT"), rc;

	c.death_pipe = inherited("SLMPM_DEATH_PIPE");
	(void)signal(SIGPIPE, SIG_IGN);
	if (parent < 0 || take_request(&c, parent) < 0) {
		fputs(NAME ": --relay is how slmpm_spawn starts it\n", stderr);
		return 2;
	}
	rc = deliver(&c.d);
	if (rc) {
		unsigned char text[4 + sizeof(c.d.why)];

		put_error(text, rc);
		memcpy(text + 4, c.d.why, sizeof(c.d.why));
		(void)frame_send(parent, FRAME_FAILED, text, 4 + strlen(c.d.why), WAIT_MS);
		end_command(&c);
		return 1;
	}
	if (!block_signals(&c) || frame_send(parent, FRAME_STARTED, NULL, 0, WAIT_MS) < 0)
		return 1;
	close(parent);
	c.job = watch_job();
	return serve(&c);
}
