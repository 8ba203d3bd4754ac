/* SPDX-License-Identifier: BSD-3-Clause */
/* The process's log: level, destination, one line at a time. */
#include "slmpm/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "slmpm/base/clock.h"

#define LINE      384
#define SECOND_NS UINT64_C(1000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int log_level = SLMPM_LOG_WARN;
static slmpm_log_fn *log_fn;
static void *log_arg;

void slmpm_log(int level, slmpm_log_fn *fn, void *arg)
{
	pthread_mutex_lock(&lock);
	atomic_store(&log_level, level);
	log_fn = fn;
	log_arg = arg;
	pthread_mutex_unlock(&lock);
}

void log_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void log_set_level(int level)
{
	atomic_store(&log_level, level);
}

static bool log_is_wanted(int level)
{
	return level <= atomic_load_explicit(&log_level, memory_order_relaxed) && level >= 1 &&
	       level <= SLMPM_LOG_DEBUG;
}

static void write_line(int level, const char *text)
{
	static const char *const names[] = {"", "error", "warning", "info", "debug"};
	slmpm_log_fn *fn;
	void *arg;

	pthread_mutex_lock(&lock);
	fn = log_fn;
	arg = log_arg;
	pthread_mutex_unlock(&lock);
	if (fn)
		fn(level, text, arg);
	else
		fprintf(stderr, "slmpm[%d] %s: %s\n", (int)getpid(), names[level], text);
}

void log_line(int level, const char *format, ...)
{
	char text[LINE];
	va_list args;

	if (!log_is_wanted(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	write_line(level, text);
}

void log_limited(struct log_limit *limit, int level, const char *format, ...)
{
	uint64_t now = clock_now(), next = atomic_load(&limit->next_ns);
	char text[LINE];
	uint32_t left_out;
	va_list args;
	int n;

	if (!log_is_wanted(level))
		return;
	/* Of several threads one writes it. */
	if (now < next ||
	    !atomic_compare_exchange_strong(&limit->next_ns, &next, now + SECOND_NS)) {
		atomic_fetch_add(&limit->left_out, 1);
		return;
	}
	left_out = atomic_exchange(&limit->left_out, 0);
	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (left_out && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, " (and %u like it before)", left_out);
	write_line(level, text);
}
