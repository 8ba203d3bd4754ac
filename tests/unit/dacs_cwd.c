/* SPDX-License-Identifier: BSD-3-Clause */
/* Private directories: made, kept by whoever holds them, swept when nobody does. */
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

static char prefix[] = "/tmp/dacs-unit-XXXXXX";

static int make_prefix(void **state)
{
	(void)state;
	return mkdtemp(prefix) ? 0 : -1;
}

static int remove_prefix(void **state)
{
	(void)state;
	return rmdir(prefix); /* fails when a test left something */
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void put_file(const char *dir, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static char *make(bool keep, int *lock)
{
	char *path;

	assert_int_equal(dacsi_cwd_make(prefix, keep, &path, lock), DACS_SUCCESS);
	assert_true(*lock >= 0);
	assert_true(exists(path));
	return path;
}

static void is_private(void **state)
{
	struct stat st;
	int lock;
	char *path = make(false, &lock);

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	dacsi_cwd_remove(path, lock, false);
}

static void goes_with_everything_in_it(void **state)
{
	char deep[256], outside[256], link[512], *path;
	int lock;

	(void)state;
	path = make(false, &lock);
	put_file(path, "file");
	snprintf(deep, sizeof(deep), "%s/a", path);
	assert_int_equal(mkdir(deep, 0700), 0);
	put_file(deep, "inner");
	snprintf(outside, sizeof(outside), "%s/outside", prefix);
	assert_int_equal(mkdir(outside, 0700), 0);
	put_file(outside, "stays");
	snprintf(link, sizeof(link), "%s/link", path);
	assert_int_equal(symlink(outside, link), 0);
	snprintf(deep, sizeof(deep), "%s", path);
	dacsi_cwd_remove(path, lock, false);
	assert_false(exists(deep));
	snprintf(link, sizeof(link), "%s/stays", outside);
	assert_true(exists(link));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(outside), 0);
}

static void stays_while_its_host_lives(void **state)
{
	int lock;
	char *path = make(false, &lock);

	(void)state;
	assert_int_equal(dacsi_cwd_sweep(prefix), 0);
	assert_true(exists(path));
	dacsi_cwd_remove(path, lock, false);
}

static void stays_while_its_accelerator_lives(void **state)
{
	int lock, its;
	char *path = make(false, &lock);

	(void)state;
	its = dacsi_cwd_hold(path);
	assert_true(its >= 0);
	close(lock); /* as a crash would */
	assert_int_equal(dacsi_cwd_sweep(prefix), 0);
	assert_true(exists(path));
	close(its);
	assert_int_equal(dacsi_cwd_sweep(prefix), 1);
	assert_false(exists(path));
	free(path);
}

static void is_swept_when_nobody_holds_it(void **state)
{
	int lock, other_lock;
	char *path = make(false, &lock), *other = make(false, &other_lock);

	(void)state;
	put_file(path, "left");
	close(lock);
	assert_int_equal(dacsi_cwd_sweep(prefix), 1);
	assert_false(exists(path));
	assert_true(exists(other));
	free(path);
	dacsi_cwd_remove(other, other_lock, false);
}

static void one_made_halfway_is_swept(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/dacs-%u-abcdef", prefix, (unsigned)geteuid());
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(dacsi_cwd_sweep(prefix), 1);
	assert_false(exists(path));
}

static void one_to_keep_is_kept(void **state)
{
	char keep[256];
	int lock;
	char *path = make(true, &lock);

	(void)state;
	snprintf(keep, sizeof(keep), "%s", path);
	dacsi_cwd_remove(path, lock, true);
	assert_true(exists(keep));
	assert_int_equal(dacsi_cwd_sweep(prefix), 0);
	assert_true(exists(keep));
	dacsi_cwd_remove(strdup(keep), -1, false);
	assert_false(exists(keep));
}

static void other_names_are_left_alone(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/somebody-else", prefix);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file(path, ".lock");
	assert_int_equal(dacsi_cwd_sweep(prefix), 0);
	assert_true(exists(path));
	dacsi_cwd_remove(strdup(path), -1, false);
}

static void cannot_be_made_where_there_is_no_place(void **state)
{
	char *path, name[300];
	int lock;

	(void)state;
	assert_int_equal(dacsi_cwd_make("/nonexistent", false, &path, &lock), DACS_ERR_INVALID_CWD);
	assert_null(path);
	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(dacsi_cwd_make(name, false, &path, &lock), DACS_ERR_TOO_LONG);
	assert_int_equal(dacsi_cwd_sweep("/nonexistent"), 0);
	assert_int_equal(dacsi_cwd_hold("/nonexistent"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_private),
		cmocka_unit_test(goes_with_everything_in_it),
		cmocka_unit_test(stays_while_its_host_lives),
		cmocka_unit_test(stays_while_its_accelerator_lives),
		cmocka_unit_test(is_swept_when_nobody_holds_it),
		cmocka_unit_test(one_made_halfway_is_swept),
		cmocka_unit_test(one_to_keep_is_kept),
		cmocka_unit_test(other_names_are_left_alone),
		cmocka_unit_test(cannot_be_made_where_there_is_no_place),
	};

	return cmocka_run_group_tests(tests, make_prefix, remove_prefix);
}
