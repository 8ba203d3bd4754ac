/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of a CALC that are messages yet to come (arrival.c). */
#ifndef SLMPM_ARRIVAL_H
#define SLMPM_ARRIVAL_H

#include "slmpm/workqueue/intake.h"

struct held;

struct arrival {         /* an argument that is a message */
	slmpm_peer from; /* or any */
	uint32_t stream;
	struct intake source;    /* of a managed receive queue */
	uint32_t number;         /* among all arguments */
	bool begun;              /* it is waited for */
	struct request *request; /* under way; or NULL */
	struct held *held;       /* it is there, until its peer is closed; or NULL */
	struct inbound *orphan;  /* there was no memory for that */
	slmpm_peer peer;         /* whose it is */
	uint64_t len;
	int32_t status;
	bool ended; /* it has come, or will not */
};

struct arrivals {           /* of an entry */
	struct queue inner; /* its pass_on notes that one has come */
	struct channel *ch;
	uint32_t count;
	struct arrival each[];
};

/* Operand O, the Kth, can be one of an entry of WQ. Negative with the detail set: it cannot. */
int arrival_check(const struct workqueue *wq, const struct slmpm_operand *o, int k);
void arrival_init(struct arrival *a, const struct slmpm_operand *o, uint32_t number);
/* All are waited for from now on, in their order; those of managed queues as they are enabled. */
void arrivals_begin(struct arrivals *all, struct channel *ch);
void arrivals_go_on(struct arrivals *all);
/* 1: all are there, of so many BYTES; 0: not yet; or why not, of *WHICH. */
int arrivals_inspect(struct arrivals *all, uint64_t bytes, const struct arrival **which);
const void *arrival_data(const struct arrival *a);
/* Those that have not come are waited for no more; some only when they have. */
void arrivals_take_back(struct arrivals *all);
/* Nothing reads them any more. */
void arrivals_give_back(struct arrivals *all);

#endif
