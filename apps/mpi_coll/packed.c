/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of any type as bytes in a row: where they lie so in the program's buffer, there. One
 * rank may name them as numbers and another as a type of its own of such numbers, so both come to
 * the same bytes.
 */
#include "apps/mpi_coll/coll.h"

#include <limits.h>
#include <stdlib.h>

static bool lies_packed(MPI_Datatype type)
{
	return type_of(type) != 0;
}

uint64_t packed_length(int count, MPI_Datatype type)
{
	MPI_Count size;

	if (count < 0 || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
		return UINT64_MAX;
	if (count && size > INT_MAX / count)
		return UINT64_MAX;
	return (uint64_t)count * (uint64_t)size;
}

int packed_take(struct packed *p, const void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
		bool pack)
{
	uint64_t length = packed_length(count, type);
	int at = 0, rc = MPI_SUCCESS;

	p->own = !lies_packed(type) && length;
	p->bytes = (unsigned char *)(uintptr_t)buffer;
	if (!p->own)
		return rc;
	p->bytes = malloc(length);
	if (!p->bytes)
		PMPI_Abort(comm, 1); /* the others would wait for it */
	if (pack)
		rc = PMPI_Pack(buffer, count, type, p->bytes, (int)length, &at, comm);
	if (pack && rc == MPI_SUCCESS && (uint64_t)at != length)
		rc = MPI_ERR_TYPE;
	if (rc != MPI_SUCCESS)
		free(p->bytes);
	return rc;
}

int packed_give(struct packed *p, void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
		bool unpack)
{
	int at = 0, rc = MPI_SUCCESS;

	if (!p->own)
		return rc;
	if (unpack)
		rc = PMPI_Unpack(p->bytes, (int)packed_length(count, type), &at, buffer, count,
				 type, comm);
	free(p->bytes);
	return rc;
}
