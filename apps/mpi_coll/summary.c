/* SPDX-License-Identifier: BSD-3-Clause */
/* How many calls were carried, and how many passed on and why. */
#include "apps/mpi_coll/coll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[KINDS] = {"MPI_Barrier",    "MPI_Bcast",      "MPI_Reduce",
					 "MPI_Allreduce",  "MPI_Allgather",  "MPI_Alltoall",
					 "MPI_Ibarrier",   "MPI_Ibcast",     "MPI_Ireduce",
					 "MPI_Iallreduce", "MPI_Iallgather", "MPI_Ialltoall"};

/* Carried, then passed on by reason. */
static _Atomic uint64_t counts[KINDS][1 + REASONS];

/* Threads of a program that has several may lose one another's: it is a count for people. */
static void add(_Atomic uint64_t *count)
{
	uint64_t n = __atomic_load_n((uint64_t *)count, __ATOMIC_RELAXED);

	__atomic_store_n((uint64_t *)count, n + 1, __ATOMIC_RELAXED);
}

void count_carried(enum kind kind)
{
	add(&counts[kind][0]);
}

void count_passed(enum kind kind, enum reason why)
{
	add(&counts[kind][1 + why]);
}

static bool is_wanted(void)
{
	const char *value = getenv("MPI_COLL_SUMMARY");

	return value && *value && strcmp(value, "0") != 0 && strcmp(value, "n") != 0;
}

void summary_print(void)
{
	uint64_t mine[KINDS][1 + REASONS], all[KINDS][1 + REASONS];
	int rank = 0, wanted = is_wanted(), any = 0;

	/* Not every rank need have the same environment. */
	PMPI_Allreduce(&wanted, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
	if (!any)
		return;
	for (int k = 0; k < KINDS; k++)
		for (int i = 0; i < 1 + REASONS; i++)
			mine[k][i] = counts[k][i];
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Reduce(mine, all, KINDS * (1 + REASONS), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank)
		return;
	fprintf(stderr, "mpi_coll: %-14s %10s %10s %10s %10s\n", "calls of all", "carried",
		"no group", "no type", "too long");
	for (int k = 0; k < KINDS; k++)
		fprintf(stderr, "mpi_coll: %-14s %10llu %10llu %10llu %10llu\n", names[k],
			(unsigned long long)all[k][0], (unsigned long long)all[k][1 + NO_GROUP],
			(unsigned long long)all[k][1 + NO_TYPE],
			(unsigned long long)all[k][1 + TOO_LONG]);
}
