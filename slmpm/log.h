/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines: to standard error or the user's call-back, up to the level set. */
#ifndef SLMPM_LOG_H
#define SLMPM_LOG_H

#include <slmpm.h>

__attribute__((format(printf, 2, 3), cold)) void log_line(int level, const char *format, ...);
void log_set_level(int level);

#endif
