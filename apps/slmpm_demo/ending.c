/* SPDX-License-Identifier: BSD-3-Clause */
/* The wish to end: Ctrl-C and its like, once; the second time they end the process by themselves. */
#include <signal.h>

#include "apps/slmpm_demo/demo.h"

static volatile sig_atomic_t wish;

static void note(int number)
{
	wish = number;
}

int ending(void)
{
	return wish;
}

void ending_await(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND}, old;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaction(signals[i], NULL, &old);
		if (old.sa_handler != SIG_IGN) /* as nohup(1) wants it */
			sigaction(signals[i], &act, NULL);
	}
	/* A reader that has gone is an error of standard output. */
	signal(SIGPIPE, SIG_IGN);
}
