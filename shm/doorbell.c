/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls of doorbell.h: membarrier and the byte that wakes. */
#include "shm/doorbell.h"

#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_NS 100000

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool doorbell_can_membarrier(void)
{
	long offered = membarrier(MEMBARRIER_CMD_QUERY);

	return offered > 0 && (offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       (offered & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
	       membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
	       membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

COLD void doorbell_barrier(void)
{
	static const struct timespec pause = {0, DRAIN_NS};

	if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0)
		return;
	/* Refused later than at set-up (a filter put on since). The slow form needs no registration. */
	if (membarrier(MEMBARRIER_CMD_GLOBAL) == 0)
		return;
	/* And without either: a store that another processor has made before it looked whether we
	 * sleep leaves its store buffer long before this is over. */
	ORDER_FENCE(barrier_fence, memory_order_seq_cst);
	nanosleep(&pause, NULL);
}

COLD void doorbell_ring(struct doorbell *b, uint64_t announcement)
{
	static const char byte = 'b';

	b->rung = announcement;
	if (*b->fd < 0) /* closed since: its number may be somebody else's */
		return;
	b->bells++;
	if (b->all)
		++*b->all;
	(void)!send(*b->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
