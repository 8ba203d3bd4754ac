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

enum kind {
	BARRIER,
	BCAST,
	REDUCE,
	ALLREDUCE,
	ALLGATHER,
	ALLTOALL,
	STARTED, /* and the same once more */
	KINDS = 2 * STARTED
};

/* Why a call was passed on. */
enum reason { NO_GROUP, NO_TYPE, TOO_LONG, REASONS };

/* ---- group.c: a communicator's group --------------------------------------------------------- */

struct member {
	slmpm_group group;   /* of calls that block */
	slmpm_group started; /* and of those that do not */
	slmpm_ctx ctx;
	int rank, size;
	bool carries; /* else all of its calls are passed on */
};

/* That of COMM, formed at the first call, by all of its ranks; NULL: calls are to be passed on. */
struct member *member_of(MPI_Comm comm);
/* The same for a call that does not block: none is formed. */
struct member *member_there(MPI_Comm comm);
/* COMM is new, or MPI has just begun, and all of its ranks are here: it has a group from now on
 * where one of them starts operations, or ALWAYS. */
void member_offer(MPI_Comm comm, bool always);
/* Operations are started in this process: their context. */
slmpm_ctx started_context(void);
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
/* A wait for what a context is to bring: zero at first. */
struct idling {
	unsigned looks;
	bool naps;
	uint64_t since; /* ns */
};

/* As slmpm_test. */
int test_idly(slmpm_req *req, struct slmpm_done *done, const struct idling *i);
/* Then, where it has not ended: MPI goes on, others have the processor, each now and then. */
void pass_idly(slmpm_ctx ctx, struct idling *i);
/* No more of them. */
void carry_end(void);

/* ---- calls.c --------------------------------------------------------------------------------- */

/* Of a call of KIND so many bytes can be carried, for each of BLOCKS; else it is counted as passed
 * on. */
bool coll_fits(uint64_t bytes, int blocks, enum kind kind);
/* Whether SLMPM calculates that, likewise; all but kind and root are filled in. */
bool coll_is_known(struct slmpm_coll *c, const void *from, void *to, int count, MPI_Datatype type,
		   MPI_Op op, enum kind kind);

/* What an allgather or alltoall sends and receives: all together. */
struct blocks {
	const void *from;
	void *to;
	int count, to_count;
	MPI_Datatype type, to_type;
};

/* ---- started.c: operations that are started -------------------------------------------------- */

struct started;

/* One that is to be filled in; what it needs stays until its end. */
struct started *started_new(MPI_Comm comm);
struct slmpm_coll *started_coll(struct started *s);
/* TO is the buffer to be unpacked to where `unpack`; FROM is only given back. */
struct packed *started_from(struct started *s);
struct packed *started_to(struct started *s);
void started_unpack(struct started *s, void *buffer, int count, MPI_Datatype type);
/* Begins it: a request of MPI's. As carry. */
int started_begin(struct started *s, const struct member *m, MPI_Request *request);
bool started_any(void);
/* Those that have ended are completed. */
void started_keep(const struct idling *i);
/* Until none of those is outstanding. */
void started_await(int n, const MPI_Request requests[]);

/* ---- summary.c ------------------------------------------------------------------------------- */

void count_carried(enum kind kind);
void count_passed(enum kind kind, enum reason why);
/* On standard error, of all ranks together, where MPI_COLL_SUMMARY says so. */
void summary_print(void);

#endif
