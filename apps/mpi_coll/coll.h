/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be preloaded into programs of MPI: their collective operations go by SLMPM groups,
 * one for each communicator whose ranks are on one machine, and all else to MPI as before.
 *
 * What is carried must be so at every rank of a call, or they would wait for each other in two
 * places: it is decided by what MPI wants to be the same at all of them.
 */
#ifndef MPI_COLL_H
#define MPI_COLL_H

#include <mpi.h>
#include <slmpm_group.h>
#include <stdbool.h>
#include <stdint.h>

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, KINDS };

/* Why a call was passed on. */
enum reason { NO_GROUP, NO_TYPE, TOO_LONG, REASONS };

/* ---- group.c: a communicator's group --------------------------------------------------------- */

struct member {
	slmpm_group group;
	slmpm_ctx ctx;
	int rank, size;
	bool carries; /* else all of its calls are passed on */
};

/* That of COMM, formed at the first call, by all of its ranks; NULL: calls are to be passed on. */
struct member *member_of(MPI_Comm comm);
/* All groups are left: at the end of the program. */
void groups_end(void);

/* ---- types.c --------------------------------------------------------------------------------- */

/* Of the types that lie in memory as they are sent: 0: not one of them; else enum slmpm_type. */
uint32_t type_of(MPI_Datatype type);
/* enum slmpm_calc_op of OP where OP of TYPE is what SLMPM calculates; 0: it is not. */
uint32_t op_of(MPI_Op op, MPI_Datatype type);

/* ---- packed.c: what is sent of any type, as bytes in a row ----------------------------------- */

struct packed {
	unsigned char *bytes; /* in the program's buffer, or memory that is freed */
	bool own;
};

/* Bytes of COUNT elements, or UINT64_MAX: more than can be packed. */
uint64_t packed_length(int count, MPI_Datatype type);
/* PACK: they are to be sent, else there is only room to receive them. Each returns MPI_SUCCESS or
 * another of MPI's. */
int packed_take(struct packed *p, const void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
		bool pack);
/* UNPACK: they have been received. */
int packed_give(struct packed *p, void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
		bool unpack);

/* ---- carry.c --------------------------------------------------------------------------------- */

/* Does C, which all ranks of COMM do: MPI_SUCCESS, or what COMM's error handler returns. */
int carry(const struct member *m, MPI_Comm comm, struct slmpm_coll *c);
/* No more of them. */
void carry_end(void);

/* ---- summary.c ------------------------------------------------------------------------------- */

void count_carried(enum kind kind);
void count_passed(enum kind kind, enum reason why);
/* On standard error, of all ranks together, where MPI_COLL_SUMMARY says so. */
void summary_print(void);

#endif
