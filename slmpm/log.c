/* SPDX-License-Identifier: BSD-3-Clause */
/* The process's log: level, destination, one line at a time. */
#include "slmpm/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

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

void log_set_level(int level)
{
	atomic_store(&log_level, level);
}

void log_line(int level, const char *format, ...)
{
	static const char *const names[] = {"", "error", "warning", "info", "debug"};
	char text[384];
	slmpm_log_fn *fn;
	void *arg;
	va_list args;

	if (level > atomic_load_explicit(&log_level, memory_order_relaxed) || level < 1 ||
	    level > SLMPM_LOG_DEBUG)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	fn = log_fn;
	arg = log_arg;
	pthread_mutex_unlock(&lock);
	if (fn)
		fn(level, text, arg);
	else
		fprintf(stderr, "slmpm[%d] %s: %s\n", (int)getpid(), names[level], text);
}
