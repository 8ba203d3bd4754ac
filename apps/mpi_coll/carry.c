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

#define LOOKS    16       /* between two times that MPI goes on, and others have the processor */
#define AWAKE_NS 10000000 /* then it sleeps between them ... */
#define NAP_NS   100000   /* ... so long at most */

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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int test_idly(slmpm_req *req, struct slmpm_done *done, const struct idling *i)
{
	if (i->looks % LOOKS != LOOKS / 2)
		return slmpm_test(req, done);
	/* An engine's thread, where there is one, leaves the polling to one that waits. */
	return slmpm_wait(req, 1, done, 0) == 0;
}

void pass_idly(slmpm_ctx ctx, struct idling *i)
{
	if (++i->looks % LOOKS)
		return;
	mpi_go_on();
	if (!i->since)
		i->since = now_ns();
	else if (i->looks % (LOOKS * LOOKS) == 0)
		i->naps = now_ns() - i->since > AWAKE_NS;
	if (i->naps)
		nap(ctx);
	else
		sched_yield();
}

/* As slmpm_wait. */
static int wait_for(slmpm_ctx ctx, slmpm_req *req, struct slmpm_done *done)
{
	struct idling idling = {0};
	int rc;

	while (!(rc = test_idly(req, done, &idling)))
		pass_idly(ctx, &idling);
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
