/* SPDX-License-Identifier: BSD-3-Clause */
/* Wids, messages and mailboxes. */
#ifndef SLMPM_DACS_MESSAGE_H
#define SLMPM_DACS_MESSAGE_H

#include "slmpm/dacsbase/dacs_internal.h"

struct dacsi_dma;
struct dacsi_transfer;

#define DACSI_WIDS 1024

struct dacsi_wid {
	struct dacsi_transfer *running;
	struct dacsi_dma *dma, **dma_last; /* puts and gets not done, in the order started */
	uint32_t attended;                 /* of `dma`: so many need more than SLMPM does */
	uint32_t barriers;                 /* of `dma`, not started */
	uint32_t number;                   /* what the user holds, 0 when free */
	uint32_t round;                    /* times it was reported */
	uint32_t pending;                  /* transfers not done */
	bool active;                       /* something is to be reported */
	DACS_ERR_T error;                  /* the first of this round */
	DACS_ERR_T reported;
};

/* ---- dacs_wid.c ---- */

struct dacsi_wid *dacsi_wid_find(dacs_wid_t wid);
/* Adds a transfer to those that WID waits for. */
void dacsi_wid_begin(struct dacsi_wid *wid);
void dacsi_wid_end(struct dacsi_wid *wid, DACS_ERR_T error);

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

/* Reverses the bytes of each element; a remainder shorter than an element stays. */
void dacsi_swap(void *data, size_t len, DACS_BYTE_SWAP_T swap);

/* ---- dacs_mailbox.c ---- */

/* Words of partners come to this process from now on. */
int dacsi_mailbox_begin(void);
/* Returns credits for words read, as far as not done. */
void dacsi_mailbox_settle(struct dacsi_process *process);

#endif
