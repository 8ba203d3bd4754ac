/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failing call leaves behind for slmpm_error_detail. */
#ifndef SLMPM_BASE_ERROR_H
#define SLMPM_BASE_ERROR_H

#include <slmpm.h>

#define ERROR_DETAIL 256 /* bytes of a detail; a place that keeps one has as many */

/* Sets the calling thread's detail and returns -ERROR. */
__attribute__((format(printf, 2, 3), cold)) int error_set(int error, const char *format, ...);
/* The same of CALL, with which the text begins; of which call that says so the thread's detail is,
 * or NULL. */
__attribute__((format(printf, 3, 4), cold)) int error_of_call(int error, const char *call,
							      const char *format, ...);
const char *error_call(void);
/* The calling thread's detail, all of it; and that again, whatever has failed meanwhile. */
__attribute__((cold)) void error_save(char kept[ERROR_DETAIL]);
__attribute__((cold)) void error_restore(const char *kept);
/* -SLMPM_E* for a negative errno; the same, and the detail says WHAT failed and the system's
 * text. */
__attribute__((cold)) int error_code(int negative_errno);
__attribute__((cold)) int error_system(int negative_errno, const char *what);

#endif
