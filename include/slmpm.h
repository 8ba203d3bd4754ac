/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMPM: messages and memory between a host process and its accelerator processes.
 *
 * Read this page from the top: errors, handles, contexts, elements, peers, messages and loans are
 * what every program needs. It includes the rest, to be read as needed: <slmpm_memory.h>, regions
 * and one-sided operations; <slmpm_mirror.h>, memory that is kept equal; <slmpm_am.h>, active
 * messages; <slmpm_queue.h>, counters, completion queues and work queues; <slmpm_mode.h>, which
 * protocol and link are taken, and why; <slmpm_address.h>, peers by address; <slmpm_stats.h>, what
 * can be looked at; <slmpm_monitor.h>, how busy links are and how long things take. doc/man has a
 * page a family.
 *
 * Rules that hold for every call
 *  - Returns >= 0, or a negative -SLMPM_E*; slmpm_error_detail() then says why and who.
 *  - A handle is {index, generation}. A zero, stale or foreign one is -SLMPM_EHANDLE, never a
 *    crash. {0} as a context means the calling thread's default one, opened at first use.
 *  - timeout_ms: 0 tries once, -1, or any below 0, sets no deadline. A call without one still ends
 *    when the peer dies or closes. Where SLMPM_ETIMEOUT is named below, a call with 0 says
 *    SLMPM_EAGAIN: it has found nothing, or no room, and done nothing. Not so slmpm_close,
 *    slmpm_shut and a one-sided operation that has begun. Both details name a peer that is stopped
 *    as suspect.
 *  - A buffer is the caller's again when the call returns, or, where a request handle was asked
 *    for, when that request is reported done.
 *  - Threads: a context belongs to one thread at a time. Opened with SLMPM_THREADS any number of
 *    threads may use it at once; one of those that wait then polls for all.
 *  - After fork the child's handles answer -SLMPM_EFORKED; it may open contexts of its own.
 *  - No signal handler, no thread, no exit hook is ever installed behind the caller's back. A
 *    thread comes with SLMPM_ENGINE=thread, for the look-up of a machine's name, or with a mirror
 *    tracked by SLMPM_TRACK_FAULT; a handler of SIGSEGV with one by SLMPM_TRACK_SIGNAL.
 *
 * Caveats
 *  - What slmpm_hold points at can be changed by a hostile peer while it is read, and so can a
 *    region that a peer may write, until it is revoked; copy first what decides anything.
 *  - A loan inside a packet lies in the peer's memory: write to it, do not read it back.
 *  - Structures begin with their size: set .size = sizeof the structure. Smaller ones, of an older
 *    header, and larger ones are taken as slmpm(7) says under Structures.
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

/* All that has it can be called by name from other languages, inline functions too. */
#define SLMPM_API __attribute__((visibility("default")))

/* A version as a number, to be compared, by the preprocessor too; and this header's. */
#define SLMPM_VERSION_OF(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define SLMPM_VERSION                                                                              \
	SLMPM_VERSION_OF(SLMPM_VERSION_MAJOR, SLMPM_VERSION_MINOR, SLMPM_VERSION_PATCH)

/* "0.1.0": of the library, which may be another than this header's. */
SLMPM_API const char *slmpm_version(void);
/* The same as a number: 100. */
SLMPM_API int slmpm_version_number(void);

/*
 * How the loaded library was built, a line of "what: value" each: version, commit, version of what
 * travels, compiler, flags. The library's own text, for ever; any thread, never fails.
 */
SLMPM_API const char *slmpm_build(void);

/* ---- Errors --------------------------------------------------------------------------------- */

#define SLMPM_ERROR_BASE 10000 /* beyond every errno: a code of ours is none of the system's */
/* X(name, number, text). Numbers are stable, new ones come behind; calls return their negative. */
#define SLMPM_ERRORS(X)                                                                            \
	X(EINVAL, 10001, "invalid argument")                                                       \
	X(EHANDLE, 10002, "no such handle")                                                        \
	X(EFORKED, 10003, "handle of the parent process, used after fork")                         \
	X(EAGAIN, 10004, "not now")                                                                \
	X(ETIMEOUT, 10005, "deadline passed")                                                      \
	X(EDEAD, 10006, "peer died")                                                               \
	X(ECLOSED, 10007, "peer closed the connection")                                            \
	X(EPROTO, 10008, "peer broke the protocol, its channel is shut")                           \
	X(EVERSION, 10009, "peer speaks another version")                                          \
	X(ETRUNC, 10010, "message longer than the buffer")                                         \
	X(ECANCELED, 10011, "canceled")                                                            \
	X(ENOMEM, 10012, "out of memory")                                                          \
	X(ENOFILE, 10013, "out of file descriptors")                                               \
	X(EFBIG, 10014, "over the file-size limit")                                                \
	X(EACCES, 10015, "permission denied")                                                      \
	X(ENOENT, 10016, "not found")                                                              \
	X(EBUSY, 10017, "in use")                                                                  \
	X(ELIMIT, 10018, "over a limit")                                                           \
	X(ECHECKSUM, 10019, "payload damaged, checksum differs")                                   \
	X(ENOTSUP, 10020, "not supported here")                                                    \
	X(ESYSTEM, 10021, "system call failed")                                                    \
	X(ESTATE, 10022, "not possible in this state")                                             \
	X(EADDRESS, 10023, "address not understood")                                               \
	X(ENOEXEC, 10024, "program cannot be started")                                             \
	X(EDISABLED, 10025, "receive entry disabled")

enum slmpm_error {
	SLMPM_OK = 0,
#define SLMPM_ERROR_ENUM(name, number, text) SLMPM_##name = number,
	SLMPM_ERRORS(SLMPM_ERROR_ENUM)
#undef SLMPM_ERROR_ENUM
};

/* Text of a code, either sign; never NULL. Thread-safe. */
SLMPM_API const char *slmpm_strerror(int error);
/* "SLMPM_EAGAIN" of a code, either sign; "SLMPM_OK" of 0; NULL of another number. Thread-safe. */
SLMPM_API const char *slmpm_error_name(int error);
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
} slmpm_listener; /* an address where others connect */
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
/* When receiving: any peer of CTX ({0}: the calling thread's default context) but those still to be
 * accepted. */
SLMPM_API inline slmpm_peer slmpm_any(slmpm_ctx ctx)
{
	slmpm_peer any = {ctx.id | UINT64_C(0x80000000)};
	return any;
}
#define SLMPM_MESSAGE_MAX (UINT64_C(8) << 30) /* bytes of one message: 8 GiB */

/* ---- Contexts ------------------------------------------------------------------------------- */

#define SLMPM_THREADS        1u /* options.flags: several threads use this context at once */
/* Each packet to and from its peers says for which accelerator and process it is; and where it
 * goes, a region's address, a stream or a handler (the second includes the first). One that is for
 * another is SLMPM_EPROTO and ends that connection. So is it too where the peer asks, or
 * SLMPM_HEADER is set. */
#define SLMPM_HEADER_IDS     2u
#define SLMPM_HEADER_ADDRESS 4u
#define SLMPM_WAIT_ADAPTIVE  0u /* options.wait: spin briefly, yield, sleep */
#define SLMPM_WAIT_SPIN      1u /* never sleep */
#define SLMPM_WAIT_BLOCK     2u /* sleep at once */

struct slmpm_options {
	uint32_t size; /* sizeof(struct slmpm_options) */
	uint32_t flags;
	uint32_t wait;              /* SLMPM_WAIT_*; the environment's SLMPM_WAIT wins */
	uint32_t ring_segments;     /* of this side's inbound rings; 0: SLMPM_RING_SEGMENTS */
	uint32_t ring_segment_size; /* bytes; 0: SLMPM_SEGMENT_SIZE. A ring: 8 KiB at least */
	uint32_t reserved;          /* zero, or SLMPM_EINVAL */
};

/* Opens a context; OPTIONS may be NULL. Does not block. SLMPM_ENOMEM, SLMPM_ENOFILE,
 * SLMPM_EINVAL (also a SLMPM_* setting that cannot be read, or a line of the topology: the
 * detail names it). Source: libfabric's domain, UCX's worker. */
SLMPM_API int slmpm_open(slmpm_ctx *ctx, const struct slmpm_options *options);
/* Closes every peer in order (see slmpm_close), then the context. Blocks up to TIMEOUT_MS for what
 * is still to be sent; what is not gone by then is lost and reported as SLMPM_ETIMEOUT (with 0,
 * too). {0}: the default context, if there is one. No other thread may be in a call of the
 * context. */
SLMPM_API int slmpm_shut(slmpm_ctx ctx, int timeout_ms);
/* The calling thread's default context, opened when there is none yet. It ends with the thread,
 * unless it has peers, listeners, requests or regions, which others may know: then it stays. */
SLMPM_API int slmpm_default(slmpm_ctx *ctx);

/* Does what can be done without waiting; returns the number of events handled. */
SLMPM_API int slmpm_progress(slmpm_ctx ctx);
/* One descriptor for select, poll or epoll; level-triggered. Readable once something happens after
 * slmpm_arm said 0, or is due by the library's own clocks. Belongs to the context: do not read,
 * write or close it. */
SLMPM_API int slmpm_fd(slmpm_ctx ctx);
/* Before sleeping on the descriptor. 0: armed, sleep; 1: something has been handled since it was
 * last asked (by any call): look again at what you wait for. Any other call of the context
 * disarms it. */
SLMPM_API int slmpm_arm(slmpm_ctx ctx);
enum { SLMPM_SPIN_SLEEP = 0, SLMPM_SPIN_ON = 1, SLMPM_SPIN_YIELD = 2 };
/* How long a loop of the program's own polls before it sleeps on the descriptor, by the account
 * that blocking calls keep (SLMPM_WAIT, SLMPM_SPIN_US). After each pass: FOUND is whether it has
 * found something. SLMPM_SPIN_ON: look again. SLMPM_SPIN_YIELD: sched_yield(), without a lock of
 * the program's own, call this again with 0, and look again. SLMPM_SPIN_SLEEP: slmpm_arm, and
 * sleep. Does not block. Thread-safe like slmpm_arm; SLMPM_EHANDLE. */
SLMPM_API int slmpm_spin(slmpm_ctx ctx, int found);

enum slmpm_event_type {
	SLMPM_EVENT_NONE = 0,
	SLMPM_EVENT_UP = 1,       /* connected */
	SLMPM_EVENT_SUSPECT = 2,  /* does not react (stopped, debugged); not dead */
	SLMPM_EVENT_CLOSED = 3,   /* closed in order; what it sent can still be received */
	SLMPM_EVENT_DEAD = 4,     /* process gone or connection lost; likewise */
	SLMPM_EVENT_POISONED = 5, /* broke the protocol; its channel is shut */
	SLMPM_EVENT_LINK_UP = 6,  /* one of several links stands, or stands again: see the detail */
	SLMPM_EVENT_LINK_LOST = 7 /* is lost; what it carried goes by another */
};

struct slmpm_event {
	uint32_t size;
	uint32_t type; /* enum slmpm_event_type */
	slmpm_peer peer;
	int32_t error; /* what calls on this peer return from now on: negative once it has ended, else 0 */
	int32_t pid;
	uint64_t written; /* segments written to the peer, and read by it as far as known: */
	uint64_t read;    /* what lies between is in doubt after DEAD */
	/* Messages to the peer, as slmpm_peer_stats counts them, and how many, the first ones, its
	 * library has read for certain, received by its program or not yet; the others are in doubt
	 * after DEAD. */
	uint64_t sent, arrived;
	/* How many of them its program has received, at least: it says so with each quarter of
	 * SLMPM_EAGER_CREDIT that it has received, and when it closes. */
	uint64_t received;
	char detail[160];
};

/* The next event of any peer of CTX: 1 and *EVENT filled, 0 when none came in time. Of a peer one
 * of each type waits at most (of each link, too), the last one; none is told once its handle has
 * gone. */
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
/* Gives N of them back. SLMPM_EINVAL: one is not held here; then none is. */
SLMPM_API int slmpm_element_release(slmpm_ctx ctx, int n, const uint32_t *ids);

struct slmpm_element_info {
	uint32_t size;
	uint32_t element;
	uint32_t elsewhere; /* 1: on another host than this one */
	char host[64];      /* as the topology calls it; empty: there is no topology */
};

/* Where accelerator element ELEMENT lies (SLMPM_TOPOLOGY). SLMPM_EINVAL: there is none of that
 * number, or a line of the topology cannot be understood, which the detail tells. */
SLMPM_API int slmpm_element_query(uint32_t element, struct slmpm_element_info *info);

/* ---- Peers ---------------------------------------------------------------------------------- */

#define SLMPM_SPAWN_DIE_WITH_HOST 1u /* the accelerator is killed when this process ends */
#define SLMPM_SPAWN_CLEAN_ENV     2u /* envp is the whole environment, not an addition */
#define SLMPM_SPAWN_THERE         4u /* PROG is a file where the element lies: nothing is sent */
/* cwd, an absolute path, is for this accelerator alone: where it runs on another host, a new folder
 * there with the same files takes its place, in envp as well. */
#define SLMPM_SPAWN_CARRY_CWD     8u

struct slmpm_spawn_options {
	uint32_t size;
	uint32_t flags;
	slmpm_ctx ctx;
	char *const *envp;   /* "NAME=value", NULL at the end; or NULL */
	const char *cwd;     /* working directory, or NULL for this process's */
	const char *wrapper; /* command template, %e executable, %a arguments; or NULL */
	uint32_t element;    /* id from slmpm_element_reserve that it runs on, or 0 */
	uint32_t reserved;   /* zero, or SLMPM_EINVAL */
};

/*
 * Starts PROG (searched in PATH when it has no slash) with the arguments ARGV, which exclude
 * argv[0] and may be NULL, and connects to it. Returns when the program has been started; messages
 * wait until it has connected. SLMPM_ENOENT and SLMPM_ENOEXEC when it cannot be started: nothing
 * runs then. The accelerator calls slmpm_parent. OPTIONS may be NULL. Its processors are this
 * thread's, or more where these are too few (SLMPM_CPUS); a list of which one is not there is
 * SLMPM_EINVAL.
 */
SLMPM_API int slmpm_spawn(slmpm_peer *peer, const char *prog, char *const argv[],
			  const struct slmpm_spawn_options *options);
/* In a program that slmpm_spawn started: its host, in the default context. SLMPM_ESTATE elsewhere.
 * Blocks for the handshake: asleep, as long as the host lives and computes. The same handle each
 * time. */
SLMPM_API int slmpm_parent(slmpm_peer *peer);
/* The same in a context of one's own; only the first call decides the context. */
SLMPM_API int slmpm_parent_in(slmpm_ctx ctx, slmpm_peer *peer);

/*
 * Unrelated processes. URL: "shm:NAME" (an abstract socket of this user), "shm:/path", or
 * "tcp://host:port": port 0 any, no host or "*" every address of this machine. Over TCP both sides
 * know a secret: that of SLMPM_SECRET, of "tcp://host:port#secret", or one that is made up.
 * SLMPM_EBUSY: somebody listens there; SLMPM_EACCES: an address beyond this machine without
 * SLMPM_INSECURE. Does not block, but for the look-up of a name.
 */
SLMPM_API int slmpm_listen(slmpm_listener *listener, slmpm_ctx ctx, const char *url);
/* The next that has connected, in the listener's context. */
SLMPM_API int slmpm_accept(slmpm_listener listener, slmpm_peer *peer, int timeout_ms);
/* No more connections; peers that were accepted stay, those that were not are closed. Does not
 * block. */
SLMPM_API int slmpm_unlisten(slmpm_listener listener);

struct slmpm_listener_info {
	uint32_t size;
	uint32_t port;   /* over TCP the real one, else 0 */
	char url[320];   /* as others may write it, without the secret */
	char secret[33]; /* over TCP: 32 hex digits that who connects must know, else "" */
};

/* Where LISTENER is to be found. Set info->size. Does not block. */
SLMPM_API int slmpm_listener_query(slmpm_listener listener, struct slmpm_listener_info *info);
/* Blocks for the handshake. SLMPM_ENOENT: nobody listens there; SLMPM_EACCES: another user does,
 * or with another secret, or the address is beyond this machine without SLMPM_INSECURE;
 * SLMPM_ELIMIT: it has had its hands full all the time; SLMPM_ECLOSED: its listener was closed
 * meanwhile. */
SLMPM_API int slmpm_connect(slmpm_peer *peer, slmpm_ctx ctx, const char *url, int timeout_ms);

/*
 * To be called for each peer of slmpm_connect and slmpm_accept, also for one that has ended: until
 * then its handle, its statistics and what it had sent stay, though its rings and descriptors go by
 * themselves. Orderly end: sends what is queued, then end of stream; the peer reads everything
 * before it sees SLMPM_ECLOSED. Blocks up to TIMEOUT_MS for what is still to be sent, over a
 * network until the peer's machine has it all, and until the peer reaches no memory of
 * slmpm_mem_register any more by itself (SLMPM_ETIMEOUT: it may). This process may end then. The
 * handle is gone afterwards, after an SLMPM_ETIMEOUT, too; but that of a spawned process stays for
 * slmpm_join. Open requests end with SLMPM_ECLOSED.
 */
SLMPM_API int slmpm_close(slmpm_peer peer, int timeout_ms);
/* Waits for a spawned process to end (closing first, if that was not done, once it has connected);
 * 0 and *STATUS as of waitpid(2), and the handle is gone. SLMPM_ETIMEOUT while it runs: the
 * connection is closed, the handle stays to be joined again. STATUS may be NULL; the return value
 * then is the exit code (128 + signal number when a signal ended it). SLMPM_ESTATE, and the handle
 * is gone: somebody else's waitpid has taken the status. */
SLMPM_API int slmpm_join(slmpm_peer peer, int *status, int timeout_ms);
/* SIGTERM, after GRACE_MS SIGKILL (0: at once), which a call of the context sends that comes by
 * then; called again, at the earlier of both. Does not wait for the end: slmpm_join does.
 * SLMPM_ESTATE: not a spawned process. */
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
	uint32_t header;     /* SLMPM_HEADER_*: what packets say of their addressee */
	uint32_t reserved;
};

/* What is known of PEER, also after its end, until it is closed. Does not block. */
SLMPM_API int slmpm_peer_query(slmpm_peer peer, struct slmpm_peer_info *info);

#define SLMPM_LINK_ROOM 8 /* of arrays that have something of each link; there are fewer */

enum slmpm_link_state {
	SLMPM_LINK_NONE = 0, /* not opened yet, or it cannot be had */
	SLMPM_LINK_UP = 1,
	SLMPM_LINK_LOST = 2 /* and not made again yet */
};

struct slmpm_link_info {
	uint32_t size;
	uint32_t state;      /* enum slmpm_link_state */
	uint32_t used;       /* 1: what is sent now goes by this one */
	uint32_t made, lost; /* how often */
	uint32_t reserved;
	uint64_t written, read; /* segments to and from the peer, since it was made last */
	char fabric[16];
	char where[128]; /* "10.0.1.1 - 10.0.1.2": this end and the other, as far as known, or "" */
	char reason[184]; /* why it was lost last, or "" */
};

/* Link LINK of PEER, from 0 (SLMPM_LINKS; without, there is one); SLMPM_ENOENT behind the last. */
SLMPM_API int slmpm_link_query(slmpm_peer peer, uint32_t link, struct slmpm_link_info *info);

#define SLMPM_LINK_ANY UINT32_MAX
/*
 * What this side sends to PEER from now on goes by LINK whenever that is up, by another otherwise;
 * it is opened if need be. SLMPM_LINK_ANY: by the present one until it is lost or has too much to
 * do (SLMPM_MODE_SPREAD). What SLMPM_LINK is in the environment, for one peer. Does not block.
 * SLMPM_ENOENT: there is no such link; SLMPM_ESTATE: not connected.
 */
SLMPM_API int slmpm_link_use(slmpm_peer peer, uint32_t link);

/* ---- Messages ------------------------------------------------------------------------------- */

struct slmpm_iov {
	void *base;
	size_t len;
};

/* slmpm_how.flags, slmpm_wr.flags */
#define SLMPM_MORE    1u /* more follows at once: the message may wait for it, in this process */
#define SLMPM_PART    2u /* slmpm_commit: this prefix is ready, the loan stays open */
#define SLMPM_FENCE   4u /* one-sided: starts after all earlier ones to that peer */
#define SLMPM_BARRIER 8u /* likewise, and all later ones after it */
/* One-sided: done once the target's memory has it, not before; of an active message: once its
 * handler has run */
#define SLMPM_REMOTE  16u
#define SLMPM_NOTIFY  32u  /* put: a completion at the target, with imm (slmpm_mem_notify) */
#define SLMPM_SILENT  64u  /* work request: no completion unless it fails */
#define SLMPM_FIFO    128u /* put: into the target's reception FIFO (slmpm_fifo_take) */
/* and from 256 on which protocol is wanted: SLMPM_VIA, SLMPM_STRICT (slmpm_mode.h) */

/*
 * How an operation is done, and its completion target: the call itself, which then blocks; or,
 * without blocking, by a request handle where the call takes one, else counted by `ctr`, else
 * queued in `cq` with `cookie`. Only one of the three; ctr and cq belong to the peer's context.
 */
struct slmpm_how { /* NULL = defaults; fields beyond .size count as zero */
	uint32_t size;
	uint32_t flags;
	uint32_t imm;       /* travels with a message, and with a put's notification */
	int32_t timeout_ms; /* for a call that blocks; -1 none; left 0: it tries once */
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
	SLMPM_OP_STORE = 8,  /* slmpm_fifo_store */
	SLMPM_OP_WAIT = 9,   /* this and the following: entries of work queues */
	SLMPM_OP_ENABLE = 10,
	SLMPM_OP_COUNT = 11,
	SLMPM_OP_CALC = 12,
	SLMPM_OP_PIPE = 13,
	SLMPM_OP_COLLECTIVE = 14, /* slmpm_collective_start */
	SLMPM_OP_PUT_ALL = 15,    /* slmpm_put_all (slmpm_deposit.h) */
	SLMPM_OP_DEPOSIT = 16,    /* bytes of such a one have come here */
	SLMPM_OP_ANSWER = 17      /* a target of such a one has answered */
};

/* A completion: how an operation ended. Arrays of them keep their stride: what later releases add
 * lies in `reserved`. */
struct slmpm_done {
	uint64_t len;   /* bytes of the message, also when it did not fit; SLMPM_EDISABLED: 0 */
	int32_t status; /* 0 or -SLMPM_E* */
	uint32_t stream;
	uint32_t imm;
	/* SLMPM_PART: a held message that is still growing; of a request SLMPM_ON_LINK(n): it went by
	 * link N, of several */
	uint32_t flags;
	slmpm_peer peer;
	uint64_t cookie; /* how->cookie; of a notification: its offset in the region */
	uint32_t op;     /* enum slmpm_op */
	uint16_t protocol,
		reason;       /* how it went and why (slmpm_mode.h); reason 0: nothing was chosen */
	uint64_t reserved[2]; /* left as they are */
};

/*
 * Sends LEN bytes on STREAM. Messages of a peer arrive in the order sent; a receive takes the first
 * that matches. Up to the eager limit the call returns once the bytes are on their way, and the
 * peer gets them even if this process ends; a longer message waits for its receive. SLMPM_ETIMEOUT:
 * nothing was sent (the detail names a peer that does not react as suspect). A message of which a
 * socket has taken a part by then is sent all the same: 0. SLMPM_EBUSY: a loan is open, or whether
 * it is sent cannot be known, and BUF stays the peer's (slmpm_send(3)).
 */
SLMPM_API int slmpm_send(slmpm_peer peer, uint32_t stream, const void *buf, size_t len,
			 int timeout_ms);
/*
 * Receives the next message from PEER (or slmpm_any(ctx)) on STREAM (or SLMPM_ANY_STREAM) into BUF;
 * returns its length. SLMPM_ETRUNC: it was longer than CAP: done->len says how long, the first CAP
 * bytes are there, the rest is gone (slmpm_probe asks beforehand). DONE may be NULL. SLMPM_ECLOSED,
 * SLMPM_EDEAD: everything that the peer had sent has been read before. SLMPM_EBUSY: SLMPM_ETIMEOUT
 * of a fetched message into which the peer still may write (slmpm_recv(3)).
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
/*
 * N messages in one call, each from or into its own buffer: as so many calls in turn would do it,
 * but at the cost of little more than one where they are short and of one length. Both end early
 * at an error behind the first message, which the next call meets, and return how many went or
 * came; 0 for N 0.
 * The send waits, TIMEOUT_MS in all, until all are on their way. The receive waits for the first
 * alone and takes what has come behind it. MESSAGES[i].len is the room of a buffer before, the
 * message's length after; one that is too long for its buffer ends the burst before it, and is
 * SLMPM_ETRUNC only as the first. DONE: NULL, or N of them.
 */
SLMPM_API int slmpm_send_burst(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *messages,
			       int n, int timeout_ms);
SLMPM_API int slmpm_recv_burst(slmpm_peer peer, uint32_t stream, struct slmpm_iov *messages, int n,
			       struct slmpm_done *done, int timeout_ms);
/* Looks at the next matching message and leaves it: 1 and *DONE (its length too), 0 none in
 * time. */
SLMPM_API int slmpm_probe(slmpm_peer peer, uint32_t stream, struct slmpm_done *done,
			  int timeout_ms);

/* 1 and *DONE when finished (the handle is freed and zeroed), 0 while under way. */
SLMPM_API int slmpm_test(slmpm_req *req, struct slmpm_done *done);
/* Waits for one of N requests (zeroed ones are skipped): its index; *DONE and the handle as in
 * slmpm_test. SLMPM_ETIMEOUT; SLMPM_EINVAL when all are zero. All belong to one context. */
SLMPM_API int slmpm_wait(slmpm_req *req, int n, struct slmpm_done *done, int timeout_ms);
/* Takes an operation back: 0 and it ends as SLMPM_ECANCELED, SLMPM_EBUSY when it has gone too
 * far. */
SLMPM_API int slmpm_cancel(slmpm_req req);

/* ---- Loans: messages built and read in place ------------------------------------------------ */

/*
 * Memory for a message of up to LEN bytes to PEER, aligned to 32; one is open at a time and peer. A
 * short loan (up to packet_max) lies in the peer's ring, write only; while it is open blocking
 * sends to that peer are SLMPM_EBUSY, and so are blocking one-sided operations that go by request.
 * A longer one lies in an area that both map; over a network each has its own, and it is copied. It
 * goes by the link of this handle, whichever slmpm_commit gets.
 */
SLMPM_API int slmpm_loan(slmpm_peer peer, uint32_t stream, size_t len, void **buf, int timeout_ms);
/* Sends the first LEN bytes of the loan. It waits, by how->timeout_ms: in an area for what was
 * sent before it and for room, over several links for room; and stays open on SLMPM_ETIMEOUT.
 * With SLMPM_PART they are ready for the peer to read while the loan stays open for the rest
 * (areas only; SLMPM_ENOTSUP inside a packet); a later LEN counts from the loan's beginning too. */
SLMPM_API int slmpm_commit(slmpm_peer peer, void *buf, size_t len, const struct slmpm_how *how);
/* Gives the loan back unsent. SLMPM_ESTATE when a part of it has been committed. */
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
/* Waits until more than HAVE bytes of a held, growing message are ready: the new length;
 * done->flags tells whether it is complete. Returns HAVE at once when it is complete. */
SLMPM_API int64_t slmpm_more(slmpm_peer peer, const void *buf, uint64_t have,
			     struct slmpm_done *done, int timeout_ms);
/* Ends a hold: *BUF is not to be read any more. */
SLMPM_API int slmpm_release(slmpm_peer peer, const void *buf);

#ifdef __cplusplus
}
#endif

#include <slmpm_address.h>
#include <slmpm_am.h>
#include <slmpm_memory.h>
#include <slmpm_mirror.h>
#include <slmpm_mode.h>
#include <slmpm_monitor.h>
#include <slmpm_queue.h>
#include <slmpm_stats.h>

#endif
