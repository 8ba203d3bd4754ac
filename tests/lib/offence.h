/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that breaks one rule after the other, and who is offended: the channel ends with the
 * violation's name, told and counted once, an honest peer beside it works on, and nothing is left.
 */
#ifndef TESTS_LIB_OFFENCE_H
#define TESTS_LIB_OFFENCE_H

#include <slmpm.h>
#include <sys/types.h>

#include "tests/lib/raw_peer.h"

struct offence {
	const char *rule; /* of doc/reliability.md */
	const char *name;
	void (*commit)(struct raw_peer *p);
	const char *word; /* the violation's name */
	int note;         /* the test's own */
};

/* Who is offended. */
struct victim {
	slmpm_ctx ctx;
	slmpm_listener listener;
	char address[64]; /* where it listens, without "shm:"; or all of it */
	slmpm_peer honest;
	pid_t honest_pid;
};

/* How offender and victim meet; each NULL, or instead of what is said. */
struct trial {
	/* The offender: connects, offers all features. */
	void (*come)(struct raw_peer *p, const char *address);
	/* Hears how it ends, and leaves. */
	void (*hear_end)(struct raw_peer *p, char reason[112]);
	void (*leave)(struct raw_peer *p);
	/* The victim: starts the process and accepts its peer. */
	slmpm_peer (*meet)(const struct victim *v, const struct offence *o, int (*body)(void *),
			   void *arg, pid_t *pid);
	/* One short look, by a call of the test's: a receive on stream 1. */
	int64_t (*inspect)(slmpm_peer peer, const struct offence *o);
	/* What else must be true when the channel has ended. */
	void (*see)(slmpm_peer peer, const struct offence *o);
};

/* The offender sends a message that is received and answered, and offers no features. */
extern const struct trial trial_legal;

/* A context that listens, and an honest peer; one link each, over shared memory. Settings have been
 * made. */
void victim_begin(struct victim *v, const char *name);
/* The same with the links of the settings; NAME "tcp:" listens there, and has the whole address. */
void victim_open(struct victim *v, const char *name);
/* The honest peer has come to no harm. */
void victim_end(struct victim *v);

void offence_survive(const struct victim *v, const struct trial *t, const struct offence *all,
		     size_t count);
#define SURVIVE(v, t, all) offence_survive(v, t, all, sizeof(all) / sizeof(*(all)))

#endif
