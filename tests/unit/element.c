/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements: exclusive between processes, all or none given back, a crashed holder's come back. */
#include <sched.h>
#include <signal.h>
#include <slmpm.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define SECONDS  30
#define ELEMENTS 12
#define ACCEL    SLMPM_ELEMENT_ACCELERATOR
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

static const slmpm_ctx none = {0};
static char folder[] = "/tmp/slmpm-element-XXXXXX";

/* Seen by all processes of the test. */
static struct board {
	_Atomic int step;
	_Atomic pid_t owner[ELEMENTS + 1];
	_Atomic uint64_t grants;
} * board;

static int count(void)
{
	return slmpm_element_count(none, ACCEL);
}

static int reserve(int want, uint32_t *ids)
{
	int n = slmpm_element_reserve(none, ACCEL, want, ids);

	CHECK(n >= 0 && n <= want, "%d of %d: %s", n, want, slmpm_error_detail());
	for (int i = 0; i < n; i++)
		CHECK(ids[i] >= 1 && ids[i] <= ELEMENTS, "element %u", ids[i]);
	return n;
}

static void said(int rc, int error, const char *why)
{
	CHECK(rc == -error, "%d instead of %d (%s)", rc, -error, slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), why), "\"%s\" does not say \"%s\"", slmpm_error_detail(),
	      why);
}

static int alone(void *arg)
{
	uint32_t ids[2 * ELEMENTS], more[ELEMENTS], wrong[3];

	(void)arg;
	CHECK(count() == ELEMENTS, "%d at first", count());
	CHECK(reserve(0, NULL) == 0, "none wanted");
	CHECK(reserve(5, ids) == 5 && count() == ELEMENTS - 5, "%d left", count());
	CHECK(reserve(2 * ELEMENTS, more) == ELEMENTS - 5, "the rest");
	CHECK(count() == 0 && reserve(1, wrong) == 0, "one too many");
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < ELEMENTS - 5; k++)
			CHECK(ids[i] != more[k], "element %u twice", ids[i]);
	/* All or none. */
	wrong[0] = ids[0];
	wrong[1] = ELEMENTS + 1;
	wrong[2] = ids[1];
	said(slmpm_element_release(none, 3, wrong), SLMPM_EINVAL, "element 13 is not reserved");
	wrong[1] = 0;
	said(slmpm_element_release(none, 3, wrong), SLMPM_EINVAL, "element 0 is not reserved");
	CHECK(count() == 0, "a refused release released");
	OK(slmpm_element_release(none, 5, ids));
	CHECK(count() == 5, "%d after the release", count());
	said(slmpm_element_release(none, 1, ids), SLMPM_EINVAL, "is not reserved by this process");
	OK(slmpm_element_release(none, 0, NULL));
	OK(slmpm_element_release(none, ELEMENTS - 5, more));
	CHECK(count() == ELEMENTS, "%d at the end", count());
	return 0;
}

static int bad_arguments(void *arg)
{
	const slmpm_ctx forged = {UINT64_C(77) << 32};
	uint32_t id = 0;

	(void)arg;
	for (int type = -1; type < 10; type++) {
		if (type == SLMPM_ELEMENT_HOST || type == ACCEL)
			continue;
		said(slmpm_element_count(none, type), SLMPM_EINVAL, "element type");
		said(slmpm_element_reserve(none, type, 1, &id), SLMPM_EINVAL, "element type");
	}
	said(slmpm_element_reserve(none, ACCEL, -1, &id), SLMPM_EINVAL, "-1 elements");
	said(slmpm_element_reserve(none, ACCEL, 1, NULL), SLMPM_EINVAL, "1 elements");
	said(slmpm_element_release(none, -1, &id), SLMPM_EINVAL, "-1 elements");
	said(slmpm_element_release(none, 1, NULL), SLMPM_EINVAL, "1 elements");
	said(slmpm_element_count(forged, ACCEL), SLMPM_EHANDLE, "context");
	said(slmpm_element_reserve(forged, ACCEL, 1, &id), SLMPM_EHANDLE, "context");
	said(slmpm_element_release(forged, 1, &id), SLMPM_EHANDLE, "context");
	/* The one host is who asks. */
	CHECK(slmpm_element_count(none, SLMPM_ELEMENT_HOST) == 0, "hosts to be had");
	CHECK(slmpm_element_reserve(none, SLMPM_ELEMENT_HOST, 1, &id) == 0, "a host");
	return 0;
}

static void await_step(int step)
{
	while (atomic_load(&board->step) < step)
		usleep(200);
}

static int hold_five(void *arg)
{
	uint32_t ids[5];

	CHECK(reserve(5, ids) == 5, "five");
	if (arg) {
		/* Its own child holds nothing of what it holds. */
		pid_t child = fork();

		CHECK(child >= 0, "fork");
		if (child == 0) {
			CHECK(count() == ELEMENTS - 5, "%d seen from its child", count());
			said(slmpm_element_release(none, 1, ids), SLMPM_EINVAL, "is not reserved");
			CHECK(count() == ELEMENTS - 5, "%d after its refused release", count());
			atomic_store(&board->step, 1);
			await_step(3);
			_exit(0);
		}
	} else {
		atomic_store(&board->step, 1);
	}
	for (;;)
		pause();
}

/* Killed: its elements are there once it has been reaped, without anybody's doing. */
static int crash(void *with_child)
{
	uint32_t ids[ELEMENTS];
	pid_t holder;

	atomic_store(&board->step, 0);
	holder = child_start(hold_five, with_child, SECONDS);
	await_step(1);
	CHECK(count() == ELEMENTS - 5, "%d beside a holder", count());
	CHECK(reserve(ELEMENTS, ids) == ELEMENTS - 5, "the rest");
	CHECK(kill(holder, SIGKILL) == 0 && child_wait(holder) == -SIGKILL, "kill");
	CHECK(count() == 5, "%d after its end", count());
	CHECK(reserve(ELEMENTS, ids + ELEMENTS - 5) == 5, "what it had");
	atomic_store(&board->step, 3);
	OK(slmpm_element_release(none, ELEMENTS, ids));
	return 0;
}

/* Takes and gives back in turn; nobody ever has what another has. */
static int compete(void *arg)
{
	struct rng g = {(uint64_t)(uintptr_t)arg};

	for (int turn = 0; turn < 300; turn++) {
		uint32_t ids[ELEMENTS];
		int n = reserve(1 + (int)rng_below(&g, 5), ids);

		for (int i = 0; i < n; i++) {
			pid_t before = atomic_exchange(&board->owner[ids[i]], getpid());

			CHECK(before == 0, "element %u is process %d's", ids[i], before);
		}
		atomic_fetch_add(&board->grants, (uint64_t)n);
		if (rng_one_in(&g, 8))
			sched_yield();
		for (int i = 0; i < n; i++)
			atomic_store(&board->owner[ids[i]], 0);
		OK(slmpm_element_release(none, n, ids));
	}
	return 0;
}

static void competition(void)
{
	pid_t pids[6];

	for (uintptr_t i = 0; i < 6; i++)
		pids[i] = child_start(compete, (void *)(i + 1), SECONDS);
	for (int i = 0; i < 6; i++)
		CHECK(child_wait(pids[i]) == 0, "competitor %d", i);
	printf("%llu grants in competition\n", (unsigned long long)atomic_load(&board->grants));
	CHECK(atomic_load(&board->grants) > 6 * 300, "only %llu granted",
	      (unsigned long long)atomic_load(&board->grants));
}

/* What stands where the reservation file should. */
static int bad_folder(void *arg)
{
	setenv("SLMPM_RUN_DIR", arg, 1);
	said(count(), SLMPM_ENOENT, "SLMPM_RUN_DIR");
	return 0;
}

static int a_link_is_not_followed(void *arg)
{
	char path[128], target[128];
	struct stat st;

	(void)arg;
	snprintf(path, sizeof(path), "%s/link", folder);
	CHECK(mkdir(path, 0700) == 0, "mkdir");
	setenv("SLMPM_RUN_DIR", path, 1);
	snprintf(target, sizeof(target), "%s/target", folder);
	snprintf(path, sizeof(path), "%s/link/slmpm.elements", folder);
	CHECK(symlink(target, path) == 0, "symlink");
	CHECK(count() < 0 && strstr(slmpm_error_detail(), "SLMPM_RUN_DIR"), "followed: %s",
	      slmpm_error_detail());
	CHECK(stat(target, &st) != 0, "made through a link");
	CHECK(unlink(path) == 0, "unlink");
	CHECK(count() == ELEMENTS, "%d without the link", count());
	CHECK(stat(path, &st) == 0 && st.st_size == 0, "not an empty file");
	CHECK(unlink(path) == 0, "unlink");
	*strrchr(path, '/') = 0;
	CHECK(rmdir(path) == 0, "rmdir");
	return 0;
}

/* A process with fewer elements sees the first ones only. */
static int fewer(void *arg)
{
	uint32_t ids[ELEMENTS];

	(void)arg;
	setenv("SLMPM_ELEMENTS", "3", 1);
	CHECK(count() == 3, "%d of 3", count());
	CHECK(reserve(ELEMENTS, ids) == 3, "three");
	return 0;
}

static void passes(int (*body)(void *), void *arg, const char *what)
{
	int rc = child_run(body, arg, SECONDS);

	CHECK(rc == 0, "%s: %d", what, rc);
}

int main(void)
{
	char path[64];

	board = child_common(sizeof(*board));
	CHECK(mkdtemp(folder), "set-up");
	setenv("SLMPM_RUN_DIR", folder, 1);
	setenv("SLMPM_ELEMENTS", "12", 1);
	/* In children: the settings are read once a process. */
	passes(alone, NULL, "alone");
	passes(bad_arguments, NULL, "bad arguments");
	passes(crash, NULL, "crash");
	passes(crash, folder, "crash of one with a child");
	competition();
	passes(fewer, NULL, "fewer");
	passes(alone, NULL, "alone again");
	passes(bad_folder, (char[]){"/no/such/folder"}, "no folder");
	passes(a_link_is_not_followed, NULL, "link");
	snprintf(path, sizeof(path), "%s/slmpm.elements", folder);
	CHECK(unlink(path) == 0 && rmdir(folder) == 0, "more than one file was left");
	return 0;
}
