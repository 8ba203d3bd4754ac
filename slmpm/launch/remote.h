/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts on other hosts: a relay process here (slmpm_run --relay) stands for the accelerator. It is
 * told over a socket what to start, and says when it runs.
 */
#ifndef SLMPM_REMOTE_H
#define SLMPM_REMOTE_H

#include "slmpm/context.h"
#include "slmpm/net/topology.h"

/* slmpm_spawn for ELEMENT, which lies at PLACE. Waits until the program runs there. */
int remote_spawn(slmpm_peer *peer, struct context *ctx, const char *prog, char *const argv[],
		 const struct slmpm_spawn_options *o, uint32_t element, const struct place *place);

/* ---- what the relay is told (remote_request.c) --------------------------------------------------- */

struct remote_request {
	const struct place *place;
	const char *prog;
	char *const *argv;
	const struct slmpm_spawn_options *options; /* or NULL */
	const char *url, *secret;                  /* the way back */
};

/* *TEXT, to be freed, of *LENGTH bytes. Negative SLMPM_E* with the detail set. */
int remote_request_make(const struct remote_request *r, char **text, size_t *length);

#endif
