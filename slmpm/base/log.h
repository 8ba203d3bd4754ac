/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines: to standard error or the user's call-back, up to the level set. */
#ifndef SLMPM_BASE_LOG_H
#define SLMPM_BASE_LOG_H

#include <slmpm.h>
#include <stdatomic.h>

/* Of lines that any process can cause as often as it likes: one a second. Zeroed at first. */
struct log_limit {
	_Atomic uint64_t next_ns;
	_Atomic uint32_t left_out;
};

__attribute__((format(printf, 2, 3), cold)) void log_line(int level, const char *format, ...);
/* The same; those left out before it are counted behind it. */
__attribute__((format(printf, 3, 4), cold)) void log_limited(struct log_limit *limit, int level,
							     const char *format, ...);
void log_set_level(int level);
void log_forked(void);

#endif
