/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of two ways is the shorter one for a length: learned, for each power of two, from what both
 * have cost of late. It depends on where the two processors are, on what they have in their caches
 * and on what else they do, so it is measured (doc/performance.md).
 *
 * The one that seems longer is tried in runs, of which the first turn tells nothing: it pays for
 * the change. What a run has cost beyond the usual way puts the next one off, so that all of them
 * together never take more than a small part of the time. Where that may have been chance a limited
 * part of it is made up for later.
 */
#ifndef SLMPM_CHOICE_H
#define SLMPM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "slmpm/mode/mode.h"

#define CHOICE_CLASSES 20 /* of lengths: to 32 KiB, 64, 128 ...: up to the longest message */

struct choice {
	/* Of the plain way and of the other, for 64 KiB: the least of several; 0: not
	 * known yet. And the least of those that come next. */
	uint32_t cost[2], least[2];
	uint8_t seen[2];  /* how many of them there were */
	bool usual, last; /* which is taken unless the other is tried; and was taken */
	bool tried;       /* a try has ended, or the usual way has changed */
	/* Turns of a try, where it is asked seldom: there is one the sooner again. 0: often. */
	uint8_t tries;
	uint8_t begun;       /* turns before the first one, at most as many */
	uint8_t run;         /* turns left to the try under way */
	uint8_t turn;        /* of which some are timed */
	uint8_t fresh;       /* turns after a change, each of them timed */
	struct mode decided; /* until something else is known; or nothing */
	uint8_t asked;       /* under which circumstances: the asking one's to say */
	uint8_t by;          /* of what is known, what it depends on */
	/* So much of the usual way's cost is to come before the longer one is tried, and so much
	 * more was put off; what that cost was at the last try; and so many turns behind it. */
	uint64_t deferred, spared;
	uint32_t then, left;
	/* Turns left without the other way, for nobody came for the last; of so many. */
	uint32_t without, missed;
};

/* Of a turn. The first after a change counts as a loss, and tells what a way costs if nothing else
 * does. */
enum choice_note { CHOICE_UNTIMED, CHOICE_FIRST, CHOICE_TIMED };

/* The last turn, if it is worth it: what it has cost is known once the next begins. */
struct choice_last {
	struct choice *of;
	enum choice_note note;
	bool other;
	uint64_t length, took;
	uint64_t since; /* its end */
};

/* The choice for LENGTH among CHOICE_CLASSES. */
struct choice *choice_of(struct choice *choices, uint64_t length);
/* The other way is to be taken next: it is usual, or tried. */
bool choice_takes_other(const struct choice *c);
/* What there is to know for a decision. */
void choice_view(const struct choice *c, struct mode_view *v);
/* What was decided by it, if nothing has changed since. */
struct mode choice_decided(const struct choice *c, uint8_t asked);
void choice_decide(struct choice *c, uint8_t asked, struct mode mode);
/* A turn begins, the OTHER way or not: is it worth being timed? */
enum choice_note choice_taken(struct choice *c, bool other);
/* If it was, how long it took for LENGTH bytes, by a clock of one's choosing. */
void choice_learn(struct choice *c, bool other, enum choice_note note, uint64_t took,
		  uint64_t length);
/* The next turn begins NOW. The time between counts as far as it could be the turn's doing: the
 * other side may still take bytes out, and its answer comes the later; and what its processor has
 * read has to be fetched back to be written again. */
void choice_conclude(struct choice_last *last, uint64_t now);
/* What LENGTH bytes may be expected to take; 0: not known. */
uint64_t choice_expected(const struct choice *c, bool other, uint64_t length);
/* The other way was taken, and came to nothing; or to something. */
void choice_missed(struct choice *c);
void choice_met(struct choice *c);

#endif
