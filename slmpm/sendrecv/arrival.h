/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to messages. Each packet's header is a private copy, and every figure in it is
 * checked against what this side knows before it is used; what cannot be is a violation.
 */
#ifndef SLMPM_ARRIVAL_H
#define SLMPM_ARRIVAL_H

#include "slmpm/message/inbound.h"

/* ---- messages (arrival_send.c) ------------------------------------------------------------------ */

/* One packet, or a message of a bundle. */
void arrival_only(struct endpoint *ep, const struct head *h);
void arrival_first(struct endpoint *ep, const struct head *h);
void arrival_more(struct endpoint *ep, const struct head *h);
/* The sender gave up: as if the message had never come, but for its envelope. */
void arrival_withdrawn(struct endpoint *ep, const struct head *h);

/* ---- of a message in an area (arrival_loan.c) -------------------------------------------------- */

void arrival_loan(struct endpoint *ep, const struct head *h);
void arrival_loan_more(struct endpoint *ep, const struct head *h);
void arrival_loan_area(struct endpoint *ep, const struct head *h);
void arrival_loan_bytes(struct endpoint *ep, const struct head *h);

/* ---- where its payload belongs (arrival_land.c) -------------------------------------------------- */

void *arrival_place_first(struct endpoint *ep, const struct fabric_arrival *a);
void *arrival_place_more(struct endpoint *ep, const struct fabric_arrival *a);
void *arrival_place_loan(struct endpoint *ep, const struct fabric_arrival *a);
/* A first packet that lands in its receive: its sender may go on before all of it is there. */
void arrival_placed(struct endpoint *ep, const struct fabric_arrival *a);

#endif
