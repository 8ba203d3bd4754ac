/* SPDX-License-Identifier: BSD-3-Clause */
/* Members' own memory, reached by its address (reach.h). */
#include "slmpm/board/reach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slmpm/base/clock.h"

#define STOPPED_MS 1000 /* for a copy, of one that is not stopped */

enum { UNTRIED, WORKS, REFUSED }; /* b->reach */

void reach_offer(struct boards *b)
{
	struct attach_probe probe;

	if (!b->own || !attach_own_probe(&probe))
		return;
	b->own->probe = probe;
	atomic_store_explicit(&b->own->reach, BOARD_REACHES, memory_order_release);
}

static bool is_offered(const struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++)
		if (atomic_load_explicit(&b->of[r]->reach, memory_order_acquire) != BOARD_REACHES)
			return false;
	return true;
}

int32_t reach_number(int fd)
{
	char path[48], line[128];
	int32_t pid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Pid:", 4) == 0)
			pid = atoi(line + 4);
	if (f)
		fclose(f);
	return pid;
}

static COLD bool try_all(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++) {
		if (r == b->rank)
			continue;
		/* What is read here counts, whatever its owner stores there later. */
		memcpy(&b->probes[r], (const void *)&b->of[r]->probe, sizeof(b->probes[r]));
		b->numbers[r] = b->watched[r] < 0 ? b->processes[r] : reach_number(b->watched[r]);
		if (!attach_works_with(b->numbers[r], &b->probes[r]))
			return false;
	}
	return true;
}

COLD void reach_refused(struct boards *b)
{
	b->reach = REFUSED;
	atomic_store_explicit(&b->own->reach, BOARD_REFUSED, memory_order_relaxed);
}

bool reach_works(struct boards *b)
{
	if (b->reach == REFUSED || !is_offered(b))
		return false;
	if (b->reach == UNTRIED) {
		b->reach = WORKS;
		if (!try_all(b))
			reach_refused(b);
	}
	return b->reach == WORKS;
}

/* Its last thread has; so far its number is no other's. */
static bool process_is_gone(const struct boards *b, uint32_t r)
{
	struct pollfd end = {.fd = b->watched[r], .events = POLLIN};

	return end.fd >= 0 && poll(&end, 1, 0) > 0;
}

/* One that lives, but whose first thread does not any more, cannot be reached: by the ring. */
static int gone_or(const struct boards *b, uint32_t r, int rc)
{
	return rc == -ESRCH && (b->watched[r] < 0 || process_is_gone(b, r)) ? 0 : rc;
}

int reach_finds(struct boards *b, uint32_t r)
{
	if (process_is_gone(b, r))
		return 0;
	return gone_or(b, r, attach_finds(b->numbers[r], &b->probes[r]));
}

int reach_copy(struct boards *b, uint32_t r, void *local, uint64_t address, uint64_t n, bool write)
{
	return gone_or(b, r, attach_copy(b->numbers[r], local, address, n, write));
}

/* ---- who writes ------------------------------------------------------------------------------ */

void reach_claim(struct boards *b, uint64_t number)
{
	board_store(&b->own->claims, number);
	/* Pairs with the fence in reach_withdraw. */
	atomic_thread_fence(memory_order_seq_cst);
}

void reach_release(struct boards *b)
{
	/* Pairs with the acquire in reach_writer. */
	atomic_store_explicit(&b->own->claims, 0, memory_order_release);
}

bool reach_is_withdrawn(const struct boards *b, uint32_t r, uint64_t number)
{
	return board_load(&b->of[r]->withdrawn) >= number;
}

/* It has ended, or runs another program by now (execve): no thread of it writes any more. */
static bool writer_is_gone(const struct boards *b, uint32_t r)
{
	int rc;

	if (process_is_gone(b, r))
		return true;
	rc = attach_finds(b->numbers[r], &b->probes[r]);
	return rc == 0 || rc == -EFAULT || (rc == -ESRCH && b->watched[r] < 0);
}

void reach_withdraw(struct boards *b, uint64_t number)
{
	board_store(&b->own->withdrawn, number);
	/* Pairs with the fence in reach_claim: it sees that, or is seen here. What this process stores
	 * next who reads comes to see behind it. */
	atomic_thread_fence(memory_order_seq_cst);
}

uint32_t reach_writer(const struct boards *b, uint64_t number)
{
	for (uint32_t r = 0; r < b->size; r++)
		/* Acquire pairs with the release in reach_release. */
		if (r != b->rank &&
		    atomic_load_explicit(&b->of[r]->claims, memory_order_acquire) == number &&
		    !writer_is_gone(b, r))
			return r;
	return BOARD_NONE;
}

uint32_t reach_take_back(struct boards *b, uint64_t number)
{
	static const struct timespec moment = {.tv_nsec = 20000};
	const uint64_t deadline = clock_deadline(STOPPED_MS);
	uint32_t r;

	reach_withdraw(b, number);
	while ((r = reach_writer(b, number)) != BOARD_NONE && clock_now() < deadline)
		(void)nanosleep(&moment, NULL);
	return r;
}
