/* SPDX-License-Identifier: BSD-3-Clause */
/* The wish to end: Ctrl-C and its like, once; the second time they end the process by
 * themselves. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "apps/slmpm_demo/demo.h"

static volatile sig_atomic_t asked;
static volatile sig_atomic_t seen[2]; /* a bit for each signal: from anyone, from the parent */

static int nowhere = -1; /* /dev/null */

/* A signal to the process group comes by slmpm_run, too, which passes on its own: once is both. */
static bool came_before(int number, const siginfo_t *from)
{
	bool passed = from->si_code == SI_USER && from->si_pid == getppid();
	int bit = 1 << number;

	if (seen[passed] & bit)
		return true;
	seen[passed] |= bit;
	return false;
}

/* Standard output goes nowhere from now on: a write to a pipe that nobody reads would wait for
 * ever. */
static void note(int number, siginfo_t *from, void *unused)
{
	int saved = errno;

	(void)unused;
	if (came_before(number, from)) {
		signal(number, SIG_DFL);
		raise(number);
	}
	asked = number;
	(void)dup2(nowhere, STDOUT_FILENO);
	errno = saved;
}

int ending(void)
{
	return asked;
}

void ending_await(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_sigaction = note, .sa_flags = SA_SIGINFO}, old;

	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaction(signals[i], NULL, &old);
		if (old.sa_handler != SIG_IGN) /* as nohup(1) wants it */
			sigaction(signals[i], &act, NULL);
	}
	/* A reader that has gone is an error of standard output. */
	signal(SIGPIPE, SIG_IGN);
}
