/* SPDX-License-Identifier: BSD-3-Clause */
/* Dying at an exact byte or moment, and what a process that survives must find. */
#ifndef TESTS_LIB_DEATH_H
#define TESTS_LIB_DEATH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <slmpm.h>

/* SIZE bytes of which touching any from AT on (rounded down to a page) is SIGKILL. */
void *death_trap(size_t size, size_t at);
/* SIGKILL, at once. */
_Noreturn void death_now(void);

/* The peer's process. */
pid_t pid_of(slmpm_peer peer);

/* Somebody who kills. */
struct killer {
	pid_t pid;
	int64_t *killed_at; /* actor_now_ms, shared with the killer */
};

/* A process that kills VICTIM as soon as this process sleeps. */
struct killer death_when_asleep(pid_t victim);
/* The end must be known within a tenth of a second of it. */
void death_in_time(struct killer *k);

/* Everything about PEER says STATE: calls end with ERROR and WORD in their detail; the events are
 * one UP (if it ever was) and one TYPE. */
void death_expect(slmpm_ctx ctx, slmpm_peer peer, enum slmpm_event_type type, int error,
		  const char *word);

/* What a process holds: its descriptors, and mappings of the library's. */
struct holdings {
	int descriptors, mappings;
};
struct holdings holdings_now(void);
/* No more than BEFORE. */
void holdings_expect(struct holdings before, const char *when);

#endif
