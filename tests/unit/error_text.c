/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm/base/error.h: a text that is too long ends before a word, and says so. */
#include "slmpm/base/error.h"

#include <string.h>

#include "tests/lib/test.h"

static void ends_with(const char *end)
{
	const char *text = slmpm_error_detail();
	size_t has = strlen(text), n = strlen(end);

	CHECK(has < ERROR_DETAIL && has > ERROR_DETAIL / 2, "%zu bytes", has);
	CHECK(!strcmp(text + has - n, end), "\"%s\" lacks \"%s\"", text, end);
}

int main(void)
{
	char text[ERROR_DETAIL + 100];

	for (size_t n = ERROR_DETAIL - 40; n < ERROR_DETAIL; n++) {
		memset(text, 'a', n);
		(void)snprintf(text + n, sizeof(text) - n, " (process 1234567) and more");
		text[100] = ' ';
		(void)error_set(SLMPM_EINVAL, "%s", text);
		if (strchr(slmpm_error_detail(), '1'))
			CHECK(strstr(slmpm_error_detail(), "1234567"), "a part of a number");
		ends_with("...");
	}
	memset(text, 'a', sizeof(text) - 1); /* one long word */
	text[sizeof(text) - 1] = '\0';
	(void)error_set(SLMPM_EINVAL, "%s", text);
	ends_with("aaa ...");
	(void)error_set(SLMPM_EINVAL, "%.*s", 200, text);
	ends_with("aaa");
	return 0;
}
