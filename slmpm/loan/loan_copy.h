/* SPDX-License-Identifier: BSD-3-Clause */
/* Loans to a peer that cannot map their area: what is committed is copied to its area in packets. */
#ifndef SLMPM_LOAN_COPY_H
#define SLMPM_LOAN_COPY_H

#include "slmpm/endpoint.h"

struct request;

/* Queues the bytes of the open loan up to LEN, and the word that they can be read. 0, or a negative
 * error with the detail set: nothing has changed. */
int loan_copy(struct endpoint *ep, uint64_t len, const struct slmpm_how *how, bool final);
/* As far as the link takes it: packets posted; *STOP when it takes no more. */
int loan_copy_push(struct endpoint *ep, struct request *r, bool *stop);

#endif
