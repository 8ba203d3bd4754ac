/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stress: now and then something is made to have too much to do, until the selector has decided
 * otherwise about a file's bytes, or nothing can move. The ring: its reader is stopped, and
 * messages of ballast fill it. A link: likewise, and its ring is the first one's. The queue: puts
 * of ballast wait in the engine.
 */
#ifndef DEMO_STRESS_H
#define DEMO_STRESS_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

#define BALLAST_STREAM 1001u
#define BALLAST_PUTS   24

struct host;

enum strain_state {
	STRAIN_WAITS, /* for its accelerator, before the first burst */
	STRAIN_CALM,
	STRAIN_STOPS,  /* the reader is being stopped */
	STRAIN_LOADS,  /* ballast; files' bytes wait */
	STRAIN_PRESSES /* files' bytes go as the selector says */
};

struct strain { /* of an accelerator */
	enum strain_state state;
	uint64_t due;  /* the next burst, in bytes of files sent to all */
	unsigned seen; /* times that the selector has moved in this one */
	slmpm_req req[BALLAST_PUTS];
};

/* Has A to wait with files' bytes? */
bool stress_holds(const struct host *h, unsigned a);
/* What is to be done now. MOVED: something has come from A or gone to it since. */
bool stress_step(struct host *h, unsigned a, bool moved);
/* Is something under way, so that nobody should sleep for long? */
bool stress_busy(const struct host *h);
/* An operation of A's was done for REASON. */
void stress_see(struct host *h, unsigned a, int reason);
/* A goes on; its ballast is awaited, or (it is gone) forgotten. */
void stress_settle(struct host *h, unsigned a);
void stress_end(struct host *h, unsigned a);

#endif
