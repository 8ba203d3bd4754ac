/* SPDX-License-Identifier: BSD-3-Clause */
/* Nameless mappings: seals, refusals, limits, fork, and that nothing stays behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/mapping.h"
#include "tests/lib/child.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

#define SIZE  ((size_t)256 * 1024)
#define LABEL "slmpm-test"

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static int mapped_objects(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, LABEL) != NULL;
	fclose(f);
	return count;
}

static int fds_before, maps_before;

static int count_what_is_there(void **state)
{
	(void)state;
	fds_before = descriptors();
	maps_before = mapped_objects();
	return 0;
}

/* After every test: a leak is a failure of the test that leaked. */
static int nothing_stayed(void **state)
{
	(void)state;
	return descriptors() == fds_before && mapped_objects() == maps_before ? 0 : -1;
}

static struct mapping created(size_t size)
{
	struct mapping m;

	assert_int_equal(mapping_create(&m, LABEL, size), 0);
	return m;
}

static void a_new_object_is_zeroed_and_of_its_size(void **state)
{
	struct mapping m = created(SIZE);

	(void)state;
	assert_int_equal(m.size, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(((unsigned char *)m.base)[i], 0);
	memset(m.base, 0xff, SIZE);
	assert_true(lseek(m.fd, 0, SEEK_END) == (off_t)SIZE);
	mapping_destroy(&m);
}

/* An emulator takes any advice, and does nothing. */
static bool heeds_advice(void *at)
{
	return madvise(at, SIZE, 9999) != 0;
}

static void a_sparse_one_has_memory_where_it_is_filled(void **state)
{
	struct mapping m;
	struct stat st;

	(void)state;
	assert_int_equal(mapping_create_sparse(&m, LABEL, 3 * SIZE, SIZE), 0);
	assert_int_equal(mapping_close_seals(&m), 0);
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_int_equal(st.st_size, 3 * SIZE);
	assert_true((size_t)st.st_blocks * 512 >= SIZE && (size_t)st.st_blocks * 512 < 3 * SIZE);
	assert_int_equal(mapping_fill((char *)m.base + SIZE, SIZE, MAPPING_WRITE), 0);
	assert_int_equal(mapping_fill((char *)m.base + 2 * SIZE, SIZE, MAPPING_READ), 0);
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_true((size_t)st.st_blocks * 512 >= 3 * SIZE || !heeds_advice(m.base));
	for (size_t i = 0; i < 3 * SIZE; i++)
		assert_int_equal(((unsigned char *)m.base)[i], 0);
	mapping_destroy(&m);
}

static void a_part_is_filled_beside_what_is_stored(void **state)
{
	struct mapping m;
	struct stat st;

	(void)state;
	assert_int_equal(mapping_create_sparse(&m, LABEL, SIZE + 100, 100), 0);
	memset(m.base, 1, 100);
	assert_int_equal(mapping_fill_part(&m, 50, 8000), 0); /* crosses into the second page */
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_true((size_t)st.st_blocks * 512 >= 8050);
	assert_true((size_t)st.st_blocks * 512 < SIZE);
	for (size_t i = 0; i < 8050; i++)
		assert_int_equal(((unsigned char *)m.base)[i], i < 100);
	assert_int_equal(mapping_fill_part(&m, SIZE, 100), 0); /* up to its end */
	mapping_destroy(&m);
}

static void one_to_read_is_stored_to_by_call_alone(void **state)
{
	struct mapping m, peer;
	uint64_t word = 7;

	(void)state;
	assert_int_equal(mapping_create_read(&m, LABEL, SIZE), 0);
	assert_int_equal(mapping_store(&m, 128, &word, sizeof(word)), 0);
	assert_int_equal(((uint64_t *)m.base)[16], 7);
	/* The kernel stores there no more than this process does. */
	assert_int_equal(pread(m.fd, m.base, 1, 0), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mapping_attach(&peer, m.fd, SIZE, MAPPING_WRITE), 0);
	((unsigned char *)peer.base)[0] = 3;
	assert_int_equal(((unsigned char *)m.base)[0], 3);
	assert_int_equal(mapping_close_seals(&m), 0);
	assert_int_equal(mapping_store(&m, 0, &word, sizeof(word)), -EPERM);
	mapping_destroy(&peer);
	mapping_destroy(&m);
}

static void an_object_has_no_name_and_no_heirs(void **state)
{
	struct mapping m = created(SIZE);
	char path[64], target[256];
	ssize_t n;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m.fd);
	n = readlink(path, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = 0;
	assert_non_null(strstr(target, "memfd:" LABEL));
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
	mapping_destroy(&m);
}

static void a_new_object_can_neither_shrink_nor_grow(void **state)
{
	struct mapping m = created(SIZE);
	int seals = fcntl(m.fd, F_GET_SEALS);

	(void)state;
	assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(ftruncate(m.fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(m.fd, (off_t)SIZE * 2), -1);
	assert_int_equal(errno, EPERM);
	assert_false(mapping_seals_closed(m.fd));
	mapping_destroy(&m);
}

static void both_mappings_show_one_object(void **state)
{
	struct mapping owner = created(SIZE), peer;

	(void)state;
	assert_int_equal(mapping_attach(&peer, owner.fd, SIZE, MAPPING_WRITE), 0);
	assert_int_equal(peer.fd, -1);
	assert_int_equal(peer.size, SIZE);
	((unsigned char *)peer.base)[SIZE - 1] = 42;
	assert_int_equal(((unsigned char *)owner.base)[SIZE - 1], 42);
	mapping_destroy(&owner);
	((unsigned char *)peer.base)[0] = 1; /* lives as long as anyone maps it */
	mapping_destroy(&peer);
	mapping_destroy(&peer);
	mapping_destroy(&owner);
}

static void closed_seals_end_new_writers_and_holes(void **state)
{
	struct mapping owner = created(SIZE), peer, late;

	(void)state;
	assert_int_equal(mapping_attach(&peer, owner.fd, SIZE, MAPPING_WRITE), 0);
	assert_int_equal(mapping_close_seals(&owner), 0);
	assert_true(mapping_seals_closed(owner.fd));
	assert_int_equal(fcntl(owner.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	((volatile char *)owner.base)[0] = 1; /* the two that exist go on */
	((volatile char *)peer.base)[1] = 2;
	assert_int_equal(((char *)peer.base)[0], 1);
	if (fcntl(owner.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) {
		assert_int_equal(mapping_attach(&late, owner.fd, SIZE, MAPPING_WRITE), -EPERM);
		assert_int_equal(fallocate(owner.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   4096),
				 -1);
		assert_true(write(owner.fd, "x", 1) < 0);
		assert_int_equal(((char *)peer.base)[0], 1);
	}
	assert_int_equal(mapping_attach(&late, owner.fd, SIZE, MAPPING_READ), 0);
	assert_int_equal(((const char *)late.base)[1], 2);
	mapping_destroy(&late);
	mapping_destroy(&peer);
	mapping_destroy(&owner);
}

static void seals_of_the_size_alone_are_not_closed(void **state)
{
	struct mapping half = created(SIZE), whole = created(SIZE);

	(void)state;
	assert_int_equal(mapping_keep_seals(&half), 0);
	assert_int_equal(mapping_close_seals(&whole), 0);
	/* Where there is the other one. */
	assert_int_equal(mapping_seals_closed(half.fd),
			 !(fcntl(whole.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE));
	mapping_destroy(&half);
	mapping_destroy(&whole);
}

static void another_size_is_refused(void **state)
{
	static const size_t sizes[] = {0, 1, SIZE - 1, SIZE + 1, SIZE * 2, SIZE / 2, SIZE_MAX};
	struct mapping owner = created(SIZE), peer = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(mapping_attach(&peer, owner.fd, sizes[i], MAPPING_WRITE), -EPROTO);
	mapping_destroy(&owner);
}

static void what_its_owner_could_shrink_is_refused(void **state)
{
	static const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_GROW};
	struct mapping peer;
	FILE *plain;
	int ends[2];

	(void)state;
	for (size_t i = 0; i < sizeof(seals) / sizeof(*seals); i++) {
		int fd = memfd_create(LABEL, MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(ftruncate(fd, SIZE), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
		assert_int_equal(mapping_attach(&peer, fd, SIZE, MAPPING_WRITE), -EPERM);
		assert_int_equal(mapping_attach(&peer, fd, SIZE, MAPPING_READ), -EPERM);
		close(fd);
	}
	plain = tmpfile();
	assert_non_null(plain);
	assert_int_equal(ftruncate(fileno(plain), SIZE), 0);
	assert_int_equal(mapping_attach(&peer, fileno(plain), SIZE, MAPPING_WRITE), -EPERM);
	fclose(plain);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(mapping_attach(&peer, ends[0], SIZE, MAPPING_READ), -EPERM);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(mapping_attach(&peer, ends[0], SIZE, MAPPING_READ), -EPERM);
	assert_int_equal(mapping_attach(&peer, -1, SIZE, MAPPING_READ), -EPERM);
}

static int write_to(void *base)
{
	(void)signal(SIGSEGV, SIG_DFL);
	(void)madvise(base, SIZE, MADV_DOFORK);
	*(volatile char *)base = 1;
	return 0;
}

static void a_read_only_view_cannot_be_written(void **state)
{
	struct mapping owner = created(SIZE), view;
	char path[64];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", owner.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mapping_attach(&view, fd, SIZE, MAPPING_WRITE), -EACCES);
	assert_int_equal(mapping_attach(&view, fd, SIZE, MAPPING_READ), 0);
	assert_int_equal(mprotect(view.base, SIZE, PROT_READ | PROT_WRITE), -1);
	(void)madvise(view.base, SIZE, MADV_DOFORK); /* so that the child has it at all */
	assert_int_equal(child_run(write_to, view.base, 10), -SIGSEGV);
	assert_int_equal(*(char *)owner.base, 0);
	mapping_destroy(&view);
	close(fd);
	mapping_destroy(&owner);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void what_takes_too_long_is_given_up(void **state)
{
	struct mapping m;

	(void)state;
	/* What is no longer than a step is made whenever that is. */
	assert_int_equal(mapping_create_by(&m, LABEL, SIZE, 1, SIZE), 0);
	mapping_destroy(&m);
	assert_int_equal(mapping_create_by(&m, LABEL, 64 * SIZE, 1, SIZE), -ETIMEDOUT);
	assert_null(m.base);
	assert_int_equal(m.fd, -1);
	assert_int_equal(mapping_create_by(&m, LABEL, 64 * SIZE, now() + 60000000000, SIZE), 0);
	mapping_destroy(&m);
}

static void closed_seals_are_for_reading(void **state)
{
	struct mapping owner = created(SIZE);

	(void)state;
	assert_false(mapping_is_read_only(owner.fd));
	assert_int_equal(mapping_close_seals(&owner), 0);
	if (!(fcntl(owner.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE))
		assert_false(mapping_is_read_only(owner.fd)); /* an old kernel */
	else
		assert_true(mapping_is_read_only(owner.fd));
	assert_false(mapping_is_read_only(-1));
	mapping_destroy(&owner);
}

/* Their holes are filled from a pool that may be empty: a signal instead of a page. */
static void huge_pages_are_refused(void **state)
{
	int fd = memfd_create(LABEL, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	struct mapping view;

	(void)state;
	if (fd < 0 || ftruncate(fd, 2 << 20) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		if (fd >= 0)
			close(fd);
		skip();
	}
	assert_int_equal(mapping_attach(&view, fd, 2 << 20, MAPPING_READ), -EPERM);
	assert_null(view.base);
	close(fd);
}

/* Emulators take the advice and do not follow it. */
static bool advice_is_followed(void)
{
	void *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool followed = madvise(page, SIZE, MADV_DONTFORK) == 0 &&
			child_run(write_to, page, 10) == -SIGSEGV;

	munmap(page, SIZE);
	return followed;
}

static void a_forked_child_has_no_mapping(void **state)
{
	struct mapping owner, peer;

	(void)state;
	if (!advice_is_followed()) {
		print_message("skipped: MADV_DONTFORK has no effect here\n");
		skip();
	}
	owner = created(SIZE);
	assert_int_equal(mapping_attach(&peer, owner.fd, SIZE, MAPPING_WRITE), 0);
	assert_int_equal(child_run(write_to, owner.base, 10), -SIGSEGV);
	assert_int_equal(child_run(write_to, peer.base, 10), -SIGSEGV);
	assert_int_equal(*(char *)owner.base, 0);
	mapping_destroy(&peer);
	mapping_destroy(&owner);
}

#define SEVERAL 5

static void close_all(struct mapping owners[SEVERAL], int fds[SEVERAL])
{
	for (int i = 0; i < SEVERAL; i++) {
		owners[i] = created(SIZE);
		((unsigned char *)owners[i].base)[0] = (unsigned char)(i + 1);
		assert_int_equal(mapping_close_seals(&owners[i]), 0);
		fds[i] = owners[i].fd;
	}
}

static void several_are_mapped_up_to_a_wrong_one(void **state)
{
	struct mapping owners[SEVERAL], views[SEVERAL], open = created(SIZE);
	int fds[SEVERAL], error = 1;

	(void)state;
	close_all(owners, fds);
	assert_int_equal(mapping_attach_all(views, fds, SEVERAL, SIZE, &error), SEVERAL);
	assert_int_equal(error, 0);
	for (int i = 0; i < SEVERAL; i++) {
		assert_int_equal(((const unsigned char *)views[i].base)[0], i + 1);
		mapping_destroy(&views[i]);
	}
	fds[2] = open.fd; /* its owner can still let a third write */
	assert_int_equal(mapping_attach_all(views, fds, SEVERAL, SIZE, &error), 2);
	assert_int_equal(error, -EPERM);
	mapping_destroy(&views[0]);
	mapping_destroy(&views[1]);
	assert_int_equal(mapping_attach_all(views, fds, SEVERAL, SIZE / 2, &error), 0);
	assert_int_equal(error, -EPROTO);
	for (int i = 0; i < SEVERAL; i++)
		mapping_destroy(&owners[i]);
	mapping_destroy(&open);
}

static int read_from(void *base)
{
	(void)signal(SIGSEGV, SIG_DFL);
	return *(volatile unsigned char *)base;
}

/* Wherever they lie: the room left for some is that of one. */
static void a_forked_child_has_none_of_several(void **state)
{
	struct mapping owners[SEVERAL], views[SEVERAL];
	unsigned char *room;
	int fds[SEVERAL], error;

	(void)state;
	if (!advice_is_followed()) {
		print_message("skipped: MADV_DONTFORK has no effect here\n");
		skip();
	}
	close_all(owners, fds);
	room = mmap(NULL, 5 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(room, MAP_FAILED);
	munmap(room + SIZE, SIZE);
	munmap(room + 3 * SIZE, SIZE);
	assert_int_equal(mapping_attach_all(views, fds, SEVERAL, SIZE, &error), SEVERAL);
	for (int i = 0; i < SEVERAL; i++)
		assert_int_equal(child_run(read_from, views[i].base, 10), -SIGSEGV);
	for (int i = 0; i < SEVERAL; i++) {
		mapping_destroy(&views[i]);
		mapping_destroy(&owners[i]);
	}
	munmap(room, 5 * SIZE);
}

static int without_descriptors(void *arg)
{
	struct mapping m = {.base = NULL, .fd = 12345};
	struct rlimit none = {0, 0};

	(void)arg;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 2;
	if (mapping_create(&m, LABEL, SIZE) != -EMFILE)
		return 3;
	return m.fd == -1 && !m.base ? 0 : 4;
}

static void no_descriptor_left_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(child_run(without_descriptors, NULL, 10), 0);
}

static int with_small_files(void *arg)
{
	struct rlimit limit = {SIZE, SIZE};
	struct mapping m = {.base = NULL, .fd = 12345};
	int fds = descriptors(), maps = mapped_objects();

	(void)arg;
	(void)signal(SIGXFSZ, SIG_DFL);
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 2;
	if (mapping_create(&m, LABEL, SIZE + 1) != -EFBIG)
		return 3;
	if (mapping_create(&m, LABEL, SIZE_MAX) != -EFBIG)
		return 4;
	mapping_destroy(&m);
	if (descriptors() != fds || mapped_objects() != maps)
		return 5;
	if (mapping_create(&m, LABEL, SIZE) != 0) /* just within */
		return 6;
	mapping_destroy(&m);
	return 0;
}

static void over_the_file_size_limit_is_an_error_and_no_signal(void **state)
{
	(void)state;
	assert_int_equal(child_run(with_small_files, NULL, 10), 0);
}

static void impossible_sizes_leave_nothing(void **state)
{
	static const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 2};
	struct mapping m = {.base = NULL, .fd = -1};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_true(mapping_create(&m, LABEL, sizes[i]) < 0);
		assert_null(m.base);
		assert_int_equal(m.fd, -1);
	}
}

static void a_thousand_lives_leave_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct mapping owner = created(8192), peer;

		assert_int_equal(mapping_attach(&peer, owner.fd, 4096, MAPPING_WRITE), -EPROTO);
		mapping_destroy(&peer); /* harmless after a refusal */
		assert_int_equal(mapping_attach(&peer, owner.fd, 8192, MAPPING_WRITE), 0);
		mapping_destroy(&peer);
		mapping_destroy(&owner);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, count_what_is_there, nothing_stayed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_object_is_zeroed_and_of_its_size),
		TEST(a_sparse_one_has_memory_where_it_is_filled),
		TEST(a_part_is_filled_beside_what_is_stored),
		TEST(one_to_read_is_stored_to_by_call_alone),
		TEST(an_object_has_no_name_and_no_heirs),
		TEST(a_new_object_can_neither_shrink_nor_grow),
		TEST(both_mappings_show_one_object),
		TEST(closed_seals_end_new_writers_and_holes),
		TEST(seals_of_the_size_alone_are_not_closed),
		TEST(another_size_is_refused),
		TEST(what_its_owner_could_shrink_is_refused),
		TEST(a_read_only_view_cannot_be_written),
		TEST(what_takes_too_long_is_given_up),
		TEST(closed_seals_are_for_reading),
		TEST(huge_pages_are_refused),
		TEST(a_forked_child_has_no_mapping),
		TEST(several_are_mapped_up_to_a_wrong_one),
		TEST(a_forked_child_has_none_of_several),
		TEST(no_descriptor_left_is_an_error),
		TEST(over_the_file_size_limit_is_an_error_and_no_signal),
		TEST(impossible_sizes_leave_nothing),
		TEST(a_thousand_lives_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
