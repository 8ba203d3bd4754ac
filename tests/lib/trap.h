/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that tells loads from stores: a mapping without access, whose faults are sorted by the
 * processor's error code and then let through one at a time. For showing that a process never
 * loads from its peer's memory. x86-64; one thread at a time may touch the memory.
 *
 * An instruction that reads and writes faults as a write; the usual ones of them are recognized
 * and counted as loads. What the kernel reads for a system call is not seen: the call fails.
 */
#ifndef TESTS_LIB_TRAP_H
#define TESTS_LIB_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trap_counts {
	uint64_t loads;
	uint64_t stores;
	uintptr_t first_load; /* the instruction that did the first load ... */
	uintptr_t address;    /* ... and where it read */
};

/* False where there is no such trap: skip aloud. */
bool trap_possible(void);
/* Arms it for whole pages at BASE; at most eight areas. */
void trap_loads(void *base, size_t size);
/* Opens all areas again and returns what happened since the first was armed. */
struct trap_counts trap_end(void);
/* What happened so far. */
struct trap_counts trap_seen(void);

#endif
