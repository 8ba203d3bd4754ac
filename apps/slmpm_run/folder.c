/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock on the folder itself says that it is in use: the kernel drops it with its last holder,
 * however that ends, and who makes a folder there next removes those without one.
 */
#include "apps/slmpm_run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define TRIES     100

static void remove_content(int dir, int depth);

/* By descriptors and without following links: names may change under us. */
static void remove_entry(int dir, const char *name, int depth)
{
	int fd;

	if (unlinkat(dir, name, 0) == 0)
		return;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && depth < DEPTH_MAX) {
		(void)fchmod(fd, 0700);
		remove_content(fd, depth + 1); /* closes it */
	} else if (fd >= 0) {
		close(fd);
	}
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

static void remove_content(int dir, int depth)
{
	DIR *list = fdopendir(dir);
	struct dirent *entry;

	if (!list) {
		close(dir);
		return;
	}
	while ((entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove_entry(dir, entry->d_name, depth);
	closedir(list);
}

/* -EAGAIN: a sweeper was faster. */
static int hold(const char *path)
{
	struct stat mine, there;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &mine) == 0 &&
	    lstat(path, &there) == 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
		return fd;
	close(fd);
	return -EAGAIN;
}

int folder_make(struct folder *f, const char *root, const char *start)
{
	f->lock = -1;
	for (int i = 0; i < TRIES; i++) {
		if (snprintf(f->path, sizeof(f->path), "%s/%sXXXXXX", root, start) >=
		    (int)sizeof(f->path))
			return -ENAMETOOLONG;
		f->lock = mkdtemp(f->path) ? hold(f->path) : -errno;
		if (f->lock != -EAGAIN)
			break;
	}
	return f->lock < 0 ? f->lock : 0;
}

void folder_remove(struct folder *f)
{
	if (f->lock < 0)
		return;
	remove_entry(AT_FDCWD, f->path, 0);
	close(f->lock);
	f->lock = -1;
}

static bool sweep_one(int root, const char *name)
{
	int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool stale;

	if (fd < 0)
		return false;
	stale = fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (stale)
		remove_entry(root, name, 0);
	close(fd);
	return stale;
}

int folder_sweep(const char *root, const char *start)
{
	DIR *list = opendir(root);
	struct dirent *entry;
	int n = 0;

	if (!list)
		return 0;
	while ((entry = readdir(list)))
		if (!strncmp(entry->d_name, start, strlen(start)))
			n += sweep_one(dirfd(list), entry->d_name);
	closedir(list);
	return n;
}
