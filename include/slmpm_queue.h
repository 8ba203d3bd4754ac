/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion targets of operations other than the call: counters and completion queues; and
 * work queues, which begin operations in order. A part of <slmpm.h>.
 */
#ifndef SLMPM_API_QUEUE_H
#define SLMPM_API_QUEUE_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Counters and completion queues --------------------------------------------------------- */

#define SLMPM_ALL UINT64_C(0xffffffffffffffff) /* slmpm_ctr_wait: as many as are posted */

struct slmpm_ctr_info {
	uint32_t size;
	int32_t status;                /* of the first operation that failed, or 0 */
	uint64_t posted, done, failed; /* operations; failed ones are done, too */
};

/* A counter of operations whose how->ctr names it (DaCS: a wid, libfabric: a counter). */
SLMPM_API int slmpm_ctr_create(slmpm_ctx ctx, slmpm_ctr *ctr);
/* Blocks until VALUE operations in all are done; SLMPM_ALL: all posted so far. 0, or the status
 * of the first that failed, which is then forgotten. SLMPM_ETIMEOUT; SLMPM_ECLOSED: nothing is
 * under way, no peer is left that could do more, and all entries of work queues have ended. */
SLMPM_API int slmpm_ctr_wait(slmpm_ctr ctr, uint64_t value, int timeout_ms);
/* The counts now, without progress: cheap. */
SLMPM_API int slmpm_ctr_query(slmpm_ctr ctr, struct slmpm_ctr_info *info);
/* SLMPM_EBUSY while operations are under way, or a region or a work queue names it. Who was given
 * it by slmpm_ctr_mem counts no more. */
SLMPM_API int slmpm_ctr_destroy(slmpm_ctr ctr);
/*
 * CTR as a region of one 64-bit word, to be given to peers by slmpm_mem_key or slmpm_mem_share with
 * the access SLMPM_COUNT, and to be taken back by slmpm_mem_revoke; always the same, and gone with
 * the counter. A peer that has opened it names it in work requests (slmpm_wr.rctr), or changes
 * `done` by slmpm_atomic: so much is then posted and done, too. It reads and writes nothing else.
 */
SLMPM_API int slmpm_ctr_mem(slmpm_ctr ctr, slmpm_mem *mem);

/* A queue of completions: of operations whose how->cq names it, and of notifications. It holds as
 * many as there are; what peers may add is bounded by their credit, given back when polled. */
SLMPM_API int slmpm_cq_create(slmpm_ctx ctx, slmpm_cq *cq);
/* Takes up to N completions, in the order in which they came; makes progress when there are none.
 * Their number, 0 when there are none. Does not block. */
SLMPM_API int slmpm_cq_poll(slmpm_cq cq, struct slmpm_done *done, int n);
/* The same, waiting for the first. SLMPM_ETIMEOUT; SLMPM_ECLOSED as of a counter. */
SLMPM_API int slmpm_cq_wait(slmpm_cq cq, struct slmpm_done *done, int n, int timeout_ms);
/* SLMPM_EBUSY while operations are under way, or a region or a work queue names it; what was not
 * polled is dropped. */
SLMPM_API int slmpm_cq_destroy(slmpm_cq cq);

struct slmpm_cq_info {
	uint32_t size;
	uint32_t reserved;     /* zero */
	uint64_t total, taken; /* completions that have come; of them, polled */
};

/* The totals now, without progress: cheap. */
SLMPM_API int slmpm_cq_query(slmpm_cq cq, struct slmpm_cq_info *info);

/* ---- Calculations --------------------------------------------------------------------------- */

#define SLMPM_CALC_ARGS_MAX    64 /* arguments of one calculation, at most */
#define SLMPM_CALC_TARGETS_MAX 16 /* targets, at most */

/* Integers wrap around. The logical ones take all but 0 for true (NaN, too) and make 0 or 1. */
enum slmpm_calc_op {
	SLMPM_CALC_SUM = 1,
	SLMPM_CALC_PRODUCT = 2,
	SLMPM_CALC_MIN = 3, /* -0 is less than +0, and a NaN wins only where all are NaN: */
	SLMPM_CALC_MAX = 4, /* C's fminimum_num and fmaximum_num */
	SLMPM_CALC_AND = 5, /* bitwise, of integers only; OR and XOR likewise */
	SLMPM_CALC_OR = 6,
	SLMPM_CALC_XOR = 7,
	SLMPM_CALC_LAND = 8, /* logical; LOR and LXOR likewise */
	SLMPM_CALC_LOR = 9,
	SLMPM_CALC_LXOR = 10
};

enum slmpm_type {
	SLMPM_INT8 = 1,
	SLMPM_INT16 = 2,
	SLMPM_INT32 = 3,
	SLMPM_INT64 = 4,
	SLMPM_UINT8 = 5,
	SLMPM_UINT16 = 6,
	SLMPM_UINT32 = 7,
	SLMPM_UINT64 = 8,
	SLMPM_FLOAT = 9,  /* IEEE binary32 */
	SLMPM_DOUBLE = 10 /* IEEE binary64 */
};

/* operand.flags: the order of its bytes, and of those of its indices; neither: this process's. */
#define SLMPM_OPERAND_BIG_ENDIAN    1u
#define SLMPM_OPERAND_LITTLE_ENDIAN 2u

/* An argument or a target of a calculation, in this process's memory, aligned or not; or a target
 * in a peer's, or an argument that is a message. Arrays of them keep their stride: what later
 * releases add lies in `reserved`. */
struct slmpm_operand {
	void *at; /* its first element; of an argument it is read only; of those others: NULL */
	/* Bytes from element to element in each dimension, also negative; of an argument also 0: the
	 * same element again. All 0: without gaps, those of the last dimension side by side. */
	int64_t stride[3];
	uint32_t flags;       /* SLMPM_OPERAND_* */
	uint32_t stream;      /* of a message */
	uint32_t reserved[2]; /* zero, or SLMPM_EINVAL */
	/* MIN and MAX only. An argument has an index, or `indices`: one for each element, without gaps
	 * in the order of the elements, as an earlier calculation wrote them. A target's `indices`:
	 * where the index of each winner goes, or NULL. Of equal elements the lowest index wins. */
	uint64_t index;
	uint64_t *indices;
	/* A target in a peer's region, from byte `offset` on, without gaps and indices. */
	slmpm_rmem rmem;
	uint64_t offset;
	/* An argument: the next message of `peer`, or any, on `stream`, or any; or of the receive queue
	 * `wq`, one of whose entries it is if that is MANAGED. Its bytes are the elements, without
	 * gaps, read where they lie. */
	slmpm_peer peer;
	slmpm_wq wq;
};

/*
 * Each element of each target becomes ((a0 OP a1) OP a2)... of the elements in its place in the
 * arguments, in their order: floating-point sums are the same each time. Of one argument it is that
 * argument; logical, 0 or 1. A target may be an argument, at the same address by the same strides.
 * SLMPM_EINVAL: it overlaps an argument otherwise, or another target, or its own elements do. Each
 * stride of a target goes over all that lies within its dimension; where the strides of two
 * operands differ, all from the first to the last byte of each counts. The arrays are copied; the
 * memory that operands name is the caller's again when the calculation is done. Source:
 * cross-channel offload document, row X2.
 */
struct slmpm_calc {
	uint32_t size;
	uint32_t op;       /* enum slmpm_calc_op */
	uint32_t type;     /* enum slmpm_type: of all its elements */
	uint32_t reserved; /* zero, or SLMPM_EINVAL */
	uint64_t count[3]; /* elements in each dimension; 0 is 1: {n} is a vector, {0} a scalar */
	const struct slmpm_operand *args, *targets;
	int32_t arg_count, target_count; /* from 1; SLMPM_ELIMIT: over SLMPM_CALC_*_MAX */
};

/* ---- Work queues ---------------------------------------------------------------------------- */

/* options.flags: requests that need no answer get none; errors at the target are counted there. */
#define SLMPM_WQ_UNACKNOWLEDGED 1u
/* Entries begin only once they are enabled: by SLMPM_OP_ENABLE or slmpm_wq_enable. */
#define SLMPM_WQ_MANAGED        2u
/* Entries that are done stay, as a program that slmpm_wq_arm runs again. */
#define SLMPM_WQ_KEPT           4u
/* A receive queue: its entries are receives of options.peer's options.stream, in their order. One
 * that is MANAGED as well refuses the peer's messages (SLMPM_EDISABLED) whose entry is disabled; of
 * slmpm_any, all peers share its entries, and a send waits until one is reserved for it. */
#define SLMPM_WQ_RECEIVE        8u
/* SEND, AM, PUT by packets and a PIPE's messages that ask for no link are divided over those of
 * their peer that stand (SLMPM_LINKS): each by that by which least of the queue is under way. */
#define SLMPM_WQ_SPREAD         16u

struct slmpm_wq_options {
	uint32_t size;
	uint32_t flags;
	uint32_t depth;    /* entries at once; 0: 256; SLMPM_ELIMIT: over 65536 */
	uint32_t channels; /* 0: 64; SLMPM_ELIMIT: over 65536 */
	slmpm_cq cq;       /* where its completions go */
	slmpm_ctr ctr;   /* counts the ends of entries that name none: queues with one counter are a
			      group; {0}: none */
	slmpm_peer peer; /* RECEIVE: the peer, or slmpm_any */
	uint32_t stream; /* RECEIVE: SLMPM_ANY_STREAM unless it is MANAGED */
	uint32_t reserved; /* zero, or SLMPM_EINVAL */
};

/* The totals of a queue's entries, never reset. Entries are numbered from 1 as they are posted. */
enum slmpm_wq_index {
	SLMPM_WQ_POSTED = 1,
	SLMPM_WQ_ENABLED = 2, /* may begin: as many as are posted, unless the queue is MANAGED */
	SLMPM_WQ_BEGUN = 3,
	SLMPM_WQ_DONE = 4 /* without failure */
};

/* slmpm_wr.flags, WAIT, ENABLE, COUNT: `value` is not where the total is to be, but how much more:
 * for a WAIT beyond what earlier such WAITs of its queue on the same total have taken, counted from
 * where that total was when the first of them was posted. What would be beyond the greatest value
 * is that. */
#define SLMPM_RELATIVE (1u << 16)

/* A work request. All of an array have one size. What its operation does not have, as said here, is
 * zero, or it is refused: SLMPM_EINVAL, the detail names the member. */
struct slmpm_wr {
	uint32_t size;    /* sizeof(struct slmpm_wr) */
	uint32_t op;      /* enum slmpm_op: SEND RECV PUT GET ATOMIC AM WAIT ENABLE COUNT
			     CALC PIPE */
	uint32_t flags;   /* SLMPM_MORE FENCE BARRIER REMOTE NOTIFY SILENT RELATIVE VIA ON_LINK
			     STRICT */
	uint32_t channel; /* within which order holds: below options.channels */
	uint64_t cookie;  /* in its completion */
	slmpm_peer peer;  /* SEND, AM, RECV: or slmpm_peer_at; PIPE; RECV: or slmpm_any; PUT, GET,
			     ATOMIC: {0}, or as the region's peer is addressed */
	uint32_t stream;  /* SEND, RECV, PIPE; AM: the handler's number */
	uint32_t imm;     /* SEND; PUT: with its notification */
	const struct slmpm_iov *iov; /* pieces here, PIPE: buffers; the array is copied: not ATOMIC,
				      WAIT, ENABLE, COUNT, CALC */
	int32_t iov_count;
	uint32_t head_len; /* AM */
	const void *head;
	slmpm_rmem rmem; /* PUT, GET, ATOMIC */
	uint64_t offset; /* likewise */
	uint32_t atomic; /* ATOMIC: enum slmpm_atomic_op */
	uint32_t bits;   /* these, too */
	uint64_t operand, compare;
	void *old;
	slmpm_ctr ctr;  /* WAIT: until its `done` is `value`; COUNT: that it sets; others: that
			       counts the end, too */
	slmpm_cq cq;    /* WAIT: until so many completions have come to it */
	slmpm_wq wq;    /* WAIT: until its `index` is there; ENABLE: entries up to `value`; PIPE:
			       a receive queue, instead of `from` */
	uint32_t index; /* WAIT on a queue: enum slmpm_wq_index */
	int32_t timeout_ms;   /* WAIT: from when its turn has come; 0, -1: none. SEND: so long it
			       waits for a receive entry that is disabled; 0: not at all, -1: for
			       ever. SLMPM_EINVAL: less than that */
	uint64_t value;       /* WAIT, ENABLE, COUNT; PIPE: how many messages */
	slmpm_peer from;      /* PIPE: whence they come; or slmpm_any ... */
	uint32_t from_stream; /* ... and on which stream, or SLMPM_ANY_STREAM */
	uint32_t reserved;    /* zero, or SLMPM_EINVAL */
	/* CALC: copied, with its arrays; what the operands point to stays as it is until its end. */
	const struct slmpm_calc *calc;
	/* A counter of a peer's (slmpm_ctr_mem). COUNT: that it sets, instead of `ctr`; SEND, PUT, GET,
	 * ATOMIC, AM: of the same peer, one more when it is done there, which is then its end. */
	slmpm_rmem rctr;
};

/*
 * A handle of the peer that listens at URL, as of slmpm_connect, connected or not. Work requests
 * name it: SEND, AM and RECV. When the turn of such a one comes and there is no connection, one is
 * made in the background, while the entry waits; it fails as slmpm_connect does, within
 * SLMPM_HANDSHAKE_MS. The completion names the connection's handle, or this one where there is none
 * (slmpm_peer_at_query says why). SLMPM_CONNECTIONS of them stand at once, connecting and closing
 * ones among them: beyond, those are closed first that were not used for longest, of those with
 * which nothing is under way, posted, unread, held or open; if there is none, the entry waits. The
 * handles of connections end with them by themselves. Other calls do not take it (SLMPM_EHANDLE)
 * but slmpm_close: it closes the connection, and SLMPM_EBUSY: entries name it. SLMPM_EADDRESS.
 * Does not block. Source: row X6; libfabric's address vectors, dynamically connected transports.
 */
SLMPM_API int slmpm_peer_at(slmpm_peer *peer, slmpm_ctx ctx, const char *url);

struct slmpm_peer_at_info {
	uint32_t size;
	int32_t status;    /* why the last connection could not be made, or has ended; or 0 */
	slmpm_peer peer;   /* its connection; {0}: none */
	uint64_t connects; /* connections so far */
	char url[320];     /* without the secret */
	char reason[256];  /* of status */
};

/* What is known of a peer of slmpm_peer_at. Set info->size. SLMPM_EINVAL: of another peer. Does not
 * block. */
SLMPM_API int slmpm_peer_at_query(slmpm_peer peer, struct slmpm_peer_at_info *info);

struct slmpm_wq_info {
	uint32_t size;
	int32_t status;                        /* of the first entry that failed, or 0 */
	uint64_t posted, enabled, begun, done; /* enum slmpm_wq_index */
	uint64_t failed;                       /* as well as those behind one that failed */
	uint64_t first_failed;                 /* the number of that entry, or 0 */
	uint64_t by_engine;                    /* begun by the engine's thread */
	uint32_t channel;                      /* of that entry */
	uint32_t waiting;                      /* channels that stand at a WAIT */
	/* SPREAD: bytes that have gone by each link of those that it was divided over. */
	uint64_t by_link[SLMPM_LINK_ROOM];
};

/*
 * A queue of entries, each a work request with a completion in options->cq. Entries of one channel
 * begin in their order, end in their order, and each sees what those before it did: a message
 * behind a put finds it there. Between channels there is no order. A WAIT ends when a total of the
 * same context has come so far, and holds back its channel alone; ENABLE, COUNT and CALC act when
 * all before them in their channel are done. A receive begins in its turn, too, and nothing waits
 * for its end. A put is done when the target has it or refused it, unless the queue is
 * UNACKNOWLEDGED.
 *
 * An entry that fails stops its channel: those behind it end as SLMPM_ECANCELED, `len` being its
 * number (of one that was cancelled itself: 0), and none can be posted until slmpm_wq_reset.
 * Source: the queue pairs of channel adapters, the managed queues of cross-channel offload (rows
 * B4, X1, X3, X6).
 */
SLMPM_API int slmpm_wq_create(slmpm_ctx ctx, const struct slmpm_wq_options *options, slmpm_wq *wq);
/* Posts N work requests; how many were taken: fewer when the queue is full (none: SLMPM_EAGAIN)
 * or one is wrong (its error, when it is the first). One that turns out wrong when those before
 * it are done ends as a completion. Does not block. */
SLMPM_API int slmpm_post(slmpm_wq wq, const struct slmpm_wr *wr, int n);
/* Entries of a MANAGED queue up to number INDEX may begin; they may be yet to be posted. */
SLMPM_API int slmpm_wq_enable(slmpm_wq wq, uint64_t index);
/* The totals now, without progress: cheap. */
SLMPM_API int slmpm_wq_query(slmpm_wq wq, struct slmpm_wq_info *info);
/* Entry NUMBER, or with 0 all, fails as SLMPM_ECANCELED, which stops its channel: at once where it
 * has begun, else in its turn. SLMPM_EBUSY: it has gone too far; SLMPM_EINVAL: there is none. */
SLMPM_API int slmpm_wq_cancel(slmpm_wq wq, uint64_t number);
/* Blocks until all entries have ended: 0, or the status of one that failed. SLMPM_ETIMEOUT. */
SLMPM_API int slmpm_wq_drain(slmpm_wq wq, int timeout_ms);
/* Runs the entries of a KEPT queue once more, numbered on. SLMPM_EBUSY while one has not ended. */
SLMPM_API int slmpm_wq_arm(slmpm_wq wq);
/* Cancels all entries, drops those that are kept, and lets channels that stopped go on; totals
 * stay. SLMPM_EBUSY: some have gone too far; once they have ended it succeeds. */
SLMPM_API int slmpm_wq_reset(slmpm_wq wq);
/* The same, and the queue is gone. SLMPM_EBUSY likewise, or while another queue's entries name
 * it. */
SLMPM_API int slmpm_wq_destroy(slmpm_wq wq);

/* ---- Programs ------------------------------------------------------------------------------- */

/*
 * Posts N work requests, each to its own of QUEUES, all of one context: all or none. 0, or as of
 * slmpm_post; the detail names the entry, from 0. The program is closed: it declares that, but for
 * messages and the ends of its operations, nothing moves the totals that it waits for but itself
 * and what is pending in queues that it names. SLMPM_EINVAL: so its first entry that the detail
 * names can never run.
 */
SLMPM_API int slmpm_program_post(const slmpm_wq *queues, const struct slmpm_wr *wr, int n);

/* What a name in the text of a program stands for. */
enum slmpm_name_kind {
	SLMPM_NAME_PEER = 1,
	SLMPM_NAME_RMEM = 2,
	SLMPM_NAME_CTR = 3,
	SLMPM_NAME_CQ = 4,
	SLMPM_NAME_WQ = 5,
	SLMPM_NAME_MEMORY = 6
};

struct slmpm_name {
	const char *name;  /* letters, digits, _ - . */
	uint32_t kind;     /* enum slmpm_name_kind */
	uint32_t reserved; /* zero */
	uint64_t id;       /* of a handle: its .id */
	void *base;        /* MEMORY */
	size_t len;
};

/* slmpm_wq_load: the program is closed, as of slmpm_program_post. */
#define SLMPM_PROGRAM_CLOSED 1u
/* slmpm_wq_dump: as a graph, for Graphviz. */
#define SLMPM_PROGRAM_GRAPH  2u

/*
 * What has not begun in N queues, and all that a KEPT one keeps, as a text: an entry a line, in the
 * words of slmpm_program(3); of several queues each begins with a line "queue NAME". Into BUF, of
 * SIZE bytes, as much as there is room for, and always a zero behind it: how long all of it is.
 */
SLMPM_API int64_t slmpm_wq_dump(const slmpm_wq *queues, int n, const struct slmpm_name *names,
				int count, uint32_t flags, char *buf, size_t size);
/* Posts the entries of such a text, all or none: to WQ, and from a line "queue NAME" on to that.
 * Their number. SLMPM_EINVAL: the detail names the line and the word. */
SLMPM_API int slmpm_wq_load(slmpm_wq wq, const char *text, const struct slmpm_name *names,
			    int count, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
