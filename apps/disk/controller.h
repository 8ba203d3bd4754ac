/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller's parts: the host's keys that are open, and the serving of requests. */
#ifndef DISK_CONTROLLER_H
#define DISK_CONTROLLER_H

#include "apps/disk/drive.h"
#include "apps/disk/io.h"

/* ---- keys (keys.c) ---- */

#define KEYS 16

struct open_key {
	struct slmpm_key key;
	slmpm_rmem region;
	unsigned users; /* RDMA Writes under way */
	uint64_t last;  /* when it was used */
};

struct keys { /* those that were used last; opening one is slow */
	slmpm_peer host;
	uint64_t clock;
	struct open_key at[KEYS];
};

/* The region of the host's that KEY opens, in use until keys_drop; NULL: *ERROR says why. */
struct open_key *keys_take(struct keys *k, const struct slmpm_key *key, int *error);
/* FORGET it: it was refused, and the host may come with another. */
void keys_drop(struct open_key *o, bool forget);

/* ---- serving (controller.c) ---- */

struct controller_options {
	struct drive drive[DISK_DRIVES_MAX];
	unsigned drives;
	unsigned depth; /* requests under way */
	bool plain;
};

/* Serves the host that started this process until it closes; the exit code. */
int controller_run(struct controller_options *options);

#endif
