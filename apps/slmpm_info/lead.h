/* SPDX-License-Identifier: BSD-3-Clause */
/* The side of a pair that says what is done (pair.h); trial_follow is the other one. */
#ifndef INFO_LEAD_H
#define INFO_LEAD_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

struct lead {
	slmpm_peer peer;
	unsigned char *from; /* PAIR_BYTES of this side that the peer maps */
	slmpm_mem mem;
	slmpm_rmem there; /* as many of the peer's */
	bool mapped;      /* and this process maps them */
	char path[16];    /* by which it reaches them */
};

/* Starts the other side, with more environment, on CPU. 0 or negative. */
int lead_begin(struct lead *lead, int cpu, char *const *envp);
/* The next COUNT messages are of SIZE bytes each; FLAGS: PAIR_*. */
int lead_order(struct lead *lead, uint64_t size, uint32_t count, uint32_t flags);
/* Until the other side has said that it has what it was to receive. */
int lead_answer(struct lead *lead);
void lead_end(struct lead *lead);

#endif
