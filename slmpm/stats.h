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
/* A descriptor of the memfd number INDEX of process PID whose name begins with LABEL; -1. */
int stats_find(int pid, const char *label, int index);
/* Its size, which its owner can make no less; 0: he can, or it has none. Asked before anything is read there. */
size_t stats_fixed_size(int fd);
void stats_violation(const char *rule);

#endif
