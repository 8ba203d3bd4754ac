/* SPDX-License-Identifier: BSD-3-Clause */
/* Forked test bodies with a deadline. */
#include "tests/lib/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

pid_t child_start(int (*body)(void *), void *arg, unsigned seconds)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	CHECK(pid >= 0, "fork failed");
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)signal(SIGALRM, SIG_DFL);
	alarm(seconds);
	int status = body(arg);
	fflush(stdout);
	fflush(stderr);
	_exit(status);
}

int child_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR, "waitpid failed");
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WTERMSIG(status) == SIGALRM ? CHILD_LATE : -WTERMSIG(status);
}

int child_run(int (*body)(void *), void *arg, unsigned seconds)
{
	return child_wait(child_start(body, arg, seconds));
}

void *child_common(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED, "no memory");
	return at;
}
