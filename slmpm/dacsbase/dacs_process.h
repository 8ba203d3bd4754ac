/* SPDX-License-Identifier: BSD-3-Clause */
/* A partner, child or parent, and the element that it is on. */
#ifndef SLMPM_DACS_PROCESS_H
#define SLMPM_DACS_PROCESS_H

#include "slmpm/dacsbase/dacs_internal.h"

struct dacsi_invite;
struct dacsi_transfer;

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
	uint32_t member_count;       /* of objects of this process that it has a part in */
	uint32_t dma_pass, dma_mark; /* what a pass over a wid's transfers has met */
	uint32_t words[DACSI_MAILBOX_SLOTS], word_head, word_count;
	char *cwd; /* its private directory, or NULL */
	int cwd_lock;
};

/* ---- dacs_process.c ---- */

/* The partner of (DE, PID) for messages, or an error. */
DACS_ERR_T dacsi_partner(de_id_t de, dacs_process_id_t pid, struct dacsi_process **process);
struct dacsi_process *dacsi_process_on(de_id_t de);
/* Notes the end of children that have ended. CLOSELY: a system call is worth it. True when there was something. */
bool dacsi_process_watch(bool closely);
/* A call is to report the end of a partner: which of the children it was, and how it ended, is found out first. */
void dacsi_process_term(void);
/* Notes whether the process on DE has ended. */
void dacsi_process_check(de_id_t de);
void dacsi_process_reap(struct dacsi_process *process);
void dacsi_process_exit_all(void);
/* How the channel is: the partner's end shows where nothing can be written any more. */
DACS_ERR_T dacsi_process_channel(const struct dacsi_process *process);
void dacsi_process_init(struct dacsi_process *process, slmpm_peer peer);

/* ---- dacs_element.c ---- */

/* An error unless DE is one that this process holds. */
DACS_ERR_T dacsi_element_check(de_id_t de);
void dacsi_element_release_all(void);

#endif
