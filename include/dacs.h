/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DaCS: data communication and synchronization between a host element and its accelerator
 * elements, source compatible with DaCS 4.0, carried by SLMPM. C99 and C++98.
 *
 * A process is a host for the children it starts and an accelerator towards the process that
 * started it; it may be both. A partner is named by an element id and a process id: a child by
 * the ids that dacs_reserve_children and dacs_de_start gave, the parent by DACS_DE_PARENT and
 * DACS_PID_PARENT. Traffic runs between a parent and its own children only.
 *
 * Rules that hold for every call
 *  - Returns DACS_SUCCESS or another status >= 0, or a DACS_ERR_* < 0. If several errors apply,
 *    which one is returned is unspecified.
 *  - Before dacs_init, after dacs_exit, and after fork in the child: DACS_ERR_NOT_INITIALIZED.
 *  - A NULL pointer that is needed: DACS_ERR_INVALID_ADDR. An enumerator or flag that does not
 *    exist: DACS_ERR_INVALID_ATTR.
 *  - A partner: DACS_ERR_INVALID_DE (id 0, or not reserved by this process), _INVALID_PID (no such
 *    process there, or reaped), _INVALID_TARGET (itself, a parent where there is none),
 *    _DE_TERM (it ended, and everything it had sent has been read).
 *  - Lengths and sizes are bytes. Arguments are only borrowed for the call, but the buffer of a
 *    transfer belongs to the library until its wid is reported ready.
 *  - Calls that block end when the partner dies. SLMPM_TIMEOUT (milliseconds) sets a deadline for
 *    each, past which they return DACS_ERR_DACSD_FAILURE and can be called again.
 *  - Any thread may call anything at any time, unless dacs_init was asked otherwise.
 *  - A child's abnormal end runs the error handlers inside the next call, whichever it is.
 *  - dacs(7) and a page for each family say more.
 */
#ifndef DACS_H
#define DACS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DACS_VERSION_MAJOR 4
#define DACS_VERSION_MINOR 0

#if defined(__GNUC__)
#define DACS_API __attribute__((visibility("default")))
#else
#define DACS_API
#endif

/* ---- Types ---------------------------------------------------------------------------------- */

typedef uint8_t dacs_byte_t;
typedef uint32_t de_id_t;           /* an element; 0 is none */
typedef uint64_t dacs_process_id_t; /* a process on an element; never 0 */
typedef uint32_t dacs_wid_t;        /* a wait identifier */
typedef uint64_t dacs_addr_64_t;
typedef uint64_t dacs_remote_mem_t;
typedef uint64_t dacs_mem_t;
typedef uint64_t dacs_mutex_t;
typedef uint64_t dacs_group_t;
typedef void *dacs_error_t; /* valid inside the error handler it was given to */
typedef uint32_t (*dacs_error_handler_t)(dacs_error_t error); /* the result is ignored */

typedef struct dacs_dma_list {
	dacs_addr_64_t offset;
	uint64_t size;
} dacs_dma_list_t;

/* A program image in memory, for DACS_PROC_EMBEDDED: word 0 and 1 are the low and high half of
 * its address, 2 and 3 those of its size in bytes, the rest 0. DACS_PROGRAM_HANDLE fills one. */
typedef struct dacs_program_handle {
	unsigned int word[8];
} dacs_program_handle_t;

/* Makes HANDLE (a dacs_program_handle_t) name the SIZE bytes of an executable at IMAGE. */
#define DACS_PROGRAM_HANDLE(handle, image, size)                                                   \
	((handle).word[0] = (unsigned int)((uint64_t)(uintptr_t)(image)&0xffffffffU),              \
	 (handle).word[1] = (unsigned int)((uint64_t)(uintptr_t)(image) >> 32),                    \
	 (handle).word[2] = (unsigned int)((uint64_t)(size)&0xffffffffU),                          \
	 (handle).word[3] = (unsigned int)((uint64_t)(size) >> 32),                                \
	 (handle).word[4] = (handle).word[5] = (handle).word[6] = (handle).word[7] = 0U)

/* Old clients use these names for integers of 4 and 8 bytes; they collide with others' types. */
#ifdef DACS_OLD_INTEGER_NAMES
typedef uint32_t uint4;
typedef int32_t int4;
typedef uint64_t uint8;
typedef int64_t int8;
#endif

/* ---- Constants ------------------------------------------------------------------------------ */

#define NULL_DE_ID       ((de_id_t)0)
#define DACS_DE_SELF     ((de_id_t)-1)
#define DACS_DE_PARENT   ((de_id_t)-2)
#define DACS_PID_SELF    ((dacs_process_id_t)-1)
#define DACS_PID_PARENT  ((dacs_process_id_t)-2)
#define DACS_PROCESS_ALL ((dacs_process_id_t)-1)
#define DACS_INVALID_WID ((dacs_wid_t)0xdac5deadU)
#define DACS_NULL_GROUP  ((dacs_group_t)0)

#define DACS_STREAM_UB  0xffffff00U /* highest stream of a message */
#define DACS_STREAM_ALL 0xffffffffU /* when receiving: any stream */

#define DACS_INIT_FLAGS_NONE      0
#define DACS_INIT_SINGLE_THREADED 1 /* no locks: one thread at a time makes DaCS calls */

#define MAX_PROCESSES_PER_DE    1
#define MAX_PPE_PEERS           2
#define NUM_SPES_PER_CBE        8
#define NUM_SPES_PER_BLADE      16
#define DACSI_MAX_ERROR_STRINGS 50

typedef enum {
	DACS_DE_INVALID = 0,
	DACS_DE_SYSTEMX = 1, /* a host */
	DACS_DE_CELL_BLADE = 2,
	DACS_DE_CBE = 3, /* an accelerator */
	DACS_DE_SPE = 4,
	DACS_DE_MAX_TYPE = 5
} DACS_DE_TYPE_T;

typedef enum {
	DACS_PROC_LOCAL_FILE = 0,      /* a path here, copied to the accelerator */
	DACS_PROC_LOCAL_FILE_LIST = 1, /* a text file naming the program, then its libraries */
	DACS_PROC_REMOTE_FILE = 2,     /* a path on the accelerator */
	DACS_PROC_EMBEDDED = 3         /* a dacs_program_handle_t */
} DACS_PROC_CREATION_FLAG_T;

typedef enum { DACS_KILL_TYPE_ASYNC = 0 } DACS_KILL_TYPE_T;

typedef enum {
	DACS_BYTE_SWAP_DISABLE = 0,
	DACS_BYTE_SWAP_HALF_WORD = 1,  /* 2 bytes */
	DACS_BYTE_SWAP_WORD = 2,       /* 4 bytes */
	DACS_BYTE_SWAP_DOUBLE_WORD = 3 /* 8 bytes */
} DACS_BYTE_SWAP_T;

typedef enum {
	DACS_ORDER_ATTR_NONE = 0,
	DACS_ORDER_ATTR_BARRIER = 1,
	DACS_ORDER_ATTR_FENCE = 2
} DACS_ORDER_ATTR_T;

typedef enum { DACS_TEST_MAILBOX_READ = 0, DACS_TEST_MAILBOX_WRITE = 1 } DACS_TEST_MAILBOX_T;

typedef enum {
	DACS_READ_ONLY = 0x20,
	DACS_WRITE_ONLY = 0x40,
	DACS_READ_WRITE = 0x60
} DACS_MEMORY_ACCESS_MODE_T;

typedef enum {
	DACS_MEM_NONE = 0,
	DACS_MEM_READ_ONLY = 0x20,
	DACS_MEM_WRITE_ONLY = 0x40,
	DACS_MEM_READ_WRITE = 0x60
} DACS_MEM_ACCESS_MODE_T;

typedef enum {
	DACS_REMOTE_MEM_ADDR = 0,
	DACS_REMOTE_MEM_SIZE = 1,
	DACS_REMOTE_MEM_PERM = 2,
	DACS_REMOTE_MEM_ACCESS_MODE = 2
} DACS_REMOTE_MEM_ATTR_T;

typedef enum {
	DACS_MEM_ADDR = 0,
	DACS_MEM_SIZE = 1,
	DACS_RMT_MEM_PERM = 2,
	DACS_LCL_MEM_PERM = 3
} DACS_MEM_ATTR_T;

typedef enum {
	DACS_MEM_REGION_MAX_NUM = 1,
	DACS_MEM_REGION_MAX_SIZE = 2,
	DACS_MEM_REGION_AVAIL = 3
} DACS_MEM_LIMITS_T;

/* X(name, number, text): what calls return. */
#define DACS_STATUSES(X)                                                                           \
	X(SUCCESS, 0, "success")                                                                   \
	X(WID_BUSY, 1, "transfers are still under way")                                            \
	X(STS_PROC_RUNNING, 2, "the process is running")                                           \
	X(STS_PROC_FINISHED, 3, "the process finished successfully")                               \
	X(STS_PROC_FAILED, 4, "the process exited with a failure code")                            \
	X(STS_PROC_ABORTED, 5, "a signal ended the process")                                       \
	X(STS_PROC_KILLED, 6, "the process was killed on request")

#define DACS_ERRORS(X)                                                                             \
	X(INTERNAL, -34999, "internal error")                                                      \
	X(SYSTEM, -34998, "a system call failed")                                                  \
	X(INVALID_ARGV, -34997, "invalid argument vector")                                         \
	X(INVALID_ENV, -34996, "invalid environment")                                              \
	X(INVALID_HANDLE, -34995, "invalid handle")                                                \
	X(INVALID_ADDR, -34994, "invalid address")                                                 \
	X(INVALID_ATTR, -34993, "invalid attribute or flag")                                       \
	X(INVALID_DE, -34992, "no such element, or not reserved")                                  \
	X(INVALID_PID, -34991, "no such process on the element")                                   \
	X(INVALID_TARGET, -34990, "not possible with this partner")                                \
	X(BUF_OVERFLOW, -34989, "buffer too small")                                                \
	X(NOT_ALIGNED, -34988, "not aligned")                                                      \
	X(INVALID_SIZE, -34987, "invalid size")                                                    \
	X(BYTESWAP_MISMATCH, -34986, "the two ends ask for different byte swapping")               \
	X(NO_RESOURCE, -34985, "out of a resource")                                                \
	X(PROC_LIMIT, -34984, "no further process on this element")                                \
	X(NO_PERM, -34983, "permission denied")                                                    \
	X(OWNER, -34982, "the owner cannot do this")                                               \
	X(NOT_OWNER, -34981, "only the owner can do this")                                         \
	X(RESOURCE_BUSY, -34980, "in use")                                                         \
	X(GROUP_CLOSED, -34979, "the group is closed")                                             \
	X(GROUP_OPEN, -34978, "the group is open")                                                 \
	X(GROUP_DUPLICATE, -34977, "already a member of the group")                                \
	X(INVALID_WID, -34976, "no such wait identifier")                                          \
	X(INVALID_STREAM, -34975, "no such stream")                                                \
	X(NO_WIDS, -34974, "out of wait identifiers")                                              \
	X(WID_ACTIVE, -34973, "transfers are under way on the wait identifier")                    \
	X(WID_NOT_ACTIVE, -34972, "no transfer on the wait identifier")                            \
	X(INITIALIZED, -34971, "already initialized")                                              \
	X(NOT_INITIALIZED, -34970, "not initialized")                                              \
	X(MUTEX_BUSY, -34969, "the mutex is held")                                                 \
	X(NOT_SUPPORTED_YET, -34968, "not supported yet")                                          \
	X(VERSION_MISMATCH, -34967, "the other end has another version")                           \
	X(DACSD_FAILURE, -34966, "no answer from the other end in time")                           \
	X(INVALID_PROG, -34965, "not a program that can be started")                               \
	X(ARCH_MISMATCH, -34964, "a program for another architecture")                             \
	X(INVALID_USERNAME, -34963, "invalid user name")                                           \
	X(INVALID_CWD, -34962, "the working directory cannot be made")                             \
	X(NOT_FOUND, -34961, "file not found")                                                     \
	X(TOO_LONG, -34960, "name too long")                                                       \
	X(DE_TERM, -34959, "the partner has ended")

typedef enum {
	DACS_ERR_FIRST_ERROR = -35000,
#define DACS_ERROR_ENUM(name, number, text) DACS_ERR_##name = number,
	DACS_ERRORS(DACS_ERROR_ENUM)
#undef DACS_ERROR_ENUM
#define DACS_STATUS_ENUM(name, number, text) DACS_##name = number,
		DACS_STATUSES(DACS_STATUS_ENUM)
#undef DACS_STATUS_ENUM
			DACS_WID_READY = 0,
	DACS_LAST_STATUS = 7
} DACS_ERR_T;

/* ---- Runtime: dacs_init(3) ------------------------------------------------------------------ */

/*
 * Starts the runtime of this process and, in a program that dacs_de_start started, connects it to
 * the parent, for which it waits as long as that lives. CONFIG_FLAGS: DACS_INIT_FLAGS_NONE or
 * DACS_INIT_SINGLE_THREADED. A host may init and exit as often as it likes, an accelerator once in
 * its life.
 * INITIALIZED, INVALID_ATTR, NO_RESOURCE, VERSION_MISMATCH, DACSD_FAILURE (the parent is gone),
 * INVALID_ENV (a SLMPM setting that cannot be read), TOO_LONG (SLMPM_DACS_CWD_PREFIX).
 */
DACS_API DACS_ERR_T dacs_init(int config_flags);
/*
 * Ends it: lets what has been sent go out, closes the channels, ends children that do not end by
 * themselves (1 s, then as dacs_de_kill), reaps all, releases all elements, wids and directories.
 * Blocks meanwhile, bounded. Other threads' blocked calls return NOT_INITIALIZED.
 */
DACS_API DACS_ERR_T dacs_exit(void);
/* Older names. Both arguments must be NULL: INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_runtime_init(void *arg1, void *arg2);
DACS_API DACS_ERR_T dacs_runtime_exit(void);

/* ---- Reservation: dacs_reserve_children(3) -------------------------------------------------- */

/* *NUM_CHILDREN: elements of TYPE that no process of this node holds. Never blocks.
 * INVALID_ADDR, INVALID_ATTR (TYPE), NO_PERM or SYSTEM (the node's lock file). */
DACS_API DACS_ERR_T dacs_get_num_avail_children(DACS_DE_TYPE_T type, uint32_t *num_children);
/* Reserves up to *NUM_CHILDREN elements exclusively, node-wide, and writes how many were granted
 * (fewer, or 0, is a success) and their ids to DE_LIST. The elements of a process that ends come
 * back by themselves. Never blocks. Errors as above; INVALID_SIZE: *NUM_CHILDREN is 0;
 * NO_RESOURCE. */
DACS_API DACS_ERR_T dacs_reserve_children(DACS_DE_TYPE_T type, uint32_t *num_children,
					  de_id_t *de_list);
/* Gives elements back, all or none. Ended processes on them are reaped. Never blocks.
 * INVALID_SIZE, INVALID_ADDR, INVALID_DE, RESOURCE_BUSY (a process runs on one of them). */
DACS_API DACS_ERR_T dacs_release_de_list(uint32_t num_des, de_id_t *de_list);

/* ---- Processes: dacs_de_start(3) ------------------------------------------------------------ */

/*
 * Starts a program on DE and writes its id to *PID. PROG by CREATION_FLAGS: a path, or a
 * dacs_program_handle_t. ARGV excludes argv[0]; ENVV is its environment, NULL for this process's;
 * both end with NULL and either may be NULL. It runs in a directory of its own ($AE_CWD). Blocks
 * until the program has been started, not until it calls dacs_init; nothing is left behind on an
 * error, and *PID stays. NOT_FOUND, INVALID_PROG, ARCH_MISMATCH, INVALID_ARGV, INVALID_ENV,
 * INVALID_CWD, TOO_LONG, NO_RESOURCE, INVALID_DE; PROC_LIMIT while an unreaped process is there.
 */
DACS_API DACS_ERR_T dacs_de_start(de_id_t de, void *prog, char const **argv, char const **envv,
				  DACS_PROC_CREATION_FLAG_T creation_flags, dacs_process_id_t *pid);
/* How many processes DE can run (1), how many run now. Never block. INVALID_DE, INVALID_TARGET. */
DACS_API DACS_ERR_T dacs_num_processes_supported(de_id_t de, uint32_t *num_processes);
DACS_API DACS_ERR_T dacs_num_processes_running(de_id_t de, uint32_t *num_processes);
/*
 * Waits for a child to end: DACS_STS_PROC_FINISHED (exit 0), _FAILED (*EXIT_STATUS: exit code),
 * _ABORTED (signal number), _KILLED (signal number, after dacs_de_kill). The first of these reaps
 * the process: its unread messages are gone and its id is invalid from then on.
 */
DACS_API DACS_ERR_T dacs_de_wait(de_id_t de, dacs_process_id_t pid, int32_t *exit_status);
/* The same without waiting; DACS_STS_PROC_RUNNING leaves *EXIT_STATUS as it is. */
DACS_API DACS_ERR_T dacs_de_test(de_id_t de, dacs_process_id_t pid, int32_t *exit_status);
/* Asks a child to end: SIGTERM, SIGKILL after SLMPM_DACS_KILL_MS (sent from within a later call).
 * Never blocks; success for one that has ended and was not reaped. */
DACS_API DACS_ERR_T dacs_de_kill(de_id_t de, dacs_process_id_t pid, DACS_KILL_TYPE_T type);

/* ---- Wait identifiers: dacs_wid(3) ---------------------------------------------------------- */

/* A new wid in *WID; 1024 at once. Never blocks. INVALID_ADDR, NO_WIDS. */
DACS_API DACS_ERR_T dacs_wid_reserve(dacs_wid_t *wid);
/* Gives it back and sets *WID to DACS_INVALID_WID. INVALID_WID, WID_ACTIVE (nothing done). */
DACS_API DACS_ERR_T dacs_wid_release(dacs_wid_t *wid);
/*
 * DACS_WID_READY when all transfers started on WID are done, DACS_WID_BUSY before, or the first
 * error among them: BUF_OVERFLOW, BYTESWAP_MISMATCH, DE_TERM; of puts and gets NO_PERM,
 * INVALID_ADDR (memory of the region is not there any more). Done is a local matter: the buffer
 * is the caller's again. Once READY or the error was returned, WID_NOT_ACTIVE until the next
 * transfer. dacs_test never blocks, dacs_wait does.
 */
DACS_API DACS_ERR_T dacs_test(dacs_wid_t wid);
DACS_API DACS_ERR_T dacs_wait(dacs_wid_t wid);

/* ---- Messages: dacs_send(3) ----------------------------------------------------------------- */

/*
 * Starts to send LEN bytes to a partner on STREAM (0 to DACS_STREAM_UB); WID tells when it is
 * done. Never blocks. Messages of one stream arrive in the order sent. Both ends must ask for the
 * same SWAP; where their byte orders differ, the receiver gets the elements swapped.
 * INVALID_SIZE (0), INVALID_STREAM, INVALID_WID, NO_RESOURCE, a partner's errors.
 */
DACS_API DACS_ERR_T dacs_send(void *src_data, uint32_t len, de_id_t dst_de,
			      dacs_process_id_t dst_pid, uint32_t stream, dacs_wid_t wid,
			      DACS_BYTE_SWAP_T swap);
/*
 * Starts to receive the next message from a partner on STREAM (or DACS_STREAM_ALL) into up to LEN
 * bytes; a shorter message is fine. Receives match in the order they were posted. Never blocks.
 * Reported by WID: BUF_OVERFLOW (a longer message) and BYTESWAP_MISMATCH; the message is gone
 * then and DST_DATA as it was. Errors at once as dacs_send.
 */
DACS_API DACS_ERR_T dacs_recv(void *dst_data, uint32_t len, de_id_t src_de,
			      dacs_process_id_t src_pid, uint32_t stream, dacs_wid_t wid,
			      DACS_BYTE_SWAP_T swap);

/* ---- Mailboxes: dacs_mailbox(3) ------------------------------------------------------------- */

/* Puts a word into a partner's mailbox, converted to its byte order. First in, first out; blocks
 * while 4 words of this direction are unread. */
DACS_API DACS_ERR_T dacs_mailbox_write(uint32_t *msg, de_id_t dst_de, dacs_process_id_t dst_pid);
/* Takes the next word that a partner wrote; blocks while there is none. Those of a process that
 * has ended can be read until it is reaped. */
DACS_API DACS_ERR_T dacs_mailbox_read(uint32_t *msg, de_id_t src_de, dacs_process_id_t src_pid);
/* *MBOX_STATUS: 0 when that access would block, else 1. Never blocks. */
DACS_API DACS_ERR_T dacs_mailbox_test(DACS_TEST_MAILBOX_T rw_flag, de_id_t de,
				      dacs_process_id_t pid, int32_t *mbox_status);

/* ---- Errors: dacs_error(3) ------------------------------------------------------------------ */

/* Registers HANDLER, run when a child ends by a signal or with a failure code, inside whichever
 * call notices, without locks held: it may make DaCS calls. In order of registration, up to 32
 * (NO_RESOURCE), until dacs_exit. FLAGS must be 0 (INVALID_ATTR). */
DACS_API DACS_ERR_T dacs_errhandler_reg(dacs_error_handler_t handler, uint32_t flags);
/* Name and meaning of a status or error; never NULL. Thread-safe, needs no dacs_init. */
DACS_API const char *dacs_strerror(DACS_ERR_T errcode);
/* What happened: DACS_STS_PROC_ABORTED or _FAILED. INVALID_HANDLE outside its handler, as for
 * the four that follow. */
DACS_API DACS_ERR_T dacs_error_num(dacs_error_t error);
/* The signal number or exit code. */
DACS_API DACS_ERR_T dacs_error_code(dacs_error_t error, uint32_t *code);
/* A sentence about it; valid as long as ERROR. */
DACS_API DACS_ERR_T dacs_error_str(dacs_error_t error, const char **errstr);
/* The element and the process. */
DACS_API DACS_ERR_T dacs_error_de(dacs_error_t error, de_id_t *de);
DACS_API DACS_ERR_T dacs_error_pid(dacs_error_t error, dacs_process_id_t *pid);

/* ---- Remote memory: dacs_remote_mem(3) ------------------------------------------------------ */

/*
 * The owner creates and shares a region of its memory, the partner accepts, moves data with put and
 * get, and releases; then the owner destroys. Handles are good in the process that got them: zero,
 * stale and other processes' ones, and those of dacs_mem_*, are INVALID_HANDLE.
 */

/* The SIZE bytes at ADDR, any address that stays until they are destroyed; ACCESS_MODE says what
 * partners may do (DACS_READ_ONLY: get, _WRITE_ONLY: put, _READ_WRITE). Never blocks.
 * INVALID_ADDR, INVALID_SIZE (0, or beyond the address space), INVALID_ATTR, NO_RESOURCE. */
DACS_API DACS_ERR_T dacs_remote_mem_create(void *addr, uint64_t size,
					   DACS_MEMORY_ACCESS_MODE_T access_mode,
					   dacs_remote_mem_t *mem);
/* Gives a partner access; blocks until it accepts. Any number of partners, one call each. Past a
 * deadline the offer stands, and the next call waits for its answer. INVALID_HANDLE, NOT_OWNER,
 * NO_RESOURCE (memory; SLMPM_KEYS regions at one partner), a partner's errors. */
DACS_API DACS_ERR_T dacs_remote_mem_share(de_id_t dst_de, dacs_process_id_t dst_pid,
					  dacs_remote_mem_t mem);
/* The next region that a partner shares, in its order; blocks until there is one.
 * INVALID_ADDR, NO_RESOURCE (can be called again), a partner's errors. */
DACS_API DACS_ERR_T dacs_remote_mem_accept(de_id_t src_de, dacs_process_id_t src_pid,
					   dacs_remote_mem_t *mem);
/* An acceptor is through with it; *MEM becomes 0. Never blocks. INVALID_HANDLE, OWNER,
 * RESOURCE_BUSY (a transfer uses it), INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_remote_mem_release(dacs_remote_mem_t *mem);
/* Ends a region; blocks until all acceptors have released it or ended. Offers that nobody has
 * accepted are taken back. *MEM becomes 0. INVALID_HANDLE, NOT_OWNER, INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_remote_mem_destroy(dacs_remote_mem_t *mem);
/* *VALUE: address (the owner's), size or access mode, for owner and acceptors. Never blocks.
 * INVALID_HANDLE, INVALID_ATTR, INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_remote_mem_query(dacs_remote_mem_t mem, DACS_REMOTE_MEM_ATTR_T attr,
					  uint64_t *value);

/* ---- Transfers: dacs_put(3) ----------------------------------------------------------------- */

/*
 * Starts to put SIZE bytes from SRC to DST_OFFSET of an accepted region, or to get them from there;
 * WID tells when it is done and how it failed. Never blocks. Done: SRC can be used again, or DST
 * has the data; what is sent to the owner afterwards arrives after a put.
 * ORDER, towards the same process on the same wid: FENCE starts after all earlier ones, after
 * BARRIER all later ones do so too; NONE: any order.
 * SWAP: elements of that width have the owner's byte order there and this process's here; SIZE
 * counts whole ones.
 * INVALID_WID, INVALID_HANDLE, OWNER (it uses its memory itself), INVALID_ATTR, INVALID_ADDR,
 * INVALID_SIZE (0, or not whole elements), BUF_OVERFLOW (outside of the region), NO_PERM (against
 * its mode), NOT_ALIGNED (with SLMPM_DACS_STRICT only), NO_RESOURCE, DE_TERM.
 */
DACS_API DACS_ERR_T dacs_put(dacs_remote_mem_t dst, uint64_t dst_offset, void *src, uint64_t size,
			     dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap);
DACS_API DACS_ERR_T dacs_get(void *dst, dacs_remote_mem_t src, uint64_t src_offset, uint64_t size,
			     dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap);
/*
 * The same for pieces: offsets count from DST and SRC, the bytes go over in the order of the lists,
 * which are as long in all (INVALID_SIZE). One list has exactly one element: the other one gathers
 * or scatters. The lists can be changed as soon as the call has returned.
 */
DACS_API DACS_ERR_T dacs_put_list(dacs_remote_mem_t dst, dacs_dma_list_t *dst_list,
				  uint32_t dst_list_size, void *src, dacs_dma_list_t *src_list,
				  uint32_t src_list_size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
				  DACS_BYTE_SWAP_T swap);
DACS_API DACS_ERR_T dacs_get_list(void *dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
				  dacs_remote_mem_t src, dacs_dma_list_t *src_list,
				  uint32_t src_list_size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
				  DACS_BYTE_SWAP_T swap);

/* ---- Memory regions: dacs_mem(3) ------------------------------------------------------------ */

/*
 * The newer family: memory at both ends of a transfer is named by a handle. What has the same name
 * as above does the same and returns the same errors.
 */

/* REMOTE_ACCESS: what partners may do; LOCAL_ACCESS: what transfers of this process may do with it
 * as their near end (a put reads it, a get writes it). INVALID_ATTR also when both are NONE. */
DACS_API DACS_ERR_T dacs_mem_create(void *addr, uint64_t size, DACS_MEM_ACCESS_MODE_T remote_access,
				    DACS_MEM_ACCESS_MODE_T local_access, dacs_mem_t *mem);
/* NO_PERM: a region with no remote access has nothing to share. */
DACS_API DACS_ERR_T dacs_mem_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem);
/* Prepares own memory as near end of transfers to a partner, and ends that; counted. Transfers need
 * neither, and shared memory has nothing to prepare. INVALID_HANDLE, NOT_OWNER, NO_RESOURCE, a
 * partner's errors; INVALID_TARGET: not registered for it. */
DACS_API DACS_ERR_T dacs_mem_register(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem);
DACS_API DACS_ERR_T dacs_mem_deregister(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem);
DACS_API DACS_ERR_T dacs_mem_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mem_t *mem);
DACS_API DACS_ERR_T dacs_mem_release(dacs_mem_t *mem);
/* Ends registrations too, and waits for transfers of this process that use it. */
DACS_API DACS_ERR_T dacs_mem_destroy(dacs_mem_t *mem);
DACS_API DACS_ERR_T dacs_mem_query(dacs_mem_t mem, DACS_MEM_ATTR_T attr, uint64_t *value);
/* *VALUE: how many regions this process can know at once (own and accepted ones of both families;
 * mutexes and groups count with them), bytes of one, how many more now. INVALID_ATTR, INVALID_ADDR,
 * a partner's errors. */
DACS_API DACS_ERR_T dacs_mem_limits_query(DACS_MEM_LIMITS_T attr, de_id_t tgt_de,
					  dacs_process_id_t tgt_pid, uint64_t *value);
/* As dacs_put and dacs_get. The local handle: INVALID_HANDLE, NOT_OWNER (an accepted one), NO_PERM
 * (against its local access), BUF_OVERFLOW (outside of it). */
DACS_API DACS_ERR_T dacs_mem_put(dacs_mem_t dst_remote, uint64_t dst_offset, dacs_mem_t src_local,
				 uint64_t src_offset, uint64_t size, dacs_wid_t wid,
				 DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap);
DACS_API DACS_ERR_T dacs_mem_get(dacs_mem_t dst_local, uint64_t dst_offset, dacs_mem_t src_remote,
				 uint64_t src_offset, uint64_t size, dacs_wid_t wid,
				 DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap);
DACS_API DACS_ERR_T dacs_mem_put_list(dacs_mem_t dst_remote, dacs_dma_list_t *dst_list,
				      uint32_t dst_list_size, dacs_mem_t src_local,
				      dacs_dma_list_t *src_list, uint32_t src_list_size,
				      dacs_wid_t wid, DACS_ORDER_ATTR_T order,
				      DACS_BYTE_SWAP_T swap);
DACS_API DACS_ERR_T dacs_mem_get_list(dacs_mem_t dst_local, dacs_dma_list_t *dst_list,
				      uint32_t dst_list_size, dacs_mem_t src_remote,
				      dacs_dma_list_t *src_list, uint32_t src_list_size,
				      dacs_wid_t wid, DACS_ORDER_ATTR_T order,
				      DACS_BYTE_SWAP_T swap);

/* ---- Groups and their barrier: dacs_group(3) ------------------------------------------------- */

/*
 * A host makes a group of itself and its accelerators, or some of them: init, members are added and
 * accept, close; then all can meet at the barrier; leave, destroy. The owner belongs to it only if
 * it has added itself. It has to make calls for the others to go on.
 */

/* FLAGS is 0. Never blocks. INVALID_ADDR, INVALID_ATTR, NO_RESOURCE. */
DACS_API DACS_ERR_T dacs_group_init(dacs_group_t *group, uint32_t flags);
/* A child, which then has to accept: blocks until it has; or DACS_DE_SELF, DACS_PID_SELF, at once.
 * Past a deadline the offer stands, and the next call waits for its answer. INVALID_HANDLE,
 * NOT_OWNER, GROUP_CLOSED, GROUP_DUPLICATE, INVALID_TARGET (the parent), NO_RESOURCE, a partner's
 * errors. */
DACS_API DACS_ERR_T dacs_group_add_member(de_id_t de, dacs_process_id_t pid, dacs_group_t group);
/* No more members; offers not accepted are taken back. Never blocks. INVALID_HANDLE, NOT_OWNER,
 * GROUP_CLOSED. */
DACS_API DACS_ERR_T dacs_group_close(dacs_group_t group);
/* The next group that the parent adds this process to; blocks until there is one. INVALID_ADDR,
 * INVALID_TARGET (no parent, or not it), NO_RESOURCE, a partner's errors. */
DACS_API DACS_ERR_T dacs_group_accept(de_id_t de, dacs_process_id_t pid, dacs_group_t *group);
/* A member is through with it; *GROUP becomes DACS_NULL_GROUP. Blocks while the group is open.
 * INVALID_HANDLE, OWNER, RESOURCE_BUSY (a thread waits at the barrier), INVALID_ADDR,
 * NO_RESOURCE. */
DACS_API DACS_ERR_T dacs_group_leave(dacs_group_t *group);
/* Ends it; blocks until all others have left or ended. *GROUP becomes DACS_NULL_GROUP.
 * INVALID_HANDLE, NOT_OWNER, GROUP_OPEN, INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_group_destroy(dacs_group_t *group);
/* Blocks until all members are there, and the group is closed. DE_TERM, for each member once: one
 * ended without leaving; later barriers go on without it. Past a deadline this process stands there
 * still, and the next call waits on. INVALID_HANDLE, NO_PERM (an owner that is no member),
 * RESOURCE_BUSY (another thread waits there), DE_TERM (the owner ended). */
DACS_API DACS_ERR_T dacs_barrier_wait(dacs_group_t group);

/* ---- Mutexes: dacs_mutex(3) ----------------------------------------------------------------- */

/*
 * A process makes a mutex and shares it with partners; then each of them can have it, one process
 * at a time, in the order asked. The owner keeps that order, so it has to make calls for the others
 * to go on. A process that ends, or releases it, while it has it, gives it back.
 */

/* Never blocks. INVALID_ADDR, NO_RESOURCE. */
DACS_API DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex);
/* Gives it to a partner; blocks until that accepts. Past a deadline the offer stands, and the next
 * call waits for its answer. INVALID_HANDLE, NOT_OWNER, RESOURCE_BUSY (it has it already),
 * NO_RESOURCE, a partner's errors. */
DACS_API DACS_ERR_T dacs_mutex_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mutex_t mutex);
/* The next that a partner shares; blocks until there is one. INVALID_ADDR, NO_RESOURCE, a partner's
 * errors. */
DACS_API DACS_ERR_T dacs_mutex_accept(de_id_t src_de, dacs_process_id_t src_pid,
				      dacs_mutex_t *mutex);
/* Blocks until this process has it. Not recursive: its other threads wait likewise, and so does one
 * that has it. INVALID_HANDLE (also: destroyed meanwhile), DE_TERM (the owner ended). */
DACS_API DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex);
/* The same if it is free, else MUTEX_BUSY. Does not wait for the mutex, but for its owner's answer.
 * All of these, where the owner is to be notified: NO_RESOURCE, nothing has changed. */
DACS_API DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex);
/* By any thread of the process that has it. INVALID_HANDLE, NOT_OWNER (this process has it not),
 * DE_TERM (the owner ended). */
DACS_API DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex);
/* An acceptor is through with it, also while it has it; *MUTEX becomes 0. Never blocks.
 * INVALID_HANDLE, OWNER, INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_mutex_release(dacs_mutex_t *mutex);
/* Ends it, also while it is locked; blocks until all acceptors have released it or ended. *MUTEX
 * becomes 0. INVALID_HANDLE, NOT_OWNER, INVALID_ADDR. */
DACS_API DACS_ERR_T dacs_mutex_destroy(dacs_mutex_t *mutex);

#ifdef __cplusplus
}
#endif

#endif
