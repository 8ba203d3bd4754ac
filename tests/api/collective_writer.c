/* SPDX-License-Identifier: BSD-3-Clause */
/* A member is stopped just as it writes to another's buffer: that one's call ends all the same, and
 * says whose doing it is. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/lib/crew.h"
#include "tests/lib/settings.h"

#define COUNT 65536 /* long enough to go straight */
#define SHORT 100   /* ms */

static bool stops;
static unsigned writes;
static int64_t from[2 * COUNT], to[2 * COUNT];

/* The library's is this, too. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
			  const struct iovec *there, unsigned long m, unsigned long flags)
{
	writes++;
	if (stops)
		raise(SIGSTOP);
	return syscall(SYS_process_vm_writev, pid, here, n, there, m, flags);
}

static void body(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	int64_t own = getpid(), pids[2], began;
	int rc;

	OK(slmpm_allgather(g, &own, pids, 1, SLMPM_INT64, PATIENCE));
	OK(slmpm_alltoall(g, from, to, COUNT, SLMPM_INT64, PATIENCE));
	if (!writes) /* the kernel does not let them */
		return;
	stops = rank;
	began = actor_now_ms();
	rc = slmpm_alltoall(g, from, to, COUNT, SLMPM_INT64, rank ? PATIENCE : SHORT);
	if (rank) {
		CHECK(rc < 0, "it has not learnt that");
		return;
	}
	EXPECT(rc, -SLMPM_ETIMEOUT);
	CHECK(strstr(slmpm_error_detail(), "rank 1"), "%s", slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), "stopped as it writes"), "%s", slmpm_error_detail());
	CHECK(actor_now_ms() - began < SHORT + 1000 * (2 + actor_slow()), "late");
	(void)kill((pid_t)pids[1], SIGCONT);
}

int main(void)
{
	struct crew crew = {.members = 2, .groups = 1, .body = body};

	settings_set("SLMPM_ATTACH", "y");
	crew_run(&crew, 5);
	return 0;
}
