/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that are started: each is a generalized request of MPI's, completed by whichever call
 * waits or tests. They go on in a thread of their own, so that a rank may meanwhile be in any call
 * of MPI's, or in none.
 */
#include "apps/mpi_coll/coll.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NAP_MS 10 /* the longest that the thread sleeps */

struct started {
	struct started *next;
	struct slmpm_coll coll;
	struct packed from, to;
	void *buffer; /* to which `to` is unpacked; NULL: to none */
	int count;
	MPI_Datatype type;
	MPI_Comm comm;
	slmpm_req req;
	MPI_Request request;
	int result; /* MPI_SUCCESS, or another of MPI's */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static struct started *all; /* that have not ended */
static _Atomic unsigned count;

/* ---- the thread ------------------------------------------------------------------------------ */

static void *go_on(void *arg)
{
	slmpm_ctx ctx = started_context();
	struct pollfd fd = {.fd = slmpm_fd(ctx), .events = POLLIN};

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!count)
			pthread_cond_wait(&begun, &lock);
		pthread_mutex_unlock(&lock);
		if (slmpm_progress(ctx) < 0)
			return arg; /* it has been closed */
		if (slmpm_arm(ctx) == 0)
			poll(&fd, 1, NAP_MS);
	}
}

static void start_thread(void)
{
	static bool there; /* under the lock */
	pthread_t thread;

	if (there || pthread_create(&thread, NULL, go_on, NULL) != 0)
		return;
	there = true;
	pthread_detach(thread);
}

/* ---- MPI's requests -------------------------------------------------------------------------- */

static int query(void *state, MPI_Status *status)
{
	struct started *s = state;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
	return s->result;
}

static int free_state(void *state)
{
	free(state);
	return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS; /* a collective operation is not taken back */
}

/* ---- one ------------------------------------------------------------------------------------- */

struct started *started_new(MPI_Comm comm)
{
	struct started *s = calloc(1, sizeof(*s));

	if (!s)
		PMPI_Abort(comm, 1); /* the others would wait for it */
	s->coll.size = sizeof(s->coll);
	s->comm = comm;
	return s;
}

struct slmpm_coll *started_coll(struct started *s)
{
	return &s->coll;
}

struct packed *started_from(struct started *s)
{
	return &s->from;
}

struct packed *started_to(struct started *s)
{
	return &s->to;
}

void started_unpack(struct started *s, void *buffer, int n, MPI_Datatype type)
{
	s->buffer = buffer;
	s->count = n;
	if (s->to.own) /* the program may free its own meanwhile */
		PMPI_Type_dup(type, &s->type);
}

static void finish(struct started *s, bool well)
{
	if (!well)
		s->result = MPI_ERR_OTHER;
	if (s->from.own)
		free(s->from.bytes);
	if (!s->to.own)
		return;
	(void)packed_give(&s->to, s->buffer, s->count, s->type, s->comm, well && s->buffer);
	PMPI_Type_free(&s->type);
}

int started_begin(struct started *s, const struct member *m, MPI_Request *request)
{
	int rc = slmpm_collective_start(m->started, &s->coll, NULL, &s->req);

	if (rc < 0) {
		fprintf(stderr, "mpi_coll: rank %d of %d: %s\n", m->rank, m->size,
			slmpm_error_detail());
		finish(s, false);
		PMPI_Comm_call_errhandler(s->comm, MPI_ERR_OTHER);
		free(s);
		return MPI_ERR_OTHER;
	}
	PMPI_Grequest_start(query, free_state, cancel, s, &s->request);
	*request = s->request;
	pthread_mutex_lock(&lock);
	start_thread();
	s->next = all;
	all = s;
	count++;
	pthread_cond_signal(&begun);
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

bool started_any(void)
{
	return count;
}

void started_keep(void)
{
	struct slmpm_done done;

	if (!count || pthread_mutex_trylock(&lock) != 0)
		return; /* another thread does it */
	for (struct started **at = &all; *at;) {
		struct started *s = *at;
		int rc = slmpm_test(&s->req, &done);
		MPI_Request request = s->request;

		if (rc == 0) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		count--;
		finish(s, rc > 0 && done.status >= 0);
		PMPI_Grequest_complete(request);
	}
	pthread_mutex_unlock(&lock);
}
