/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI between two ranks; one source for Open MPI and MPICH, whose mpirun starts it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/peers/pair.h"

static int other;

static void open_side(int side)
{
	other = !side;
}

static void m_send(const void *buf, size_t len)
{
	MPI_Send(buf, (int)len, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void m_recv(void *buf, size_t len)
{
	MPI_Recv(buf, (int)len, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A window of requests at a time, as MPI's own stream benchmarks do. */
static void window(void *buf, size_t len, uint64_t n, int sending)
{
	MPI_Request q[PAIR_WINDOW];
	MPI_Status done[PAIR_WINDOW];

	while (n) {
		int k = n < PAIR_WINDOW ? (int)n : (int)PAIR_WINDOW;

		for (int i = 0; i < k; i++)
			if (sending)
				MPI_Isend(buf, (int)len, MPI_BYTE, other, 1, MPI_COMM_WORLD, &q[i]);
			else
				MPI_Irecv(buf, (int)len, MPI_BYTE, other, 1, MPI_COMM_WORLD, &q[i]);
		MPI_Waitall(k, q, done);
		n -= (uint64_t)k;
	}
}

static void stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(buf, len, n, 1);
}

static void stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(buf, len, n, 0);
}

int main(int argc, char **argv)
{
	static const struct peer PEER = {.name = "MPI",
					 .open = open_side,
					 .send = m_send,
					 .recv = m_recv,
					 .stream_send = stream_send,
					 .stream_recv = stream_recv};
	size_t size = pair_area_size() + 128;
	MPI_Aint got;
	MPI_Win win;
	char *area;
	int rank, ranks, unit, rv;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2 || ranks != 2) {
		fprintf(stderr, "usage: mpirun -n 2 %s CPU,CPU\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Win_allocate_shared(rank ? 0 : (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &area,
				&win);
	MPI_Win_shared_query(win, 0, &got, &unit, &area);
	if (rank == 0)
		memset(area, 0, size);
	MPI_Barrier(MPI_COMM_WORLD);
	rv = pair_serve(&PEER, (void *)(((uintptr_t)area + 127) & ~(uintptr_t)127), rank, argv[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	MPI_Finalize();
	return rv;
}
