/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a link which lags has taken, and that cannot be taken back. */
#ifndef SLMPM_LEAVING_H
#define SLMPM_LEAVING_H

#include "slmpm/completion/completion.h"
#include "slmpm/endpoint.h"

/* What a fast path says: sent, or not this way; or sent, but part of it has not left this process yet. */
enum sent { NOT_SENT, SENT, SENT_IN_PART };

/* A message has been taken by EP's link, which lags, and cannot be taken back: waits until all of it has left
 * this process, or the deadline. */
COLD void leaving_await(struct endpoint *ep, int timeout_ms);
/* The same without waiting: what was to be TOLD is, as DONE, when it has left; false: no memory for that. */
COLD bool leaving_tell(struct endpoint *ep, struct notified *notified,
		       const struct slmpm_done *done);

/* The fast path of a message whose end is TOLD has said SENT: 1, or 0, not this way. */
static inline int leaving_end(struct endpoint *ep, struct notified *notified,
			      const struct slmpm_done *done, enum sent sent)
{
	if (UNLIKELY(sent == NOT_SENT)) {
		completion_undo(notified);
		return 0;
	}
	if (LIKELY(sent == SENT) || !leaving_tell(ep, notified, done))
		completion_tell(ep->ctx, notified, done);
	return 1;
}

#endif
