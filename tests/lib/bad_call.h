/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls are tried with that cannot work: peers and contexts in every state; what they must
 * say. */
#ifndef TESTS_LIB_BAD_CALL_H
#define TESTS_LIB_BAD_CALL_H

#include <slmpm.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test.h"

#define MS                      5000
#define OK(call)                CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())
#define SAYS(call, error, word) says(__LINE__, #call, (call), error, word)

extern struct with {
	slmpm_ctx none, mine, stale_ctx;
	slmpm_peer live, stale, closed, dead;
} with;

/* Which function tries which call; each name must exist. */
struct bad_case {
	const char *name;
	void (*exists)(void);
	void (*body)(void);
};
#define CASE(name, body)                                                                           \
	{                                                                                          \
#name, (void (*)(void))(name), body                                                \
	}

/* The code, its text first in the detail, and the word that names the cause. */
void says(int line, const char *what, int64_t rc, int error, const char *word);
/* The other side, when this program is it. Else everything that is needed. */
void bad_begin(void);
/* Each body once, in the order of its first name. */
void bad_try(const struct bad_case *cases, size_t count);
/* After all that the live peer still is. */
void bad_end(void);

#endif
