/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Tracked mirrors where the kernel refuses something: the next way is taken, and the reason said;
 * no memory for the twin; and a process that is killed while its threads store, or ends a mirror
 * then.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/refuse.h"

#define PAGES   64
#define THREADS 3
#define SCAN    0xc0606610u /* PAGEMAP_SCAN */

static slmpm_ctx ctx;
static size_t page;
static unsigned char *memory;
static slmpm_mirror mirror;
static slmpm_peer a, b; /* to ask how it is tracked */

static int create(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};

	return slmpm_mirror_create(ctx, memory, PAGES * page, &o, &mirror);
}

static void begin(void)
{
	page = (size_t)getpagesize();
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	CHECK(memory != MAP_FAILED, "memory");
	OK(slmpm_open(&ctx, NULL));
}

static const char *way(void)
{
	static struct slmpm_mirror_info info = {.size = sizeof(info)};

	EXPECT(slmpm_mirror_attach(mirror, a, 1, SLMPM_MIRROR_LEAD, 0), -SLMPM_EAGAIN);
	OK(slmpm_mirror_query(mirror, a, &info));
	OK(slmpm_mirror_detach(mirror, a));
	return info.track;
}

static void finds(void)
{
	for (int i = 0; i < 3; i++) {
		memory[5 * page + 1]++;
		memory[7 * page]++;
		EXPECT(slmpm_mirror_scan(mirror), 2);
		EXPECT(slmpm_mirror_scan(mirror), 0);
	}
}

/* ---- refused --------------------------------------------------------------------------------- */

struct refused {
	const char *what;
	struct refusal call[2];
	const char *way; /* the first that is left */
	int none;        /* enum slmpm_mirror_track: it does not work, ... */
	const char *why; /* ... and this is said */
};

static const struct refused refused[] = {
	{"nothing", {{0}}, NULL, 0, NULL},
	{"PAGEMAP_SCAN",
	 {{SYS_ioctl, ENOTTY, 1, ~0u, SCAN}},
	 "fault",
	 SLMPM_TRACK_PAGEMAP,
	 "ioctl"},
	{"userfaultfd",
	 {{SYS_userfaultfd, EPERM, 0, 0, 0}},
	 "signal",
	 SLMPM_TRACK_FAULT,
	 "permitted"},
	{"userfaultfd, no such call",
	 {{SYS_userfaultfd, ENOSYS, 0, 0, 0}},
	 "signal",
	 SLMPM_TRACK_PAGEMAP,
	 "implemented"},
	{"userfaultfd and page protection",
	 {{SYS_userfaultfd, EPERM, 0, 0, 0}, {SYS_mprotect, EACCES, 0, 0, 0}},
	 "twin",
	 SLMPM_TRACK_SIGNAL,
	 "denied"},
	{"userfaultfd and handlers",
	 {{SYS_userfaultfd, EPERM, 0, 0, 0}, {SYS_rt_sigaction, EPERM, 0, ~0u, SIGSEGV}},
	 "twin",
	 SLMPM_TRACK_SIGNAL,
	 "permitted"},
};

static int with_refusal(void *arg)
{
	const struct refused *r = arg;

	begin();
	if (r->call[0].call == SYS_ioctl && (slmpm_mirror_track_works(SLMPM_TRACK_PAGEMAP) < 0 ||
					     slmpm_mirror_track_works(SLMPM_TRACK_FAULT) < 0))
		return 0; /* the kernel has refused it before */
	actor_pair(ctx, &a, &b);
	for (int i = 0; i < 2; i++)
		if (r->call[i].call && !refuse(&r->call[i]))
			test_skip("no filter can be had");
	OK(create(SLMPM_TRACK_AUTO));
	CHECK(!r->way || !strcmp(way(), r->way), "without %s: by %s", r->what, way());
	finds();
	OK(slmpm_mirror_destroy(mirror));
	memory[5 * page]++;
	if (!r->none)
		return 0;
	REFUSED(slmpm_mirror_track_works(r->none), SLMPM_ENOTSUP, r->why);
	REFUSED(create((uint32_t)r->none), SLMPM_ENOTSUP, r->why);
	memory[5 * page]++; /* nothing of it is left */
	return 0;
}

/* As for one without rights where /proc/sys/vm/unprivileged_userfaultfd is 0. */
static int users_alone(void *arg)
{
	const struct refusal of_kernel = {SYS_userfaultfd, EPERM, 0, UFFD_USER_MODE_ONLY, 0};
	int ends[2];

	(void)arg;
	begin();
	if (!refuse(&of_kernel))
		test_skip("no filter can be had");
	if (slmpm_mirror_track_works(SLMPM_TRACK_FAULT) < 0)
		test_skip("no userfaultfd");
	OK(create(SLMPM_TRACK_FAULT));
	finds();
	OK(pipe(ends));
	CHECK(write(ends[1], "abc", 3) == 3, "a pipe");
	CHECK(read(ends[0], memory + 9 * page, 3) == -1 && errno == EFAULT,
	      "the kernel has written there");
	OK(slmpm_mirror_begin(mirror, PATIENCE));
	OK(slmpm_mirror_changed(mirror, memory + 9 * page, 3));
	EXPECT(read(ends[0], memory + 9 * page, 3), 3);
	EXPECT(slmpm_mirror_scan(mirror), 3);
	OK(slmpm_mirror_end(mirror));
	OK(slmpm_mirror_destroy(mirror));
	return 0;
}

/* ---- no memory ------------------------------------------------------------------------------- */

static int no_memory(void *how)
{
	struct rlimit none = {1 << 20, RLIM_INFINITY};

	begin();
	OK(create(*(uint32_t *)how)); /* what is made once is there */
	OK(slmpm_mirror_destroy(mirror));
	OK(munmap(memory, PAGES * page));
	memory = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(memory != MAP_FAILED, "memory");
	OK(setrlimit(RLIMIT_AS, &none));
	for (int i = 0; i < 3; i++) {
		const struct slmpm_mirror_options o = {.size = sizeof(o),
						       .track = *(uint32_t *)how};
		int rc = slmpm_mirror_create(ctx, memory, 64 << 20, &o, &mirror);

		CHECK(rc == -SLMPM_ENOMEM || rc == -SLMPM_ENOTSUP, "%d: %s", rc,
		      slmpm_error_detail());
		memory[7 * page]++;
	}
	none.rlim_cur = RLIM_INFINITY;
	OK(setrlimit(RLIMIT_AS, &none));
	OK(create(*(uint32_t *)how));
	finds();
	return 0;
}

/* ---- threads that store ---------------------------------------------------------------------- */

static atomic_bool stop;
static _Atomic uint64_t rounds[THREADS];

static void *store_on(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	while (!atomic_load(&stop)) {
		for (size_t at = i; at < PAGES; at++)
			__atomic_fetch_add(memory + at * page + 8 * i, 1, __ATOMIC_RELAXED);
		atomic_fetch_add(&rounds[i], 1);
	}
	return NULL;
}

static void start(pthread_t *threads)
{
	for (uintptr_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, store_on, (void *)i));
}

/* Each has gone on since it was last looked at. */
static void await_rounds(uint64_t *seen)
{
	for (int i = 0; i < THREADS; i++) {
		while (atomic_load(&rounds[i]) == seen[i])
			sched_yield();
		seen[i] = atomic_load(&rounds[i]);
	}
}

/* Ends, and is made again, while others store. */
static int ends(void *how)
{
	pthread_t threads[THREADS];
	uint64_t seen[THREADS] = {0};

	begin();
	start(threads);
	for (int i = 0; i < 12; i++) {
		OK(create(*(uint32_t *)how));
		for (int k = 0; k < 3; k++)
			(void)slmpm_mirror_scan(mirror);
		await_rounds(seen);
		OK(slmpm_mirror_destroy(mirror));
		await_rounds(seen);
	}
	OK(create(*(uint32_t *)how));
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	(void)slmpm_mirror_scan(mirror);
	finds();
	OK(slmpm_shut(ctx, 0)); /* with the mirror */
	memory[3 * page]++;
	return 0;
}

static int role_store(slmpm_peer host, char **words)
{
	pthread_t threads[THREADS];

	page = (size_t)getpagesize();
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	CHECK(memory != MAP_FAILED, "memory");
	OK(create((uint32_t)atoi(words[0])));
	OK(slmpm_mirror_attach(mirror, host, 1, SLMPM_MIRROR_LEAD, PATIENCE));
	start(threads);
	for (;;)
		OK(slmpm_mirror_flush(mirror, -1));
}

/* All of it ends at once, its threads wherever they are; what is here stays. */
static void killed(uint32_t how)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	uint64_t sequence = 0;
	slmpm_peer child;
	slmpm_mirror m;
	char text[4];
	int rc = 0;

	snprintf(text, sizeof(text), "%u", how);
	child = actor_spawn("store", text, NULL);
	OK(slmpm_peer_query(child, &info));
	OK(slmpm_mirror_create((slmpm_ctx){0}, memory, PAGES * page, NULL, &m));
	OK(slmpm_mirror_attach(m, child, 1, SLMPM_MIRROR_FOLLOW, PATIENCE));
	while (memory[(PAGES - 1) * page] < 2) /* stores of the threads have come */
		OK(slmpm_mirror_wait(m, child, &sequence, PATIENCE));
	OK(kill(info.pid, SIGKILL));
	while (rc == 0)
		rc = slmpm_mirror_wait(m, child, &sequence, PATIENCE);
	EXPECT(rc, -SLMPM_EDEAD);
	OK(slmpm_mirror_destroy(m));
	OK(slmpm_close(child, PATIENCE));
	memset(memory, 0, PAGES * page);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"store", role_store}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int rc = child_run(with_refusal, (void *)(uintptr_t)&refused[i], 20);

		CHECK(rc == 0 || rc == TEST_SKIPPED, "without %s: %d", refused[i].what, rc);
	}
	CHECK(child_run(users_alone, NULL, 20) % TEST_SKIPPED == 0, "user mode only");
	begin();
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++) {
		if (child_run(ends, &how, 30) != 0)
			CHECK(slmpm_mirror_track_works((int)how) < 0, "way %u: stores at its end",
			      how);
		if (slmpm_mirror_track_works((int)how) < 0)
			continue;
		if (actor_slow() == 1) /* sanitizers want the addresses */
			EXPECT(child_run(no_memory, &how, 20), 0);
		killed(how);
	}
	return 0;
}
