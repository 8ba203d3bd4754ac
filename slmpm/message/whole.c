/* SPDX-License-Identifier: BSD-3-Clause */
/* A message of a stream of long ones, whole: straight to the link, as a short one goes. */
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/stats.h"

#define WHOLE_MEASURED 7 /* one in so many, for the monitor: each of a few buffers in turn */

static NOINLINE void measure_whole(struct endpoint *ep, const void *buf, size_t len, uint64_t began)
{
	const struct monitor *m = ep->rooms->monitor;
	uint64_t took = clock_ticks() - began;

	if (len >= MONITOR_LONG && m)
		monitor_timed(ep, SLMPM_BY_SMT, len, buf, took,
			      m->echo.time.mean ? took + m->echo.time.mean / 2 : 0);
}

static bool lacks_credit(const struct endpoint *ep, uint64_t charge)
{
	return ep->charged - ep->credited + charge > ep->credit;
}

/* Takes credit that has come; none that lies behind anything else. A peer may send some that gives
 * nothing, again and again. */
static NOINLINE bool takes_credit(struct endpoint *ep, uint64_t charge)
{
	struct fabric_arrival *a;
	int n = 0;

	while (n++ < PROGRESS_SHARE && !ep->unpack.left && ep->state == SLMPM_PEER_UP &&
	       (a = progress_take(ep))) {
		if (a->kind != WIRE_CREDIT) {
			ep->link.next--;
			break;
		}
		if (!packet_take(ep, a))
			progress_release(ep, a);
		if (!lacks_credit(ep, charge))
			return !ep->blocked;
	}
	return false;
}

/*
 * A request would cost a seventh of 64 KiB's copy, which leaves little of what one touches in the
 * caches. As goes_whole in outbound.c, where nothing is to be asked or waited for.
 */
HOT enum sent message_send_whole(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
				 uint32_t imm)
{
	uint64_t charge = wire_charge(len), began;
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.length = (uint32_t)len,
		.data = buf,
		.seq = ep->sent + 1,
		.route = wire_route(stream, imm),
		.extent = len,
	};
	struct mode mode;

	if (len > ep->life->whole_max || len <= ep->only_max ||
	    ep->received != ep->life->answered || ep->blocked || ep->bundle.count ||
	    ep->ctx->handling || ep->rooms->secondary ||
	    (UNLIKELY(lacks_credit(ep, charge)) && !takes_credit(ep, charge)) ||
	    !fetch_leaves(ep, len, &mode))
		return NOT_SENT;
	began = clock_ticks();
	if (link_post(ep, &p) != 1)
		return NOT_SENT;
	link_begun(ep, len);
	ep->stats->sent_packets++;
	ep->charged += charge;
	mode_count(&ep->rooms->figures->modes, MODE_SEND, mode);
	fetch_left(ep, len, began);
	if (!(ep->sent % WHOLE_MEASURED))
		measure_whole(ep, buf, len, began);
	return leaving_sent(ep);
}
