/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host and accelerator in one test program, or both ends of a connection in one context; bytes
 * that can be checked; what a process holds.
 */
#ifndef TESTS_LIB_ACTOR_H
#define TESTS_LIB_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slmpm.h>

#include "tests/lib/filler.h"
#include "tests/lib/test.h"

#define PATIENCE 20000 /* ms: what never happens in a test that passes */

/* A role of the accelerator: its result is the exit code. */
struct actor {
	const char *name;
	int (*play)(slmpm_peer host, char **words);
};

/* Started by actor_spawn: plays the role and leaves. Else returns. The list ends with a NULL name;
 * a role whose name begins with '-' is played before slmpm_parent is called, HOST being zero. */
void actor_begin(int argc, char **argv, const struct actor *roles);
/* This program as accelerator, with up to two words; or the other build's (other_build.h). */
slmpm_peer actor_spawn(const char *role, const char *a, const char *b);
slmpm_peer actor_spawn_with(const struct slmpm_spawn_options *options, const char *role,
			    const char *a, const char *b);
/* Without words, once its first message, an empty one on stream 0, says that it is ready. */
slmpm_peer actor_spawn_ready(const char *role);
/* It must end by itself with CODE. */
void actor_join(slmpm_peer peer, int code);
/* A word to PEER, on a stream that is for these; and that the next from PEER is WORD. */
void actor_tell(slmpm_peer peer, int word);
void actor_hear(slmpm_peer peer, int word);
#define ACTOR_WORDS 7 /* the stream */
struct slmpm_stats actor_stats(slmpm_peer peer);
/* Two peers in CTX that are each other's. */
void actor_pair(slmpm_ctx ctx, slmpm_peer *a, slmpm_peer *b);
/* Nothing that such two have sent, and answered, is on its way: over links that take their time,
 * too. */
void actor_settle(slmpm_peer a, slmpm_peer b);
/* Ready to sleep, and awake again: what is looked after only then has been. */
void actor_nap(slmpm_ctx ctx);
/* Takes all events that are queued: how many are of TYPE. */
int actor_events(slmpm_ctx ctx, uint32_t type);
/* This program's file. */
const char *actor_self(void);

/* Nothing has come, *TIMES in a row so far: others may run; later on sleeps a moment, or until
 * something comes. */
void actor_idle(slmpm_ctx ctx, unsigned *times);

int64_t actor_now_ms(void);
/* What to multiply patience with: more than 1 under sanitizers and emulators. */
int actor_slow(void);
/* Is the Ith of a list that several programs try to be tried by this one? With SLMPM_TEST_QUICK or
 * a thread sanitizer a third of it is, by the program's name: all together try the whole. */
bool actor_tries(size_t i);
/* But for the totals by peer, which a process keeps. */
int actor_descriptors(void);
/* A line of /proc/self/maps: memory that no peer has (shm/mapping.h)? */
bool actor_is_twice(const char *line);
/* Lines there that name the library's memory. */
int actor_mappings(void);
/* Until the process is stopped, dead, ...: a letter of /proc/PID/stat among STATES. */
void actor_await_state(int pid, const char *states);

/* The call returns WANT; otherwise the test ends with the detail. */
#define EXPECT(call, want)                                                                         \
	do {                                                                                       \
		int64_t got_ = (int64_t)(call), want_ = (int64_t)(want);                           \
		CHECK(got_ == want_, "%s: %lld, expected %lld (%s)", #call, (long long)got_,       \
		      (long long)want_, slmpm_error_detail());                                     \
	} while (0)
#define OK(call) EXPECT(call, 0)
/* The call fails with ERROR, and the detail has WORD in it. */
#define REFUSED(call, error, word)                                                                 \
	do {                                                                                       \
		EXPECT(call, -(error));                                                            \
		CHECK(strstr(slmpm_error_detail(), word), "%s: \"%s\" lacks \"%s\"", #call,        \
		      slmpm_error_detail(), word);                                                 \
	} while (0)

#endif
