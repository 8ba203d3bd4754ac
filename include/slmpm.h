/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMPM: messages and memory between a host process and its accelerator processes.
 *
 * Read this page from the top: errors, handles, contexts, elements, peers, messages and loans are
 * what every program needs. Then, as needed: counters and completion queues, memory regions and
 * one-sided operations, active messages, work queues, and what can be looked at. doc/man has a page
 * for each family.
 *
 * Rules that hold for every call
 *  - Returns >= 0, or a negative -SLMPM_E*; slmpm_error_detail() then says why and who.
 *  - A handle is {index, generation}. A zero, stale or foreign one is -SLMPM_EHANDLE, never a
 *    crash. {0} as a context means the calling thread's default one, opened at first use.
 *  - timeout_ms: 0 tries once, -1 sets no deadline. A call without a deadline still ends when the
 *    peer dies or closes.
 *  - A buffer is the caller's again when the call returns, or, where a request handle was asked
 *    for, when that request is reported done.
 *  - Threads: a context belongs to one thread at a time. Opened with SLMPM_THREADS any number of
 *    threads may use it at once; one of those that wait then polls for all.
 *  - After fork the child's handles answer -SLMPM_EFORKED; it may open contexts of its own.
 *  - No signal handler, no thread, no exit hook is ever installed behind the caller's back; a
 *    thread comes with SLMPM_ENGINE=thread alone.
 *
 * Caveats
 *  - What slmpm_hold points at can be changed by a hostile peer while it is read, and so can a
 *    region that a peer may write, until it is revoked; copy first what decides anything.
 *  - A loan inside a packet lies in the peer's memory: write to it, do not read it back.
 *  - Options structures begin with their size: set .size = sizeof the structure.
 */
#ifndef SLMPM_H
#define SLMPM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLMPM_VERSION_MAJOR 0
#define SLMPM_VERSION_MINOR 1
#define SLMPM_VERSION_PATCH 0

#define SLMPM_API __attribute__((visibility("default")))

/* ---- Errors --------------------------------------------------------------------------------- */

/* X(name, number, text). Numbers are stable; calls return their negative. */
#define SLMPM_ERRORS(X)                                                                            \
	X(EINVAL, 1, "invalid argument")                                                           \
	X(EHANDLE, 2, "no such handle")                                                            \
	X(EFORKED, 3, "handle of the parent process, used after fork")                             \
	X(EAGAIN, 4, "not now")                                                                    \
	X(ETIMEOUT, 5, "deadline passed")                                                          \
	X(EDEAD, 6, "peer died")                                                                   \
	X(ECLOSED, 7, "peer closed the connection")                                                \
	X(EPROTO, 8, "peer broke the protocol, its channel is shut")                               \
	X(EVERSION, 9, "peer speaks another version")                                              \
	X(ETRUNC, 10, "message longer than the buffer")                                            \
	X(ECANCELED, 11, "canceled")                                                               \
	X(ENOMEM, 12, "out of memory")                                                             \
	X(ENOFILE, 13, "out of file descriptors")                                                  \
	X(EFBIG, 14, "over the file-size limit")                                                   \
	X(EACCES, 15, "permission denied")                                                         \
	X(ENOENT, 16, "not found")                                                                 \
	X(EBUSY, 17, "in use")                                                                     \
	X(ELIMIT, 18, "over a limit")                                                              \
	X(ECHECKSUM, 19, "payload damaged, checksum differs")                                      \
	X(ENOTSUP, 20, "not supported here")                                                       \
	X(ESYSTEM, 21, "system call failed")                                                       \
	X(ESTATE, 22, "not possible in this state")                                                \
	X(EADDRESS, 23, "address not understood")                                                  \
	X(ENOEXEC, 24, "program cannot be started")

enum slmpm_error {
	SLMPM_OK = 0,
#define SLMPM_ERROR_ENUM(name, number, text) SLMPM_##name = number,
	SLMPM_ERRORS(SLMPM_ERROR_ENUM)
#undef SLMPM_ERROR_ENUM
		SLMPM_ERROR_COUNT = 25
};

/* Text of a code, either sign; never NULL. Thread-safe. */
SLMPM_API const char *slmpm_strerror(int error);
/* What the calling thread's last failed call had to say: reason and peer. Never NULL; valid until
 * the thread's next failing call. */
SLMPM_API const char *slmpm_error_detail(void);
/* Prints "WHAT: detail" on standard error and returns 1, ready for `return slmpm_perror("x")`. */
SLMPM_API int slmpm_perror(const char *what);

/* ---- Handles -------------------------------------------------------------------------------- */

typedef struct {
	uint64_t id;
} slmpm_ctx; /* what one thread works with: its peers, requests, descriptor */
typedef struct {
	uint64_t id;
} slmpm_peer; /* an endpoint: another process as seen from a context */
typedef struct {
	uint64_t id;
} slmpm_req; /* an operation under way */
typedef struct {
	uint64_t id;
} slmpm_listener;
typedef struct {
	uint64_t id;
} slmpm_mem; /* a memory region of this process */
typedef struct {
	uint64_t id;
} slmpm_rmem; /* a peer's region, as far as its key goes */
typedef struct {
	uint64_t id;
} slmpm_ctr; /* a counter of completions */
typedef struct {
	uint64_t id;
} slmpm_cq; /* a completion queue */
typedef struct {
	uint64_t id;
} slmpm_wq; /* a work queue */

#define SLMPM_ANY_STREAM UINT32_C(0xffffffff) /* when receiving */
#define SLMPM_STREAM_MAX UINT32_C(0xfffffffe) /* highest stream of a send */
/* When receiving: any peer of CTX ({0}: the calling thread's default context). */
__attribute__((unused)) static inline slmpm_peer slmpm_any(slmpm_ctx ctx)
{
	slmpm_peer any = {ctx.id | UINT64_C(0x80000000)};
	return any;
}
#define SLMPM_MESSAGE_MAX (UINT64_C(8) << 30) /* bytes of one message: 8 GiB */

/* ---- Contexts ------------------------------------------------------------------------------- */

#define SLMPM_THREADS       1u /* options.flags: several threads use this context at once */
#define SLMPM_WAIT_ADAPTIVE 0u /* options.wait: spin briefly, yield, sleep */
#define SLMPM_WAIT_SPIN     1u /* never sleep */
#define SLMPM_WAIT_BLOCK    2u /* sleep at once */

struct slmpm_options {
	uint32_t size; /* sizeof(struct slmpm_options) */
	uint32_t flags;
	uint32_t wait;              /* SLMPM_WAIT_*; the environment's SLMPM_WAIT wins */
	uint32_t ring_segments;     /* of this side's inbound rings; 0: SLMPM_RING_SEGMENTS */
	uint32_t ring_segment_size; /* bytes; 0: SLMPM_SEGMENT_SIZE */
	uint32_t reserved;
};

/* Opens a context; OPTIONS may be NULL. Does not block. ENOMEM, ENOFILE, EINVAL (also a SLMPM_*
 * setting that cannot be read: the detail names it). Source: libfabric's domain, UCX's worker. */
SLMPM_API int slmpm_open(slmpm_ctx *ctx, const struct slmpm_options *options);
/* Closes every peer in order (see slmpm_close), then the context. Blocks up to TIMEOUT_MS for
 * what is still to be sent; what is not gone by then is lost and reported as ETIMEOUT. {0}: the
 * default context, if there is one. No other thread may be in a call of the context. */
SLMPM_API int slmpm_shut(slmpm_ctx ctx, int timeout_ms);
/* The calling thread's default context, opened when there is none yet. It ends with the thread,
 * unless it has peers, listeners or requests, which others may know: then it stays. */
SLMPM_API int slmpm_default(slmpm_ctx *ctx);

/* Does what can be done without waiting; returns the number of events handled. */
SLMPM_API int slmpm_progress(slmpm_ctx ctx);
/* One descriptor for select, poll or epoll; level-triggered. Readable once something happens
 * after slmpm_arm said 0. Belongs to the context: do not read, write or close it. */
SLMPM_API int slmpm_fd(slmpm_ctx ctx);
/* Before sleeping on the descriptor. 0: armed, sleep; 1: something has been handled since it was
 * last asked (by any call): look again at what you wait for. Any other call of the context
 * disarms it. */
SLMPM_API int slmpm_arm(slmpm_ctx ctx);

enum slmpm_event_type {
	SLMPM_EVENT_NONE = 0,
	SLMPM_EVENT_UP = 1,      /* connected */
	SLMPM_EVENT_SUSPECT = 2, /* does not react (stopped, debugged); not dead */
	SLMPM_EVENT_CLOSED = 3,  /* closed in order; what it sent can still be received */
	SLMPM_EVENT_DEAD = 4,    /* process gone or connection lost; likewise */
	SLMPM_EVENT_POISONED = 5 /* broke the protocol; its channel is shut */
};

struct slmpm_event {
	uint32_t size;
	uint32_t type; /* enum slmpm_event_type */
	slmpm_peer peer;
	int32_t error; /* the code that calls on this peer return from now on, or 0 */
	int32_t pid;
	uint64_t written; /* segments written to the peer, and read by it as far as known: */
	uint64_t read;    /* what lies between is in doubt after DEAD */
	char detail[160];
};

/* The next event of any peer of CTX: 1 and *EVENT filled, 0 when none came in time. */
SLMPM_API int slmpm_next_event(slmpm_ctx ctx, struct slmpm_event *event, int timeout_ms);

/* ---- Elements: what can be reserved, node-wide ---------------------------------------------- */

#define SLMPM_ELEMENT_HOST        1
#define SLMPM_ELEMENT_ACCELERATOR 3

/* Elements of TYPE that no live process holds. Their number is SLMPM_ELEMENTS (default 64).
 * The user DaCS calls this dacs_get_num_avail_children. */
SLMPM_API int slmpm_element_count(slmpm_ctx ctx, int type);
/* Reserves up to WANT elements exclusively on this node; returns how many were granted (0 too)
 * and their non-zero ids. The kernel frees those of a process that ends, however it ends. */
SLMPM_API int slmpm_element_reserve(slmpm_ctx ctx, int type, int want, uint32_t *ids);
/* Gives N of them back. EINVAL: one is not held here; then none is. */
SLMPM_API int slmpm_element_release(slmpm_ctx ctx, int n, const uint32_t *ids);

/* ---- Peers ---------------------------------------------------------------------------------- */

#define SLMPM_SPAWN_DIE_WITH_HOST 1u /* the accelerator is killed when this process ends */
#define SLMPM_SPAWN_CLEAN_ENV     2u /* envp is the whole environment, not an addition */

struct slmpm_spawn_options {
	uint32_t size;
	uint32_t flags;
	slmpm_ctx ctx;
	char *const *envp;   /* "NAME=value", NULL at the end; or NULL */
	const char *cwd;     /* working directory, or NULL for this process's */
	const char *wrapper; /* command template, %e executable, %a arguments; or NULL */
	uint32_t element;    /* id from slmpm_element_reserve that it runs on, or 0 */
	uint32_t reserved;
};

/*
 * Starts PROG (searched in PATH when it has no slash) with the arguments ARGV, which exclude
 * argv[0] and may be NULL, and connects to it. Returns when the program has been started; messages
 * wait until it has connected. ENOENT and ENOEXEC when it cannot be started: nothing runs then.
 * The accelerator calls slmpm_parent. OPTIONS may be NULL.
 */
SLMPM_API int slmpm_spawn(slmpm_peer *peer, const char *prog, char *const argv[],
			  const struct slmpm_spawn_options *options);
/* In a program that slmpm_spawn started: its host, in the default context. ESTATE elsewhere.
 * Blocks for the handshake, bounded by 5 s. The same handle each time. */
SLMPM_API int slmpm_parent(slmpm_peer *peer);
/* The same in a context of one's own; only the first call decides the context. */
SLMPM_API int slmpm_parent_in(slmpm_ctx ctx, slmpm_peer *peer);

/* Unrelated processes. URL: "shm:NAME" (an abstract socket of this user) or "shm:/path". EBUSY:
 * somebody listens there. Does not block. */
SLMPM_API int slmpm_listen(slmpm_listener *listener, slmpm_ctx ctx, const char *url);
/* The next that has connected, in the listener's context. */
SLMPM_API int slmpm_accept(slmpm_listener listener, slmpm_peer *peer, int timeout_ms);
/* No more connections; peers that were accepted stay. */
SLMPM_API int slmpm_unlisten(slmpm_listener listener);
/* Blocks for the handshake. ENOENT: nobody listens there; EACCES: another user does. */
SLMPM_API int slmpm_connect(slmpm_peer *peer, slmpm_ctx ctx, const char *url, int timeout_ms);

/*
 * Orderly end: sends what is queued, then end of stream; the peer reads everything before it sees
 * ECLOSED. Blocks up to TIMEOUT_MS for what is still to be sent, and until the peer reaches no
 * memory of slmpm_mem_register any more by itself (ETIMEOUT: it may). The handle is gone afterwards,
 * but that of a spawned process stays for slmpm_join. Open requests end with ECLOSED.
 */
SLMPM_API int slmpm_close(slmpm_peer peer, int timeout_ms);
/* Waits for a spawned process to end (closing first, if that was not done, once it has connected);
 * 0 and *STATUS as of waitpid(2), and the handle is gone. ETIMEOUT while it runs. STATUS may be
 * NULL; the return value then is the exit code (128 + signal number when a signal ended it).
 * ESTATE, and the handle is gone: somebody else's waitpid has taken the status. */
SLMPM_API int slmpm_join(slmpm_peer peer, int *status, int timeout_ms);
/* SIGTERM, after GRACE_MS SIGKILL (0: at once). Does not wait for the end: slmpm_join does. */
SLMPM_API int slmpm_kill(slmpm_peer peer, int grace_ms);

enum slmpm_peer_state {
	SLMPM_PEER_CONNECTING = 1,
	SLMPM_PEER_UP = 2,
	SLMPM_PEER_CLOSED = 3, /* either side closed */
	SLMPM_PEER_DEAD = 4,
	SLMPM_PEER_POISONED = 5
};

struct slmpm_peer_info {
	uint32_t size;
	uint32_t state; /* enum slmpm_peer_state */
	int32_t pid;
	uint32_t element;
	uint32_t big_endian; /* the peer's byte order */
	uint32_t packet_max; /* bytes of payload in one packet on the path */
	uint64_t eager_max;  /* longest message that may arrive before its receive is posted */
	uint64_t loan_max;   /* longest loan */
	char name[64];       /* for messages: "accelerator 3 (pid 1234)" */
};

/* What is known of PEER, also after its end. Does not block. */
SLMPM_API int slmpm_peer_query(slmpm_peer peer, struct slmpm_peer_info *info);

/* ---- Messages ------------------------------------------------------------------------------- */

struct slmpm_iov {
	void *base;
	size_t len;
};

/* slmpm_how.flags, slmpm_wr.flags */
#define SLMPM_MORE    1u   /* more follows at once: the message may wait for it, in this process */
#define SLMPM_PART    2u   /* slmpm_commit: this prefix is ready, the loan stays open */
#define SLMPM_FENCE   4u   /* one-sided: starts after all earlier ones to that peer */
#define SLMPM_BARRIER 8u   /* likewise, and all later ones after it */
#define SLMPM_REMOTE  16u  /* one-sided: done once the target's memory has it, not before */
#define SLMPM_NOTIFY  32u  /* put: a completion at the target, with imm (slmpm_mem_notify) */
#define SLMPM_SILENT  64u  /* work request: no completion unless it fails */
#define SLMPM_FIFO    128u /* put: into the target's reception FIFO (slmpm_fifo_take) */

/*
 * How an operation is done, and how its end is told: by the call itself, which then blocks; or,
 * without blocking, by a request handle where the call takes one, else counted by `ctr`, else
 * queued in `cq` with `cookie`. Only one of the three; ctr and cq belong to the peer's context.
 */
struct slmpm_how { /* NULL = defaults; fields beyond .size count as zero */
	uint32_t size;
	uint32_t flags;
	uint32_t imm;       /* travels with a message, and with a put's notification */
	int32_t timeout_ms; /* for a call that blocks; -1 none */
	slmpm_ctr ctr;
	slmpm_cq cq;
	uint64_t cookie;
};

enum slmpm_op {
	SLMPM_OP_SEND = 1,
	SLMPM_OP_RECV = 2,
	SLMPM_OP_PUT = 3,
	SLMPM_OP_GET = 4,
	SLMPM_OP_ATOMIC = 5,
	SLMPM_OP_AM = 6,
	SLMPM_OP_NOTIFY = 7, /* a peer's put with SLMPM_NOTIFY has landed here */
	SLMPM_OP_STORE = 8   /* slmpm_fifo_store */
};

/* A completion: how an operation ended. */
struct slmpm_done {
	uint64_t len;   /* bytes of the message, also when it did not fit */
	int32_t status; /* 0 or -SLMPM_E* */
	uint32_t stream;
	uint32_t imm;
	uint32_t flags; /* SLMPM_PART: a held message that is still growing */
	slmpm_peer peer;
	uint64_t cookie; /* how->cookie; of a notification: its offset in the region */
	uint32_t op;     /* enum slmpm_op */
	uint32_t reserved;
};

/*
 * Sends LEN bytes on STREAM. Messages of a peer arrive in the order sent; a receive takes the
 * first that matches. Up to the eager limit the call returns once the bytes are on their way, and
 * the peer gets them even if this process ends; a longer message waits for its receive.
 * ETIMEOUT: nothing was sent (the detail names a peer that does not react as suspect).
 */
SLMPM_API int slmpm_send(slmpm_peer peer, uint32_t stream, const void *buf, size_t len,
			 int timeout_ms);
/*
 * Receives the next message from PEER (or slmpm_any(ctx)) on STREAM (or SLMPM_ANY_STREAM) into
 * BUF; returns its length. ETRUNC: it was longer than CAP: done->len says how long, the first CAP
 * bytes are there, the rest is gone (slmpm_probe asks beforehand). DONE may be NULL.
 * ECLOSED, EDEAD: everything that the peer had sent has been read before.
 */
SLMPM_API int64_t slmpm_recv(slmpm_peer peer, uint32_t stream, void *buf, size_t cap,
			     struct slmpm_done *done, int timeout_ms);
/*
 * The general forms: N pieces gathered or scattered, HOW (or NULL) and a request. With REQ the
 * call never blocks, the pieces' memory (not the array IOV itself) stays the library's until the
 * request is done; REQ NULL blocks by how->timeout_ms. The receive returns the length as above.
 */
SLMPM_API int slmpm_sendv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
			  const struct slmpm_how *how, slmpm_req *req);
SLMPM_API int64_t slmpm_recvv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
			      const struct slmpm_how *how, slmpm_req *req);
/* Looks at the next matching message and leaves it: 1 and *DONE (its length too), 0 none in time. */
SLMPM_API int slmpm_probe(slmpm_peer peer, uint32_t stream, struct slmpm_done *done,
			  int timeout_ms);

/* 1 and *DONE when finished (the handle is freed and zeroed), 0 while under way. */
SLMPM_API int slmpm_test(slmpm_req *req, struct slmpm_done *done);
/* Waits for one of N requests (zeroed ones are skipped): its index; *DONE and the handle as in
 * slmpm_test. ETIMEOUT; EINVAL when all are zero. All belong to one context. */
SLMPM_API int slmpm_wait(slmpm_req *req, int n, struct slmpm_done *done, int timeout_ms);
/* Takes an operation back: 0 and it ends as ECANCELED, EBUSY when it has gone too far. */
SLMPM_API int slmpm_cancel(slmpm_req req);

/* ---- Loans: messages built and read in place ------------------------------------------------ */

/*
 * Memory for a message of up to LEN bytes to PEER, aligned to 32; one is open at a time and peer.
 * A short loan (up to packet_max) lies in the peer's ring, write only, and other blocking sends to
 * that peer are EBUSY while it is open. A longer one lies in an area that both map.
 */
SLMPM_API int slmpm_loan(slmpm_peer peer, uint32_t stream, size_t len, void **buf, int timeout_ms);
/* Sends the first LEN bytes of the loan; one in an area waits, by how->timeout_ms, for requests
 * sent before it, and stays open on ETIMEOUT. With SLMPM_PART they are ready for the peer to read
 * while the loan stays open for the rest (areas only; ENOTSUP inside a packet); a later LEN counts
 * from the loan's beginning too. */
SLMPM_API int slmpm_commit(slmpm_peer peer, void *buf, size_t len, const struct slmpm_how *how);
/* Gives the loan back unsent. ESTATE when a part of it has been committed. */
SLMPM_API int slmpm_abort(slmpm_peer peer, void *buf);
/*
 * The next matching message in place: *BUF points at it until slmpm_release. Returns its length so
 * far; done->flags has SLMPM_PART while the sender still adds to it (slmpm_more waits for that).
 * A message of several packets is handed out as a private copy, as is one while more than a
 * quarter of the ring is held. The ring comes back to the sender from the oldest on: one that is
 * held for long stops the sender once it has gone round.
 */
SLMPM_API int64_t slmpm_hold(slmpm_peer peer, uint32_t stream, const void **buf,
			     struct slmpm_done *done, int timeout_ms);
/* Waits until more than HAVE bytes of a held, growing message are ready: the new length; done->flags
 * tells whether it is complete. Returns HAVE at once when it is complete. */
SLMPM_API int64_t slmpm_more(slmpm_peer peer, const void *buf, uint64_t have,
			     struct slmpm_done *done, int timeout_ms);
/* Ends a hold: *BUF is not to be read any more. */
SLMPM_API int slmpm_release(slmpm_peer peer, const void *buf);

/* ---- Counters and completion queues --------------------------------------------------------- */

#define SLMPM_ALL UINT64_C(0xffffffffffffffff) /* slmpm_ctr_wait: as many as are posted */

struct slmpm_ctr_info {
	uint32_t size;
	int32_t status;                /* of the first operation that failed, or 0 */
	uint64_t posted, done, failed; /* operations; failed ones are done, too */
};

/* A counter of operations whose how->ctr names it (DaCS: a wid, libfabric: a counter). */
SLMPM_API int slmpm_ctr_create(slmpm_ctx ctx, slmpm_ctr *ctr);
/* Blocks until VALUE operations in all are done; SLMPM_ALL: all posted so far. 0, ETIMEOUT, or the
 * status of the first that failed, which is then forgotten. */
SLMPM_API int slmpm_ctr_wait(slmpm_ctr ctr, uint64_t value, int timeout_ms);
/* The counts now, without progress: cheap. */
SLMPM_API int slmpm_ctr_query(slmpm_ctr ctr, struct slmpm_ctr_info *info);
/* EBUSY while operations are under way or a region notifies it. */
SLMPM_API int slmpm_ctr_destroy(slmpm_ctr ctr);

/* A queue of completions: of operations whose how->cq names it, and of notifications. It holds as
 * many as there are; what peers may add is bounded by their credit, given back when polled. */
SLMPM_API int slmpm_cq_create(slmpm_ctx ctx, slmpm_cq *cq);
/* Takes up to N completions, in the order in which they came; makes progress when there are none.
 * Their number, 0 when there are none. Does not block. */
SLMPM_API int slmpm_cq_poll(slmpm_cq cq, struct slmpm_done *done, int n);
/* The same, waiting for the first. ETIMEOUT. */
SLMPM_API int slmpm_cq_wait(slmpm_cq cq, struct slmpm_done *done, int n, int timeout_ms);
/* EBUSY while operations are under way or a region notifies it; what was not polled is dropped. */
SLMPM_API int slmpm_cq_destroy(slmpm_cq cq);

/* ---- Memory regions ------------------------------------------------------------------------- */

#define SLMPM_READ       1u /* peers may get */
#define SLMPM_WRITE      2u /* peers may put */
#define SLMPM_READ_WRITE 3u /* and with both do atomic operations */

#define SLMPM_KEY_SIZE 64
struct slmpm_key { /* gives permission: 128 random bits and what they are for. Any byte order. */
	unsigned char bytes[SLMPM_KEY_SIZE];
};

/*
 * A region of SIZE new bytes, zeroed, page-aligned, at *BASE; ACCESS is the most that peers may be
 * given. Peers map it: puts and gets are then plain copies. What the mapping allows cannot be
 * checked any more: a peer that may write can also read, and may write at any time until it is
 * revoked. ENOMEM, EFBIG.
 */
SLMPM_API int slmpm_mem_alloc(slmpm_ctx ctx, size_t size, uint32_t access, slmpm_mem *mem,
			      void **base);
/* A region of memory that the application has, at any address; it must stay until destroyed. Where
 * the machine lets a process reach another's memory, transfers go directly; elsewhere each waits
 * for this process to make progress. */
SLMPM_API int slmpm_mem_register(slmpm_ctx ctx, void *base, size_t size, uint32_t access,
				 slmpm_mem *mem);
/*
 * A key for PEER and nobody else, giving ACCESS (within the region's). It can travel in a message
 * as it is. Each call makes a new one, which can be opened once. Waits for a peer that is still
 * connecting. EACCES, ELIMIT (SLMPM_KEYS a peer), EAGAIN (the peer has not looked at those before).
 */
SLMPM_API int slmpm_mem_key(slmpm_mem mem, slmpm_peer peer, uint32_t access, struct slmpm_key *key);
/* Opens what PEER gave the key to. EACCES: not this peer's key, used up, or revoked; EBUSY: it is
 * open already. Does not block. */
SLMPM_API int slmpm_mem_open(slmpm_peer peer, const struct slmpm_key *key, slmpm_rmem *rmem);
/* Key, message and open in one: gives PEER the access and waits until it has accepted. On ETIMEOUT
 * the offer is taken back. Source: DaCS. */
SLMPM_API int slmpm_mem_share(slmpm_mem mem, slmpm_peer peer, uint32_t access, int timeout_ms);
/* The next region that PEER shares, in its order. */
SLMPM_API int slmpm_mem_accept(slmpm_peer peer, slmpm_rmem *rmem, int timeout_ms);
/* The acceptor is through with it: the handle is gone, the owner is told. EBUSY while operations
 * are under way. */
SLMPM_API int slmpm_mem_release(slmpm_rmem rmem);
/*
 * Takes back what PEER was given: when this returns nothing it does reaches the region any more.
 * Of an allocated region the pages are exchanged, not to be written here meanwhile; other peers
 * then go on by requests, without the mapping, and nothing of theirs is lost. One that does not let
 * go of it within TIMEOUT_MS is revoked, too. ETIMEOUT: PEER attaches to registered memory and has
 * not let go of it.
 */
SLMPM_API int slmpm_mem_revoke(slmpm_mem mem, slmpm_peer peer, int timeout_ms);
/* Ends a region: waits until every acceptor has released it (or is gone); memory of slmpm_mem_alloc
 * is unmapped. ETIMEOUT: it stays as it was. */
SLMPM_API int slmpm_mem_destroy(slmpm_mem mem, int timeout_ms);
/* Puts with SLMPM_NOTIFY into the region are counted by CTR and queued in CQ; {0}: not (any more).
 * A notified put into a region with neither is done and counted in the statistics only. */
SLMPM_API int slmpm_mem_notify(slmpm_mem mem, slmpm_ctr ctr, slmpm_cq cq);

enum slmpm_mem_kind { SLMPM_MEM_HOST = 1 };

struct slmpm_mem_info {
	uint32_t size;
	uint32_t access;    /* SLMPM_READ, SLMPM_WRITE: of the region, or of the key */
	uint32_t kind;      /* enum slmpm_mem_kind */
	uint32_t mapped;    /* 1: transfers are plain copies here */
	uint64_t length;    /* bytes */
	uint64_t address;   /* the owner's virtual address */
	uint64_t acceptors; /* own region: keys opened and not released */
	char path[16];      /* a peer's: "map", "attach", "ring"; forced: "am", "tag" */
};

/* What a region, or a peer's as far as its key goes, is and how it is reached. Set info->size. */
SLMPM_API int slmpm_mem_query(slmpm_mem mem, struct slmpm_mem_info *info);
SLMPM_API int slmpm_rmem_query(slmpm_rmem rmem, struct slmpm_mem_info *info);

/* ---- One-sided operations ------------------------------------------------------------------- */

/*
 * Write to and read from a peer's region without its doing. Local completion: the buffer is the
 * caller's again (put), or has the data (get). With SLMPM_REMOTE a put is done only when the target
 * can see it. What is sent to that peer after a put's completion arrives after the put.
 * Operations are in no order among themselves unless SLMPM_FENCE or SLMPM_BARRIER asks for it.
 * EACCES (not allowed, revoked), EINVAL (outside of the region), EDEAD, ECLOSED. A put to a region
 * that is neither mapped nor reachable (slmpm_rmem_query: "ring") ends with REMOTE, and a get at
 * all, only when the target makes progress. HOW and REQ may be NULL: the call then blocks.
 * ETIMEOUT: the buffer is the caller's again; what had begun may be there in part, or come.
 */
SLMPM_API int slmpm_put(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
			const struct slmpm_how *how, slmpm_req *req);
SLMPM_API int slmpm_get(slmpm_rmem from, uint64_t offset, void *to, size_t len,
			const struct slmpm_how *how, slmpm_req *req);

struct slmpm_span {
	uint64_t offset, len;
};

/* Lists: the bytes of N spans of the region against those of M pieces here, in order; both sides
 * have as many bytes in all. */
SLMPM_API int slmpm_putv(slmpm_rmem to, const struct slmpm_span *spans, int n,
			 const struct slmpm_iov *pieces, int m, const struct slmpm_how *how,
			 slmpm_req *req);
SLMPM_API int slmpm_getv(slmpm_rmem from, const struct slmpm_span *spans, int n,
			 const struct slmpm_iov *pieces, int m, const struct slmpm_how *how,
			 slmpm_req *req);

enum slmpm_atomic_op {
	SLMPM_FETCH_ADD = 1,
	SLMPM_COMPARE_SWAP = 2, /* stores OPERAND where COMPARE was */
	SLMPM_SWAP = 3
};

/*
 * One atomic operation on the word of BITS (32 or 64) at OFFSET, naturally aligned, in the owner's
 * byte order; *OLD (uint32_t or uint64_t, may be NULL) gets what was there. Needs READ and WRITE.
 * Atomic against the same calls of all processes and the owner's C11 atomics.
 */
SLMPM_API int slmpm_atomic(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
			   uint64_t compare, void *old, const struct slmpm_how *how,
			   slmpm_req *req);
/* Waits until all puts and atomic operations to PEER so far are visible there; or the error of a
 * put that had ended here and was refused there. */
SLMPM_API int slmpm_flush(slmpm_peer peer, int timeout_ms);

/*
 * A put with SLMPM_FIFO writes nothing: its bytes wait in the target's reception FIFO, with where
 * they would go, until the target's processor has looked at them. It keeps the order of messages,
 * costs their credit until it is disposed of, and has one span and at most eager_max bytes less 56
 * (ELIMIT). Done when the buffer is the caller's again, with SLMPM_REMOTE when the target has stored
 * or dropped it. No FENCE, BARRIER, NOTIFY; slmpm_flush does not wait for it. ENOTSUP: the peer's
 * library is older. Source: the memory FIFO of DMA engines.
 */
struct slmpm_fifo {       /* an entry that was taken */
	uint64_t id;      /* 0: none */
	slmpm_peer peer;  /* whose put it is */
	slmpm_mem mem;    /* what it is meant for: a region of this process, ... */
	uint64_t offset;  /* ... there; both were checked when it came */
	const void *data; /* memory of the library's, which the peer does not reach */
	size_t len;
	uint32_t imm;
	uint32_t reserved;
};

/* The next entry of PEER, or of any (slmpm_any(ctx)). ETIMEOUT; EDEAD, ECLOSED: there are no more.
 * Its data stays until it is stored or dropped, or the peer's handle ends. */
SLMPM_API int slmpm_fifo_take(slmpm_peer peer, struct slmpm_fifo *entry, int timeout_ms);
/*
 * Stores its bytes at OFFSET of MEM, a region of this process in the same context: where it was
 * meant to go, or elsewhere. HOW and REQ as of a put: without blocking, the engine (SLMPM_ENGINE)
 * moves the bytes meanwhile. The entry is zeroed, its data not to be looked at any more. Any error:
 * it is as it was.
 */
SLMPM_API int slmpm_fifo_store(struct slmpm_fifo *entry, slmpm_mem mem, uint64_t offset,
			       const struct slmpm_how *how, slmpm_req *req);
/* The caller has taken from it what it wanted. The entry is zeroed. Does not block. */
SLMPM_API int slmpm_fifo_drop(struct slmpm_fifo *entry);

/* ---- Active messages ------------------------------------------------------------------------ */

#define SLMPM_AM_MAX      0xfeff /* highest handler number; those above are the library's */
#define SLMPM_AM_HEAD_MAX 256    /* bytes */

struct slmpm_am { /* valid during the handler's call */
	slmpm_peer peer;
	const void *head, *data;
	size_t head_len, data_len;
	uint16_t id;
	uint16_t reserved[3];
};

/* Runs inside whatever call of the receiver makes progress. It may send, post, put and reply without
 * blocking; a call of the same context that would block is ESTATE. */
typedef void slmpm_am_fn(const struct slmpm_am *am, void *arg);

/* Handler number ID of CTX from now on; FN NULL: none. An active message without handler is counted
 * and dropped. */
SLMPM_API int slmpm_am_handler(slmpm_ctx ctx, uint16_t id, slmpm_am_fn *fn, void *arg);
/* Runs handler ID at PEER with HEAD (copied, up to SLMPM_AM_HEAD_MAX bytes) and DATA (0 bytes to
 * SLMPM_MESSAGE_MAX), in the order of what is sent to that peer. Done when DATA is the caller's
 * again. Source: GASNet's short, medium and long requests; UCX. */
SLMPM_API int slmpm_am(slmpm_peer peer, uint16_t id, const void *head, size_t head_len,
		       const void *data, size_t len, const struct slmpm_how *how, slmpm_req *req);
/* From inside a handler: an active message back to its sender. Never blocks; HEAD and DATA are
 * copied. ENOMEM. */
SLMPM_API int slmpm_am_reply(const struct slmpm_am *am, uint16_t id, const void *head,
			     size_t head_len, const void *data, size_t len);

/* ---- Work queues ---------------------------------------------------------------------------- */

/* options.flags: requests that need no answer get none; errors at the target are counted there. */
#define SLMPM_WQ_UNACKNOWLEDGED 1u

struct slmpm_wq_options {
	uint32_t size;
	uint32_t flags;
	uint32_t depth; /* requests under way at once; 0: 256 */
	uint32_t reserved;
	slmpm_cq cq; /* where its completions go */
};

/* A work request; fields that an operation does not use stay zero. */
struct slmpm_wr {
	uint32_t op;     /* enum slmpm_op: SEND RECV PUT GET ATOMIC AM */
	uint32_t flags;  /* SLMPM_MORE FENCE BARRIER REMOTE NOTIFY SILENT */
	uint32_t stream; /* SEND, RECV; AM: the handler's number */
	uint32_t imm;
	uint64_t cookie; /* in its completion */
	slmpm_rmem rmem; /* PUT, GET, ATOMIC */
	uint64_t offset;
	const struct slmpm_iov *iov; /* pieces here; the array is copied */
	int32_t iov_count;
	uint32_t atomic; /* ATOMIC: enum slmpm_atomic_op */
	uint32_t bits;
	uint32_t head_len; /* AM */
	uint64_t operand, compare;
	void *old;
	const void *head;
};

/*
 * The send and receive queue of a pair: work requests to PEER, each with a completion in options->cq.
 * Receives are posted at once; all others begin in order and are told in order, and each sees what
 * those before it did: a message behind a put finds it there. A put is done when the target has it
 * or refused it, unless the queue is UNACKNOWLEDGED. Source: the queue pairs of channel adapters.
 */
SLMPM_API int slmpm_wq_create(slmpm_peer peer, const struct slmpm_wq_options *options,
			      slmpm_wq *wq);
/* Posts N work requests; how many were taken: fewer when the queue is full (none: EAGAIN) or one is
 * wrong (its error, when it is the first). One that turns out wrong when those before it are done
 * ends as a completion. Does not block. */
SLMPM_API int slmpm_post(slmpm_wq wq, const struct slmpm_wr *wr, int n);
/* EBUSY while requests are under way. */
SLMPM_API int slmpm_wq_destroy(slmpm_wq wq);

/* ---- What is going on ----------------------------------------------------------------------- */

#define SLMPM_CAUSE_COUNT 5
struct slmpm_stats { /* one peer; plain counters with one writer, lifetime totals */
	uint32_t size;
	int32_t pid;
	uint64_t sent_messages, sent_packets, sent_bytes;
	uint64_t received_messages, received_packets, received_bytes;
	/* Outbound ring, in segments: written (J), read by the peer as far as known (K). */
	uint64_t out_produced, out_consumed, out_segments;
	/* Inbound ring: what the peer has written as far as known, what has been read. */
	uint64_t in_produced, in_consumed, in_segments;
	uint64_t out_room, in_unread;
	uint64_t remote_writes; /* stores into the peer's memory: packets, totals, announcements */
	uint64_t remote_reads;  /* loads from it: none on the steady path */
	/* K's publications by cause: threshold, asked, before sleep, flush, every read */
	uint64_t publications[SLMPM_CAUSE_COUNT];
	uint64_t produced_publications;
	uint64_t sleeps, wakeups, bells; /* times this side slept, was woken; bells it rang */
	uint64_t queue_depth;            /* requests that the link has not accepted yet */
	uint64_t unexpected;             /* messages that arrived before their receive */
	uint64_t violations;             /* the peer's; slmpm_violation_at names them */
	uint64_t checksum_errors;
	/* One-sided operations begun here, their bytes; and those of the peer that this process did
	 * for it, for want of a mapping. */
	uint64_t puts, put_bytes, gets, get_bytes, atomics, served, notifications;
	uint64_t refused; /* of the peer's: key, range or right was wrong */
	/* Active messages handled here, and dropped: no handler, damaged, or too long. */
	uint64_t ams, am_unhandled;
	/* One-sided operations by active messages (SLMPM_RMA): requests made here, by messages that
	 * bring the bytes along and by tag; and the peer's handled here. */
	uint64_t am_writes, am_reads, am_atomics, tag_writes, tag_reads;
	uint64_t am_served, tag_served;
	/* Of what was sent: large messages that the peer fetched (SLMPM_FETCH), bytes that it read;
	 * those of them of which this side wrote a share, its bytes. The rest went in packets. */
	uint64_t rget_messages, rget_bytes, push_messages, push_bytes;
	/* Of the puts: those of which the target copied a part (SLMPM_SHARE), its bytes. */
	uint64_t shared_puts, shared_bytes;
	char link[16];
};

/* Fills as much of STATS as SIZE allows. Cheap; never blocks. */
SLMPM_API int slmpm_peer_stats(slmpm_peer peer, struct slmpm_stats *stats, size_t size);

#define SLMPM_STATS_PEERS_MAX 256
struct slmpm_stats_page { /* what a process shows to others, read-only */
	uint64_t magic;   /* "SLMPMST1" little-endian */
	uint32_t version;
	uint32_t pid;
	uint32_t peer_size; /* sizeof(struct slmpm_stats) as the owner knows it */
	/* Entries in use when it was attached, those of ended peers included; these give way when
	 * there are more than SLMPM_STATS_PEERS_MAX. slmpm_stats_of knows of later ones, too. */
	uint32_t peers;
	uint64_t reserved[5]; /* the peers' struct slmpm_stats follow: slmpm_stats_of */
};
/* Entry I of a mapped page, NULL behind the last; fields behind page->peer_size are not there. */
SLMPM_API const struct slmpm_stats *slmpm_stats_of(const struct slmpm_stats_page *page, uint32_t i);
/* Maps the statistics of a context in another process of this user (INDEX from 0: a process may
 * have several contexts); ENOENT when there is none. Figures lag by at most one publication. */
SLMPM_API int slmpm_stats_attach(int pid, int index, const struct slmpm_stats_page **page);
SLMPM_API void slmpm_stats_detach(const struct slmpm_stats_page *page);
/* Violations by name: I from 0 to the first ENOENT; *COUNT over all peers of the process. */
SLMPM_API int slmpm_violation_at(int i, const char **name, uint64_t *count);

struct slmpm_setting { /* a SLMPM_* environment variable */
	uint32_t size;
	uint32_t reserved;
	char name[32];
	char value[4096];
	char initial[64];
	char origin[32]; /* "default", "environment" */
	char text[256];
};
/* Setting I from 0; ENOENT behind the last. */
SLMPM_API int slmpm_setting_at(int i, struct slmpm_setting *setting);

struct slmpm_check { /* what the machine offers, found by a real try */
	uint32_t size;
	int32_t state; /* 1 works, 0 missing and replaced silently, -1 missing and needed */
	char name[32];
	char detail[200]; /* what was tried; what to do */
};
/* Check I from 0; ENOENT behind the last. One of them forks a child for a moment. */
SLMPM_API int slmpm_check_at(int i, struct slmpm_check *check);

struct slmpm_fabric_info {
	uint32_t size;
	uint32_t available; /* 1, or 0 and detail says why not */
	char name[16];
	char capabilities[128];
	char commit[24]; /* how the reader learns of a packet */
	char detail[128];
	uint64_t packet_max, links_max;
};
/* Fabric I from 0; ENOENT behind the last. */
SLMPM_API int slmpm_fabric_at(int i, struct slmpm_fabric_info *info);

/* Bytes of memory that a peer takes in each of the two processes, with the present settings. */
SLMPM_API uint64_t slmpm_memory_per_peer(void);

enum slmpm_log_level {
	SLMPM_LOG_ERROR = 1,
	SLMPM_LOG_WARN = 2,
	SLMPM_LOG_INFO = 3,
	SLMPM_LOG_DEBUG = 4
};
typedef void slmpm_log_fn(int level, const char *text, void *arg);
/* Sends log lines up to LEVEL to FN instead of standard error (NULL: back to it). Process-wide. */
SLMPM_API void slmpm_log(int level, slmpm_log_fn *fn, void *arg);
/* "0.1.0" */
SLMPM_API const char *slmpm_version(void);

#ifdef __cplusplus
}
#endif

#endif
