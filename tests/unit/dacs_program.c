/* SPDX-License-Identifier: BSD-3-Clause */
/* The four kinds of program: put in place, or refused with the right reason. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "slmpm/dacsbase/dacs_start.h"

static char from[] = "/tmp/dacs-from-XXXXXX";
static char *cwd;
static int lock;

static void write_file(const char *name, const void *data, size_t size, mode_t mode)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(from))
		return -1;
	write_file("prog", "#!/bin/sh\n", 10, 0700);
	write_file("lib.so", "library", 7, 0600);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dacsi_cwd_remove(strdup(from), -1, false);
	return 0;
}

static int make_cwd(void **state)
{
	(void)state;
	return dacsi_cwd_make("/tmp", false, &cwd, &lock);
}

static int remove_cwd(void **state)
{
	(void)state;
	dacsi_cwd_remove(cwd, lock, false);
	return 0;
}

static DACS_ERR_T stage(const void *prog, DACS_PROC_CREATION_FLAG_T flags, char **path)
{
	*path = NULL;
	return dacsi_program_stage(prog, flags, cwd, path);
}

static void expect_error(const void *prog, DACS_PROC_CREATION_FLAG_T flags, DACS_ERR_T want)
{
	char *path;

	assert_int_equal(stage(prog, flags, &path), want);
	free(path);
}

static void expect_file(const char *path, const char *content, mode_t mode)
{
	char data[64] = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0700, mode);
	assert_int_equal(read(fd, data, sizeof(data) - 1), (ssize_t)strlen(content));
	assert_string_equal(data, content);
	close(fd);
}

static void a_local_file_is_copied_with_its_mode(void **state)
{
	char source[256], want[256], *path;

	(void)state;
	snprintf(source, sizeof(source), "%s/prog", from);
	snprintf(want, sizeof(want), "%s/prog", cwd);
	assert_int_equal(stage(source, DACS_PROC_LOCAL_FILE, &path), DACS_SUCCESS);
	assert_string_equal(path, want);
	expect_file(path, "#!/bin/sh\n", 0700);
	free(path);
}

/* It has no splice, as files of some file systems. */
static void a_file_that_can_only_be_read_is_copied(void **state)
{
	char want[256], data[6] = "", *path;
	int fd;

	(void)state;
	snprintf(want, sizeof(want), "%s/limits", cwd);
	assert_int_equal(stage("/proc/self/limits", DACS_PROC_LOCAL_FILE, &path), DACS_SUCCESS);
	assert_string_equal(path, want);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, data, sizeof(data) - 1), sizeof(data) - 1);
	assert_string_equal(data, "Limit");
	close(fd);
	free(path);
}

static void a_list_names_the_program_first(void **state)
{
	char list[512], want[256], *path;

	(void)state;
	snprintf(list, sizeof(list), "\n%s/prog\r\n\n  \n%s/lib.so", from, from);
	write_file("list", list, strlen(list), 0600);
	snprintf(list, sizeof(list), "%s/list", from);
	assert_int_equal(stage(list, DACS_PROC_LOCAL_FILE_LIST, &path), DACS_SUCCESS);
	snprintf(want, sizeof(want), "%s/prog", cwd);
	assert_string_equal(path, want);
	snprintf(want, sizeof(want), "%s/lib.so", cwd);
	expect_file(want, "library", 0600);
	free(path);
}

static void an_image_becomes_a_program(void **state)
{
	static const char image[] = "#!/bin/true\n";
	dacs_program_handle_t handle;
	char *path;

	(void)state;
	DACS_PROGRAM_HANDLE(handle, image, sizeof(image) - 1);
	assert_int_equal(stage(&handle, DACS_PROC_EMBEDDED, &path), DACS_SUCCESS);
	expect_file(path, image, 0700);
	free(path);
}

static void a_remote_file_stays_where_it_is(void **state)
{
	char here[256], want[512], *path;

	(void)state;
	assert_int_equal(stage("/bin/sh", DACS_PROC_REMOTE_FILE, &path), DACS_SUCCESS);
	assert_string_equal(path, "/bin/sh");
	free(path);
	assert_int_equal(stage("sh", DACS_PROC_REMOTE_FILE, &path), DACS_SUCCESS);
	assert_string_equal(path, "sh"); /* not here: the search path's */
	free(path);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(from), 0);
	assert_int_equal(stage("prog", DACS_PROC_REMOTE_FILE, &path), DACS_SUCCESS);
	assert_int_equal(chdir(here), 0);
	snprintf(want, sizeof(want), "%s/prog", from);
	assert_string_equal(path, want);
	free(path);
}

static void what_is_not_there_is_not_found(void **state)
{
	char list[256];

	(void)state;
	expect_error("/nonexistent/x", DACS_PROC_LOCAL_FILE, DACS_ERR_NOT_FOUND);
	expect_error("/nonexistent/x", DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_NOT_FOUND);
	expect_error("/nonexistent/x", DACS_PROC_REMOTE_FILE, DACS_ERR_NOT_FOUND);
	expect_error("", DACS_PROC_REMOTE_FILE, DACS_ERR_NOT_FOUND);
	expect_error("", DACS_PROC_LOCAL_FILE, DACS_ERR_NOT_FOUND);
	snprintf(list, sizeof(list), "%s/prog\n/nonexistent/lib.so\n", from);
	write_file("list", list, strlen(list), 0600);
	snprintf(list, sizeof(list), "%s/list", from);
	expect_error(list, DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_NOT_FOUND);
}

static void what_is_no_program_is_refused(void **state)
{
	dacs_program_handle_t handle;
	char list[600];

	(void)state;
	expect_error("/tmp", DACS_PROC_LOCAL_FILE, DACS_ERR_INVALID_PROG);
	expect_error("/tmp", DACS_PROC_REMOTE_FILE, DACS_ERR_INVALID_PROG);
	DACS_PROGRAM_HANDLE(handle, &handle, 0);
	expect_error(&handle, DACS_PROC_EMBEDDED, DACS_ERR_INVALID_PROG);
	DACS_PROGRAM_HANDLE(handle, NULL, 10);
	expect_error(&handle, DACS_PROC_EMBEDDED, DACS_ERR_INVALID_PROG);
	write_file("list", "\n\n", 2, 0600);
	snprintf(list, sizeof(list), "%s/list", from);
	expect_error(list, DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_INVALID_PROG);
	snprintf(list, sizeof(list), "%s/prog\n%s/prog\n", from, from); /* one name twice */
	write_file("list", list, strlen(list), 0600);
	snprintf(list, sizeof(list), "%s/list", from);
	expect_error(list, DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_INVALID_PROG);
}

static void names_can_be_too_long(void **state)
{
	char name[300] = "/";

	(void)state;
	memset(name + 1, 'x', sizeof(name) - 2);
	name[sizeof(name) - 1] = 0;
	expect_error(name, DACS_PROC_LOCAL_FILE, DACS_ERR_TOO_LONG);
	expect_error(name, DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_TOO_LONG);
	expect_error(name, DACS_PROC_REMOTE_FILE, DACS_ERR_TOO_LONG);
}

static void another_machines_program_is_told(void **state)
{
	unsigned char head[64] = {0};
	char path[256];
	int fd = open("/proc/self/exe", O_RDONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(read(fd, head, sizeof(head)), (ssize_t)sizeof(head));
	close(fd);
	assert_false(dacsi_program_foreign("/proc/self/exe"));
	head[18] ^= 0x55;
	write_file("other", head, sizeof(head), 0700);
	snprintf(path, sizeof(path), "%s/other", from);
	assert_true(dacsi_program_foreign(path));
	snprintf(path, sizeof(path), "%s/prog", from);
	assert_false(dacsi_program_foreign(path));
	assert_false(dacsi_program_foreign("/nonexistent"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_cwd, remove_cwd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_local_file_is_copied_with_its_mode),
		CASE(a_file_that_can_only_be_read_is_copied),
		CASE(a_list_names_the_program_first),
		CASE(an_image_becomes_a_program),
		CASE(a_remote_file_stays_where_it_is),
		CASE(what_is_not_there_is_not_found),
		CASE(what_is_no_program_is_refused),
		CASE(names_can_be_too_long),
		CASE(another_machines_program_is_told),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
