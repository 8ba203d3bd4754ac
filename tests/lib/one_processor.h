/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes on one processor, and whether they had it to themselves. */
#ifndef TESTS_LIB_ONE_PROCESSOR_H
#define TESTS_LIB_ONE_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* This process, and the accelerators that it starts; false: that cannot be had here. */
bool one_processor_bind(void);

/* A span of time in which this process and OTHER run. */
struct one_processor {
	pid_t other;
	int64_t began, spent; /* ns: time, processor time of both */
};

struct one_processor one_processor_begin(pid_t other);
/* Nobody else has run there, but for moments. */
bool one_processor_was_ours(const struct one_processor *p);

#endif
