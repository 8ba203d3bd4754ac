/* SPDX-License-Identifier: BSD-3-Clause */
/* A start elsewhere as its relay is told of it. */
#ifndef SLMPM_REMOTE_REQUEST_H
#define SLMPM_REMOTE_REQUEST_H

#include <stddef.h>

#include <slmpm.h>

#include "slmpm/net/topology.h"

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
