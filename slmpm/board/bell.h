/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells: by which members of a group that sleep are woken. Each has its own, and gives the other
 * end away. Datagram sockets and no eventfds: who holds one of those can empty it, or have a write
 * to it block, and so keep another member from ringing.
 */
#ifndef SLMPM_BELL_H
#define SLMPM_BELL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A new bell: OWN becomes readable when a process rings by OTHER. 0, or a negative errno. */
int bell_make(int *own, int *other);
/* Is it one that others may hold: ringing it never blocks? (Closing does, for as long as a socket
 * with SO_LINGER says that a peer has left in it.) */
bool bell_is(int other);
/* Is it a Unix socket? Its type was asked by who founds the group. */
bool bell_is_local(int other);
/* Never blocks; false: it is out of order, by its owner's doing or another holder's. */
bool bell_ring(int other);

struct bell_word {     /* what has come by a bell */
	bool pair;     /* of a connection with RANK, by its word; else it has only rung */
	uint32_t rank; /* any number */
	pid_t sender;  /* where that is noted; 0: it has no number here, or rang before */
	int fd;        /* an end of it, or memory; the taker's; -1: none */
	bool lost;     /* there was one, for which this process has no descriptor ... */
	bool unwanted; /* ... or that was not wanted */
};

/* Rings OTHER with a word of a connection with this member, RANK, and a copy of FD, unless that is
 * negative. 0, or a negative errno. */
int bell_pass(int other, uint32_t rank, int fd);
/* RC of that: the bell is full, or descriptors under way are too many; later it may do. */
bool bell_is_busy(int rc);
/* From now on the kernel notes who rings, which takes 0.4 us a ring. */
bool bell_note_sender(int own);
/* The next that has come; its descriptor is dropped unless it is WANTED. NOTED: that has been asked
 * for. False: none, it is quiet until it is rung again. */
bool bell_take(int own, struct bell_word *word, bool wanted, bool noted);
/* The same, noted, which stays there, and its descriptor with it. */
bool bell_peek(int own, struct bell_word *word);

#endif
