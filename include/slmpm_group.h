/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of processes, and what all members of one do together: barrier, broadcast, reductions,
 * exchanges. Not a part of <slmpm.h>: include it beside that.
 */
#ifndef SLMPM_API_GROUP_H
#define SLMPM_API_GROUP_H

#include <slmpm.h>
#include <slmpm_queue.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	uint64_t id;
} slmpm_group; /* what a process is a member of, or has founded */

typedef struct {
	uint64_t id;
} slmpm_group_memory; /* what each member of a group has a part of (slmpm_group_alloc) */

#define SLMPM_GROUP_MAX 1024 /* members */

/* ---- Groups --------------------------------------------------------------------------------- */

/*
 * Forms a group of N processes: rank r is MEMBERS[r]; {0} stands for the caller, once at most.
 * Without it the caller founds the group and is no member (a host, of its accelerators). Each
 * member calls slmpm_group_join with the same TAG meanwhile, before or after. Blocks until all
 * have come. The members need no connections among themselves; those of a group with peers over
 * TCP make them. The peers are not to be closed before the group has formed; afterwards it does
 * without them. SLMPM_EINVAL; SLMPM_ELIMIT: more than SLMPM_GROUP_MAX; SLMPM_ETIMEOUT,
 * SLMPM_EDEAD, SLMPM_ECLOSED: the detail names who has not come; SLMPM_EAGAIN: the same where
 * TIMEOUT_MS is 0; SLMPM_ENOTSUP: a member's library is older; SLMPM_ENOFILE, SLMPM_ENOMEM,
 * SLMPM_EFBIG. Source: document 004 (row H13), DaCS groups.
 */
SLMPM_API int slmpm_group_create(slmpm_group *group, slmpm_ctx ctx, const slmpm_peer *members,
				 int n, uint32_t tag, int timeout_ms);
/* Becomes a member of the group TAG that FOUNDER, a peer of this process, forms, which may still be
 * connecting. Blocks until all have come. As slmpm_group_create. */
SLMPM_API int slmpm_group_join(slmpm_group *group, slmpm_peer founder, uint32_t tag,
			       int timeout_ms);
/*
 * The same without waiting: GROUP is there at once, and forms by progress in its context
 * (slmpm_group_query: its status is -SLMPM_EAGAIN until it has, then 0 or why it has not).
 * Operations are SLMPM_EAGAIN meanwhile, or that error; slmpm_group_meet waits for it.
 * slmpm_group_destroy gives it up: it forms for none, or has formed and this process has left it.
 */
SLMPM_API int slmpm_group_create_start(slmpm_group *group, slmpm_ctx ctx, const slmpm_peer *members,
				       int n, uint32_t tag);
SLMPM_API int slmpm_group_join_start(slmpm_group *group, slmpm_peer founder, uint32_t tag);
/* Leaves it: what others still do with it fails at them (SLMPM_ECLOSED). Does not block.
 * SLMPM_EBUSY: an operation of this process's is under way; SLMPM_ESTATE: in a handler. */
SLMPM_API int slmpm_group_destroy(slmpm_group group);

struct slmpm_group_info {
	uint32_t size;    /* sizeof(struct slmpm_group_info) */
	int32_t rank;     /* of this process; -1: its founder, who is no member */
	uint32_t members; /* as many as there are; 0: it has not formed */
	uint32_t tag;
	int32_t status;       /* 0; -SLMPM_EAGAIN: it is forming; or why it has not, or is broken */
	int32_t culprit;      /* then, the rank of the member by which; -1: none */
	uint64_t begun, done; /* operations of this process in it */
	uint64_t generation;  /* how often it has gone on without some: slmpm_group_shrink */
	uint32_t algorithm;   /* of its last operation: slmpm_plan_algorithm; 0: by shared memory */
	uint32_t any_order;   /* 1: its reductions are in any, not in that of the ranks */
	uint64_t in_memory;   /* operations that were done in memory of the group */
};

SLMPM_API int slmpm_group_query(slmpm_group group, struct slmpm_group_info *info);
/*
 * A broken group goes on without those of its members that have died or left: all that are left
 * call this, agree on who they are, though more may die meanwhile, and are members of the same
 * group then, in the old order, with ranks from 0. Blocks until they have agreed. A member that
 * lives is waited for. SLMPM_ETIMEOUT: the detail names who has not come; it may be called again.
 * SLMPM_EAGAIN: the same where TIMEOUT_MS is 0; SLMPM_ESTATE: the group is not broken, or this
 * process has founded it and is no member; SLMPM_EPROTO: a member says what cannot be; SLMPM_EBUSY.
 */
SLMPM_API int slmpm_group_shrink(slmpm_group group, int timeout_ms);

/*
 * A connection between this member and member RANK, made by the first of such calls at either, the
 * same one each time until it has ended: *PEER is a peer of the group's context as any other. The
 * member need not call it, but make progress. The connection outlives the group; who has got its
 * handle closes it. SLMPM_EINVAL: no such rank, the own one; SLMPM_EDEAD, SLMPM_ECLOSED: the member
 * has died, or has left the group; SLMPM_ETIMEOUT, SLMPM_EAGAIN: it has not answered yet, and
 * another call goes on; SLMPM_ESTATE.
 */
SLMPM_API int slmpm_group_peer(slmpm_group group, int rank, slmpm_peer *peer, int timeout_ms);

#define SLMPM_COLOR_NONE (-1) /* in no part */

/*
 * Groups of some of a group's members: all members call it, as they do a collective operation, and
 * those with the same COLOR, 0 or more, are members of one new group, PART, by KEY, then by rank.
 * PART is {0} where COLOR is SLMPM_COLOR_NONE. Each part is a group by itself, which may outlive
 * the other one and has its tag. Blocks; all have their parts then, or none has: where a member has
 * died, or could not, GROUP is broken by that, as by an operation. SLMPM_EINVAL; SLMPM_EBUSY:
 * another thread does so; SLMPM_EAGAIN: TIMEOUT_MS is 0; what slmpm_collective and
 * slmpm_group_create return.
 */
SLMPM_API int slmpm_group_split(slmpm_group *part, slmpm_group group, int color, int key,
				int timeout_ms);

#define SLMPM_GROUP_SPACES 65536

/*
 * References, by which members name memory of another without an address. What SPACE, 1 to
 * SLMPM_GROUP_SPACES, is at this member: LEN bytes at BASE, which stay the application's. Base and
 * length may differ at each member. LEN 0 takes it back. SLMPM_EBUSY: an operation uses it;
 * SLMPM_ESTATE: the caller is no member; SLMPM_EINVAL, SLMPM_ENOMEM. Does not block.
 * Source: document 000 (row D2).
 */
SLMPM_API int slmpm_group_space(slmpm_group group, uint32_t space, void *base, uint64_t len);

#define SLMPM_ALLOC_BESIDE   (-1) /* place: each part where its member is */
#define SLMPM_ALLOC_NOT_HERE 1u   /* flags: this member, such as a host, maps nothing of it */

/*
 * Memory that the members of a group on one machine share. Each has a part of LEN bytes, zeroed,
 * which it alone can write and the others have mapped to read; LEN may differ at each member, and
 * be 0. PLACE, the same at all: the rank of the member in whose memory all parts lie, or
 * SLMPM_ALLOC_BESIDE. Of an operation whose contributions lie in such parts, of 4 KiB or more, each
 * member reads the others' where they are: no message, and as a rule no copy and no call of the
 * system lies between. All members call it, as they do a collective operation. Blocks; all have
 * the memory then, or none: where a member has died, or is late, GROUP is broken by that. MEMORY is
 * {0} where FLAGS have SLMPM_ALLOC_NOT_HERE. It ends with its group. SLMPM_EINVAL: members disagree
 * on PLACE, or that one maps nothing, or what one of them asks for cannot be; SLMPM_ENOMEM,
 * SLMPM_ENOFILE, SLMPM_EFBIG: a member, which the detail names, has none left; SLMPM_ENOTSUP:
 * members are on several machines; SLMPM_EBUSY: another thread does so; SLMPM_EAGAIN: TIMEOUT_MS is
 * 0; what slmpm_collective returns. Source: document 004 (row H13).
 */
SLMPM_API int slmpm_group_alloc(slmpm_group_memory *memory, slmpm_group group, uint64_t len,
				int place, uint32_t flags, int timeout_ms);
/* The part of RANK: *LEN bytes at *BASE, which only that member may write: elsewhere a store is
 * SIGSEGV. NULL and 0: it has none. Does not block. SLMPM_EINVAL: no such rank. */
SLMPM_API int slmpm_group_part(slmpm_group_memory memory, int rank, void **base, uint64_t *len);
/* Gives it back at this member, which has nothing of it mapped any more; the others still have its
 * part, as long as they want. Does not block. SLMPM_EBUSY: an operation is under way. */
SLMPM_API int slmpm_group_free(slmpm_group_memory memory);
/*
 * A barrier that outlives members and deadlines: returns when all members have come to it, in an
 * order of its own beside the collective operations, whether the group is broken or not. A member
 * that has left (slmpm_group_destroy) is not waited for. One that has died, or whose context has
 * ended, ends at all members the one meeting that it had not come to yet (SLMPM_EDEAD), at once;
 * those after it are without it. SLMPM_ETIMEOUT, SLMPM_EAGAIN (TIMEOUT_MS is 0): this process has
 * come, and the next call goes on with the same meeting. SLMPM_EBUSY: another thread waits in it.
 * SLMPM_ESTATE: the caller is no member. Source: DaCS groups.
 */
SLMPM_API int slmpm_group_meet(slmpm_group group, int timeout_ms);

/* ---- Collective operations ------------------------------------------------------------------ */

enum slmpm_coll_kind {
	SLMPM_COLL_BARRIER = 1,
	SLMPM_COLL_BROADCAST = 2,
	SLMPM_COLL_REDUCE = 3,
	SLMPM_COLL_ALLREDUCE = 4,
	SLMPM_COLL_SCATTER = 5,
	SLMPM_COLL_GATHER = 6,
	SLMPM_COLL_ALLGATHER = 7,
	SLMPM_COLL_ALLTOALL = 8,
	SLMPM_COLL_REDUCE_SCATTER = 9,
	SLMPM_COLL_SCAN = 10,
	SLMPM_COLL_EXSCAN = 11
};

/*
 * An operation of the program's own: FUNCTION makes to[i] = left[i] OP right[i] of COUNT elements,
 * each WIDTH bytes long. OP is associative, and need not commute: it is done in the order of the
 * ranks. TO is LEFT, or RIGHT, or overlaps neither; all are aligned as the elements of an array are
 * that begins at a multiple of 16, or as the caller's own memory is. It calls nothing of the
 * library.
 */
struct slmpm_combine {
	uint32_t size;
	uint32_t flags; /* SLMPM_COLL_COMMUTES, SLMPM_COLL_SAFE */
	uint64_t width; /* up to SLMPM_COLL_WIDTH */
	void (*function)(void *to, const void *left, const void *right, uint64_t count, void *arg);
	void *arg;
};

#define SLMPM_COLL_WIDTH 65536

/* slmpm_combine.flags */
#define SLMPM_COLL_COMMUTES 1u /* any order will do */
/* It may be called by a thread of the library's: else in calls of the application's alone that make
 * progress, so that SLMPM_ENGINE=thread does not do it. */
#define SLMPM_COLL_SAFE     2u

/* from: what is there already is the contribution (MPI_IN_PLACE). */
#define SLMPM_IN_PLACE ((const void *)-1)

/*
 * What all members of a group do together, each with the same kind, type, op, root and count.
 * COUNT: elements of TYPE of a block. Where each member has a block of its own (SCATTER, GATHER,
 * ALLGATHER, ALLTOALL, REDUCE_SCATTER) the blocks lie one behind the other by rank, or, with
 * COUNTS, that of rank r has counts[r] elements at places[r] (places NULL: one behind the other);
 * for ALLTOALL COUNTS and PLACES are those of what is sent, TO_COUNTS and TO_PLACES of what comes.
 * A member that disagrees with the others gets SLMPM_EINVAL, and so do they: who, and in what. Of
 * roots that differ at the latest 32 operations later.
 *
 * With a TAG it matches the operation of that tag at the other members, in whatever order each
 * starts those that have tags, and in between those without. It is done once all have started it:
 * none of the others is held up by one that has not, but all with tags are done one after the
 * other. SLMPM_EBUSY: one of that tag is outstanding at this member; SLMPM_ELIMIT: SLMPM_COLL_TAGS
 * are that not all have started yet.
 */
struct slmpm_coll {
	uint32_t size;
	uint32_t kind;  /* enum slmpm_coll_kind */
	uint32_t type;  /* enum slmpm_type */
	uint32_t op;    /* REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN, EXSCAN: enum slmpm_calc_op */
	int32_t root;   /* BROADCAST, REDUCE, SCATTER, GATHER: the rank */
	uint32_t flags; /* zero, or SLMPM_EINVAL */
	const void *from;
	void *to; /* BROADCAST: to here at all but the root, which may leave it NULL */
	uint64_t count;
	const uint64_t *counts, *places, *to_counts, *to_places;
	const struct slmpm_combine *combine; /* in place of type and op, or NULL */
	uint32_t tag;                        /* 0: it matches those of the others by call order */
	uint32_t reserved;                   /* zero */
};

#define SLMPM_COLL_TAGS 64

/*
 * Does it and blocks until this process's part is done: its buffers are its own again. Operations
 * of one group without tags are in the order of the calls, the same at all members. Floating-point
 * reductions combine in the order of the ranks: all members have the same bits, in each run.
 * TIMEOUT_MS as of slmpm_send. SLMPM_ETIMEOUT, SLMPM_EDEAD, SLMPM_ECLOSED: the detail names the
 * member that was waited for, and the group is broken: all further calls, and those of a member
 * that is late, return that. SLMPM_EINVAL. With a tag it waits until all have started that: members
 * that block in those of two tags in different orders, or one in one without, wait for each other:
 * SLMPM_EINVAL, or, where a thread or a handler may still start what is missing, until a deadline.
 */
SLMPM_API int slmpm_collective(slmpm_group group, const struct slmpm_coll *coll, int timeout_ms);

/*
 * From the next operation on TEXT says what each member does in one of its kind, as many members
 * and bytes, between members that are connected by TCP (slmpm_plan(3)); a later text that fits goes
 * before it. They stay until the group goes, or TEXT is NULL. All members give, or take back, the
 * same between the same operations: else what such an operation ends with is SLMPM_EINVAL, or a
 * deadline. A group on one machine has no use for it. SLMPM_EINVAL: the text, with the line, the
 * rank and why its steps do not do what its kind says; SLMPM_EBUSY: an operation is under way;
 * SLMPM_ESTATE: the caller is no member; SLMPM_ELIMIT: more than 508 steps of a rank; SLMPM_ENOMEM.
 * Does not block.
 */
SLMPM_API int slmpm_group_plan(slmpm_group group, const char *text);

/*
 * The same without blocking: it goes on as the context makes progress, and ends by HOW, or by REQ,
 * as slmpm_sendv does; with neither it blocks, by how->timeout_ms. COLL and its arrays are copied,
 * its buffers are the caller's again at the completion: SLMPM_OP_COLLECTIVE, .stream is the kind,
 * .imm of an error the rank that it is about (UINT32_MAX: none). Those of one group without tags
 * are done in the order of the calls, blocking ones too; any number of them, of several groups in
 * any order. With a how->timeout_ms of more than 0 the group breaks where it has not ended by then,
 * and a group that breaks ends all of them. It cannot be taken back. The rest as slmpm_collective;
 * SLMPM_ENOMEM.
 */
SLMPM_API int slmpm_collective_start(slmpm_group group, const struct slmpm_coll *coll,
				     const struct slmpm_how *how, slmpm_req *req);

typedef struct {
	uint64_t id;
} slmpm_prepared; /* an operation of a group, which can be started again and again */

/*
 * Prepares COLL: it is checked and copied, its arrays too, and nothing has begun; the other members
 * need not do so. It ends with its group. As slmpm_collective_start; SLMPM_EBUSY: its last run has
 * not ended. Its buffers are the library's in each run alone.
 */
SLMPM_API int slmpm_collective_prepare(slmpm_prepared *prepared, slmpm_group group,
				       const struct slmpm_coll *coll);
SLMPM_API int slmpm_prepared_start(slmpm_prepared prepared, const struct slmpm_how *how,
				   slmpm_req *req);
/* SLMPM_EBUSY: as above. */
SLMPM_API int slmpm_prepared_destroy(slmpm_prepared prepared);

/* ---- At the behest of who has founded the group ---------------------------------------------- */

#define SLMPM_DRIVES 64 /* outstanding, of a group */

/* slmpm_drive.flags: SLMPM_IN_PLACE where the kind has it; `to` holds the contribution. */
#define SLMPM_DRIVE_IN_PLACE 1u

/* Each member's memory is named by its own references (slmpm_group_space): a space, and the offset
 * in it. A member that reads or writes nothing by one needs none. The rest as struct slmpm_coll. */
struct slmpm_drive {
	uint32_t size;
	uint32_t kind, type, op;
	int32_t root;
	uint32_t flags;
	uint32_t from_space, to_space;
	uint64_t from, to; /* offsets */
	uint64_t count;    /* elements of a block */
};

/*
 * All members of a group that this process has founded do DRIVE, by their progress or by their
 * engine's thread, with no call of their applications'. First each checks it: where one refuses it
 * none begins, and nothing has been moved. It ends when all have done it, by HOW, or by REQ, as
 * slmpm_collective_start does, with neither it blocks. Those of a group are done in the order of
 * the calls, SLMPM_DRIVES outstanding at most (SLMPM_ELIMIT). The connections by which the members
 * have joined must be up: SLMPM_ECLOSED, SLMPM_EDEAD. Refused: SLMPM_ESTATE: the member does not
 * serve; SLMPM_ENOENT: it has no such space; SLMPM_ELIMIT: that is too short, or completions are
 * not read; SLMPM_EINVAL: `from` and `to` overlap. SLMPM_ETIMEOUT: once it has begun the group is
 * broken. The detail names the rank, .imm of the completion, too. SLMPM_ESTATE: the caller has not
 * founded it, or it has been shrunk. Source: document 004 (row H13).
 */
SLMPM_API int slmpm_group_drive(slmpm_group group, const struct slmpm_drive *drive,
				const struct slmpm_how *how, slmpm_req *req);
/*
 * From now on who has founded the group may drive this member, and collective calls of its own are
 * SLMPM_ESTATE; HOW NULL: no longer. A founder that is a member serves as well. Each driven
 * operation that has begun ends by how->cq or how->ctr, if there is one: SLMPM_OP_COLLECTIVE,
 * .cookie is how->cookie, .stream the kind, .imm the driver's how->imm. Does not block.
 * SLMPM_EBUSY: an operation is under way; SLMPM_ESTATE: the caller is no member.
 */
SLMPM_API int slmpm_group_serve(slmpm_group group, const struct slmpm_how *how);

/* ---- What they wait for ---------------------------------------------------------------------- */

#define SLMPM_SHOWN_OPERATIONS 8  /* of a group: operations under way, ... */
#define SLMPM_SHOWN_MEMBERS    64 /* ... and members, that are shown */

/* slmpm_shown_operation.kind, beside enum slmpm_coll_kind */
#define SLMPM_SHOWN_MEET   256u /* slmpm_group_meet */
#define SLMPM_SHOWN_SHRINK 257u /* slmpm_group_shrink */

struct slmpm_shown_operation { /* it has begun, or waits for its turn */
	uint64_t number;       /* from 1 on; of a meeting among these; of a shrink, a tag: 0 */
	uint64_t since_ns;     /* CLOCK_MONOTONIC: when it was seen first, some ms late */
	uint32_t kind;
	uint32_t tag; /* or 0 */
};

/* slmpm_shown_member.flags */
#define SLMPM_SHOWN_LEFT      1u /* it has left the group */
#define SLMPM_SHOWN_DEAD      2u /* its process has ended */
#define SLMPM_SHOWN_CONNECTED 4u /* of a group with .apart: by a connection that stands */
/* Likewise: it has said that it waits itself, in operation .present, for rank .length in the end */
#define SLMPM_SHOWN_WAITS     8u

struct slmpm_shown_member {
	uint32_t rank, flags;
	int32_t pid;      /* as the process knows it; 0: it does not */
	uint32_t kind;    /* of the last operation that it has begun; 0: not known */
	uint64_t step;    /* number of that; with .apart messages of it, and operations in memory */
	uint64_t present; /* of its contribution to that: bytes that are there for others, ... */
	uint64_t length;  /* ... of these; 0: it lies in one line, or there is none */
	uint64_t since_ns; /* it is waited for: since it was seen to go on; 0: it is not */
	char host[64];     /* where it listens; "": it is on this machine */
};

struct slmpm_group_shown { /* fields beyond .size count as zero */
	uint32_t size;
	uint32_t tag;
	uint64_t group;    /* its handle in that process */
	uint64_t taken_ns; /* CLOCK_MONOTONIC */
	/* As in struct slmpm_group_info. */
	int32_t rank;
	uint32_t members;
	int32_t status, culprit;
	uint64_t begun, done, generation;
	uint32_t apart;           /* 1: its members are connected by TCP */
	uint32_t under_way;       /* operations, a meeting and a shrink among them; ... */
	uint32_t operation_count; /* ... of these the first ones follow, in order */
	uint32_t waiting;         /* members that are waited for; ... */
	uint32_t member_count;    /* ... they come first, then the others, both by rank */
	uint32_t algorithm;       /* of the operation that has begun last, likewise */
	struct slmpm_shown_operation operation[SLMPM_SHOWN_OPERATIONS];
	struct slmpm_shown_member member[SLMPM_SHOWN_MEMBERS];
};

/*
 * Group I, from 0, of process PID, which is this user's, in no order: as it was when that last
 * waited or made progress, some ms ago while it does. Operations that end without a wait cost
 * nothing for it, and show when one waits. SLMPM_ENOENT: behind the last one; SLMPM_EVERSION: its
 * library shows them otherwise; SLMPM_EAGAIN: they changed all the time. Does not block.
 */
SLMPM_API int slmpm_groups_read(int pid, int i, struct slmpm_group_shown *group, size_t size);

/* ---- By name --------------------------------------------------------------------------------- */

/* Blocking ones by name. */
SLMPM_API inline int slmpm_collect(slmpm_group group, uint32_t kind, const void *from, void *to,
				   uint64_t count, uint32_t type, uint32_t op, int root,
				   int timeout_ms)
{
	struct slmpm_coll c;

	/* Words of zeros apart from what is set: a processor loads at once what one store has stored. */
	__builtin_memset(&c.from, 0, sizeof c - __builtin_offsetof(struct slmpm_coll, from));
	c.size = sizeof c;
	c.kind = kind;
	c.type = type;
	c.op = op;
	c.root = root;
	c.flags = 0;
	c.from = from;
	c.to = to;
	c.count = count;
	return slmpm_collective(group, &c, timeout_ms);
}

SLMPM_API inline int slmpm_barrier(slmpm_group group, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_BARRIER, NULL, NULL, 0, 0, 0, 0, timeout_ms);
}

/* BUFFER is read at the root and written at the others. */
SLMPM_API inline int slmpm_broadcast(slmpm_group group, void *buffer, uint64_t count, uint32_t type,
				     int root, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_BROADCAST, buffer, buffer, count, type, 0, root,
			     timeout_ms);
}

/* TO: at the root alone. */
SLMPM_API inline int slmpm_reduce(slmpm_group group, const void *from, void *to, uint64_t count,
				  uint32_t type, uint32_t op, int root, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_REDUCE, from, to, count, type, op, root, timeout_ms);
}

SLMPM_API inline int slmpm_allreduce(slmpm_group group, const void *from, void *to, uint64_t count,
				     uint32_t type, uint32_t op, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_ALLREDUCE, from, to, count, type, op, 0, timeout_ms);
}

/* FROM: at the root alone. */
SLMPM_API inline int slmpm_scatter(slmpm_group group, const void *from, void *to, uint64_t count,
				   uint32_t type, int root, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_SCATTER, from, to, count, type, 0, root, timeout_ms);
}

/* TO: at the root alone. */
SLMPM_API inline int slmpm_gather(slmpm_group group, const void *from, void *to, uint64_t count,
				  uint32_t type, int root, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_GATHER, from, to, count, type, 0, root, timeout_ms);
}

SLMPM_API inline int slmpm_allgather(slmpm_group group, const void *from, void *to, uint64_t count,
				     uint32_t type, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_ALLGATHER, from, to, count, type, 0, 0, timeout_ms);
}

SLMPM_API inline int slmpm_alltoall(slmpm_group group, const void *from, void *to, uint64_t count,
				    uint32_t type, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_ALLTOALL, from, to, count, type, 0, 0, timeout_ms);
}

/* COUNT: of one block of the result. */
SLMPM_API inline int slmpm_reduce_scatter(slmpm_group group, const void *from, void *to,
					  uint64_t count, uint32_t type, uint32_t op,
					  int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_REDUCE_SCATTER, from, to, count, type, op, 0,
			     timeout_ms);
}

/* Of all ranks up to this one. */
SLMPM_API inline int slmpm_scan(slmpm_group group, const void *from, void *to, uint64_t count,
				uint32_t type, uint32_t op, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_SCAN, from, to, count, type, op, 0, timeout_ms);
}

/* Of all ranks below this one; at rank 0 TO stays as it is. */
SLMPM_API inline int slmpm_exscan(slmpm_group group, const void *from, void *to, uint64_t count,
				  uint32_t type, uint32_t op, int timeout_ms)
{
	return slmpm_collect(group, SLMPM_COLL_EXSCAN, from, to, count, type, op, 0, timeout_ms);
}

#ifdef __cplusplus
}
#endif

#endif
