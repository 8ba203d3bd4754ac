/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait for requests or test them: started operations among them are completed here. */
#include "apps/mpi_coll/coll.h"

#include <sched.h>

#define PRELOADED __attribute__((visibility("default")))
#define LOOKS     64 /* before others have the processor */

static const struct idling no_wait;

/* TEST, again and again until *FLAG; all that has ended is completed in between. */
#define WAIT_BY(test, flag)                                                                        \
	do {                                                                                       \
		struct idling idling_ = {0};                                                       \
		int rc_;                                                                           \
                                                                                                   \
		do {                                                                               \
			started_keep(&idling_);                                                    \
			rc_ = (test);                                                              \
			if (++idling_.looks % LOOKS == 0)                                          \
				sched_yield();                                                     \
		} while (rc_ == MPI_SUCCESS && !(flag));                                           \
		return rc_;                                                                        \
	} while (0)

PRELOADED int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int done = 0;

	started_await(1, request);
	if (!started_any())
		return PMPI_Wait(request, status);
	WAIT_BY(PMPI_Test(request, &done, status), done);
}

PRELOADED int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
	int done = 0;

	started_await(n, requests);
	if (!started_any())
		return PMPI_Waitall(n, requests, statuses);
	WAIT_BY(PMPI_Testall(n, requests, &done, statuses), done);
}

PRELOADED int MPI_Waitany(int n, MPI_Request requests[], int *which, MPI_Status *status)
{
	int done = 0;

	if (!started_any())
		return PMPI_Waitany(n, requests, which, status);
	WAIT_BY(PMPI_Testany(n, requests, which, &done, status), done);
}

PRELOADED int MPI_Waitsome(int n, MPI_Request requests[], int *count, int which[],
			   MPI_Status statuses[])
{
	if (!started_any())
		return PMPI_Waitsome(n, requests, count, which, statuses);
	*count = 0;
	WAIT_BY(PMPI_Testsome(n, requests, count, which, statuses), *count);
}

PRELOADED int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	started_keep(&no_wait);
	return PMPI_Test(request, done, status);
}

PRELOADED int MPI_Testall(int n, MPI_Request requests[], int *done, MPI_Status statuses[])
{
	started_keep(&no_wait);
	return PMPI_Testall(n, requests, done, statuses);
}

PRELOADED int MPI_Testany(int n, MPI_Request requests[], int *which, int *done, MPI_Status *status)
{
	started_keep(&no_wait);
	return PMPI_Testany(n, requests, which, done, status);
}

PRELOADED int MPI_Testsome(int n, MPI_Request requests[], int *count, int which[],
			   MPI_Status statuses[])
{
	started_keep(&no_wait);
	return PMPI_Testsome(n, requests, count, which, statuses);
}

PRELOADED int MPI_Request_get_status(MPI_Request request, int *done, MPI_Status *status)
{
	started_keep(&no_wait);
	return PMPI_Request_get_status(request, done, status);
}
