/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that asks all rooms whether a message may go straight to its peer's link. */
#include "slmpm/calls/direct.h"

#include "slmpm/memory/ask.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/memory/rma.h"
#include "slmpm/memory/share.h"
#include "slmpm/message/fetch.h"
#include "slmpm/mirror/mirror.h"

bool direct_is_open(const struct endpoint *ep)
{
	return ep->state == SLMPM_PEER_UP && !ep->sampling && list_empty(&ep->link.queue) &&
	       list_empty(&ep->owed) && !ep->link.active && !ep->link.lags &&
	       !(ep->loan.data && !ep->loan.area) && !ep->check && !ep->closing &&
	       !ep->rma->job_count && !ep->one_sided.moving && !ep->work_waiting &&
	       !fetch_busy(ep) && !share_waits(ep) && !ask_waits(ep) && !mirror_waits(ep) &&
	       !emulate_has_work(ep->emulation) && !ep->listener && list_empty(&ep->am.kept);
}
