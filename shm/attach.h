/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another process's memory by its address (cross-memory attach), where the kernel allows it. A copy
 * ends when that memory answers, and what lies there is its owner's choice: behind FUSE or
 * userfaultfd it never ends, and a thread that waits so cannot be killed. So it is for processes
 * that trust each other with that.
 */
#ifndef SHM_ATTACH_H
#define SHM_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#define PROBE_SIZE 16

/* Bytes that tell a process from any other, and a place for others to write them to. */
struct attach_probe {
	uint64_t at, echo; /* addresses of PROBE_SIZE bytes each, in its memory; 0: not known */
	unsigned char value[PROBE_SIZE];
};

/* This process's, which stays as long as it lives. False: it has none. */
bool attach_own_probe(struct attach_probe *own);
void attach_forked(void);
/* N bytes between LOCAL and REMOTE, an address of process PID: 1, or a negative errno. */
int attach_copy(int32_t pid, void *local, uint64_t remote, uint64_t n, bool write);
/* PID's memory has P's bytes, where P says: it is the process that has given P. 1, 0, or a negative
 * errno. */
int attach_finds(int32_t pid, const struct attach_probe *p);
/* The same, it is of this process's user, and its memory can be written, too. */
bool attach_works_with(int32_t pid, const struct attach_probe *p);

#endif
