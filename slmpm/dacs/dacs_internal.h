/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dacs_*.c files share. DaCS is a client of slmpm.h like any other: nothing here reaches
 * behind it.
 *
 * One lock guards everything, one SLMPM context carries everything. Receives are not posted below
 * but kept here, because a message may move into the user's buffer only once its swap code has
 * been seen: a receive is given to SLMPM when slmpm_probe has shown its message.
 */
#ifndef SLMPM_DACS_INTERNAL_H
#define SLMPM_DACS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dacs.h>
#include <slmpm.h>

#define DACSI_STREAM_WORD   UINT32_C(0xffffff01) /* a mailbox word, in the immediate */
#define DACSI_STREAM_CREDIT UINT32_C(0xffffff02) /* words read, in the immediate */
#define DACSI_STREAM_SHARE  UINT32_C(0xffffff03) /* regions offered and accepted: dacs_share.c */
#define DACSI_MAILBOX_SLOTS 4
#define DACSI_HANDLERS      32
#define DACSI_WIDS          1024
#define DACSI_HANDLES       65535
#define DACSI_EXIT_MS       1000 /* that children have to end by themselves in dacs_exit */
#define DACSI_CLOSE_MS      5000 /* for what is still to be sent then */

struct dacsi_settings {
	int timeout_ms; /* of blocking calls, -1 none */
	int kill_ms;    /* from SIGTERM to SIGKILL */
	uint32_t wait;  /* SLMPM_WAIT_* */
	bool abort, keep_cwd;
	bool serve;  /* SLMPM_ENGINE=thread */
	bool strict; /* transfers have to be aligned as on a Cell processor */
	char cwd_prefix[256];
};

/* A send or receive under way, or a receive that waits for its message. */
struct dacsi_transfer {
	struct dacsi_transfer *next;
	struct dacsi_wid *wid;
	slmpm_req req;
	void *buf;
	uint32_t len;
	uint32_t stream;
	uint32_t swap;
	DACS_ERR_T verdict; /* what to report although the transfer itself went well */
	bool foreign;       /* a receive from the other byte order: swap */
	bool behind;        /* an earlier receive waits on the same stream */
};

struct dacsi_wid {
	struct dacsi_transfer *running;
	struct dacsi_dma *dma, **dma_last; /* puts and gets not done, in the order started */
	struct dacsi_wid *attended;        /* the next one of dacsi.attended */
	uint32_t attend;                   /* of `dma`: so many need more than SLMPM does */
	uint32_t barriers;                 /* of `dma`, not started */
	bool is_attended;                  /* on that list */
	uint32_t number;                   /* what the user holds, 0 when free */
	uint32_t round;                    /* times it was reported */
	uint32_t pending;                  /* transfers not done */
	bool active;                       /* something is to be reported */
	DACS_ERR_T error;                  /* the first of this round */
	DACS_ERR_T reported;
};

/* A partner: a child, or the parent (de DACS_DE_PARENT). */
struct dacsi_process {
	struct dacsi_process *next;
	de_id_t de;
	dacs_process_id_t pid;
	slmpm_peer peer;
	int os_pid;
	int pidfd;                      /* -1 none */
	bool ended, killed, suspicious; /* suspicious: look whether it has ended */
	DACS_ERR_T outcome;             /* once ended: DACS_STS_PROC_* ... */
	int32_t code;                   /* ... and exit code or signal */
	int64_t kill_at;                /* nanoseconds, 0 none */
	struct dacsi_transfer *posted;  /* receives in the order posted */
	uint32_t credits;               /* mailbox words that may be written */
	uint32_t owed;                  /* words read, not yet told */
	slmpm_req word_req[DACSI_MAILBOX_SLOTS], credit_req;
	struct dacsi_invite *invites;           /* regions that it offers, in its order */
	struct dacsi_pact_invite *pact_invites; /* mutexes and groups, likewise */
	uint32_t pact_invite_count;
	uint32_t seat_count;          /* that it has in mutexes and groups of this process */
	struct dacsi_letter *letters; /* to it, not gone yet */
	uint32_t invite_count;
	uint32_t dma_pass, dma_mark; /* what a pass over a wid's transfers has met */
	uint32_t words[DACSI_MAILBOX_SLOTS], word_head, word_count;
	char *cwd; /* its private directory, or NULL */
	int cwd_lock;
};

/* Of handles: dacs_remote_mem_*, dacs_mem_*, dacs_mutex_*, dacs_group_*. */
enum dacsi_family { DACSI_REMOTE = 0, DACSI_MEM = 1, DACSI_MUTEX = 2, DACSI_GROUP = 3 };

struct dacsi_object { /* what a handle names begins with it */
	uint64_t number;
	enum dacsi_family family;
};

struct dacsi_registration {
	struct dacsi_registration *next;
	const struct dacsi_process *process;
	uint32_t count;
};

struct dacsi_region { /* behind a dacs_remote_mem_t or dacs_mem_t */
	struct dacsi_object is;
	bool owner;                           /* else accepted from `process` */
	uint32_t remote_access, local_access; /* DACS_MEM_* */
	uint32_t active;                      /* transfers of this process that use it */
	uint64_t address, size;               /* the owner's address */
	slmpm_mem mem;                        /* own; 0 where nobody else may reach it */
	slmpm_rmem rmem;
	struct dacsi_process *process;            /* NULL once it was reaped */
	struct dacsi_registration *registrations; /* own: with dacs_mem_register */
};

enum dacsi_note_type {
	DACSI_NOTE_OFFER = 1,
	DACSI_NOTE_ACCEPTED = 2,
	DACSI_NOTE_REFUSED = 3,
	DACSI_NOTE_WITHDRAWN = 4,
};

struct dacsi_note {    /* what travels, little-endian */
	uint32_t type; /* the others but OFFER use no more than the id */
	uint32_t id;   /* of the offer, the owner's number */
	uint32_t family, remote_access, local_access, zero;
	struct slmpm_key key;
};

struct dacsi_dma_call { /* a put or get as it was called */
	bool put;
	bool list; /* of the list calls */
	enum dacsi_family family;
	uint64_t remote, local; /* handles; local only of dacs_mem_* */
	void *base;             /* of dacs_put and its like */
	const dacs_dma_list_t *remote_list, *local_list;
	uint32_t remote_count, local_count;
	dacs_wid_t wid;
	DACS_ORDER_ATTR_T order;
	DACS_BYTE_SWAP_T swap;
};

struct dacsi_error { /* what a dacs_error_t points at */
	struct dacsi_error *next;
	DACS_ERR_T num;
	uint32_t code;
	de_id_t de;
	dacs_process_id_t pid;
	char text[96];
};

struct dacsi_runtime {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool up;
	bool threads;    /* the lock is needed */
	bool child;      /* an accelerator: has had a parent, and may not come again */
	bool prepared;   /* `changed` has its clock */
	bool leaving;    /* dacs_exit waits until nobody is inside */
	uint32_t life;   /* how often dacs_init has succeeded */
	uint32_t inside; /* threads that wait with the lock given back */
	bool sleeping;   /* one of them sleeps on the descriptors for all */
	slmpm_ctx ctx;
	int epoll, kick;
	struct dacsi_settings set;
	struct dacsi_process *children;
	struct dacsi_process *parent;
	uint32_t watched;  /* children that are suspicious or to be killed */
	uint32_t sequence; /* of processes started */
	uint32_t calls;    /* of the frequent kind */
	uint32_t entered;  /* calls of all kinds */
	bool served;       /* `server` runs */
	pthread_t server;
	de_id_t *elements;
	uint32_t element_count;
	struct dacsi_wid *wids;
	struct dacsi_wid *attended; /* wids with transfers that need attention */
	uint32_t dma_pass;
	struct dacsi_object **handles; /* by place; NULL where free */
	uint32_t handle_places, handle_count, handle_next;
	uint32_t handle_salt;
	struct dacsi_offer *offers; /* of own regions, not answered or not heard of */
	uint32_t offer_ids;
	struct dacsi_pact *due;     /* mutexes and groups to be settled */
	uint32_t awaited;           /* asks in all seats */
	struct dacsi_error *errors; /* to be told to the handlers */
	dacs_error_handler_t handlers[DACSI_HANDLERS];
	uint32_t handler_count;
	bool swept; /* stale directories have been removed */
	int own_cwd_lock;
};

extern struct dacsi_runtime dacsi;

/* ---- dacs_runtime.c ---- */

/* Every call begins and ends with these; leave wakes other threads and runs error handlers. */
DACS_ERR_T dacsi_enter(void);
DACS_ERR_T dacsi_leave(DACS_ERR_T rc);
/* The same for calls that are made often: does not look at the children each time. */
DACS_ERR_T dacsi_leave_fast(DACS_ERR_T rc);
/* What a negative SLMPM code means to a DaCS caller. */
DACS_ERR_T dacsi_code(int64_t error);

/* ---- dacs_wait.c ---- */

struct dacsi_pause {                  /* a blocked call */
	int64_t deadline, spin_until; /* nanoseconds */
	uint32_t rounds;
	bool slept;
};

int64_t dacsi_now(void);
int dacsi_watch_init(void);
void dacsi_watch_end(void);
int dacsi_watch_add(int fd);
void dacsi_watch_remove(int fd);
/* Wakes the thread that sleeps. */
void dacsi_kick(void);
/* Moves on what can be moved on; true when something did. Never blocks. */
bool dacsi_progress(void);
void dacsi_pause_begin(struct dacsi_pause *p);
/* Between two looks at a condition: waits until it may have changed. DACS_SUCCESS: look again. */
DACS_ERR_T dacsi_pause(struct dacsi_pause *p);
/* A turn of the thread that serves partners: once no call has been made for a millisecond, and
 * nobody else does, it sleeps on the descriptors. *SEEN: calls so far. */
void dacsi_serve_turn(uint32_t *seen);

/* ---- dacs_serve.c ---- */

/* A thread that serves partners while the application computes. */
DACS_ERR_T dacsi_serve_begin(void);
/* The runtime is leaving, nobody is inside any more; gives the lock back meanwhile. */
void dacsi_serve_end(void);

/* ---- dacs_process.c ---- */

/* The partner of (DE, PID) for messages, or an error. */
DACS_ERR_T dacsi_partner(de_id_t de, dacs_process_id_t pid, struct dacsi_process **process);
struct dacsi_process *dacsi_process_on(de_id_t de);
/* Notes the end of children that have ended, kills those whose time has come. CLOSELY: a system
 * call is worth it. True when there was something. */
bool dacsi_process_watch(bool closely);
/* Looks whether the process on DE has ended. */
void dacsi_process_look(de_id_t de);
/* Has the next watch look at PROCESS. */
void dacsi_process_suspect(struct dacsi_process *process);
void dacsi_process_reap(struct dacsi_process *process);
void dacsi_process_exit_all(void);
/* How the channel is: the partner's end shows where nothing can be written any more. */
DACS_ERR_T dacsi_process_channel(const struct dacsi_process *process);
void dacsi_process_init(struct dacsi_process *process, slmpm_peer peer);

/* ---- dacs_element.c ---- */

/* An error unless DE is one that this process holds. */
DACS_ERR_T dacsi_element_check(de_id_t de);
void dacsi_element_release_all(void);

/* ---- dacs_cwd.c ---- */

/* Makes a private directory below PREFIX: its path (to be freed) and the lock that keeps it. */
DACS_ERR_T dacsi_cwd_make(const char *prefix, bool keep, char **path, int *lock);
/* Removes it with all that is in it (unless it is to be kept), and frees PATH. */
void dacsi_cwd_remove(char *path, int lock, bool keep);
/* Removes those below PREFIX that nobody holds any more; returns how many. */
int dacsi_cwd_sweep(const char *prefix);
/* An accelerator's hold on its own directory: the lock, or -1. */
int dacsi_cwd_hold(const char *path);

/* ---- dacs_program.c ---- */

/* Puts the program into CWD as FLAGS want it; *PATH is what is to be executed, to be freed. */
DACS_ERR_T dacsi_program_stage(const void *prog, DACS_PROC_CREATION_FLAG_T flags, const char *cwd,
			       char **path);
/* Whether the file is a program of another machine. */
bool dacsi_program_foreign(const char *path);

/* ---- dacs_env.c ---- */

struct dacsi_env_source {
	char *const *base; /* the client's, or the host's own */
	char *const *host; /* where names of LIST are looked up */
	const char *list;  /* DACS_START_ENV_LIST, or NULL */
	const char *cwd;   /* replaces $AE_CWD, and becomes AE_CWD */
	bool libraries;    /* CWD is to be searched for shared libraries */
	bool lenient;      /* BASE is not the client's: skip what is malformed */
};
/* A new environment, or NULL with *RC set. */
char **dacsi_env_build(const struct dacsi_env_source *source, DACS_ERR_T *rc);
void dacsi_env_free(char **env);
/* Whether VECTOR (or NULL) can be handed to a program. */
bool dacsi_env_fits(char const *const *vector);

/* ---- dacs_wid.c ---- */

struct dacsi_wid *dacsi_wid_find(dacs_wid_t wid);
/* Adds a transfer to those that WID waits for. */
void dacsi_wid_begin(struct dacsi_wid *wid);
void dacsi_wid_end(struct dacsi_wid *wid, DACS_ERR_T error);

/* ---- dacs_message.c ---- */

/* Gives messages that are there to the receives that wait for them. */
bool dacsi_message_match(struct dacsi_process *process);
/* Asks SLMPM about a wid's transfers. */
bool dacsi_message_poll(struct dacsi_wid *wid);
/* Ends what waits for PROCESS; ERROR to be reported. */
void dacsi_message_fail(struct dacsi_process *process, DACS_ERR_T error);
/* Forgets a wid's transfers, whose requests have ended with the context. */
void dacsi_message_abandon(struct dacsi_wid *wid);

/* Whether elements have to be swapped towards PROCESS, which is connected. */
bool dacsi_foreign(const struct dacsi_process *process);

/* ---- dacs_handle.c ---- */

/* What HANDLE names, or NULL. Pointers last until the lock is given back. */
void *dacsi_handle_find(uint64_t handle, enum dacsi_family family);
/* Gives OBJECT its number; false: no memory, or too many. */
bool dacsi_handle_give(struct dacsi_object *object, enum dacsi_family family);
/* Its number names nothing from now on. */
void dacsi_handle_take(const struct dacsi_object *object);
void dacsi_handle_end(void);

/* ---- dacs_region.c ---- */

struct dacsi_region *dacsi_region_find(uint64_t handle, enum dacsi_family family);
/* A new one with its handle, or NULL. */
struct dacsi_region *dacsi_region_new(enum dacsi_family family);
void dacsi_region_free(struct dacsi_region *region);
/* What SLMPM calls an access (DACS_MEM_*). */
uint32_t dacsi_region_rights(uint32_t access);
/* What the calls of both families do. */
DACS_ERR_T dacsi_region_create(enum dacsi_family family, void *addr, uint64_t size,
			       uint32_t remote_access, uint32_t local_access, uint64_t *handle);
DACS_ERR_T dacsi_region_release(enum dacsi_family family, uint64_t *handle);
DACS_ERR_T dacsi_region_destroy(enum dacsi_family family, uint64_t *handle);
/* PROCESS is no more: what was accepted from it stays as a handle only. */
void dacsi_region_orphan(const struct dacsi_process *process);
void dacsi_region_end(void);

/* ---- dacs_mem.c ---- */

/* Drops REGION's registrations with PROCESS, or with all for NULL. */
void dacsi_mem_unregister(struct dacsi_region *region, const struct dacsi_process *process);

/* ---- dacs_share.c ---- */

DACS_ERR_T dacsi_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
		       uint64_t handle);
/* Between this machine's byte order and the one of travel. */
void dacsi_note_convert(struct dacsi_note *note);
/* Sends NOTE; never blocks. */
DACS_ERR_T dacsi_share_tell(struct dacsi_process *process, struct dacsi_note note);
/* Keeps REQ, a message of the library's own to PROCESS, until it has been sent. */
DACS_ERR_T dacsi_share_keep(struct dacsi_process *process, slmpm_req req);
/* A child that has not called dacs_init yet. */
bool dacsi_share_connecting(const struct dacsi_process *process);
/* Frees what has been sent. */
void dacsi_share_settle(struct dacsi_process *process);
void dacsi_share_answered(const struct dacsi_process *process, uint32_t id, DACS_ERR_T answer);
/* Takes back offers of REGION that nobody has accepted. */
void dacsi_share_withdraw(const struct dacsi_region *region);
/* PROCESS and the channel to it are no more. */
void dacsi_share_forget(struct dacsi_process *process);
void dacsi_share_end(void);

/* ---- dacs_pact.c ---- */

/* Words of partners come to this process's mutexes and groups from now on. */
int dacsi_pact_begin(void);
/* Carries out what words have changed; true when there was something. */
bool dacsi_pact_settle(void);
/* PROCESS has ended, or is no more. */
void dacsi_pact_forget(struct dacsi_process *process);
void dacsi_pact_end(void);

/* ---- dacs_accept.c ---- */

DACS_ERR_T dacsi_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			uint64_t *handle);
/* Takes the next message about sharing: 1, 0 none, or the partner's end. */
int dacsi_share_take(struct dacsi_process *process);
/* All that have come; the partner's end only behind them. */
DACS_ERR_T dacsi_share_collect(struct dacsi_process *process);
/* Forgets PROCESS's offers. */
void dacsi_share_drop(struct dacsi_process *process);

/* ---- dacs_dma_check.c ---- */

/* Whether CALL may be done: its ends (*LOCAL is NULL where memory here is not named by a handle) and
 * the *TOTAL bytes it moves. */
DACS_ERR_T dacsi_dma_check(const struct dacsi_dma_call *call, struct dacsi_region **remote,
			   struct dacsi_region **local, uint64_t *total);
/* Its lists in SLMPM's terms. */
void dacsi_dma_convert(const struct dacsi_dma_call *call, const struct dacsi_region *local,
		       struct slmpm_span *spans, struct slmpm_iov *pieces);

/* ---- dacs_dma.c ---- */

DACS_ERR_T dacsi_dma(const struct dacsi_dma_call *call);
/* Moves a wid's transfers on, and starts those whose turn has come. */
bool dacsi_dma_poll(struct dacsi_wid *wid);
/* The same for all that need it. */
bool dacsi_dma_attend(void);
/* The same for all there are. */
void dacsi_dma_poll_all(void);
/* Forgets a wid's transfers, whose requests have ended with the context. */
void dacsi_dma_abandon(struct dacsi_wid *wid);

/* ---- dacs_swap.c ---- */

/* Reverses the bytes of each element; a remainder shorter than an element stays. */
void dacsi_swap(void *data, size_t len, DACS_BYTE_SWAP_T swap);

/* ---- dacs_mailbox.c ---- */

/* Takes a message on one of the reserved streams out of the way of DACS_STREAM_ALL. */
bool dacsi_mailbox_stow(struct dacsi_process *process, uint32_t stream);
/* Tells the partner about words read, as far as not done. */
void dacsi_mailbox_settle(struct dacsi_process *process);

/* ---- dacs_error.c ---- */

void dacsi_error_add(const struct dacsi_process *process);
/* Runs the handlers for what has been added; called without the lock. */
void dacsi_error_tell(void);
void dacsi_error_reset(void);

#endif
