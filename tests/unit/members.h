/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that have boards of one another: what tests of the board room begin with. */
#ifndef TESTS_UNIT_MEMBERS_H
#define TESTS_UNIT_MEMBERS_H

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define MEMBERS_MAX 16

typedef void members_body(struct boards *b, void *arg);

struct members {
	uint32_t size;
	members_body *body;
	void *arg;
	struct {
		_Atomic pid_t pid; /* stored last */
		int board, bell;
	} at[MEMBERS_MAX];
	_Atomic uint32_t met, done;
};

struct member {
	struct members *all;
	uint32_t rank;
};

static inline void members_nap(void)
{
	static const struct timespec moment = {.tv_nsec = 100000};

	(void)nanosleep(&moment, NULL);
}

static inline int members_open(pid_t pid, int fd, int flags)
{
	char path[64];
	int got;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	got = open(path, flags | O_CLOEXEC);
	CHECK(got >= 0, "%s cannot be opened", path);
	return got;
}

/* B has a board, whose descriptor is FD: the others', too. */
static inline void members_find(struct members *all, struct boards *b, int fd)
{
	all->at[b->rank].board = fd;
	all->at[b->rank].pid = getpid();
	for (uint32_t r = 0; r < all->size; r++) {
		pid_t pid;

		while (!(pid = all->at[r].pid))
			members_nap();
		if (r == b->rank)
			continue;
		fd = members_open(pid, all->at[r].board, O_RDONLY);
		CHECK(board_map(&b->of[r], fd) == 0, "board %u cannot be mapped", r);
		close(fd);
		b->processes[r] = (int32_t)pid;
	}
	reach_offer(b);
	boards_met(b);
}

static inline void members_wait(struct members *all)
{
	all->met++;
	while (all->met < all->size)
		members_nap();
}

static inline void members_meet(struct members *all, struct boards *b, uint32_t rank)
{
	struct board *own;
	int fd;

	CHECK(board_make(&own, &fd) == 0, "no board");
	CHECK(boards_open(b, own, all->size, rank) == 0, "no boards");
	members_find(all, b, fd);
	members_wait(all);
}

static inline int members_main(void *arg)
{
	struct member *m = arg;
	struct boards b;

	members_meet(m->all, &b, m->rank);
	m->all->body(&b, m->all->arg);
	/* The others may still read what this one has written. */
	m->all->done++;
	while (m->all->done < m->all->size)
		members_nap();
	boards_close(&b);
	return 0;
}

/* SIZE processes, each of which does BODY(boards, ARG); all leave with 0. */
static inline void members_run(uint32_t size, members_body *body, void *arg, unsigned seconds)
{
	struct members *all = child_common(sizeof(*all));
	struct member m[MEMBERS_MAX];
	pid_t pid[MEMBERS_MAX];

	all->size = size;
	all->body = body;
	all->arg = arg;
	for (uint32_t r = 0; r < size; r++) {
		m[r] = (struct member){all, r};
		pid[r] = child_start(members_main, &m[r], seconds);
	}
	for (uint32_t r = 0; r < size; r++) {
		int rc = child_wait(pid[r]);

		CHECK(rc == 0, "member %u of %u: %d", r, size, rc);
	}
}

/* Begins C and does all of it. */
static inline int members_do(struct boards *b, const struct slmpm_coll *c)
{
	struct flat f;
	int rc = flat_check(c, b->size, b->rank);

	if (rc == 0)
		rc = flat_begin(&f, b, c);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; (rc = flat_step(&f)) == 0; i++) {
		CHECK(f.waits_for < b->size || f.waits_for == BOARD_ANY, "waits for none");
		if (i > 20)
			sched_yield();
	}
	if (rc < 0)
		flat_drop(&f);
	return rc < 0 ? rc : 0;
}

#endif
