/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is offended about links: two of each peer, and a look, and an end, of the offender's. */
#ifndef TESTS_LIB_RAW_LINK_TRIAL_H
#define TESTS_LIB_RAW_LINK_TRIAL_H

#include "tests/lib/offence.h"

#define LINK_RULE  "round of a secondary link"
/* The word and note of what is refused: the channel goes on, and ends by a lie about something
 * else. */
#define LINK_STILL "opcode", 1

/* Settings of two links over shared memory; the victim, and its honest peer with both. */
void link_victim_begin(struct victim *v, const char *name);
/* The same over TCP, three of each. */
void link_victim_begin_tcp(struct victim *v);
/* That one has them still. */
void link_victim_end(struct victim *v);

/* For a trial: the offender connects, and wants two links; a message comes behind each refusal. */
void link_trial_come(struct raw_peer *p, const char *at);
int64_t link_trial_look(slmpm_peer peer, const struct offence *o);
void link_trial_see(slmpm_peer peer, const struct offence *o);
/* And link 1 had not been lost before the end. */
void link_trial_see_standing(slmpm_peer peer, const struct offence *o);
void link_trial_leave(struct raw_peer *p);

#endif
