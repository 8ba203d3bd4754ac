/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that shows statistics and totals of its own making, in memory that it cuts while others
 * read: these are refused, and nobody who reads dies of it.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define SIZE  ((off_t)1 << 20)
#define TRIES 3000

static _Atomic int *ready;

static int cut(void *arg)
{
	int fd = memfd_create(arg, MFD_ALLOW_SEALING);

	CHECK(fd >= 0, "no memory");
	for (;;) {
		CHECK(ftruncate(fd, SIZE) == 0, "it cannot grow");
		*ready = 1;
		CHECK(ftruncate(fd, 0) == 0, "it cannot be cut");
	}
	return 0;
}

static int read_it(void *arg)
{
	pid_t pid = child_start(cut, arg, 60);
	const struct slmpm_stats_page *page;

	while (!*ready)
		usleep(100);
	for (int i = 0; i < TRIES; i++)
		if (strcmp(arg, "slmpm-totals") == 0)
			CHECK(slmpm_totals_read(pid, NULL, 0, 0) < 0, "it is believed");
		else
			EXPECT(slmpm_stats_attach(pid, 0, &page), -SLMPM_EVERSION);
	CHECK(kill(pid, SIGKILL) == 0, "it cannot be killed");
	(void)child_wait(pid);
	return 0;
}

int main(void)
{
	static char totals[] = "slmpm-totals", stats[] = "slmpm-stats";

	ready = child_common(sizeof(*ready));
	CHECK(child_run(read_it, totals, 60) == 0, "totals: see above");
	*ready = 0;
	CHECK(child_run(read_it, stats, 60) == 0, "statistics: see above");
	return 0;
}
