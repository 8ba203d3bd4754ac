/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the library have their modes whatever the process's umask, which it leaves alone. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/lib/actor.h"

static int calls;

/* In place of libc's: other threads would be hit by any change. */
mode_t umask(mode_t mask)
{
	(void)mask;
	calls++;
	return 0;
}

static void expect_mode(const char *path, mode_t mode)
{
	struct stat st;

	CHECK(stat(path, &st) == 0, "there is no %s", path);
	CHECK((st.st_mode & 07777) == mode, "%s has mode %o", path, st.st_mode & 07777);
}

static void with_umask(mode_t mask)
{
	char folder[] = "/tmp/slmpm-umask-XXXXXX", path[PATH_MAX], url[PATH_MAX + 8];
	slmpm_listener l;
	slmpm_ctx none = {0};

	CHECK(mkdtemp(folder), "no folder");
	(void)syscall(SYS_umask, mask);
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(url, sizeof(url), "shm:%s", path);
	OK(slmpm_listen(&l, none, url));
	expect_mode(path, 0600 & ~mask);
	OK(slmpm_unlisten(l));
	OK(rmdir(folder));
}

static void elements(void)
{
	char folder[] = "/tmp/slmpm-umask-XXXXXX", path[PATH_MAX];
	slmpm_ctx none = {0};

	CHECK(mkdtemp(folder), "no folder");
	(void)syscall(SYS_umask, 0177);
	OK(setenv("SLMPM_RUN_DIR", folder, 1));
	OK(setenv("SLMPM_ELEMENTS", "2", 1));
	EXPECT(slmpm_element_count(none, SLMPM_ELEMENT_ACCELERATOR), 2);
	snprintf(path, sizeof(path), "%s/slmpm.elements", folder);
	expect_mode(path, 0666);
	OK(unlink(path));
	OK(rmdir(folder));
}

int main(void)
{
	elements();
	with_umask(0);
	with_umask(022);
	with_umask(077);
	EXPECT(calls, 0);
	return 0;
}
