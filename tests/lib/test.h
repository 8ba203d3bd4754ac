/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a test program without cmocka says what happened: CHECK fails it with a line, test_skip
 * leaves with 77. Safe in any process and thread.
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEST_SKIPPED 77

/* Under a thread sanitizer: it has nothing to say of scenes in which no second thread runs. */
#ifdef __SANITIZE_THREAD__
#define TEST_THREADS_ALONE 1
#else
#define TEST_THREADS_ALONE 0
#endif

/* CHECK(condition, format, ...): prints where and what, and ends the process with 1. */
#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			test_fail(__FILE__, __LINE__, __VA_ARGS__);                                \
	} while (0)

/* By _exit: in a forked child the parent's exit handlers are not ours to run. */
__attribute__((format(printf, 3, 4))) _Noreturn static inline void test_fail(const char *file,
									     int line,
									     const char *format,
									     ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

_Noreturn static inline void test_skip(const char *why)
{
	printf("skipped: %s\n", why);
	fflush(stdout);
	_exit(TEST_SKIPPED);
}

#endif
