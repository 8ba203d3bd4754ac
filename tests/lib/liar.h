/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who lies in the handshake over shared memory, at a listener and in the place of a spawned child:
 * refused with the reason in bounded time, nothing kept, and an honest peer works on.
 */
#ifndef TESTS_LIB_LIAR_H
#define TESTS_LIB_LIAR_H

#include "tests/lib/actor.h"
#include "tests/lib/raw_peer.h"

/* The deadline: silence meets it soon; who speaks must not, however busy the machine is. */
#define LIAR_SOON_MS  "400"
#define LIAR_LATER_MS "10000"

struct lie {
	const char *name;
	void (*tell)(struct raw_peer *p);
	int error;        /* what the other side's calls say ... */
	const char *word; /* ... and its text, also to us; NULL: it says nothing to us */
};

/* What main does: each of the COUNT lies in both places, those that end with SLMPM_ETIMEOUT under
 * the early deadline. */
int liar_main(int argc, char **argv, const struct lie *lies, size_t count);

#endif
