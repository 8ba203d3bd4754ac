/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host is made of: its accelerators (crew.c), their requests, what weighs on them
 * (stress.c). */
#ifndef DEMO_HOST_H
#define DEMO_HOST_H

#include "apps/slmpm_demo/slot.h"

struct host {
	const struct options *options;
	struct tally *tally;
	struct ledger ledger;
	slmpm_ctx ctx;
	slmpm_cq sent; /* completions of loans */
	struct accelerator *accel;
	slmpm_req *req;    /* accelerator by accelerator: its receive, then its slots' operations */
	unsigned living;   /* accelerators */
	slmpm_group group; /* of --reduce: this process, then the accelerators */
};

/* Request K of accelerator A: 0 its receive, from 1 on its slots'. */
static inline slmpm_req *req_of(const struct host *h, unsigned a, unsigned k)
{
	return &h->req[a * (h->options->window + 1) + k];
}

/* ---- the crew (crew.c) ---- */

/* Starts all accelerators; 0, or 1 and it has been told. */
int crew_start(struct host *h);
/* A has said that it is there. */
void crew_ready(struct host *h, unsigned a);
/* Loans have gone: into the table. */
void crew_count_loans(struct host *h);
/* Posts the receive of A's next answer. */
void crew_receive(struct host *h, unsigned a);
/* An operation of A's has ended: into the table. */
void crew_count(struct host *h, unsigned a, const struct slmpm_done *done);
/* A is lost, by what the library says or WHY: its unfinished files go back. */
void crew_bury(struct host *h, unsigned a, const char *why);
/* Accelerators end, and say what they have counted. */
void crew_part(struct host *h);
/* The end is wanted at once. */
void crew_kill(struct host *h);
/* Forgets a request. */
void crew_drop(slmpm_req *req);

#endif
