/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of the dacs_*.c files share: the runtime that a call enters and leaves. DaCS is a client
 * of slmpm.h like any other: nothing here reaches behind it.
 *
 * One lock guards everything, one SLMPM context carries everything. Receives are not posted below
 * but kept here, because a message may move into the user's buffer only once its swap code has
 * been seen: a receive is given to SLMPM when slmpm_probe has shown its message.
 */
#ifndef SLMPM_DACS_INTERNAL_H
#define SLMPM_DACS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <dacs.h>
#include <slmpm.h>

struct dacsi_invite;
struct dacsi_kind;
struct dacsi_object;
struct dacsi_process;
struct dacsi_transfer;
struct dacsi_wid;

#define DACSI_HANDLERS 32
#define DACSI_EXIT_MS  1000 /* that children have to end by themselves in dacs_exit */
#define DACSI_CLOSE_MS 5000 /* for what is still to be sent then */

struct dacsi_settings {
	int timeout_ms; /* of blocking calls, -1 none */
	int kill_ms;    /* from SIGTERM to SIGKILL */
	bool abort, keep_cwd;
	bool serve;  /* SLMPM_ENGINE=thread */
	bool strict; /* transfers have to be aligned as on a Cell processor */
	char cwd_prefix[256];
};

struct dacsi_error { /* what a dacs_error_t points at */
	struct dacsi_error *next;
	DACS_ERR_T num;
	uint32_t code;
	de_id_t de;
	dacs_process_id_t pid;
	pthread_t handling_thread; /* whose handlers have it now */
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
	bool idle;       /* a wait has found nothing, and SLMPM has not been notified of its end */
	slmpm_ctx ctx;
	int kick; /* wakes who sleeps */
	struct dacsi_settings set;
	struct dacsi_process *children;
	struct dacsi_process *parent;
	uint32_t suspects; /* children that are suspicious */
	uint32_t sequence; /* of processes started */
	uint32_t calls;    /* of the frequent kind */
	uint32_t entered;  /* calls of all kinds */
	bool served;       /* `server` runs */
	pthread_t server;
	de_id_t *elements;
	uint32_t element_count;
	struct dacsi_wid *wids;
	uint32_t wid_places; /* of these, those ever reserved */
	uint32_t attended;   /* transfers that need attention, of all wids */
	uint32_t dma_pass;
	struct dacsi_object **handles; /* by place; NULL where free */
	uint32_t handle_places, handle_count, handle_next;
	uint32_t handle_salt;
	slmpm_ctr words;            /* counts those to partners about shared objects */
	struct dacsi_object *due;   /* shared objects to be settled */
	uint32_t awaited;           /* asks of all members */
	struct dacsi_error *errors; /* for the handlers */
	dacs_error_handler_t handlers[DACSI_HANDLERS];
	uint32_t handler_count;
	bool swept; /* stale directories have been removed */
	int own_cwd_lock;
};

#define DACSI_AT_START                                                                             \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,            \
		.threads = true, .kick = -1, .own_cwd_lock = -1                                    \
	}
extern struct dacsi_runtime dacsi;

static inline void dacsi_lock(void)
{
	if (dacsi.threads)
		pthread_mutex_lock(&dacsi.lock);
}

static inline void dacsi_unlock(void)
{
	if (dacsi.threads)
		pthread_mutex_unlock(&dacsi.lock);
}

/* ---- dacs_state.c ---- */

/* Every call begins and ends with these; leave wakes other threads and runs error handlers. False:
 * DACS_ERR_NOT_INITIALIZED. */
bool dacsi_enter(void);
/* The same for calls with arguments that must be THERE; anything but DACS_SUCCESS: left again. */
DACS_ERR_T dacsi_enter_with(bool there);
DACS_ERR_T dacsi_leave(DACS_ERR_T rc);
/* The same for calls that are made often: does not check the children each time. */
DACS_ERR_T dacsi_leave_fast(DACS_ERR_T rc);
/* What a negative SLMPM code means to a DaCS caller. */
DACS_ERR_T dacsi_code(int64_t error);

/* ---- dacs_error.c ---- */

void dacsi_error_add(const struct dacsi_process *process);
/* Runs the handlers for what has been added; called without the lock. */
void dacsi_error_handle(void);
/* Until handlers that another thread runs are through; not inside a handler. */
void dacsi_error_await(void);
void dacsi_error_reset(void);

#define DACSI_MAILBOX_SLOTS 4

/* A partner: a child, or the parent (de DACS_DE_PARENT). */
struct dacsi_process {
	struct dacsi_process *next;
	de_id_t de;
	dacs_process_id_t pid;
	slmpm_peer peer;
	int os_pid;
	bool ended, killed, suspicious; /* suspicious: perhaps ended */
	bool awaited;                   /* its end has been waited for once */
	DACS_ERR_T outcome;             /* once ended: DACS_STS_PROC_* ... */
	int32_t code;                   /* ... and exit code or signal */
	struct dacsi_transfer *posted;  /* receives in the order posted */
	uint32_t credits;               /* mailbox words that may be written */
	uint32_t unreturned;            /* words read whose credit has not been returned */
	slmpm_req word_req[DACSI_MAILBOX_SLOTS], credit_req;
	struct dacsi_invite *invites; /* objects that it offers, in its order */
	uint32_t invite_count;
	uint32_t member_count; /* of objects of this process that it has a part in */
	/* Puts at it that are done here, that it can see, and that can be seen with `fence`. */
	uint32_t puts, puts_seen, puts_fenced;
	slmpm_req fence;
	uint32_t dma_pass, dma_mark; /* what a pass over a wid's transfers has met */
	uint32_t words[DACSI_MAILBOX_SLOTS], word_head, word_count;
	char *cwd; /* its private directory, or NULL */
	int cwd_lock;
};

/* ---- dacs_process.c ---- */

/* The partner of (DE, PID) for messages, or an error. */
DACS_ERR_T dacsi_partner(de_id_t de, dacs_process_id_t pid, struct dacsi_process **process);
struct dacsi_process *dacsi_process_on(de_id_t de);
/* Notes the end of children that have ended: true if any. CLOSELY: a system call is worth it. */
bool dacsi_process_watch(bool closely);
/* Before a call reports the end of a partner: finds out which child it was, and how it ended. */
void dacsi_process_term(void);
/* Whether a process runs on DE. */
bool dacsi_process_runs(de_id_t de);
void dacsi_process_reap(struct dacsi_process *process);
void dacsi_process_exit_all(void);
/* SLMPM_PEER_* of the channel; negative where it is gone. */
int dacsi_process_state(const struct dacsi_process *process);
/* How the channel is: the partner's end shows where nothing can be written any more. */
DACS_ERR_T dacsi_process_channel(const struct dacsi_process *process);
struct dacsi_process *dacsi_process_new(de_id_t de);

/* ---- dacs_element.c ---- */

/* An error unless DE is one that this process holds. */
DACS_ERR_T dacsi_element_check(de_id_t de);
void dacsi_element_release_all(void);

/* ---- dacs_wait.c: in blocked calls, and in the thread that serves partners meanwhile ---- */

struct dacsi_pause {      /* a blocked call */
	int64_t deadline; /* nanoseconds */
	uint32_t rounds;
	bool slept;
};

int64_t dacsi_now(void);
/* Wakes the thread that sleeps. */
void dacsi_kick(void);
/* Moves on what can be moved on; true when something did. Never blocks. */
bool dacsi_progress(void);
void dacsi_pause_begin(struct dacsi_pause *p);
/* Between two checks of a condition: waits until it may have changed. DACS_SUCCESS: check again. */
DACS_ERR_T dacsi_pause(struct dacsi_pause *p);
/* What was waited for has come, if `dacsi.idle`. */
void dacsi_pause_over(void);
/* A thread that serves partners while the application computes. */
DACS_ERR_T dacsi_serve_begin(void);
/* The runtime is leaving, nobody is inside any more; gives the lock back meanwhile. */
void dacsi_serve_end(void);

/* ---- the families of calls: dacs_parts.c, so that what they stand on needs none of them ---- */

struct dacsi_parts {
	const struct dacsi_kind *kinds[4]; /* by family of objects */
	/* Moves transfers on; settles objects that are due: did anything happen? */
	bool (*attend)(void);
	bool (*settle)(void);
	/* Of a partner: credits to be returned, messages for receives that are posted. */
	void (*settle_mail)(struct dacsi_process *process);
	bool (*match)(struct dacsi_process *process);

	/* A process ends: receives from it do with ERROR. It is gone. */
	void (*fail)(struct dacsi_process *process, DACS_ERR_T error);
	void (*gone)(struct dacsi_process *process);
};

extern const struct dacsi_parts dacsi_parts;

#endif
