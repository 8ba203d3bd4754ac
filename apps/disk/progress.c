/* SPDX-License-Identifier: BSD-3-Clause */
/* The bar on a terminal, and amounts for people. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "apps/disk/copy.h"

#define BAR    30
#define REDRAW 0.1 /* seconds */

static bool drawn;

double progress_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

const char *progress_rate(char text[32], uint64_t bytes, double seconds)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	double rate = (double)bytes / (seconds > 1e-9 ? seconds : 1e-9);
	unsigned u = 0;

	while (rate >= 999.5 && u < 4) {
		rate /= 1000;
		u++;
	}
	snprintf(text, 32, "%.3g %s/s", rate, units[u]);
	return text;
}

void progress_clear(void)
{
	if (drawn)
		fputs("\r\033[K", stderr);
	drawn = false;
}

void progress_show(uint64_t done, uint64_t all, double seconds)
{
	static int terminal = -1;
	static double next;
	double share = all ? (double)done / (double)all : 1;
	char rate[32];
	int full;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal || seconds < next)
		return;
	next = seconds + REDRAW;
	share = share > 1 ? 1 : share;
	full = (int)(share * BAR);
	fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f %%  %s", full, "##############################",
		BAR - full, "", share * 100, progress_rate(rate, done, seconds));
	drawn = true;
}
