/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm/base/error.h: a text that is too long ends before a word, and says so; one that names its
 * call does so once, kept for a while or not. */
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

static void is(const char *text)
{
	CHECK(!strcmp(slmpm_error_detail(), text), "\"%s\"", slmpm_error_detail());
}

static void names_its_call_once(void)
{
	char kept[ERROR_DETAIL];

	(void)error_of_call(SLMPM_EDEAD, "slmpm_barrier", "rank %d", 1);
	is("peer died: slmpm_barrier: rank 1");
	error_save(kept);
	(void)error_set(SLMPM_EBUSY, "meanwhile");
	error_restore(kept);
	(void)error_name_call("slmpm_barrier", -SLMPM_EDEAD);
	is("peer died: slmpm_barrier: rank 1");
	(void)error_of_call(SLMPM_EDEAD, "slmpm_barrier", "%s", "slmpm_barrier: rank 1");
	is("peer died: slmpm_barrier: rank 1");
	(void)error_name_call("slmpm_barrier_all", -SLMPM_EDEAD); /* another one */
	is("peer died: slmpm_barrier_all: slmpm_barrier: rank 1");
}

static void fits(void)
{
	char to[64];

	error_fit(to, sizeof(to), "short");
	CHECK(!strcmp(to, "short"), "\"%s\"", to);
	error_fit(to, sizeof(to),
		  "rank 2 (process 29346) does allgather, rank 1 slmpm_group_alloc it");
	CHECK(!strcmp(to, "rank 2 (process 29346) does allgather, rank 1 ..."), "\"%s\"", to);
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
	names_its_call_once();
	fits();
	return 0;
}
