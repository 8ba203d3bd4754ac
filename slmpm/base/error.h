/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failing call leaves behind for slmpm_error_detail. */
#ifndef SLMPM_BASE_ERROR_H
#define SLMPM_BASE_ERROR_H

#include <stdbool.h>

#include <slmpm.h>

#define ERROR_DETAIL 256 /* bytes of a detail; a place that keeps one has as many */
#define ERROR_SYSTEM 96  /* bytes of room for a text of the system's */

/* Sets the calling thread's detail and returns -ERROR. */
__attribute__((format(printf, 2, 3), cold)) int error_set(int error, const char *format, ...);
/* The same, and the text begins with CALL. */
__attribute__((format(printf, 3, 4), cold)) int error_of_call(int error, const char *call,
							      const char *format, ...);
/* The error RC, with its detail, as CALL's: the text begins with that, if it does not yet. Returns
 * RC. */
__attribute__((cold)) int error_name_call(const char *call, int rc);
/* The calling thread's detail, all of it; and that again, whatever has failed meanwhile. */
__attribute__((cold)) void error_save(char kept[ERROR_DETAIL]);
__attribute__((cold)) void error_restore(const char *kept);
/* TEXT into TO of SIZE bytes, at least 64; what is too long ends before a word, by " ...". */
__attribute__((cold)) void error_fit(char *to, size_t size, const char *text);
/* -SLMPM_E* for a negative errno. */
__attribute__((cold)) int error_code(int negative_errno);
/* Its words, in TEXT or elsewhere. */
__attribute__((cold)) const char *error_text(int negative_errno, char text[ERROR_SYSTEM]);
/* ERROR, a positive SLMPM_E*, is of what this process does not have: descriptors, memory, room. */
bool error_is_lack(int error);
/* The same as error_code; the detail is WHAT failed and the system's text. */
__attribute__((cold)) int error_system(int negative_errno, const char *what);

#endif
