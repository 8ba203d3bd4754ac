/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts into a FIFO: the bytes and a descriptor of where they would go wait in the target's
 * reception FIFO until its processor takes them, has its engine store them, or drops them. They
 * travel as active messages with numbers of the library's own, and cost credit until they are
 * disposed of. One that is longer than what may arrive without asking comes once no other such of
 * the same peer is there.
 */
#ifndef SLMPM_FIFO_H
#define SLMPM_FIFO_H

#include "slmpm/am/am_ack.h"

struct operation;

/* O has SLMPM_FIFO and has been checked: what the call returns. */
int fifo_put(const struct operation *o);
/* TOTAL bytes of a FIFO_PUT at DATA, whose CHARGE now is the FIFO's to give back. MEMORY: theirs,
 * to be kept; NULL: they are copied. */
void fifo_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		  unsigned char *memory, uint64_t charge);
/* Of an endpoint: what is being stored is stored; and of its handle. */
void fifo_end(struct endpoint *ep);
void fifo_forget(struct endpoint *ep);

#endif
