/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells: by which members of a group that sleep are woken. Each has its own, and gives the other
 * end away. Datagram sockets and no eventfds: who holds one of those can empty it, or have a write
 * to it block, and so keep another member from ringing.
 */
#ifndef SLMPM_BELL_H
#define SLMPM_BELL_H

#include <stdbool.h>

/* A new bell: OWN becomes readable when a process rings by OTHER. 0, or a negative errno. */
int bell_make(int *own, int *other);
/* Is it one that others may hold: ringing it, or closing it, never blocks? */
bool bell_is(int other);
/* Never blocks; false: it is out of order, by its owner's doing or another holder's. */
bool bell_ring(int other);
/* Not readable any more, until it is rung again. */
void bell_quiet(int own);

#endif
