/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group for each communicator, an attribute of it: formed at its first call, when all ranks have
 * come to it, and left when it is freed. Either all ranks have it or none.
 */
#include "apps/mpi_coll/coll.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL        64
#define FORM_MS    20000
#define TAG        1
#define STREAM     0
#define MEMBERS_OK SLMPM_GROUP_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slmpm_ctx ctx, started_ctx;
static _Atomic bool starts; /* operations that do not block */
static int keyval = MPI_KEYVAL_INVALID;
static bool over;
static _Atomic unsigned freed; /* communicators: their handles may come again */

/* The last communicator that this thread has asked for. */
static _Thread_local struct {
	MPI_Comm comm;
	struct member *member;
	unsigned freed;
} last;

/* ---- where ranks are ------------------------------------------------------------------------- */

/* The same number for those that reach each other's sockets and memory, very likely no other. */
static int64_t machine(void)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	struct stat net;
	int c;

	while (file && (c = getc(file)) != EOF)
		h = (h ^ (uint64_t)c) * UINT64_C(0x100000001b3);
	if (file)
		fclose(file);
	if (stat("/proc/self/ns/net", &net) == 0)
		h = (h ^ net.st_ino) * UINT64_C(0x100000001b3);
	h = (h ^ (uint64_t)geteuid()) * UINT64_C(0x100000001b3);
	return (int64_t)(h >> 2);
}

/* Whether YES holds at all ranks: a barrier as well. */
static bool all_agree(MPI_Comm comm, bool yes)
{
	int mine = yes, all = 0;

	return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, comm) == MPI_SUCCESS && all;
}

static bool is_switched_off(void)
{
	const char *value = getenv("MPI_COLL");

	return value && (strcmp(value, "n") == 0 || strcmp(value, "0") == 0);
}

/* All ranks of COMM, and none of them is to do without. */
static bool on_one_machine(MPI_Comm comm)
{
	int64_t where = machine(), mine[3] = {where, -where, !is_switched_off()};
	int64_t least[3] = {0, 1};

	if (PMPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS)
		return false;
	return least[0] == -least[1] && least[2];
}

/* ---- forming --------------------------------------------------------------------------------- */

static bool open_contexts(void)
{
	struct slmpm_options options = {.size = sizeof(options)};
	int level = MPI_THREAD_SINGLE;
	bool there;

	PMPI_Query_thread(&level);
	options.flags = level == MPI_THREAD_MULTIPLE ? SLMPM_THREADS : 0;
	pthread_mutex_lock(&lock);
	there = ctx.id || slmpm_open(&ctx, &options) >= 0;
	options.flags = SLMPM_THREADS;
	there = there && (started_ctx.id || slmpm_open(&started_ctx, &options) >= 0);
	pthread_mutex_unlock(&lock);
	return there;
}

slmpm_ctx started_context(void)
{
	return started_ctx;
}

/* Rank 0's part: each of the others says who it is. */
static int lead(struct member *m, slmpm_ctx in, slmpm_group *group, slmpm_listener listener)
{
	slmpm_peer *peers = calloc((size_t)m->size, sizeof(*peers)), peer;
	int rc = peers ? 0 : -SLMPM_ENOMEM;
	int32_t rank;

	for (int i = 1; i < m->size && rc >= 0; i++) {
		rc = slmpm_accept(listener, &peer, FORM_MS);
		if (rc >= 0)
			rc = (int)slmpm_recv(peer, STREAM, &rank, sizeof(rank), NULL, FORM_MS);
		if (rc >= 0 && (rank < 1 || rank >= m->size || peers[rank].id))
			rc = -SLMPM_EPROTO;
		if (rc >= 0)
			peers[rank] = peer;
	}
	if (rc >= 0)
		rc = slmpm_group_create(group, in, peers, m->size, TAG, FORM_MS);
	for (int i = 1; peers && i < m->size; i++)
		if (peers[i].id)
			slmpm_close(peers[i], 1000);
	free(peers);
	return rc;
}

static int follow(struct member *m, slmpm_ctx in, slmpm_group *group, const char *url)
{
	int32_t rank = m->rank;
	slmpm_peer founder;
	int rc = slmpm_connect(&founder, in, url, FORM_MS);

	if (rc < 0)
		return rc;
	rc = (int)slmpm_send(founder, STREAM, &rank, sizeof(rank), FORM_MS);
	if (rc >= 0)
		rc = slmpm_group_join(group, founder, TAG, FORM_MS);
	slmpm_close(founder, 1000);
	return rc;
}

/* All ranks are here. */
static bool meet(struct member *m, MPI_Comm comm, slmpm_ctx in, slmpm_group *group, bool ready)
{
	static _Atomic unsigned number;
	slmpm_listener listener = {0};
	char url[URL] = "";
	int rc = -SLMPM_ESTATE;

	if (m->rank == 0 && ready) {
		snprintf(url, sizeof(url), "shm:mpi_coll-%d-%u", (int)getpid(), number++);
		if (slmpm_listen(&listener, in, url) < 0)
			url[0] = 0;
	}
	if (PMPI_Bcast(url, sizeof(url), MPI_CHAR, 0, comm) != MPI_SUCCESS)
		url[0] = 0;
	if (ready && url[0])
		rc = m->rank == 0 ? lead(m, in, group, listener) : follow(m, in, group, url);
	if (listener.id)
		slmpm_unlisten(listener);
	if (rc < 0 && url[0])
		fprintf(stderr, "mpi_coll: rank %d of %d: no group: %s\n", m->rank, m->size,
			slmpm_error_detail());
	return all_agree(comm, rc >= 0);
}

static void leave(struct member *m)
{
	if (m->group.id && !over)
		slmpm_group_destroy(m->group);
	if (m->started.id && !over)
		slmpm_group_destroy(m->started);
	m->group.id = m->started.id = 0;
}

static void form(struct member *m, MPI_Comm comm)
{
	int inter = 1;
	bool ready;

	PMPI_Comm_test_inter(comm, &inter);
	PMPI_Comm_rank(comm, &m->rank);
	PMPI_Comm_size(comm, &m->size);
	if (inter || m->size < 2 || m->size > MEMBERS_OK || !on_one_machine(comm))
		return;
	ready = open_contexts();
	m->ctx = ctx;
	m->carries = meet(m, comm, ctx, &m->group, ready) &&
		     meet(m, comm, started_ctx, &m->started, ready);
	if (!m->carries)
		leave(m);
}

/* ---- keeping --------------------------------------------------------------------------------- */

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
	struct member *m = value;

	(void)comm, (void)key, (void)extra;
	freed++;
	leave(m);
	free(m);
	return MPI_SUCCESS;
}

static bool have_key(void)
{
	pthread_mutex_lock(&lock);
	if (keyval == MPI_KEYVAL_INVALID &&
	    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
		keyval = MPI_KEYVAL_INVALID;
	pthread_mutex_unlock(&lock);
	return keyval != MPI_KEYVAL_INVALID;
}

static struct member *find(MPI_Comm comm)
{
	struct member *m = NULL;
	int found = 0;

	if (over || comm == MPI_COMM_NULL || !have_key() ||
	    PMPI_Comm_get_attr(comm, keyval, &m, &found) != MPI_SUCCESS || !found)
		return NULL;
	return m;
}

/* NULL: MPI is to say what is wrong with it. */
static struct member *find_or_form(MPI_Comm comm)
{
	struct member *m = find(comm);

	if (m || over || comm == MPI_COMM_NULL || keyval == MPI_KEYVAL_INVALID)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		PMPI_Abort(comm, 1); /* the others would wait for it */
	form(m, comm);
	PMPI_Comm_set_attr(comm, keyval, m);
	return m;
}

struct member *member_of(MPI_Comm comm)
{
	if (!last.member || last.comm != comm || last.freed != freed) {
		last.freed = freed;
		last.member = find_or_form(comm);
		last.comm = comm;
	}
	return last.member && last.member->carries ? last.member : NULL;
}

struct member *member_there(MPI_Comm comm)
{
	struct member *m = find(comm);

	starts = true;
	return m && m->carries ? m : NULL;
}

void member_offer(MPI_Comm comm, bool always)
{
	int mine = starts, any = 0, inter = 1;

	if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
		return;
	if (!always)
		PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_LOR, comm);
	if (always || any)
		(void)member_of(comm);
}

void groups_end(void)
{
	over = true;
	freed++;
	if (ctx.id)
		slmpm_shut(ctx, 1000);
	if (started_ctx.id)
		slmpm_shut(started_ctx, 1000);
	ctx.id = started_ctx.id = 0;
}
