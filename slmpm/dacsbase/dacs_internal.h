/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of the dacs_*.c files share: the runtime that a call enters and leaves. DaCS is a client of
 * slmpm.h like any other: nothing here reaches behind it.
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

struct dacsi_object;
struct dacsi_process;
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

#endif
