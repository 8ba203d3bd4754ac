/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of the node and their exclusive reservation: one empty file, a byte an element under a
 * POSIX record lock. The kernel drops the locks of a process that ends, however it ends, and gives
 * a forked child none of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/context.h"
#include "slmpm/base/error.h"
#include "slmpm/launch/launch.h"
#include "slmpm/net/topology.h"
#include "slmpm/base/sized.h"

#define FILE_NAME "slmpm.elements"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static pid_t owner; /* the process that the locks below belong to */
static unsigned char *mine;

/*
 * Made without a name first, so that whoever finds it can open it: the umask is the whole
 * process's, and not ours to change.
 */
static int create_whole(const char *folder, const char *path)
{
	char unnamed[32];
	int rc, fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", fd);
	if (fchmod(fd, 0666) == 0 &&
	    linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int element_create(const char *folder, const char *path)
{
	int fd = create_whole(folder, path);

	if (fd >= 0 || fd == -EEXIST)
		return fd;
	/* No such files there: another user may meet it before its mode is right. */
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd >= 0)
		(void)fchmod(fd, 0666);
	return fd < 0 ? -errno : fd;
}

static int open_in(const char *folder)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/" FILE_NAME, folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	/* In a sticky folder somebody else's file may only be opened without O_CREAT. */
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		fd = element_create(folder, path);
		if (fd != -EEXIST)
			return fd;
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	}
	return fd < 0 ? -errno : fd;
}

/* The one host is who asks; only accelerators can be had. */
static uint32_t last_element(int type)
{
	const struct topology *t;

	if (type != SLMPM_ELEMENT_ACCELERATOR)
		return 0;
	return topology_get(&t) > 0 ? t->elements : (uint32_t)config_get()->elements;
}

static int element_open_file(void)
{
	const struct config *config = config_get();
	const char *folders[] = {"/run/lock", "/var/lock", "/tmp"};
	unsigned char *before = mine;
	int fd = -ENOENT;

	if (file >= 0 && owner == getpid())
		return 0;
	if (file >= 0) /* forked: the locks stayed with the parent */
		close(file);
	file = -1;
	mine = NULL;
	atomic_signal_fence(memory_order_seq_cst); /* a child does not free it again */
	free(before);
	mine = calloc(1, (size_t)last_element(SLMPM_ELEMENT_ACCELERATOR) + 1);
	if (!mine)
		return error_set(SLMPM_ENOMEM, "for the elements");
	if (*config->run_dir)
		fd = open_in(config->run_dir);
	else
		for (size_t i = 0; fd < 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
			fd = open_in(folders[i]);
	if (fd < 0)
		return error_system(fd,
				    *config->run_dir ? "SLMPM_RUN_DIR" : "the reservation file");
	file = fd;
	owner = getpid();
	return 0;
}

static int set_lock(uint32_t id, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = id, .l_len = 1};

	return fcntl(file, F_SETLK, &l) == 0 ? 0 : -errno;
}

static bool element_is_free(uint32_t id)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1};

	return !mine[id] && fcntl(file, F_GETLK, &l) == 0 && l.l_type == F_UNLCK;
}

void element_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static int element_begin(slmpm_ctx handle, int type)
{
	const struct topology *t;
	int rc = 0;

	if (!context_get(handle, &rc))
		return rc;
	if (type != SLMPM_ELEMENT_HOST && type != SLMPM_ELEMENT_ACCELERATOR)
		return error_set(SLMPM_EINVAL, "element type %d", type);
	rc = topology_get(&t);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&lock);
	rc = element_open_file();
	if (rc < 0)
		pthread_mutex_unlock(&lock);
	return rc;
}

int slmpm_element_count(slmpm_ctx ctx, int type)
{
	int n = 0, rc = element_begin(ctx, type);

	if (rc < 0)
		return rc;
	for (uint32_t id = 1; id <= last_element(type); id++)
		n += element_is_free(id);
	pthread_mutex_unlock(&lock);
	return n;
}

int slmpm_element_reserve(slmpm_ctx ctx, int type, int want, uint32_t *ids)
{
	int n = 0, rc;

	if (want < 0 || (want && !ids))
		return error_set(SLMPM_EINVAL, "slmpm_element_reserve: %d elements", want);
	rc = element_begin(ctx, type);
	if (rc < 0)
		return rc;
	for (uint32_t id = 1; id <= last_element(type) && n < want; id++) {
		if (mine[id] || set_lock(id, F_WRLCK) < 0)
			continue;
		mine[id] = 1;
		ids[n++] = id;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

int slmpm_element_release(slmpm_ctx ctx, int n, const uint32_t *ids)
{
	int rc;

	if (n < 0 || (n && !ids))
		return error_set(SLMPM_EINVAL, "slmpm_element_release: %d elements", n);
	rc = element_begin(ctx, SLMPM_ELEMENT_ACCELERATOR);
	if (rc < 0)
		return rc;
	for (int i = 0; i < n && rc == 0; i++)
		if (!ids[i] || ids[i] > last_element(SLMPM_ELEMENT_ACCELERATOR) || !mine[ids[i]])
			rc = error_set(SLMPM_EINVAL, "element %u is not reserved by this process",
				       ids[i]);
	for (int i = 0; i < n && rc == 0; i++) {
		(void)set_lock(ids[i], F_UNLCK);
		mine[ids[i]] = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int element_find(uint32_t *element, const struct place **place)
{
	int rc = topology_find(element, place);

	if (rc == 0 && !*place && *element > last_element(SLMPM_ELEMENT_ACCELERATOR))
		return error_set(SLMPM_EINVAL, "element %u: there are %u", *element,
				 last_element(SLMPM_ELEMENT_ACCELERATOR));
	return rc;
}

int slmpm_element_query(uint32_t element, struct slmpm_element_info *info)
{
	const struct place *place = NULL;
	struct slmpm_element_info now;
	int rc;

	if (!config_get())
		return -SLMPM_EINVAL;
	if (sized_check_own("slmpm_element_query", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	if (!element)
		return error_set(SLMPM_EINVAL, "element 0: they count from 1");
	rc = element_find(&element, &place);
	if (rc < 0)
		return rc;
	now = (struct slmpm_element_info){.element = element, .elsewhere = (uint32_t)rc};
	snprintf(now.host, sizeof(now.host), "%s", place ? place->host : "");
	sized_give_own(info, &now, sizeof(now));
	return 0;
}
