/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration: trials over fabrics and placements (calibrate.c), thresholds out of them
 * (derive.c). */
#ifndef INFO_CALIBRATE_H
#define INFO_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/slmpm_info/collect.h"
#include "apps/slmpm_info/trial.h"

#define PLACEMENTS 2

struct placement { /* of the two processes */
	int cpu[2];
	char text[64];
};

/* The nearest pair of the CPUs that this process may use, and the farthest where that is another:
 * how many. */
int placement_find(struct placement *places);

/* How the fabric tcp goes about its sockets, a bit for each direction by io_uring; each trial
 * measures one. */
enum { SOCKETS_PLAIN, SOCKETS_URING_RECV, SOCKETS_URING_SEND, SOCKETS };
/* As SLMPM_TCP_ENGINE has it, both bits together too. */
extern const char *const calibrate_sockets[SOCKETS + 1];

struct figures { /* of one fabric and placement, over all its trials; 0: not measured */
	double ns[TRIAL_CASES][TRIAL_SIZES];
	double form_ns[2][TRIAL_SIZES]; /* TRIAL_REQUEST by active messages, and by tagged ones */
	/* TRIAL_SMT and TRIAL_SMT_STREAM by each of SOCKETS. */
	double socket_ns[SOCKETS][2][TRIAL_SIZES];
	double ring_mean, ring_most; /* percent */
	double ring_bytes;
	double collect_ns[COLLECT_SETS][COLLECT_KINDS][COLLECT_SIZES];
};

struct threshold { /* what was found for a setting */
	const char *name;
	uint64_t value;
	const char *word; /* in its place */
	bool found, size;
	char measured[200]; /* by which */
};

#define THRESHOLDS 13

/* Of N placements over shared memory, and over TCP. */
void derive(const struct figures *shm, const struct figures *tcp, int n,
	    struct threshold *thresholds);

#endif
