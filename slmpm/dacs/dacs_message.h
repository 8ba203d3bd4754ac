/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and mailboxes: what a process keeps of those that have not gone or come. */
#ifndef SLMPM_DACS_MESSAGE_H
#define SLMPM_DACS_MESSAGE_H

#include "slmpm/dacs/dacs_wid.h"

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
