/* SPDX-License-Identifier: BSD-3-Clause */
/* userfaultfd's words that older headers lack, and its write protection. */
#ifndef SLMPM_TRACK_UFFD_H
#define SLMPM_TRACK_UFFD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UFFD_REMOVED     (UINT64_C(1) << 3)  /* tells of memory that is given back */
#define UFFD_SHARED      (UINT64_C(1) << 12) /* protects shared memory, */
#define UFFD_UNPOPULATED (UINT64_C(1) << 13) /* and pages that are not there yet */
#define UFFD_ASYNC       (UINT64_C(1) << 15) /* the kernel opens by itself */

#define UFFD_USERS_ALONE 1 /* what the kernel writes is not asked about: a flag of the call */

/* A descriptor with these features, or a negative errno; *HAS: those of the kernel. */
static inline int uffd_open(int flags, uint64_t features, uint64_t *has)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, UFFDIO_API, &api) == 0 ? fd : -errno;
	if (rc < 0)
		close(fd);
	*has = api.features;
	return rc;
}

static inline int uffd_protect(int fd, uintptr_t lo, uintptr_t hi, bool on)
{
	struct uffdio_writeprotect protect = {
		.range = {.start = lo, .len = hi - lo},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(fd, UFFDIO_WRITEPROTECT, &protect) == 0 ? 0 : -errno;
}

/* And protects. */
static inline int uffd_watch(int fd, uintptr_t lo, uintptr_t hi)
{
	struct uffdio_register range = {
		.range = {.start = lo, .len = hi - lo},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &range) == 0 ? uffd_protect(fd, lo, hi, true) : -errno;
}

#endif
