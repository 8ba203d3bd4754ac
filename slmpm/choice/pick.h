/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector on an endpoint's behalf: what it sees there, and what it chooses. */
#ifndef SLMPM_PICK_H
#define SLMPM_PICK_H

#include "slmpm/endpoint.h"
#include "slmpm/mode/mode_hint.h"

struct choice;
struct request;

/* The way and the link for a message as ASK says on EP, where WAYS are possible; LINK: that is
 * asked for, or -1; C: what two of them have cost of late, or NULL. */
struct mode pick_link(struct endpoint *ep, struct mode_ask *ask, uint32_t ways, int link,
		      const struct choice *c);
/* The same of a one-sided operation, but direct ones not yet if it is BEHIND others: memory is
 * within reach by one link alone. */
struct mode pick_reach(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		       int link);
/* A message to EP may have to wait until the peer runs: this processor was shared of late, and the
 * peer has taken less than a ring holds since. */
bool pick_is_shared(struct endpoint *ep);
/* The form of one-sided operations by request with EP. */
enum mode_rma pick_form(const struct endpoint *ep);
/* FLAGS of a handle, for one-sided operations: 0 where memory is mapped by its link. */
uint32_t pick_memory_hint(const struct endpoint *ep, uint32_t flags);

/* ---- rails: by which of several links packets go --------------------------------------------- */

/* Do packets go by LINK now? -1: any. */
bool rail_is_on(const struct endpoint *ep, int link);
/* What each packet of a request carries that was chosen so (FABRIC_BY, FABRIC_ONLY): it goes by the
 * link of MODE, whether HINT asked for it or not. */
uint16_t rail_flags(const struct endpoint *ep, struct mode mode, uint8_t hint);
/* Packets that ask for no link go by that of MODE from now on. */
void rail_follow(struct endpoint *ep, struct mode mode);
/* A strict HINT cannot be had: -SLMPM_ESTATE, its link does not stand now, or -SLMPM_ENOTSUP. */
int rail_refusal(const struct endpoint *ep, uint8_t hint);
/* A packet of R, which is in the queue, was not posted, for RC. True: for that, and so R has ended.
 * False: for another reason. */
bool rail_ends(struct endpoint *ep, struct request *r, int rc);
/* That STATUS with its detail, behind WHO. */
int rail_refused(const struct endpoint *ep, const char *who, uint8_t hint, int status);
/* Both at once, of a CALL. */
int rail_impossible(const struct endpoint *ep, const char *call, uint8_t hint);

#endif
