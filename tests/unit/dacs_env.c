/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of an accelerator, from all its sources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/dacsbase/dacs_start.h"

#define CWD "/run/private"

static char *base[] = {"PATH=/bin:$AE_CWD/bin", "A=1", "B=2", NULL};
static char *host[] = {"HOME=/home/u", "SLMPM_ELEMENTS=9", "SLMPM_NO_SUCH=1", "EMPTY=", NULL};

/* The value of NAME, NULL when it is not there; fails when it is there twice. */
static const char *find(char **env, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	for (; *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=') {
			assert_null(value);
			value = *env + length + 1;
		}
	return value;
}

static char **build(struct dacsi_env_source source)
{
	DACS_ERR_T rc;
	char **env;

	source.host = host;
	source.cwd = CWD;
	env = dacsi_env_build(&source, &rc);
	assert_int_equal(rc, DACS_SUCCESS);
	assert_non_null(env);
	return env;
}

static void takes_the_clients_and_says_where_it_runs(void **state)
{
	char **env = build((struct dacsi_env_source){.base = base});

	(void)state;
	assert_string_equal(find(env, "A"), "1");
	assert_string_equal(find(env, "B"), "2");
	assert_string_equal(find(env, "AE_CWD"), CWD);
	assert_null(find(env, "HOME"));
	assert_null(find(env, "LD_LIBRARY_PATH"));
	free(env);
}

static void expands_the_working_directory(void **state)
{
	char *marks[] = {"X=$AE_CWD", "Y=$AE_CWDX:$AE_CWD:$AE_CWD", "Z=$AE", NULL};
	char **env = build((struct dacsi_env_source){.base = marks});

	(void)state;
	assert_string_equal(find(env, "X"), CWD);
	assert_string_equal(find(env, "Y"), "$AE_CWDX:" CWD ":" CWD);
	assert_string_equal(find(env, "Z"), "$AE");
	free(env);
}

static void adds_and_copies_what_the_list_names(void **state)
{
	char **env = build((struct dacsi_env_source){
		.base = base, .list = "A=3;HOME;NOT_THERE;;EMPTY;L=$AE_CWD/l=x"});

	(void)state;
	assert_string_equal(find(env, "A"), "3");
	assert_string_equal(find(env, "HOME"), "/home/u");
	assert_string_equal(find(env, "EMPTY"), "");
	assert_string_equal(find(env, "L"), CWD "/l=x");
	assert_null(find(env, "NOT_THERE"));
	free(env);
}

static void hands_on_the_hosts_settings_only(void **state)
{
	char *own[] = {"SLMPM_ELEMENTS=3", NULL};
	char **env = build((struct dacsi_env_source){.base = base});

	(void)state;
	assert_string_equal(find(env, "SLMPM_ELEMENTS"), "9");
	assert_null(find(env, "SLMPM_NO_SUCH"));
	free(env);
	env = build((struct dacsi_env_source){.base = own});
	assert_string_equal(find(env, "SLMPM_ELEMENTS"), "3");
	free(env);
}

static void lets_shipped_libraries_be_found(void **state)
{
	char *own[] = {"LD_LIBRARY_PATH=/opt/lib", NULL};
	char **env = build((struct dacsi_env_source){.libraries = true});

	(void)state;
	assert_string_equal(find(env, "LD_LIBRARY_PATH"), CWD);
	free(env);
	env = build((struct dacsi_env_source){.base = own, .libraries = true});
	assert_string_equal(find(env, "LD_LIBRARY_PATH"), "/opt/lib:" CWD);
	free(env);
}

static void refuses_a_malformed_entry_of_the_client(void **state)
{
	char *bad[] = {"A=1", "no equals sign", NULL}, *nameless[] = {"=1", NULL};
	struct dacsi_env_source source = {.base = bad, .host = host, .cwd = CWD};
	DACS_ERR_T rc;

	(void)state;
	assert_null(dacsi_env_build(&source, &rc));
	assert_int_equal(rc, DACS_ERR_INVALID_ENV);
	source.base = nameless;
	assert_null(dacsi_env_build(&source, &rc));
	assert_int_equal(rc, DACS_ERR_INVALID_ENV);
	source.base = base;
	source.list = "=1";
	assert_null(dacsi_env_build(&source, &rc));
	assert_int_equal(rc, DACS_ERR_INVALID_ENV);
}

static void skips_a_malformed_entry_of_the_host(void **state)
{
	char *bad[] = {"no equals sign", "=C:=1", "A=1", NULL};
	char **env = build((struct dacsi_env_source){.base = bad, .lenient = true});

	(void)state;
	assert_string_equal(find(env, "A"), "1");
	free(env);
}

static void holds_many_entries(void **state)
{
	char text[300][8], *many[301];
	char **env;

	(void)state;
	for (int i = 0; i < 300; i++) {
		text[i][0] = 'V';
		text[i][1] = (char)('0' + i / 100);
		text[i][2] = (char)('0' + i / 10 % 10);
		text[i][3] = (char)('0' + i % 10);
		memcpy(text[i] + 4, "=x", 3);
		many[i] = text[i];
	}
	many[300] = NULL;
	env = build((struct dacsi_env_source){.base = many});
	assert_string_equal(find(env, "V000"), "x");
	assert_string_equal(find(env, "V299"), "x");
	free(env);
}

static void knows_what_a_program_can_be_given(void **state)
{
	char *long_one = malloc((128U << 10) + 1);
	const char *one[] = {"short", NULL, NULL};

	(void)state;
	assert_non_null(long_one);
	memset(long_one, 'x', 128U << 10);
	long_one[128U << 10] = 0;
	assert_true(dacsi_env_fits(NULL));
	assert_true(dacsi_env_fits(one));
	one[1] = long_one;
	assert_false(dacsi_env_fits(one));
	long_one[(128U << 10) - 1] = 0;
	assert_true(dacsi_env_fits(one));
	free(long_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_clients_and_says_where_it_runs),
		cmocka_unit_test(expands_the_working_directory),
		cmocka_unit_test(adds_and_copies_what_the_list_names),
		cmocka_unit_test(hands_on_the_hosts_settings_only),
		cmocka_unit_test(lets_shipped_libraries_be_found),
		cmocka_unit_test(refuses_a_malformed_entry_of_the_client),
		cmocka_unit_test(skips_a_malformed_entry_of_the_host),
		cmocka_unit_test(holds_many_entries),
		cmocka_unit_test(knows_what_a_program_can_be_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
