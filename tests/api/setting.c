/* SPDX-License-Identifier: BSD-3-Clause */
/* A long path as a setting is told in full. */
#include <string.h>

#include "tests/lib/actor.h"

int main(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	char path[2000];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	OK(setenv("SLMPM_RUN_DIR", path, 1));
	for (int i = 0; slmpm_setting_at(i, &s) == 0; i++) {
		if (strcmp(s.name, "RUN_DIR") != 0)
			continue;
		CHECK(!strcmp(s.value, path), "%zu of %zu characters", strlen(s.value),
		      strlen(path));
		return 0;
	}
	CHECK(false, "no such setting");
}
