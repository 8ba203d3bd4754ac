/* SPDX-License-Identifier: BSD-3-Clause */
/* What people see on standard error: the bar while it runs, the table at the end. */
#include "apps/slmpm_demo/demo.h"

#include <time.h>
#include <unistd.h>

#define BAR       30
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

/* 12345678 as "12.3 MB". */
static const char *amount(char text[24], double bytes)
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

void screen_progress(const struct files *files, const struct tally *t)
{
	static uint64_t next;
	char done[24], all[24];
	double share;
	int full;

	if (!terminal() || now_ns() < next)
		return;
	next = now_ns() + REDRAW_NS;
	share = files->bytes ? (double)t->bytes / (double)files->bytes : 1;
	share = share > 1 ? 1 : share;
	full = (int)(share * BAR);
	fflush(stdout);
	fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f %%  %llu files, %s of %s", full,
		"##############################", BAR - full, "", share * 100,
		(unsigned long long)t->files, amount(done, (double)t->bytes),
		amount(all, (double)files->bytes));
	drawn = true;
}

static void line(const char *name, const char *value)
{
	fprintf(stderr, "  %-18s %s\n", name, value);
}

static void number(const char *name, uint64_t value)
{
	fprintf(stderr, "  %-18s %llu\n", name, (unsigned long long)value);
}

static void protocols(const struct tally *t)
{
	static const char *const names[PROTOCOLS] = {[SMT] = "by SMT",
						     [RGET] = "by RGET",
						     [RGET_SHARED] = "  share pushed",
						     [PUT] = "by PUT"};
	char text[128], part[24];

	for (enum protocol p = SMT; p < PROTOCOLS; p++) {
		snprintf(text, sizeof(text), "%llu %s, %s",
			 (unsigned long long)t->protocol_messages[p],
			 p == PUT ? "puts" : "messages",
			 amount(part, (double)t->protocol_bytes[p]));
		line(names[p], text);
	}
}

void screen_table(const struct files *files, const struct tally *t)
{
	char text[128], part[24];
	double seconds = t->seconds > 0 ? t->seconds : 1e-9;

	screen_clear();
	fflush(stdout);
	fprintf(stderr, "slmpm_demo: %u accelerators, %u lost, %.3f s\n", t->accelerators, t->lost,
		t->seconds);
	number("files", t->files);
	if (files->failed)
		number("not readable", files->failed);
	if (t->redone)
		number("done again", t->redone);
	if (t->here)
		number("hashed by the host", t->here);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)t->bytes);
	line("bytes", text);
	number("messages", t->messages);
	protocols(t);
	snprintf(text, sizeof(text), "%s/s, %.0f files/s", amount(part, (double)t->bytes / seconds),
		 (double)t->files / seconds);
	line("throughput", text);
	if (t->latency.count)
		snprintf(text, sizeof(text), "p50 %.0f us, p90 %.0f us, p99 %.0f us, max %.0f us",
			 hist_quantile(&t->latency, 0.5) / 1e3,
			 hist_quantile(&t->latency, 0.9) / 1e3,
			 hist_quantile(&t->latency, 0.99) / 1e3, (double)t->latency.max / 1e3);
	else
		snprintf(text, sizeof(text), "-");
	line("latency", text);
	snprintf(text, sizeof(text), "mean %.1f %%, at most %.1f %%",
		 t->ring_samples ? 100 * t->ring_sum / (double)t->ring_samples : 0,
		 100 * t->ring_most);
	line("ring utilization", text);
	number("remote writes", t->remote_writes);
	number("remote reads", t->remote_reads);
}
