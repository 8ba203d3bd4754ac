/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a program makes in place of MPI's. */
#include "apps/mpi_coll/coll.h"

#include <limits.h>

/* Not each MPI's header says so. */
#define PRELOADED __attribute__((visibility("default")))

/* The group that is to carry a call of KIND; NULL: it is passed on, and counted so. */
static struct member *carrier(MPI_Comm comm, enum kind kind)
{
	struct member *m = member_of(comm);

	if (!m)
		count_passed(kind, NO_GROUP);
	return m;
}

bool coll_fits(uint64_t bytes, int blocks, enum kind kind)
{
	if (bytes <= (uint64_t)INT_MAX / (unsigned)blocks)
		return true;
	count_passed(kind, TOO_LONG);
	return false;
}

/* ---- barrier, broadcast ---------------------------------------------------------------------- */

PRELOADED int MPI_Barrier(MPI_Comm comm)
{
	struct member *m = carrier(comm, BARRIER);
	struct slmpm_coll c = {.kind = SLMPM_COLL_BARRIER};

	if (!m)
		return PMPI_Barrier(comm);
	count_carried(BARRIER);
	return carry(m, comm, &c);
}

PRELOADED int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct member *m = carrier(comm, BCAST);
	uint64_t length = m ? packed_length(count, type) : 0;
	struct slmpm_coll c = {.kind = SLMPM_COLL_BROADCAST, .type = SLMPM_UINT8, .root = root};
	struct packed p;
	int rc, given;

	if (!m || !coll_fits(length, 1, BCAST))
		return PMPI_Bcast(buffer, count, type, root, comm);
	rc = packed_take(&p, buffer, count, type, comm, root == m->rank);
	if (rc != MPI_SUCCESS)
		return rc;
	c.from = c.to = p.bytes;
	c.count = length;
	count_carried(BCAST);
	rc = carry(m, comm, &c);
	given = packed_give(&p, buffer, count, type, comm, rc == MPI_SUCCESS && root != m->rank);
	return rc != MPI_SUCCESS ? rc : given;
}

/* ---- reductions ------------------------------------------------------------------------------ */

bool coll_is_known(struct slmpm_coll *c, const void *from, void *to, int count, MPI_Datatype type,
		   MPI_Op op, enum kind kind)
{
	c->op = op_of(op, type);
	c->type = c->op ? type_of(type) : 0;
	c->count = (uint64_t)count;
	c->from = from == MPI_IN_PLACE || from == to ? SLMPM_IN_PLACE : from;
	c->to = to;
	if (c->op && count >= 0)
		return true;
	count_passed(kind, NO_TYPE);
	return false;
}

PRELOADED int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
			 int root, MPI_Comm comm)
{
	struct member *m = carrier(comm, REDUCE);
	struct slmpm_coll c = {.kind = SLMPM_COLL_REDUCE, .root = root};

	if (!m || !coll_is_known(&c, from, to, count, type, op, REDUCE))
		return PMPI_Reduce(from, to, count, type, op, root, comm);
	if (root != m->rank) {
		c.from = from;
		c.to = NULL;
	}
	count_carried(REDUCE);
	return carry(m, comm, &c);
}

PRELOADED int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
			    MPI_Comm comm)
{
	struct member *m = carrier(comm, ALLREDUCE);
	struct slmpm_coll c = {.kind = SLMPM_COLL_ALLREDUCE};

	if (!m || !coll_is_known(&c, from, to, count, type, op, ALLREDUCE))
		return PMPI_Allreduce(from, to, count, type, op, comm);
	count_carried(ALLREDUCE);
	return carry(m, comm, &c);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int exchange(const struct member *m, MPI_Comm comm, struct slmpm_coll *c,
		    const struct blocks *b)
{
	bool in_place = b->from == MPI_IN_PLACE;
	struct packed from = {0}, to;
	int rc, given;

	rc = packed_take(&to, b->to, b->to_count, b->to_type, comm, in_place);
	if (rc == MPI_SUCCESS && !in_place)
		rc = packed_take(&from, b->from, b->count, b->type, comm, true);
	if (rc != MPI_SUCCESS)
		return rc;
	c->from = in_place ? SLMPM_IN_PLACE : from.bytes;
	c->to = to.bytes;
	c->type = SLMPM_UINT8;
	rc = carry(m, comm, c);
	(void)packed_give(&from, NULL, b->count, b->type, comm, false);
	given = packed_give(&to, b->to, b->to_count, b->to_type, comm, rc == MPI_SUCCESS);
	return rc != MPI_SUCCESS ? rc : given;
}

PRELOADED int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
			    MPI_Datatype to_type, MPI_Comm comm)
{
	struct member *m = carrier(comm, ALLGATHER);
	struct slmpm_coll c = {.kind = SLMPM_COLL_ALLGATHER};
	struct blocks b = {from, to, count, to_count, type, to_type};

	c.count = m ? packed_length(to_count, to_type) : 0;
	if (!m || !coll_fits(c.count, m->size, ALLGATHER))
		return PMPI_Allgather(from, count, type, to, to_count, to_type, comm);
	b.to_count *= m->size;
	count_carried(ALLGATHER);
	return exchange(m, comm, &c, &b);
}

PRELOADED int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int to_count,
			   MPI_Datatype to_type, MPI_Comm comm)
{
	struct member *m = carrier(comm, ALLTOALL);
	struct slmpm_coll c = {.kind = SLMPM_COLL_ALLTOALL};
	struct blocks b = {from, to, count, to_count, type, to_type};

	c.count = m ? packed_length(to_count, to_type) : 0;
	if (!m || !coll_fits(c.count, m->size, ALLTOALL))
		return PMPI_Alltoall(from, count, type, to, to_count, to_type, comm);
	if (from != MPI_IN_PLACE)
		b.count *= m->size;
	b.to_count *= m->size;
	count_carried(ALLTOALL);
	return exchange(m, comm, &c, &b);
}

/* ---- the end --------------------------------------------------------------------------------- */

PRELOADED int MPI_Finalize(void)
{
	summary_print();
	carry_end();
	groups_end();
	return PMPI_Finalize();
}
