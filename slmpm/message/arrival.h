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

/* ---- for arrival_loan.c ---------------------------------------------------------------------- */

/* The peer broke RULE: ends the endpoint. False. */
bool arrival_violates(struct endpoint *ep, const char *rule);
/* The next envelope on this link; the credit bounds what may come unasked (R10). */
bool arrival_envelope(struct endpoint *ep, const struct head *h, uint64_t charge);
/* The unfinished message with that envelope, or NULL. */
struct inbound *arrival_unfinished(struct endpoint *ep, uint64_t seq);

/* The packets of a message in an area. */
void arrival_loan(struct endpoint *ep, const struct head *h);
void arrival_loan_more(struct endpoint *ep, const struct head *h);
void arrival_loan_area(struct endpoint *ep, const struct head *h);
void arrival_loan_bytes(struct endpoint *ep, const struct head *h);

#endif
