/* SPDX-License-Identifier: BSD-3-Clause */
/* How this library was built; of which commit is known where it is linked. */
#include <pthread.h>
#include <slmpm.h>
#include <stdio.h>

#include "build_info.h"
#include "slmpm/base/wire.h"

/* Defined in the library proper; what tests link has none. */
extern const char build_git_id[] __attribute__((weak));

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif
#ifdef SLMPM_UNCHECKED
#define CHECKS "no"
#else
#define CHECKS "yes"
#endif
#define STRING(x)  #x
#define TEXT_OF(x) STRING(x)

int slmpm_version_number(void)
{
	return SLMPM_VERSION;
}

const char *slmpm_version(void)
{
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
	return VERSION_TEXT(SLMPM_VERSION_MAJOR, SLMPM_VERSION_MINOR, SLMPM_VERSION_PATCH);
}

static char text[sizeof(BUILD_FLAGS) + 512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_text(void)
{
	snprintf(text, sizeof(text),
		 "version: %s\ncommit: %s\nwire: " TEXT_OF(WIRE_MAJOR) "." TEXT_OF(
			 WIRE_MINOR) "\n"
				     "compiler: " COMPILER "\npeer_checks: " CHECKS "\n"
				     "flags: " BUILD_FLAGS "\n",
		 slmpm_version(), build_git_id ? build_git_id : "unknown");
}

const char *slmpm_build(void)
{
	pthread_once(&once, make_text);
	return text;
}
