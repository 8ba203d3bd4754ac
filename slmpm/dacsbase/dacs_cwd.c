/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private working directories of accelerators: PREFIX/dacs-UID-XXXXXX. A shared lock on the file
 * .lock inside, held by the host and by the accelerator, says that it is in use; whoever starts an
 * accelerator there next removes those that nobody holds. One that is to be kept has .keep instead.
 */
#include "slmpm/dacsbase/dacs_start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_START "dacs-%u-"
#define LOCK_NAME  ".lock"
#define KEEP_NAME  ".keep"
#define DEPTH_MAX  64 /* of a tree that is removed */

DACS_ERR_T dacsi_start_code(int error, DACS_ERR_T otherwise)
{
	switch (error) {
	case ENAMETOOLONG: return DACS_ERR_TOO_LONG;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case ENOMEM:
	case EMFILE:
	case ENFILE: return DACS_ERR_NO_RESOURCE;
	default: return otherwise;
	}
}

/* A lock on the directory by its file NAME, or -errno; -EAGAIN when a sweeper was faster. */
static int hold(const char *path, const char *name, int flags)
{
	int dir = open(path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd;
	struct stat st;

	if (dir < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	close(dir);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 || fstat(fd, &st) != 0 || !st.st_nlink) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

DACS_ERR_T dacsi_cwd_make(const char *prefix, bool keep, char **path, int *lock)
{
	for (int tries = 0; tries < 100; tries++) {
		if (asprintf(path, "%s/" NAME_START "XXXXXX", prefix, (unsigned)geteuid()) < 0) {
			*path = NULL;
			return DACS_ERR_NO_RESOURCE;
		}
		*lock = mkdtemp(*path) ? hold(*path, keep ? KEEP_NAME : LOCK_NAME, O_CREAT) :
					 -errno;
		if (*lock >= 0)
			return DACS_SUCCESS;
		free(*path);
		*path = NULL;
		if (*lock != -EAGAIN)
			return dacsi_start_code(-*lock, DACS_ERR_INVALID_CWD);
	}
	return DACS_ERR_INVALID_CWD;
}

/* With all that is in it, by descriptors and without following links: names may change under us. */
static void remove_entry(int dir, const char *name, int depth)
{
	struct dirent *entry;
	DIR *list;
	int fd;

	if (unlinkat(dir, name, 0) == 0)
		return;
	fd = depth >= DEPTH_MAX ?
		     -1 :
		     openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list = fd >= 0 ? fdopendir(fd) : NULL;
	while (list && (entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove_entry(fd, entry->d_name, depth + 1);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

void dacsi_cwd_remove(char *path, int lock, bool keep)
{
	if (!keep)
		remove_entry(AT_FDCWD, path, 0);
	if (lock >= 0)
		close(lock);
	free(path);
}

/* Removes a directory that nobody holds; true when it did. */
static bool sweep_one(int prefix, const char *name)
{
	int dir = openat(prefix, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), lock;
	struct stat st;
	bool stale = false;

	if (dir < 0)
		return false;
	if (fstat(dir, &st) != 0 || st.st_uid != geteuid()) {
		close(dir);
		return false;
	}
	lock = openat(dir, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	close(dir);
	if (lock < 0) /* its maker died at birth, or is to be kept: only an empty one goes */
		return unlinkat(prefix, name, AT_REMOVEDIR) == 0;
	if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
		remove_entry(prefix, name, 0);
		stale = true;
	}
	close(lock);
	return stale;
}

int dacsi_cwd_sweep(const char *prefix)
{
	DIR *list = opendir(prefix);
	struct dirent *entry;
	char start[32];
	int n = 0;

	if (!list)
		return 0;
	snprintf(start, sizeof(start), NAME_START, (unsigned)geteuid());
	while ((entry = readdir(list)))
		if (strncmp(entry->d_name, start, strlen(start)) == 0)
			n += sweep_one(dirfd(list), entry->d_name);
	closedir(list);
	return n;
}

int dacsi_cwd_hold(const char *path)
{
	int fd = hold(path, LOCK_NAME, 0);

	return fd < 0 ? -1 : fd;
}
