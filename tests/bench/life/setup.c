/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting accelerators, and the same number of plain processes of this very program. */
#include "tests/bench/life/life.h"

#include <slmpm.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, PATIENCE_MS = 5000 };

extern char **environ;

/* ---- ours ---- */

int setup_accelerator(void)
{
	slmpm_peer host;
	char any;

	if (slmpm_parent(&host) < 0 || slmpm_send(host, 0, "", 1, PATIENCE_MS) < 0)
		return slmpm_perror("hello");
	slmpm_recv(host, 0, &any, 1, NULL, -1); /* until the host closes */
	return 0;
}

static int greet_all(slmpm_ctx ctx, slmpm_peer *peer, unsigned n, unsigned *started)
{
	static char *const argv[] = {"--hello", NULL};
	struct slmpm_spawn_options how = {.size = sizeof how, .ctx = ctx};
	int64_t rc = 0;
	char any;

	for (*started = 0; *started < n && rc >= 0; *started += rc >= 0)
		rc = slmpm_spawn(&peer[*started], LIFE_SELF, argv, &how);
	for (unsigned i = 0; i < n && rc >= 0; i++)
		rc = slmpm_recv(peer[i], 0, &any, 1, NULL, PATIENCE_MS);
	return rc < 0 ? (int)rc : 0;
}

const char *setup_spawn(unsigned n, double *ms)
{
	uint64_t begin = life_now();
	slmpm_peer peer[MOST];
	unsigned started = 0;
	slmpm_ctx ctx;
	int rc;

	if (n < 1 || n > MOST)
		return "1 to 64";
	if (slmpm_open(&ctx, NULL) < 0)
		return slmpm_error_detail();
	rc = greet_all(ctx, peer, n, &started);
	*ms = (double)(life_now() - begin) / 1e6;
	if (rc < 0)
		slmpm_perror("setup");
	for (unsigned i = 0; i < started; i++)
		slmpm_close(peer[i], PATIENCE_MS);
	for (unsigned i = 0; i < started; i++)
		slmpm_join(peer[i], NULL, PATIENCE_MS);
	slmpm_shut(ctx, 0);
	return rc < 0 ? slmpm_strerror(rc) : NULL;
}

/* ---- bare ---- */

int setup_bare_child(void)
{
	char any;

	/* Like an accelerator it says that it is there and stays until it is let go. */
	return write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &any, 1) != 0;
}

static unsigned start_all(unsigned n, pid_t *pid, int in, int out)
{
	static char *const argv[] = {"life", "--bare", NULL};
	posix_spawn_file_actions_t files;
	unsigned started = 0;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	while (started < n &&
	       posix_spawn(&pid[started], LIFE_SELF, &files, NULL, argv, environ) == 0)
		started++;
	posix_spawn_file_actions_destroy(&files);
	return started;
}

static int hear_all(unsigned n, int from)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	char some[MOST];

	while (n) {
		ssize_t k = poll(&p, 1, PATIENCE_MS) == 1 ? read(from, some, n) : 0;

		if (k <= 0)
			return -1;
		n -= (unsigned)k;
	}
	return 0;
}

const char *setup_bare(unsigned n, double *ms)
{
	uint64_t begin = life_now();
	int hold[2], hear[2], rc;
	pid_t pid[MOST];
	unsigned started;

	if (n < 1 || n > MOST)
		return "1 to 64";
	if (pipe2(hold, O_CLOEXEC))
		return "no pipe";
	if (pipe2(hear, O_CLOEXEC)) {
		close(hold[0]);
		close(hold[1]);
		return "no pipe";
	}
	started = start_all(n, pid, hold[0], hear[1]);
	close(hear[1]);
	rc = started == n ? hear_all(n, hear[0]) : -1;
	*ms = (double)(life_now() - begin) / 1e6;
	close(hear[0]);
	close(hold[0]);
	close(hold[1]); /* lets them go */
	for (unsigned i = 0; i < started; i++)
		waitpid(pid[i], NULL, 0);
	return rc ? "a plain process does not start" : NULL;
}
