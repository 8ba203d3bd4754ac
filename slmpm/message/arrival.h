/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to messages. Each packet's header is a private copy, and every figure in it is
 * checked against what this side knows before it is used; what cannot be is a violation.
 */
#ifndef SLMPM_ARRIVAL_H
#define SLMPM_ARRIVAL_H

#include "slmpm/message/inbound.h"

/* Handles one arrival; true when it was kept (held in place) and must not be released yet. */
bool arrival_take(struct endpoint *ep, const struct fabric_arrival *a);
/* One message of a bundle. */
void arrival_bundled(struct endpoint *ep, uint64_t route, const void *data, uint32_t length);

/* ---- messages (arrival_send.c) ------------------------------------------------------------------ */

/* One packet; as arrival_take. */
bool arrival_only(struct endpoint *ep, const struct head *h, const struct fabric_arrival *a);
/* The same, of a sender that wants to know when it was here. */
bool arrival_timed(struct endpoint *ep, const struct head *h, const struct fabric_arrival *a);
void arrival_first(struct endpoint *ep, const struct head *h);
void arrival_more(struct endpoint *ep, const struct head *h, bool last);
/* The sender gave up: as if the message had never come, but for its envelope. */
void arrival_withdrawn(struct endpoint *ep, const struct head *h);
/* The next envelope on this link; the credit bounds what may come unasked (R10). */
bool arrival_envelope(struct endpoint *ep, const struct head *h, uint64_t charge);
/* The unfinished message with that envelope, or NULL. */
struct inbound *arrival_unfinished(struct endpoint *ep, uint64_t seq);

/* ---- of a message in an area (arrival_loan.c) -------------------------------------------------- */

void arrival_loan(struct endpoint *ep, const struct head *h);
void arrival_loan_more(struct endpoint *ep, const struct head *h);
void arrival_loan_area(struct endpoint *ep, const struct head *h);
void arrival_loan_bytes(struct endpoint *ep, const struct head *h);

#endif
