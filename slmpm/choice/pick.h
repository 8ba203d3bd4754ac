/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector on an endpoint's behalf: what it sees there, and what it chooses. */
#ifndef SLMPM_PICK_H
#define SLMPM_PICK_H

#include "slmpm/mode/mode_hint.h"

struct choice;
struct endpoint;

/* The way and the link for a message as ASK says on EP, where WAYS are possible; LINK: that is asked for, or -1; C:
 * what two of them have cost of late, or NULL. */
struct mode pick_link(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, int link,
		      const struct choice *c);
/* The same of a one-sided operation, but direct ones not yet if it is BEHIND others: memory is within reach by one
 * link alone. */
struct mode pick_reach(struct endpoint *ep, const struct mode_ask *ask, uint32_t ways, bool behind,
		       int link);
/* The form of one-sided operations by request with EP. */
enum mode_rma pick_form(const struct endpoint *ep);
/* FLAGS of a handle, for one-sided operations: 0 where its link is the one that memory is mapped by. */
uint32_t pick_memory_hint(const struct endpoint *ep, uint32_t flags);

#endif
