/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a message may go straight to its peer's link. */
#ifndef SLMPM_DIRECT_CALLS_H
#define SLMPM_DIRECT_CALLS_H

#include <stdbool.h>

struct endpoint;

/* Is EP up, with nothing of any room under way that would be overtaken or left waiting? For endpoint_refresh. */
bool direct_is_open(const struct endpoint *ep);

#endif
