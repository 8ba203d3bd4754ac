/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means over all instances of a job: a process, those it has started (slmpm_spawn, slmpm_run), the
 * one that started it, and so on. They are a tree, so each link of it needs to hear nothing but what
 * all on this side of it come to, and each process has the sum of what it hears and its own.
 */
#ifndef SLMPM_MEANS_H
#define SLMPM_MEANS_H

#include <slmpm.h>

#include "slmpm/endpoint.h"
#include "slmpm/list.h"

#define MEANS_FABRICS 4
#define MEANS_PARTS   (2 + SLMPM_PROTOCOLS) /* packets: counts, fabrics, each protocol */

struct head;

struct means_cell { /* of one protocol and size class: sum over so many instances */
	uint64_t ns;
	uint32_t count;
};

struct means {
	uint64_t instances, links, queue;
	uint64_t out, in; /* sums of the links' thousandths */
	struct {
		char name[8];
		uint64_t requests;
	} fabrics[MEANS_FABRICS];
	struct means_cell cells[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES];
};

struct means_part { /* what a context sees itself, or hears over a link */
	struct list node;
	struct means sum;
};

/* The context's own, once in a period. */
void means_look(struct context *ctx, uint64_t ns);
void means_shut(struct context *ctx);
void means_forked(void);
/* The link ends, and with it what came over it. */
void means_end(struct endpoint *ep);
/* Tells the peer, if both are of a job. */
void means_tell(struct endpoint *ep);
/* And hears it. */
void means_heard(struct endpoint *ep, const struct head *h);
/* What LENGTH bytes by PROTOCOL take on the mean, over all instances: false where none has measured. */
bool monitor_mean(int protocol, uint64_t length, uint64_t *ns);
uint32_t means_instances(void);

#endif
