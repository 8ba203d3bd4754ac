/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that a peer has sent. To close one can take for ever, when it is a file of a file
 * system of the peer's (FUSE asks it at each close), and who waits so cannot be killed: so it is
 * never done here. A process that shares nothing with this one but the table of descriptors does
 * it, for each; another one watches them, and should this process end meanwhile, closes the rest of
 * the table.
 */
#ifndef SLMPM_FOREIGN_H
#define SLMPM_FOREIGN_H

#include <stdbool.h>
#include <sys/types.h>

#define FOREIGN_EACH 28                 /* of one sender, a packet's among them ... */
#define FOREIGN_MAX  (8 * FOREIGN_EACH) /* that may wait to be closed: the others still have room */

/* Closes FD, which process SENDER (or another number, not above 0) has sent: memory, and what is of
 * a process, at once, all else apart. Never blocks. */
void foreign_close(int fd, pid_t sender);
/* May N more of SENDER's be received? */
bool foreign_has_room(int n, pid_t sender);
/* None waits; none of SENDER's. */
bool foreign_is_empty(void);
bool foreign_has_none(pid_t sender);
/* Is FD a process (pidfd)? To close one never blocks. */
bool foreign_is_process(int fd);
/* In a child of fork: another thread of the parent's may have had the lock. */
void foreign_forked(void);

#endif
