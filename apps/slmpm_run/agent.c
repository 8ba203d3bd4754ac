/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: two processes, so that one of them is there to clear up whichever dies. The worker
 * serves the relay; the supervisor waits. Each takes the orphans of what was started, and knows the
 * private folder.
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
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"
#include "apps/slmpm_run/ship.h"

#define WAIT_MS 60000 /* for the next word before the program runs */
#define CHUNK   4096

struct agent {
	struct inlet in;
	struct folder folder;
	struct program program;
	struct running run;
	int supervisor; /* ends when that one does */
	int signals;
	bool ended;
	int status;
	unsigned char box[2 * (FRAME_HEAD + CHUNK)]; /* on its way out */
	size_t boxed, sent;
};

static int fail(const char *why, int error)
{
	unsigned char text[4 + 256];

	put_error(text, error);
	snprintf((char *)text + 4, 256, "%s", why);
	(void)frame_send(1, FRAME_FAILED, text, 4 + strlen(why), 1000);
	return 1;
}

/* ---- until the program runs ----------------------------------------------------------------- */

static int next(struct agent *a, struct frame *f, enum frame_type type)
{
	int rc = inlet_next(&a->in, f, WAIT_MS);

	if (rc <= 0)
		return rc == 0 ? -ETIMEDOUT : rc;
	return type && f->type != type ? -EPROTO : 0;
}

static int take_start(struct agent *a)
{
	struct records *r = &a->program.start;
	struct frame f;
	int rc = next(a, &f, FRAME_START);

	if (rc < 0)
		return rc;
	r->text = malloc((size_t)f.length + 1);
	if (!r->text)
		return -ENOMEM;
	memcpy(r->text, f.data, (size_t)f.length + 1);
	r->length = f.length;
	return records_good(r) ? 0 : -EPROTO;
}

/* Files until GO; START has said which of them is the program. */
static int take_files(struct agent *a, char why[256])
{
	const char *image = records_value(&a->program.start, "image");
	struct frame f;
	int rc;

	while ((rc = next(a, &f, 0)) == 0 && f.type == FRAME_FILE) {
		char name[SHIP_NAME], *used;

		rc = ship_take(1, &a->in, &f, a->folder.path, name, &used, why);
		if (rc < 0) {
			free(used);
			return rc;
		}
		if (rc == 1 && !strncmp(name, "lib/", 4))
			a->program.libraries = true;
		if (image && !a->program.path && !strcmp(name, image)) {
			a->program.path = used;
			a->program.moved = rc == 1;
		} else {
			free(used);
		}
	}
	return rc == 0 && f.type != FRAME_GO ? -EPROTO : rc;
}

static int prepare(struct agent *a, char why[256])
{
	static const char hello[] = FRAME_MAGIC " 1";
	const char *command;
	int rc = frame_send(1, FRAME_HELLO, hello, sizeof(hello) - 1, WAIT_MS);

	rc = rc < 0 ? rc : take_start(a);
	rc = rc < 0 ? rc : take_files(a, why);
	if (rc < 0)
		return rc;
	command = records_value(&a->program.start, "command");
	if (!a->program.path && command)
		a->program.path = strdup(command);
	return a->program.path ? 0 : -EPROTO;
}

/* ---- while it runs -------------------------------------------------------------------------- */

static void box(struct agent *a, enum frame_type type, const void *data, size_t length)
{
	unsigned char *at = a->box + a->boxed;

	put_32(at, (uint32_t)length);
	at[4] = (unsigned char)type;
	memcpy(at + FRAME_HEAD, data, length);
	a->boxed += FRAME_HEAD + length;
}

/* False: the other side is gone. */
static bool unbox(struct agent *a)
{
	while (a->sent < a->boxed) {
		ssize_t n = write(1, a->box + a->sent, a->boxed - a->sent);

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
		a->sent += n > 0 ? (size_t)n : 0;
	}
	a->boxed = a->sent = 0;
	return true;
}

static void take_output(struct agent *a, int *fd, enum frame_type type)
{
	char chunk[CHUNK];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n > 0) {
		box(a, type, chunk, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		close(*fd);
		*fd = -1;
	}
}

static void take_ends(struct agent *a)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(a->signals, &info, sizeof(info)) == sizeof(info))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == a->run.pid) {
			a->ended = true;
			a->status = status;
		}
	if (a->ended) /* what it has left behind ends with it, and with that the pipes */
		kill_children();
}

static void pass_signal(const struct agent *a, uint32_t signal)
{
	if (a->ended || !signal || signal >= (uint32_t)SIGRTMAX)
		return;
	/* From a terminal it would go to all of its group. */
	if (signal == SIGINT || signal == SIGQUIT || signal == SIGHUP)
		(void)kill(-a->run.pid, (int)signal);
	else
		(void)kill(a->run.pid, (int)signal);
}

/* False: it is over. */
static bool take_word(struct agent *a)
{
	struct frame f;
	int rc = inlet_next(&a->in, &f, 0);

	if (rc < 0 || (rc == 1 && (f.type != FRAME_SIGNAL || f.length != 4)))
		return false;
	if (rc == 1)
		pass_signal(a, get_32(f.data));
	return true;
}

static void tell_end(struct agent *a)
{
	unsigned char text[8];
	int s = a->status;

	put_32(text, WIFEXITED(s) ? 0 : 1);
	put_32(text + 4, (uint32_t)(WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s)));
	(void)frame_send(1, FRAME_END, text, sizeof(text), 1000);
}

static void serve(struct agent *a)
{
	for (;;) {
		bool full = a->boxed > 0;
		struct pollfd p[] = {
			{.fd = 0, .events = POLLIN},
			{.fd = a->signals, .events = POLLIN},
			{.fd = a->supervisor, .events = 0},
			{.fd = full ? 1 : -1, .events = POLLOUT},
			{.fd = full ? -1 : a->run.out, .events = POLLIN},
			{.fd = full ? -1 : a->run.err, .events = POLLIN},
		};

		if (poll(p, 6, -1) < 0 && errno != EINTR)
			return;
		if (p[2].revents || (p[0].revents && !take_word(a)))
			return;
		if (p[1].revents)
			take_ends(a);
		if (p[4].revents)
			take_output(a, &a->run.out, FRAME_OUT);
		if (p[5].revents)
			take_output(a, &a->run.err, FRAME_ERR);
		if (!unbox(a))
			return;
		if (a->ended && a->run.out < 0 && a->run.err < 0 && !a->boxed) {
			tell_end(a);
			return;
		}
	}
}

static int work(struct agent *a)
{
	unsigned char number[4];
	char why[256] = "";
	sigset_t child;
	int rc;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	rc = prepare(a, why);
	if (rc == -EPIPE)
		return 1;
	if (rc < 0)
		return fail(why[0] ? why : strerror(-rc), why[0] ? SLMPM_ESYSTEM : SLMPM_EPROTO);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	a->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = program_execute(&a->program, &a->run, why);
	if (rc < 0)
		return fail(why, -rc);
	put_32(number, (uint32_t)a->run.pid);
	if (a->signals >= 0 && frame_send(1, FRAME_STARTED, number, 4, WAIT_MS) == 0)
		serve(a);
	kill_below();
	return 0;
}

/* ---- the two processes ---------------------------------------------------------------------- */

/* Lives until the worker has ended, however that comes about. */
static int guard(struct agent *a, pid_t worker)
{
	siginfo_t info;

	close(0);
	close(1);
	while (waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
		;
	kill_below();
	folder_remove(&a->folder);
	return 0;
}

int agent_main(void)
{
	static struct agent a = {.folder.lock = -1, .run.out = -1, .run.err = -1};
	const char *root = secure_getenv("TMPDIR");
	char start[32];
	int alive[2], rc;
	pid_t worker;

	root = root && *root ? root : "/tmp";
	snprintf(start, sizeof(start), "slmpm-agent-%u-", (unsigned)geteuid());
	(void)folder_sweep(root, start);
	rc = folder_make(&a.folder, root, start);
	if (rc < 0) {
		char why[256];

		snprintf(why, sizeof(why), "no folder can be made in %.120s: %s", root,
			 strerror(-rc));
		return fail(why, SLMPM_ESYSTEM);
	}
	(void)fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	(void)fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
	a.program.folder = &a.folder;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	worker = pipe2(alive, O_CLOEXEC) == 0 ? fork() : -1;
	if (worker < 0) {
		folder_remove(&a.folder);
		return fail("no process can be made", SLMPM_ESYSTEM);
	}
	if (worker == 0) {
		close(alive[1]);
		a.supervisor = alive[0];
		a.in.fd = 0;
		rc = work(&a);
		folder_remove(&a.folder);
		return rc;
	}
	close(alive[0]);
	return guard(&a, worker);
}
