/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking SLMPM_TEST_PEER apart. */
#include "tests/lib/other_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

int other_build(char *words[OTHER_WORDS], const char *program)
{
	static char line[4096], path[4096];
	const char *setting = getenv("SLMPM_TEST_PEER");
	int n = 0;

	if (!setting || !*setting)
		return 0;
	CHECK(strlen(setting) < sizeof(line), "SLMPM_TEST_PEER is too long");
	strcpy(line, setting);
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
		CHECK(n < OTHER_WORDS - 1, "SLMPM_TEST_PEER has too many words");
		words[n++] = word;
	}
	CHECK(n, "SLMPM_TEST_PEER is blank");
	CHECK((size_t)snprintf(path, sizeof(path), "%s/%s", words[n - 1], program) < sizeof(path),
	      "%s: too long a path", program);
	words[n - 1] = path;
	words[n] = NULL;
	return n;
}
