/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a job: the host program, what its processes say, signals to it, time limits, and the end
 * of everything it has left behind. Orphans become children of this process (a subreaper), so that
 * none is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/slmpm_run/collect.h"
#include "apps/slmpm_run/job.h"
#include "apps/slmpm_run/run.h"

#define TERM_MS 2000 /* from SIGTERM to SIGKILL */
#define LATE    124  /* exit status after --timeout */

struct run {
	struct job job;
	struct collection output;
	int signals;
	pid_t host;
	bool ended, alone; /* the host has; there is no process left below */
	int status;
	bool late, dirty;
	int interrupted;                         /* by the signal that is to end the job, or 0 */
	int64_t deadline, terminate_at, kill_at; /* ms; INT64_MAX: not */
	struct pollfd *polled;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the host program ----------------------------------------------------------------------- */

static void become(char **argv, int out, int err, int report, pid_t parent)
{
	sigset_t none;
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	if ((out < 0 || dup2(out, 1) >= 0) && (err < 0 || dup2(err, 2) >= 0))
		execvp(argv[0], argv);
	error = errno;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

/* 0, or the errno of what could not be. */
/* 0, errno, or -1: its output cannot be kept, and why has been said. */
static int start_host(struct run *r)
{
	const struct options *o = r->job.options;
	int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2], error = 0;
	pid_t self = getpid();

	if ((o->label || o->output) && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0))
		return errno;
	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	r->host = fork();
	if (r->host == 0)
		become(o->argv, out[1], err[1], report[1], self);
	if (r->host < 0)
		return errno;
	close(report[1]);
	if (read(report[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = 0;
	close(report[0]);
	if (out[0] >= 0) {
		close(out[1]);
		close(err[1]);
		if (!collect_add(&r->output, out[0], false, 0, "") ||
		    !collect_add(&r->output, err[0], true, 0, ""))
			error = -1;
	}
	if (error < 0)
		(void)kill(r->host, SIGKILL);
	else if (!error)
		(void)job_add(&r->job, 0, r->host, "local", o->argv[0]);
	return error;
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* One after the other: terminated, then killed. */
static void begin_end(struct run *r, int64_t in_ms)
{
	int64_t at = now_ms() + in_ms;

	if (at < r->terminate_at)
		r->terminate_at = at;
	if (at + TERM_MS < r->kill_at)
		r->kill_at = at + TERM_MS;
}

static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct member *m = job_find(&r->job, pid);

		if (m) {
			member_ended(m);
			m->known = true;
			m->status = status;
		}
		r->dirty = true;
		if (pid != r->host)
			continue;
		r->ended = r->job.ending = true;
		r->status = status;
		r->terminate_at = r->kill_at = INT64_MAX; /* those were the host's */
		begin_end(r, r->late ? 0 : (int64_t)r->job.options->grace_ms);
	}
	r->alone = pid < 0 && errno == ECHILD;
}

static void signal_below(struct run *r, int number)
{
	if (!r->ended)
		(void)kill(r->host, number);
	else if (number == SIGKILL)
		kill_children();
	else
		signal_children(number);
}

static void pass_signal(struct run *r, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD)
		return;
	if (number != SIGUSR1 && number != SIGUSR2)
		r->interrupted = number;
	/* What a terminal sends has gone to all of its processes. */
	if (info->ssi_code != SI_KERNEL)
		signal_below(r, number);
	if (number == SIGTERM || number == SIGHUP) {
		r->kill_at = now_ms() + TERM_MS;
		r->job.ending = r->dirty = true;
	} else if (r->ended && (number == SIGINT || number == SIGQUIT)) {
		begin_end(r, 0); /* nobody wants to wait for the rest */
	}
}

static void take_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info))
		pass_signal(r, &info);
	reap(r);
}

static void act_in_time(struct run *r)
{
	int64_t now = now_ms();

	if (now >= r->deadline) {
		r->deadline = INT64_MAX;
		r->late = true;
		fprintf(stderr, NAME ": not done after %u s: it is ended\n",
			r->job.options->timeout_s);
		begin_end(r, 0);
	}
	if (now >= r->terminate_at) {
		r->terminate_at = INT64_MAX;
		signal_below(r, SIGTERM);
	}
	if (now >= r->kill_at) {
		r->kill_at = now + TERM_MS / 4; /* there may be more, below those */
		signal_below(r, SIGKILL);
	}
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int wait_ms(const struct run *r)
{
	int64_t next = r->deadline < r->terminate_at ? r->deadline : r->terminate_at,
		now = now_ms();

	next = r->kill_at < next ? r->kill_at : next;
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now) + 1;
}

static void watch(struct pollfd **next, int fd)
{
	if (fd >= 0)
		*(*next)++ = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* What is waited for, in the order of handle(); NULL: no memory. Only what is open: there may not
 * be more than this process may have descriptors. */
static struct pollfd *watched(struct run *r, size_t *n)
{
	const struct job *j = &r->job;
	size_t most = 2 + r->output.count + j->count + j->guest_count;
	struct pollfd *p = realloc(r->polled, most * sizeof(*p)), *next = p;

	if (!p)
		return NULL;
	r->polled = p;
	watch(&next, r->signals);
	watch(&next, j->listening);
	for (size_t i = 0; i < r->output.count; i++)
		watch(&next, r->output.streams[i].fd);
	for (size_t i = 0; i < j->count; i++)
		watch(&next, j->members[i].pidfd);
	for (size_t i = 0; i < j->guest_count; i++)
		watch(&next, j->guests[i]);
	*n = (size_t)(next - p);
	return p;
}

/* Each touches only its own descriptor, or one that has been passed, or adds one. */
static void handle(struct run *r, const struct pollfd *p)
{
	size_t streams = r->output.count, members = r->job.count, guests = r->job.guest_count;
	const struct pollfd *next = p + 2;

	for (size_t i = 0; i < streams; i++)
		if (r->output.streams[i].fd >= 0 && (next++)->revents)
			(void)collect_read(&r->output, i);
	for (size_t i = 0; i < members; i++)
		if (r->job.members[i].pidfd >= 0 && (next++)->revents) {
			member_ended(&r->job.members[i]);
			r->dirty = true;
		}
	for (size_t i = 0; i < guests; i++)
		if (r->job.guests[i] >= 0 && (next++)->revents)
			r->dirty |= message_take(&r->job, i, &r->output);
	if (p[1].revents)
		message_accept(&r->job);
	if (p[0].revents)
		take_signals(r);
}

static bool inspect(struct run *r)
{
	size_t n;
	struct pollfd *p = watched(r, &n);

	if (!p || (poll(p, n, wait_ms(r)) < 0 && errno != EINTR))
		return false;
	handle(r, p);
	act_in_time(r);
	return true;
}

static void serve(struct run *r)
{
	do {
		if (r->dirty)
			job_write(&r->job);
		r->dirty = false;
	} while (inspect(r) && !(r->ended && r->alone && !collect_open(&r->output)));
	while (r->ended && r->alone &&
	       poll(&(struct pollfd){.fd = r->job.listening, .events = POLLIN}, 1, 0) == 1)
		message_accept(&r->job);
	for (size_t i = 0; i < r->job.guest_count; i++) /* what was said last */
		if (r->job.guests[i] >= 0)
			r->dirty |= message_take(&r->job, i, &r->output);
}

/* By the signal that ended the job, or as its host ended it thereupon. */
static bool is_expected(const struct run *r, int status)
{
	int by = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;

	return r->interrupted && (by == r->interrupted || by == SIGKILL || by == SIGTERM);
}

static void tell_ends(const struct run *r)
{
	for (size_t i = 0; i < r->job.count; i++) {
		const struct member *m = &r->job.members[i];
		char who[96];

		if (m->pid == r->host || !m->known || !m->status || r->job.options->quiet ||
		    is_expected(r, m->status))
			continue;
		if (strcmp(m->host, "-") != 0)
			snprintf(who, sizeof(who), "element %u on %s", m->element, m->host);
		else
			snprintf(who, sizeof(who), "element %u", m->element);
		if (WIFEXITED(m->status))
			fprintf(stderr, NAME ": %s (%s): exit status %d\n", who, m->program,
				WEXITSTATUS(m->status));
		else
			fprintf(stderr, NAME ": %s (%s): killed by signal %d (%s)\n", who,
				m->program, WTERMSIG(m->status), strsignal(WTERMSIG(m->status)));
	}
}

static bool block_signals(struct run *r)
{
	static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ?
			     signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) :
			     -1;
	return r->signals >= 0;
}

int host_run(const struct options *o)
{
	static struct run r;
	int error, rc = 1;

	r.terminate_at = r.kill_at = r.deadline = INT64_MAX;
	r.output.output = o->output;
	if (job_make(&r.job, o) && block_signals(&r)) {
		if (o->timeout_s)
			r.deadline = now_ms() + (int64_t)o->timeout_s * 1000;
		r.dirty = true;
		error = start_host(&r);
		if (error > 0) {
			fprintf(stderr, NAME ": %s: %s\n", o->argv[0], strerror(error));
			rc = error == ENOENT ? 127 : 126;
		} else if (!error) {
			serve(&r);
			tell_ends(&r);
			rc = r.late              ? LATE :
			     WIFEXITED(r.status) ? WEXITSTATUS(r.status) :
						   128 + WTERMSIG(r.status);
		}
	}
	collect_end(&r.output);
	job_remove(&r.job);
	free(r.polled);
	return rc;
}
