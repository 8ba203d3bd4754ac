/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations by active messages. */
#include "slmpm/emulate.h"

#include "slmpm/arrival.h"

void emulate_handle(struct endpoint *ep, const struct slmpm_am *am)
{
	(void)am;
	arrival_violates(ep, "number of a handler");
}

void emulate_damaged(struct endpoint *ep, uint16_t id)
{
	if (id <= SLMPM_AM_MAX)
		ep->stats->am_unhandled++;
	else
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM, "a request came damaged");
}
