/* SPDX-License-Identifier: BSD-3-Clause */
/* The codes of dacs.h: their values are relied on, and each has a text of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/dacsbase/dacs_internal.h"

static void values_are_those_of_dacs(void **state)
{
	(void)state;
	assert_int_equal(DACS_ERR_FIRST_ERROR, -35000);
	assert_int_equal(DACS_ERR_INTERNAL, -34999);
	assert_int_equal(DACS_ERR_BUF_OVERFLOW, -34989);
	assert_int_equal(DACS_ERR_NO_RESOURCE, -34985);
	assert_int_equal(DACS_ERR_GROUP_CLOSED, -34979);
	assert_int_equal(DACS_ERR_INITIALIZED, -34971);
	assert_int_equal(DACS_ERR_NOT_SUPPORTED_YET, -34968);
	assert_int_equal(DACS_ERR_DE_TERM, -34959);
	assert_int_equal(DACS_WID_READY, DACS_SUCCESS);
	assert_int_equal(DACS_WID_BUSY, 1);
	assert_int_equal(DACS_STS_PROC_KILLED, 6);
	assert_int_equal(DACS_LAST_STATUS, 7);
	assert_int_equal(DACS_DE_PARENT, 0xfffffffe);
	assert_true(DACS_PID_SELF == DACS_PROCESS_ALL && DACS_PID_PARENT == UINT64_MAX - 1);
	assert_int_equal(sizeof(dacs_program_handle_t), 32);
	assert_int_equal(sizeof(dacs_dma_list_t), 16);
}

static void every_code_has_its_own_text(void **state)
{
	const char *seen[64];
	int n = 0;

	(void)state;
	for (int code = -34999; code < DACS_LAST_STATUS; code++) {
		const char *text;

		if (code == -34958)
			code = 0;
		text = dacs_strerror((DACS_ERR_T)code);
		assert_int_equal(strncmp(text, code < 0 ? "DACS_ERR_" : "DACS_", code < 0 ? 9 : 5),
				 0);
		assert_non_null(strstr(text, ": "));
		for (int i = 0; i < n; i++)
			assert_string_not_equal(text, seen[i]);
		seen[n++] = text;
	}
	assert_int_equal(n, 41 + 7);
}

static void other_numbers_have_a_text_too(void **state)
{
	static const int others[] = {-35000, -34958, -1, 7, 1 << 30};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_string_equal(dacs_strerror((DACS_ERR_T)others[i]), "not a DaCS code");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_those_of_dacs),
		cmocka_unit_test(every_code_has_its_own_text),
		cmocka_unit_test(other_numbers_have_a_text_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
