/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective operation done by a group, and what MPI learns of it. Others may come only when they
 * have had a message of this rank's that MPI still has to move: it is asked to go on meanwhile.
 */
#include "apps/mpi_coll/coll.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#define LOOKS  16     /* between two times that MPI goes on */
#define NAP_NS 100000 /* and the longest that it waits for that */

/* A request that never completes: to test it has all of MPI go on, as a probe need not. */
static MPI_Request never = MPI_REQUEST_NULL;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int query_never(void *state, MPI_Status *status)
{
	(void)state;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int free_never(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int cancel_never(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

static void mpi_go_on(void)
{
	int done;

	if (pthread_mutex_trylock(&lock) != 0)
		return; /* another thread does it */
	if (never == MPI_REQUEST_NULL)
		PMPI_Grequest_start(query_never, free_never, cancel_never, NULL, &never);
	PMPI_Test(&never, &done, MPI_STATUS_IGNORE);
	pthread_mutex_unlock(&lock);
}

void carry_end(void)
{
	if (never == MPI_REQUEST_NULL)
		return;
	PMPI_Grequest_complete(never);
	PMPI_Wait(&never, MPI_STATUS_IGNORE);
}

static void nap(slmpm_ctx ctx)
{
	struct pollfd fd = {.fd = slmpm_fd(ctx), .events = POLLIN};
	struct timespec most = {.tv_nsec = NAP_NS};

	if (slmpm_arm(ctx) == 0)
		ppoll(&fd, 1, &most, NULL);
}

/* As slmpm_wait. */
static int wait_for(slmpm_ctx ctx, slmpm_req *req, struct slmpm_done *done)
{
	int rc;

	for (unsigned looks = 1; !(rc = slmpm_test(req, done)); looks++) {
		int how = slmpm_spin(ctx, 0);

		if (how == SLMPM_SPIN_YIELD)
			sched_yield();
		else if (how == SLMPM_SPIN_SLEEP)
			nap(ctx);
		if (how != SLMPM_SPIN_ON || looks % LOOKS == 0)
			mpi_go_on();
	}
	(void)slmpm_spin(ctx, 1);
	return rc;
}

int carry(const struct member *m, MPI_Comm comm, struct slmpm_coll *c)
{
	struct slmpm_done done = {0};
	slmpm_req req;
	int rc;

	c->size = sizeof(*c);
	rc = slmpm_collective_start(m->group, c, NULL, &req);
	if (rc >= 0)
		rc = wait_for(m->ctx, &req, &done);
	if (rc >= 0 && done.status >= 0)
		return MPI_SUCCESS;
	fprintf(stderr, "mpi_coll: rank %d of %d: %s\n", m->rank, m->size, slmpm_error_detail());
	PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}
