/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of a group without boards that are on one machine meet in memory all the same: they are a
 * group of their own, with boards. An operation goes within each machine first, by these, to one
 * member, the leader; by messages among the leaders; and within each machine again. The first
 * operation of a generation forms these groups, and all members agree on whether all are there:
 * else messages go, as within one that has none.
 */
#ifndef SLMPM_MACHINE_H
#define SLMPM_MACHINE_H

#include "slmpm/group/machine_ops.h"

/* For the rooms' list (parts.c). */
extern const struct machine_ops machine_ops;

#endif
