/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pair that waits: undisturbed, or until one of the two is killed. Both are strangers to this
 * process, which only reads what they write into a pipe: that they wait now, and when they got
 * the error.
 */
#include "tests/bench/life/life.h"

#include <slmpm.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTES = 3, PATIENCE_MS = 5000 };

extern char **environ;

/* ---- in the two processes ---- */

struct note { /* a line in the pipe's, as small as to be written whole */
	int32_t pid;
	int32_t error;
	uint64_t ns; /* 0: begins to wait */
	uint64_t cpu_ns;
};

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tell(int error, uint64_t ns)
{
	struct note n = {.pid = getpid(),
			 .error = error,
			 .ns = ns,
			 .cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID)};

	if (write(NOTES, &n, sizeof n) != sizeof n)
		_exit(1);
}

/* As a program with an event loop of its own. */
static int wait_in_epoll(slmpm_ctx ctx)
{
	struct epoll_event interest = {.events = EPOLLIN}, ready;
	struct slmpm_event event = {.size = sizeof event};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, slmpm_fd(ctx), &interest))
		return -SLMPM_ESYSTEM;
	for (;;) {
		while (slmpm_next_event(ctx, &event, 0) == 1)
			if (event.error)
				return event.error;
		if (slmpm_arm(ctx) == 0)
			epoll_wait(fd, &ready, 1, -1);
	}
}

static int wait_so(const char *way, slmpm_ctx ctx, slmpm_peer peer)
{
	int64_t rc;
	char any;

	if (strcmp(way, "epoll") == 0)
		return wait_in_epoll(ctx);
	do
		rc = slmpm_recv(peer, 0, &any, 1, NULL, strcmp(way, "try") == 0 ? 0 : -1);
	while (rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EAGAIN);
	return (int)rc;
}

/* A CPU each: two that spin on one would measure the scheduler's slices. */
static void take_cpu(unsigned side)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed)) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			if (side-- == 0)
				break;
		}
	sched_setaffinity(0, sizeof one, &one);
}

static int wait_and_tell(const char *way, unsigned side, slmpm_ctx ctx, slmpm_peer peer)
{
	int rc;

	take_cpu(side);
	tell(0, 0);
	rc = wait_so(way, ctx, peer);
	tell(rc, life_now());
	return 0;
}

static int open_for(const char *way, slmpm_ctx *ctx)
{
	struct slmpm_options how = {.size = sizeof how, .wait = SLMPM_WAIT_ADAPTIVE};

	if (strcmp(way, "spin") == 0)
		how.wait = SLMPM_WAIT_SPIN;
	return slmpm_open(ctx, &how);
}

int watch_accelerator(const char *way)
{
	slmpm_peer host;
	slmpm_ctx ctx;
	char any;

	if (open_for(way, &ctx) < 0 || slmpm_parent_in(ctx, &host) < 0 ||
	    slmpm_recv(host, 0, &any, 1, NULL, PATIENCE_MS) < 0 ||
	    slmpm_send(host, 0, "", 1, PATIENCE_MS) < 0)
		return slmpm_perror("watched");
	return wait_and_tell(strcmp(way, "pair") == 0 ? "epoll" : way, 1, ctx, host);
}

int watch_host(const char *way)
{
	char own[16], any;
	char *const argv[] = {"--watched", own, NULL};
	struct slmpm_spawn_options how = {.size = sizeof how};
	slmpm_peer accel;

	snprintf(own, sizeof own, "%s", way);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the accelerator then ends by what it waits for */
	if (open_for(way, &how.ctx) < 0 || slmpm_spawn(&accel, LIFE_SELF, argv, &how) < 0 ||
	    slmpm_send(accel, 0, "", 1, PATIENCE_MS) < 0 ||
	    slmpm_recv(accel, 0, &any, 1, NULL, PATIENCE_MS) < 0)
		return slmpm_perror("watch");
	return wait_and_tell(strcmp(way, "pair") == 0 ? "recv" : way, 0, how.ctx, accel);
}

/* ---- here ---- */

struct couple {
	pid_t pid[2];       /* host, accelerator */
	uint64_t cpu_ns[2]; /* used when they began to wait */
	int notes;
};

static int next_note(const struct couple *c, struct note *n)
{
	struct pollfd p = {.fd = c->notes, .events = POLLIN};

	return poll(&p, 1, PATIENCE_MS) == 1 && read(c->notes, n, sizeof *n) == sizeof *n ? 0 : -1;
}

static void part(struct couple *c)
{
	for (int i = 0; i < 2; i++)
		if (c->pid[i] > 0)
			kill(c->pid[i], SIGKILL);
	for (int i = 0; i < 2; i++) /* the host first: then the accelerator is our child, too */
		if (c->pid[i] > 0)
			waitpid(c->pid[i], NULL, 0);
	close(c->notes);
}

static int unite(struct couple *c, const char *way)
{
	char own[16];
	char *const argv[] = {"life", "--watch", own, NULL};
	posix_spawn_file_actions_t files;
	struct note n;
	int fd[2], rc;

	*c = (struct couple){.notes = -1};
	if (pipe2(fd, O_CLOEXEC))
		return -1;
	snprintf(own, sizeof own, "%s", way);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fd[1], NOTES);
	rc = posix_spawn(&c->pid[0], LIFE_SELF, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(fd[1]);
	c->notes = fd[0];
	if (rc)
		c->pid[0] = 0;
	for (int i = 0; i < 2 && !rc; i++) {
		rc = next_note(c, &n);
		if (rc)
			break;
		if (n.pid != c->pid[0])
			c->pid[1] = n.pid;
		c->cpu_ns[n.pid != c->pid[0]] = n.cpu_ns;
	}
	return rc;
}

/* What stands behind KEY in /proc/PID/status; 0 or -1. */
static int inspect(pid_t pid, const char *key, char *text, size_t size)
{
	char path[64], line[256];
	FILE *f;
	int found = -1;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && found && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0) {
			snprintf(text, size, "%.*s", (int)size - 1, line + strlen(key));
			found = 0;
		}
	if (f)
		fclose(f);
	return found;
}

static long long wakeups(const struct couple *c)
{
	long long sum = 0, one;
	char text[64];

	for (int i = 0; i < 2; i++) {
		if (inspect(c->pid[i], "voluntary_ctxt_switches:", text, sizeof text) ||
		    sscanf(text, "%lld", &one) != 1)
			return -1;
		sum += one;
	}
	return sum;
}

static void rest(uint64_t us)
{
	struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Sleeping is an event that nobody is told of: look until both do. */
static int await_sleep(const struct couple *c)
{
	uint64_t end = life_now() + PATIENCE_MS * UINT64_C(1000000);
	char state[2][64];

	do {
		rest(200);
		if (inspect(c->pid[0], "State:\t", state[0], sizeof state[0]) ||
		    inspect(c->pid[1], "State:\t", state[1], sizeof state[1]))
			return -1;
		if (state[0][0] == 'S' && state[1][0] == 'S')
			return 0;
	} while (life_now() < end);
	return -1;
}

/* Host and accelerator are killed in turns. */
static const char *kill_one(const struct couple *c, const char *way, double *ms)
{
	static unsigned turn;
	unsigned victim = turn++ & 1;
	int polling = strcmp(way, "spin") == 0 || strcmp(way, "try") == 0;
	uint64_t begin;
	struct note n;

	if (polling)
		rest(1000);
	else if (await_sleep(c))
		return "the two do not go to sleep";
	begin = life_now();
	if (kill(c->pid[victim], SIGKILL) || next_note(c, &n))
		return "the survivor does not notice";
	if (n.pid != c->pid[!victim] || n.error != -SLMPM_EDEAD)
		return "the survivor got another error than EDEAD";
	*ms = (double)(n.ns - begin) / 1e6;
	return NULL;
}

const char *watch_death(const char *way, double *ms)
{
	static const char *const ways[] = {"recv", "epoll", "spin", "try"};
	const char *why = "recv, epoll, spin or try";
	struct couple c;
	size_t known = 0;

	while (known < 4 && strcmp(ways[known], way) != 0)
		known++;
	if (known == 4)
		return why;
	why = "the pair does not start";
	if (unite(&c, way) == 0)
		why = kill_one(&c, way, ms);
	part(&c);
	return why;
}

const char *watch_idle(uint64_t ms, double *value)
{
	const char *why = "the pair does not start";
	long long before, after;
	struct couple c;

	if (unite(&c, "pair") == 0 && await_sleep(&c) == 0) {
		rest(100000); /* what came last may still have sent a bell after itself */
		before = wakeups(&c);
		rest(ms * 1000);
		after = wakeups(&c);
		*value = (double)(after - before);
		why = before < 0 || after < before ? "the pair is gone" : NULL;
	}
	part(&c);
	return why;
}

/* From the note that each writes just before it waits; the processes' own clocks tell what came
 * behind. */
static const char *cpu_since(const struct couple *c, double *ms)
{
	for (int i = 0; i < 2; i++) {
		clockid_t clock;

		if (clock_getcpuclockid(c->pid[i], &clock))
			return "the pair is gone";
		*ms += (double)(cpu_ns(clock) - c->cpu_ns[i]) / 1e6;
	}
	return NULL;
}

const char *watch_idle_cpu(uint64_t ms, double *cpu_ms)
{
	const char *why = "the pair does not start";
	struct couple c;

	*cpu_ms = 0;
	if (unite(&c, "pair") == 0) {
		rest(ms * 1000);
		why = cpu_since(&c, cpu_ms);
	}
	part(&c);
	return why;
}
