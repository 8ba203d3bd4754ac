/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions offered to partners and accepted from them. */
#ifndef SLMPM_DACS_SHARE_H
#define SLMPM_DACS_SHARE_H

#include "slmpm/dacs/dacs_region.h"

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

/* ---- dacs_accept.c ---- */

DACS_ERR_T dacsi_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			uint64_t *handle);
/* Takes the next message about sharing: 1, 0 none, or the partner's end. */
int dacsi_share_take(struct dacsi_process *process);
/* All that have come; the partner's end only behind them. */
DACS_ERR_T dacsi_share_collect(struct dacsi_process *process);
/* Forgets PROCESS's offers. */
void dacsi_share_drop(struct dacsi_process *process);

#endif
