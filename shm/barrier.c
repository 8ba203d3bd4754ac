/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls of barrier.h, and what stands in for them where they are refused. */
#include "shm/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/order.h"

#define DRAIN_NS 100000

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool barrier_works(void)
{
	long offered = membarrier(MEMBARRIER_CMD_QUERY);

	return offered > 0 && (offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       (offered & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
	       membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
	       membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

COLD void barrier_all(void)
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
