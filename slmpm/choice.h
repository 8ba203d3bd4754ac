/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of two ways is the shorter one for a length: learned, for each power of two, from what both
 * have cost of late. It depends on where the two processors are and on what they have in their
 * caches, so it is measured (doc/performance.md).
 */
#ifndef SLMPM_CHOICE_H
#define SLMPM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define CHOICE_CLASSES 20 /* of lengths: to 32 KiB, 64, 128 ...: up to the longest message */

struct choice {
	uint32_t cost[2]; /* of the plain way and of the other, for 1000 bytes; 0: not known yet */
	uint32_t left;    /* turns until the longer one is tried again ... */
	uint32_t pause;   /* ... and how many that will be from then on */
	uint32_t
		without; /* turns left in which there is no other way, for nobody came for the last */
	uint32_t missed; /* ... and how many they were */
};

/* The choice for LENGTH among CHOICE_CLASSES. */
struct choice *choice_of(struct choice *choices, uint64_t length);
/* Is it the turn of the longer one, or while one is not known, of the other? To be asked as often as
 * one likes, ... */
bool choice_is_trial(const struct choice *c);
/* ... until one has been taken: true when it is worth being timed ... */
bool choice_taken(struct choice *c);
/* ... and, at its end, how long that took for LENGTH bytes, by a clock of one's choosing. */
void choice_learn(struct choice *c, bool other, uint64_t took, uint64_t length);
/* The other way was taken, and came to nothing; or to something. */
void choice_missed(struct choice *c);
void choice_met(struct choice *c);

#endif
