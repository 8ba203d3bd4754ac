/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a link which lags has taken, and that cannot be taken back. */
#ifndef SLMPM_LEAVING_H
#define SLMPM_LEAVING_H

#include "slmpm/endpoint.h"

struct told;

/* A message has been taken by EP's link, which lags, and cannot be taken back: waits until all of it has left
 * this process, or the deadline. */
COLD void leaving_await(struct endpoint *ep, int timeout_ms);
/* The same without waiting: what was to be TOLD is, as DONE, when it has left; false: no memory for that. */
COLD bool leaving_tell(struct endpoint *ep, struct told *told, const struct slmpm_done *done);

#endif
