/* SPDX-License-Identifier: BSD-3-Clause */
/* What people see on a terminal while it runs: how far it is, and by which ways it goes. */
#include "apps/slmpm_demo/demo.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR       20
#define REDRAW_NS 100000000u

static bool drawn;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool terminal(void)
{
	static int is = -1;

	if (is < 0)
		is = isatty(STDERR_FILENO);
	return is;
}

const char *screen_amount(char text[24], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	unsigned u = 0;

	while (bytes >= 999.5 && u < 4) {
		bytes /= 1000;
		u++;
	}
	snprintf(text, 24, u ? "%.3g %s" : "%.0f %s", bytes, units[u]);
	return text;
}

void screen_clear(void)
{
	if (!drawn)
		return;
	fputs("\r\033[K", stderr);
	drawn = false;
}

/* Of the terminal, less one so that nothing wraps. */
static int width(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 :
										 79;
}

/* Is it time to draw? Not more often than an eye follows. */
static bool due(uint64_t *next)
{
	if (!terminal() || now_ns() < *next)
		return false;
	*next = now_ns() + REDRAW_NS;
	return true;
}

void screen_walk(const struct files *files, const char *path)
{
	static uint64_t next;
	char bytes[24], text[320];

	if (!due(&next))
		return;
	snprintf(text, sizeof(text), "%zu files, %s found in %s", files->count,
		 screen_amount(bytes, (double)files->bytes), path);
	fprintf(stderr, "\r\033[K%.*s", width(), text);
	drawn = true;
}

void screen_progress(const struct files *files, const struct tally *t)
{
	static uint64_t next;
	char done[24], all[24], went[160], text[320];
	double share;
	int full;

	if (!due(&next))
		return;
	share = files->bytes ? (double)t->bytes / (double)files->bytes : 1;
	share = share > 1 ? 1 : share;
	full = (int)(share * BAR);
	output_flush();
	snprintf(text, sizeof(text), "[%.*s%*s] %3.0f %%  %s of %s  %s", full,
		 "####################", BAR - full, "", share * 100,
		 screen_amount(done, (double)t->bytes), screen_amount(all, (double)files->bytes),
		 traffic_now(&t->traffic, went, sizeof(went)));
	fprintf(stderr, "\r\033[K%.*s", width(), text);
	drawn = true;
}
