/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed memfd objects: creating, sealing, checking, mapping. */
#include "shm/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define TMPFS         0x01021994 /* linux/magic.h */
#define SIZE_SEALS    (F_SEAL_SHRINK | F_SEAL_GROW)
#define CLOSING_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define ALLOCATED     ((size_t)16 << 20) /* between two looks at the clock, and at what is left */
#define SPARE_LEFT    16                 /* the part of what is left that is for others */

static int open_memfd(const char *label)
{
	int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
		fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

/* Past the limit ftruncate would not fail but kill us with SIGXFSZ. */
static bool over_file_limit(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       size > limit.rlim_cur;
}

static uint64_t mapping_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Every page now, so that a shortage is an error here and never a signal later. Written, not
 * touched: a call for many pages instead of a fault for each. The faults that are left are for
 * reading, which bring in the neighbours too, in a shared mapping as writable as they are.
 */
static int populate(const struct mapping *m, size_t size, uint64_t deadline, size_t step)
{
	static const unsigned char zeros[1 << 15];
	size_t inspect = step; /* at the clock, once so much is present */

	for (size_t at = 0; at < size;) {
		size_t rest = size - at;
		size_t part = rest < sizeof(zeros) ? rest : sizeof(zeros);
		ssize_t n = pwrite(m->fd, zeros, part, (off_t)at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
		if (deadline && at >= inspect && at < size) {
			if (mapping_clock_now() >= deadline)
				return -ETIMEDOUT;
			inspect += step;
		}
	}
	(void)madvise(m->base, size, MADV_POPULATE_READ); /* from 5.14 */
	return 0;
}

/* A forked child must not write a peer's ring; a core dump needs none of it. */
static void mapping_keep_apart(void *base, size_t size)
{
	(void)madvise(base, size, MADV_DONTFORK);
	(void)madvise(base, size, MADV_DONTDUMP);
}

static int map_only(struct mapping *m, int fd, size_t size, int protection)
{
	void *base = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*m = (struct mapping){.base = base, .size = size, .fd = -1};
	return 0;
}

static int map(struct mapping *m, int fd, size_t size, int protection)
{
	int rc = map_only(m, fd, size, protection);

	if (rc == 0)
		mapping_keep_apart(m->base, size);
	return rc;
}

static int reserve(struct mapping *m, const char *label, size_t size, int protection)
{
	int rc = 0, fd;

	*m = (struct mapping){.fd = -1};
	if (over_file_limit(size))
		return -EFBIG;
	fd = open_memfd(label);
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, SIZE_SEALS) != 0)
		rc = -errno;
	if (rc == 0)
		rc = map(m, fd, size, protection);
	m->fd = fd;
	if (rc < 0)
		mapping_destroy(m);
	return rc;
}

int mapping_reserve(struct mapping *m, const char *label, size_t size)
{
	return reserve(m, label, size, PROT_READ | PROT_WRITE);
}

/* RC is that of reserving it. */
static int fill_reserved(struct mapping *m, int rc, size_t present, uint64_t deadline, size_t step)
{
	if (rc == 0)
		rc = populate(m, present, deadline, step);
	if (rc < 0)
		mapping_destroy(m);
	return rc;
}

static int create(struct mapping *m, const char *label, size_t size, size_t present,
		  uint64_t deadline, size_t step)
{
	return fill_reserved(m, mapping_reserve(m, label, size), present, deadline, step);
}

int mapping_create_by(struct mapping *m, const char *label, size_t size, uint64_t deadline,
		      size_t step)
{
	return create(m, label, size, size, deadline, step);
}

/* Again before each step: others take memory, too, such as those of the same group. */
static bool has_memory_for(size_t size)
{
	uint64_t spare = mapping_spare("").bytes;

	return size <= spare - spare / SPARE_LEFT;
}

int mapping_allocate(int fd, size_t size, uint64_t deadline)
{
	for (size_t at = 0, n; at < size;) {
		n = size - at < ALLOCATED ? size - at : ALLOCATED;
		if (!has_memory_for(size - at))
			return -ENOMEM;
		if (fallocate(fd, 0, (off_t)at, (off_t)n) == 0)
			at += n;
		else if (errno != EINTR)
			return -errno;
		if (deadline && at < size && mapping_clock_now() >= deadline)
			return -ETIMEDOUT;
	}
	return 0;
}

int mapping_create(struct mapping *m, const char *label, size_t size)
{
	return create(m, label, size, size, 0, 0);
}

int mapping_create_sparse(struct mapping *m, const char *label, size_t size, size_t present)
{
	return create(m, label, size, present, 0, 0);
}

int mapping_create_read(struct mapping *m, const char *label, size_t size)
{
	return fill_reserved(m, reserve(m, label, size, PROT_READ), size, 0, 0);
}

int mapping_store(const struct mapping *m, size_t at, const void *from, size_t size)
{
	ssize_t n = pwrite(m->fd, from, size, (off_t)at);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}

int mapping_keep_seals(const struct mapping *m)
{
	return fcntl(m->fd, F_ADD_SEALS, F_SEAL_SEAL) != 0 ? -errno : 0;
}

int mapping_close_seals(const struct mapping *m)
{
	/* FUTURE_WRITE is missing before 5.1 and in some emulators; the size seals then remain. */
	return fcntl(m->fd, F_ADD_SEALS, CLOSING_SEALS) != 0 ? mapping_keep_seals(m) : 0;
}

/* A kernel from 5.1 on, as far as it lets this process. */
static bool has_future_write(void)
{
	int fd = open_memfd("slmpm-probe");
	bool has = fd >= 0 && fcntl(fd, F_ADD_SEALS, CLOSING_SEALS) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

static bool are_closed(int seals)
{
	if (seals < 0 || !(seals & F_SEAL_SEAL) || (seals & SIZE_SEALS) != SIZE_SEALS)
		return false;
	/* Without that one its owner can let a third write: only where there is none. */
	return seals & F_SEAL_FUTURE_WRITE || !has_future_write();
}

bool mapping_seals_closed(int fd)
{
	return are_closed(fcntl(fd, F_GET_SEALS));
}

bool mapping_is_read_only(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & CLOSING_SEALS) == CLOSING_SEALS;
}

/* Huge pages come from a pool: a hole in them may be a signal later. Sealed objects without a name
 * all have one file system, or two, which stay: it is asked once. */
static int pages_are_small(int fd, dev_t device)
{
	static _Atomic dev_t known; /* of small pages; 0: none is yet */
	struct statfs fs;

	if (device && atomic_load_explicit(&known, memory_order_relaxed) == device)
		return 0;
	if (fstatfs(fd, &fs) != 0)
		return -errno;
	if (fs.f_type != TMPFS)
		return -EPERM;
	atomic_store_explicit(&known, device, memory_order_relaxed);
	return 0;
}

/* Can FD, with those SEALS, be mapped? */
static int mapping_suits(int fd, int seals, size_t size)
{
	struct stat st;
	int rc;

	if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS)
		return -EPERM;
	if (fstat(fd, &st) != 0)
		return -errno;
	rc = pages_are_small(fd, st.st_dev);
	if (rc < 0)
		return rc;
	return st.st_size < 0 || (uint64_t)st.st_size != size ? -EPROTO : 0;
}

int mapping_attach(struct mapping *m, int fd, size_t size, enum mapping_access access)
{
	int rc = mapping_suits(fd, fcntl(fd, F_GET_SEALS), size);

	*m = (struct mapping){.fd = -1};
	if (rc < 0)
		return rc;
	return map(m, fd, size, access == MAPPING_WRITE ? PROT_READ | PROT_WRITE : PROT_READ);
}

static int attach_closed(struct mapping *m, int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS), rc = are_closed(seals) ? 0 : -EPERM;

	if (rc == 0)
		rc = mapping_suits(fd, seals, size);
	return rc < 0 ? rc : map_only(m, fd, size, PROT_READ);
}

/* The kernel puts one below the other, as a rule: these are one range. */
static void keep_all_apart(const struct mapping *m, size_t n)
{
	for (size_t i = 0; i < n;) {
		unsigned char *low = m[i].base, *high = low + m[i].size;

		for (i++; i < n; i++) {
			unsigned char *next = m[i].base;

			if (next + m[i].size == low)
				low = next;
			else if (next == high)
				high += m[i].size;
			else
				break;
		}
		mapping_keep_apart(low, (size_t)(high - low));
	}
}

size_t mapping_attach_all(struct mapping *m, const int *fds, size_t n, size_t size, int *error)
{
	size_t i = 0;

	*error = 0;
	while (i < n && (*error = attach_closed(&m[i], fds[i], size)) == 0)
		i++;
	keep_all_apart(m, i);
	return i;
}

/* Before 5.14 page by page: where there is none left that is a signal. */
static void touch(unsigned char *base, size_t size, enum mapping_access access)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < size; at += page) {
		volatile unsigned char *byte = base + at;

		if (access == MAPPING_WRITE)
			*byte = 0;
		else
			(void)*byte;
	}
}

int mapping_fill(const void *base, size_t size, enum mapping_access access)
{
	void *at = (void *)(uintptr_t)base;
	int advice = access == MAPPING_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (madvise(at, size, advice) == 0)
		return 0;
	if (errno != EINVAL)
		return -ENOMEM;
	touch(at, size, access);
	return 0;
}

int mapping_fill_part(const struct mapping *m, size_t at, size_t size)
{
	int rc;

	/* By no fault, which before 5.14 would be a signal where there is none left. */
	do
		rc = fallocate(m->fd, 0, (off_t)at, (off_t)size);
	while (rc != 0 && errno == EINTR);
	return rc != 0 ? -ENOMEM : 0;
}

bool mapping_populate(const struct mapping *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || (uint64_t)st.st_blocks * 512 < m->size)
		return false;
	(void)madvise(m->base, m->size, MADV_POPULATE_READ); /* from 5.14 */
	return true;
}

void mapping_destroy(struct mapping *m)
{
	if (m->base)
		munmap(m->base, m->size);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct mapping){.fd = -1};
}

/* ---- one piece of memory at two addresses, side by side ------------------------------------- */

/*
 * Anonymous: the kernel has accounted for all of it when this returns, so that its pages may come
 * with their use and never want room for which SIGBUS would be sent; a memfd's are accounted for
 * one by one.
 */
static int map_anonymous(unsigned char *base, const char *label, size_t size)
{
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return -errno;
	/* Of length 0, shared memory is moved nowhere and is in both places. */
	if (mremap(base, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, base + size) == MAP_FAILED)
		return -ENOTSUP;
#ifdef PR_SET_VMA
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, base, 2 * size, label); /* from 6.2 */
#else
	(void)label;
#endif
	return 0;
}

/* Where nothing can be in two places so, as in an emulator: every page now. */
static int map_present(unsigned char *base, const char *label, size_t size)
{
	struct mapping once;
	int rc = mapping_create(&once, label, size);

	for (size_t half = 0; half < 2 && rc == 0; half++)
		if (mmap(base + half * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, once.fd, 0) == MAP_FAILED)
			rc = -errno;
	mapping_destroy(&once);
	return rc;
}

int double_mapping_create(struct double_mapping *m, const char *label, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *base;
	int rc;

	*m = (struct double_mapping){0};
	size = (size + page - 1) / page * page;
	base = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	rc = map_anonymous(base, label, size);
	if (rc == -ENOTSUP)
		rc = map_present(base, label, size);
	if (rc < 0) {
		munmap(base, 2 * size);
		return rc;
	}
	/* A forked child shares no stream with us; a core dump needs none of it. */
	(void)madvise(base, 2 * size, MADV_DONTFORK);
	(void)madvise(base, 2 * size, MADV_DONTDUMP);
	*m = (struct double_mapping){.base = base, .size = size};
	return 0;
}

void double_mapping_destroy(struct double_mapping *m)
{
	if (m->base)
		munmap(m->base, 2 * m->size);
	*m = (struct double_mapping){0};
}
