/* SPDX-License-Identifier: BSD-3-Clause */
/* The same test under many settings, each in a process of its own, for they are read but once. */
#ifndef TESTS_LIB_SETTINGS_H
#define TESTS_LIB_SETTINGS_H

#include <stddef.h>

struct setting {
	const char *name;
	const char *both[6]; /* "NAME=value" */
	const char *peer[4]; /* in what actor_spawn starts */
	size_t bytes;        /* that move in a fair time: small packets are slow */
};

/* {NULL} behind the last. */
extern const struct setting settings[];

/*
 * BODY under each, at most SECONDS long (more under a sanitizer): what main returns. It must be
 * called before any slmpm_* call. SLMPM_TEST_SETTING names the only one to run.
 */
int settings_each(int (*body)(const struct setting *s), unsigned seconds);
/* For a test of what one link alone is like: whatever the environment says, over FABRIC (NULL: over
 * that of the environment) and without others, here and in what is started. */
void settings_one_link(const char *fabric);
/* For tests that choose their own: one more for what is started from now on; and BODY(ARG) in a
 * process of its own, which must end well and in time. */
void settings_set(const char *name, const char *value);
void settings_run(const char *what, int (*body)(void *), const void *arg);
/* The one that this process runs under, or NULL. */
const struct setting *settings_current(void);

#endif
