/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What slmpm_group_alloc refuses, all members learn, and why, and the group goes on: what cannot
 * be; no descriptors; bells that stay full,
 * or are out of order, and pages that take longer, until the deadline; more bytes than
 * the machine has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/circle.h"

#define TAG  7
#define N    3
#define LEN  5000
#define LONG (UINT64_C(17) << 20) /* made in two calls */

static unsigned slow_ms; /* of a call that makes pages */
static bool pretends;    /* it makes none */
static int refusal;      /* errno of bells, for descriptors; 0: none */
static unsigned refused;

/* The library's are these, too. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (refusal && msg->msg_controllen) {
		refused++;
		errno = refusal;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	const struct timespec moment = {.tv_nsec = (long)slow_ms * 1000000};

	if (pretends)
		return 0;
	(void)nanosleep(&moment, NULL);
	return (int)syscall(SYS_fallocate, fd, mode, at, len);
}

/* By all, and the group goes on. */
static void all_refused(slmpm_group g, uint64_t len, int timeout_ms, int error, const char *why)
{
	slmpm_group_memory m = {0};
	int64_t one = 1, sum = 0;

	REFUSED(slmpm_group_alloc(&m, g, len, SLMPM_ALLOC_BESIDE, 0, timeout_ms), error, why);
	CHECK(!m.id, "a handle");
	OK(slmpm_allreduce(g, &one, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	CHECK(sum == N, "sum %lld", (long long)sum);
}

/* Rank 0's part reaches none in time: it tries now and then, not all the time. */
static void full(slmpm_group g, int rank)
{
	refusal = rank == 0 ? EAGAIN : 0;
	all_refused(g, LEN, 200, SLMPM_ETIMEOUT, rank ? "rank 0" : "parts");
	CHECK(refused < 30, "tried %u times in 200 ms", refused);
	refusal = 0;
}

/* Rank 2's never does. */
static void out_of_order(slmpm_group g, int rank)
{
	refused = 0;
	refusal = rank == 2 ? EACCES : 0;
	all_refused(g, LEN, PATIENCE, SLMPM_EACCES, rank == 2 ? "another" : "rank 2");
	CHECK(refused == (rank == 2), "tried %u times", refused);
	refusal = 0;
}

/* Rank 1 has the least time, and makes its pages until that is over. */
static void slow(slmpm_group g, int rank)
{
	slow_ms = rank == 1 ? 300 : 0;
	all_refused(g, LONG, rank == 1 ? 200 : 400, SLMPM_ETIMEOUT,
		    rank == 1 ? "longer" : "rank 1");
	slow_ms = 0;
}

/* Pages of more than there is would be had at the cost of others' lives. */
static void too_long(slmpm_group g, int rank)
{
	uint64_t len = LEN;
	struct sysinfo all;

	CHECK(sysinfo(&all) == 0, "sysinfo");
	if (rank == 1)
		len = ((uint64_t)all.totalram + all.totalswap) * all.mem_unit;
	pretends = true;
	all_refused(g, len, PATIENCE, SLMPM_ENOMEM, rank == 1 ? "are left by" : "rank 1");
	pretends = false;
}

/* What rank 1 asks for, and why not, by its own words and the others'. */
static void asks(slmpm_group g, int rank, uint64_t len, int place, uint32_t flags, const char *why)
{
	slmpm_group_memory m = {0};
	bool own = rank == 1;

	REFUSED(slmpm_group_alloc(&m, g, own ? len : LEN, own ? place : SLMPM_ALLOC_BESIDE,
				  own ? flags : 0, PATIENCE),
		SLMPM_EINVAL, why);
	CHECK(own || strstr(slmpm_error_detail(), "rank 1 ("), "%s", slmpm_error_detail());
}

/* All learn the reason, and the group goes on. */
static void reasons(slmpm_group g, int rank)
{
	slmpm_group_memory m;
	struct rlimit limit, before;
	int free;

	asks(g, rank, LEN, -7, 0, "place -7 is no rank");
	asks(g, rank, LEN, SLMPM_ALLOC_BESIDE, 8, "unknown flags 0x8");
	asks(g, rank, LEN, SLMPM_ALLOC_BESIDE, SLMPM_ALLOC_NOT_HERE, "5000 bytes, and");
	asks(g, rank, UINT64_MAX, SLMPM_ALLOC_BESIDE, 0, "18446744073709551615 bytes are in no");
	REFUSED(slmpm_group_alloc(rank == 1 ? NULL : &m, g, LEN, SLMPM_ALLOC_BESIDE, 0, PATIENCE),
		SLMPM_EINVAL, "no place for the handle");
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	limit = before;
	free = dup(0);
	OK(close(free));
	limit.rlim_cur = (rlim_t)free;
	CHECK(rank != 1 || setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
	all_refused(g, LEN, PATIENCE, SLMPM_ENOFILE,
		    rank == 1 ? "" : "of 5000 bytes: Too many open files");
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
}

static void member(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	reasons(group, i);
	full(group, i);
	out_of_order(group, i);
	slow(group, i);
	too_long(group, i);
	OK(slmpm_group_destroy(group));
}

int main(void)
{
	struct circle c = {.flags = 0};
	slmpm_group group;

	circle_begin(&c, N, member, NULL, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, N, TAG, PATIENCE));
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}
