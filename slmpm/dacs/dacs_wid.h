/* SPDX-License-Identifier: BSD-3-Clause */
/* Wids: what a program waits for. */
#ifndef SLMPM_DACS_WID_H
#define SLMPM_DACS_WID_H

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

struct dacsi_wid *dacsi_wid_find(dacs_wid_t wid);
/* Adds a transfer to those that WID waits for. */
void dacsi_wid_begin(struct dacsi_wid *wid);
void dacsi_wid_end(struct dacsi_wid *wid, DACS_ERR_T error);

#endif
