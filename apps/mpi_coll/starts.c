/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that start an operation. What they pass on and what not is as in calls.c. */
#include "apps/mpi_coll/coll.h"

#define PRELOADED __attribute__((visibility("default")))

static struct member *starter(MPI_Comm comm, enum kind kind)
{
	struct member *m = member_there(comm);

	if (!m)
		count_passed(STARTED + kind, NO_GROUP);
	return m;
}

PRELOADED int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct member *m = starter(comm, BARRIER);
	struct started *s;

	if (!m)
		return PMPI_Ibarrier(comm, request);
	count_carried(STARTED + BARRIER);
	s = started_new(comm);
	started_coll(s)->kind = SLMPM_COLL_BARRIER;
	return started_begin(s, m, request);
}

PRELOADED int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
			 MPI_Request *request)
{
	struct member *m = starter(comm, BCAST);
	struct slmpm_coll *c;
	struct started *s;
	int rc;

	if (!m || !coll_fits(packed_length(count, type), 1, STARTED + BCAST))
		return PMPI_Ibcast(buffer, count, type, root, comm, request);
	s = started_new(comm);
	c = started_coll(s);
	rc = packed_take(started_to(s), buffer, count, type, comm, root == m->rank);
	if (rc != MPI_SUCCESS)
		return rc;
	started_unpack(s, root == m->rank ? NULL : buffer, count, type);
	c->kind = SLMPM_COLL_BROADCAST;
	c->type = SLMPM_UINT8;
	c->root = root;
	c->from = c->to = started_to(s)->bytes;
	c->count = packed_length(count, type);
	count_carried(STARTED + BCAST);
	return started_begin(s, m, request);
}

PRELOADED int MPI_Ireduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
			  int root, MPI_Comm comm, MPI_Request *request)
{
	struct member *m = starter(comm, REDUCE);
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_REDUCE, .root = root};
	struct started *s;

	if (!m || !coll_is_known(&c, from, to, count, type, op, STARTED + REDUCE))
		return PMPI_Ireduce(from, to, count, type, op, root, comm, request);
	if (root != m->rank) {
		c.from = from;
		c.to = NULL;
	}
	count_carried(STARTED + REDUCE);
	s = started_new(comm);
	*started_coll(s) = c;
	return started_begin(s, m, request);
}

PRELOADED int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm, MPI_Request *request)
{
	struct member *m = starter(comm, ALLREDUCE);
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_ALLREDUCE};
	struct started *s;

	if (!m || !coll_is_known(&c, from, to, count, type, op, STARTED + ALLREDUCE))
		return PMPI_Iallreduce(from, to, count, type, op, comm, request);
	count_carried(STARTED + ALLREDUCE);
	s = started_new(comm);
	*started_coll(s) = c;
	return started_begin(s, m, request);
}

static int exchange(uint32_t kind, const struct member *m, const struct blocks *b, MPI_Comm comm,
		    MPI_Request *request)
{
	bool in_place = b->from == MPI_IN_PLACE;
	struct started *s = started_new(comm);
	struct slmpm_coll *c = started_coll(s);
	int rc = packed_take(started_to(s), b->to, b->to_count, b->to_type, comm, in_place);

	if (rc == MPI_SUCCESS && !in_place)
		rc = packed_take(started_from(s), b->from, b->count, b->type, comm, true);
	if (rc != MPI_SUCCESS)
		return rc;
	started_unpack(s, b->to, b->to_count, b->to_type);
	c->kind = kind;
	c->type = SLMPM_UINT8;
	c->count = packed_length(b->to_count, b->to_type) / (uint64_t)m->size;
	c->from = in_place ? SLMPM_IN_PLACE : started_from(s)->bytes;
	c->to = started_to(s)->bytes;
	return started_begin(s, m, request);
}

PRELOADED int MPI_Iallgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
			     MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
	struct member *m = starter(comm, ALLGATHER);
	struct blocks b = {from, to, count, to_count, type, to_type};

	if (!m || !coll_fits(packed_length(to_count, to_type), m->size, STARTED + ALLGATHER))
		return PMPI_Iallgather(from, count, type, to, to_count, to_type, comm, request);
	b.to_count *= m->size;
	count_carried(STARTED + ALLGATHER);
	return exchange(SLMPM_COLL_ALLGATHER, m, &b, comm, request);
}

PRELOADED int MPI_Ialltoall(const void *from, int count, MPI_Datatype type, void *to, int to_count,
			    MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
	struct member *m = starter(comm, ALLTOALL);
	struct blocks b = {from, to, count, to_count, type, to_type};

	if (!m || !coll_fits(packed_length(to_count, to_type), m->size, STARTED + ALLTOALL))
		return PMPI_Ialltoall(from, count, type, to, to_count, to_type, comm, request);
	if (from != MPI_IN_PLACE)
		b.count *= m->size;
	b.to_count *= m->size;
	count_carried(STARTED + ALLTOALL);
	return exchange(SLMPM_COLL_ALLTOALL, m, &b, comm, request);
}

/* ---- communicators that such calls may come to ----------------------------------------------- */

PRELOADED int MPI_Init(int *argc, char ***argv)
{
	int rc = PMPI_Init(argc, argv);

	if (rc == MPI_SUCCESS)
		member_offer(MPI_COMM_WORLD, true);
	return rc;
}

PRELOADED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc = PMPI_Init_thread(argc, argv, required, provided);

	if (rc == MPI_SUCCESS)
		member_offer(MPI_COMM_WORLD, true);
	return rc;
}

PRELOADED int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
	int rc = PMPI_Comm_dup(comm, made);

	if (rc == MPI_SUCCESS)
		member_offer(*made, false);
	return rc;
}

PRELOADED int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
	int rc = PMPI_Comm_split(comm, color, key, made);

	if (rc == MPI_SUCCESS)
		member_offer(*made, false);
	return rc;
}

PRELOADED int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	int rc = PMPI_Comm_split_type(comm, type, key, info, made);

	if (rc == MPI_SUCCESS)
		member_offer(*made, false);
	return rc;
}

PRELOADED int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
	int rc = PMPI_Comm_create(comm, group, made);

	if (rc == MPI_SUCCESS)
		member_offer(*made, false);
	return rc;
}

PRELOADED int MPI_Cart_create(MPI_Comm comm, int n, const int sizes[], const int periods[],
			      int reorder, MPI_Comm *made)
{
	int rc = PMPI_Cart_create(comm, n, sizes, periods, reorder, made);

	if (rc == MPI_SUCCESS)
		member_offer(*made, false);
	return rc;
}
