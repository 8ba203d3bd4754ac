/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics: counters with one writer, in memory that other processes can map read-only. */
#ifndef SLMPM_STATS_H
#define SLMPM_STATS_H

#include "slmpm/endpoint.h"

/* The context's page. Without one (no memory) figures stay inside the process. */
void stats_open(struct context *ctx);
void stats_close(struct context *ctx);
/* Gives the endpoint its entry. */
void stats_assign(struct endpoint *ep);
void stats_violation(const char *rule);

#endif
