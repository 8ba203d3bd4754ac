/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that are started: each is a generalized request of MPI's, completed by whichever call
 * waits or tests. While a rank is in another call of MPI's, or in none, a thread has them go on: it
 * polls only where the rank has not since a nap ago, and no start wakes it.
 */
#include "apps/mpi_coll/coll.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAP_MS 1
#define NAPS   100 /* with none outstanding, before it sleeps until there is one */

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
static struct started *all; /* that have not ended */
static _Atomic unsigned count;
static _Atomic unsigned kept; /* so often has the rank polled */
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static bool asleep; /* the thread, until the next one */

/* ---- the thread ------------------------------------------------------------------------------ */

static void sleep_until_begun(void)
{
	pthread_mutex_lock(&lock);
	asleep = true;
	while (!count)
		pthread_cond_wait(&begun, &lock);
	asleep = false;
	pthread_mutex_unlock(&lock);
}

static void *go_on(void *arg)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
	slmpm_ctx ctx = started_context();
	struct pollfd fd = {.fd = slmpm_fd(ctx), .events = POLLIN};
	unsigned seen = 0, naps = 0;

	for (;;) {
		bool away = seen == kept;

		seen = kept;
		naps = count ? 0 : naps + 1;
		if (naps > NAPS)
			sleep_until_begun();
		else if (naps || !away)
			nanosleep(&nap, NULL);
		else if (slmpm_progress(ctx) < 0)
			return arg; /* it has been closed */
		else if (slmpm_arm(ctx) == 0)
			poll(&fd, 1, NAP_MS);
	}
}

/* With the lock. */
static void wake_thread(void)
{
	static bool there;
	pthread_t thread;

	kept++;
	if (asleep)
		pthread_cond_signal(&begun);
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
	s->next = all;
	all = s;
	count++;
	wake_thread();
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

bool started_any(void)
{
	return count;
}

/* S, at AT, has ended: RC and DONE as of slmpm_test. */
static void complete(struct started **at, int rc, const struct slmpm_done *done)
{
	struct started *s = *at;
	MPI_Request request = s->request;

	*at = s->next;
	count--;
	finish(s, rc > 0 && done->status >= 0);
	PMPI_Grequest_complete(request);
}

void started_keep(const struct idling *i)
{
	struct slmpm_done done;

	if (!count || pthread_mutex_trylock(&lock) != 0)
		return; /* another thread does it */
	kept++;
	for (struct started **at = &all; *at;) {
		int rc = test_idly(&(*at)->req, &done, i);

		if (rc == 0)
			at = &(*at)->next;
		else
			complete(at, rc, &done);
	}
	pthread_mutex_unlock(&lock);
}

static struct started **find_started(MPI_Request request)
{
	struct started **at = &all;

	while (*at && (*at)->request != request)
		at = &(*at)->next;
	return at;
}

/* True: it has ended, or is none. */
static bool keep_one(MPI_Request request, const struct idling *i)
{
	struct slmpm_done done;
	struct started **at;
	int rc = 1;

	pthread_mutex_lock(&lock);
	kept++;
	at = find_started(request);
	if (*at) {
		rc = test_idly(&(*at)->req, &done, i);
		if (rc)
			complete(at, rc, &done);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void started_await(int n, const MPI_Request requests[])
{
	struct idling idling = {0};

	for (int i = 0; i < n; i++)
		while (count && !keep_one(requests[i], &idling))
			pass_idly(started_context(), &idling);
}
