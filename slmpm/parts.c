/* SPDX-License-Identifier: BSD-3-Clause */
/* What each room does in the life of contexts, peers and requests, in order. */
#include "slmpm/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/connect/secondary.h"
#include "slmpm/calls/close.h"
#include "slmpm/completion/completion.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/connect/control.h"
#include "slmpm/connect/listener.h"
#include "slmpm/deposit/deposit.h"
#include "slmpm/dial/dial.h"
#include "slmpm/engine/engine.h"
#include "slmpm/fifo/fifo.h"
#include "slmpm/group/drive.h"
#include "slmpm/group/group.h"
#include "slmpm/group/operation.h"
#include "slmpm/group/page.h"
#include "slmpm/launch/launch.h"
#include "slmpm/link/addressee.h"
#include "slmpm/link/bundle.h"
#include "slmpm/link/landing.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/link/trace.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/share/share.h"
#include "slmpm/am/am.h"
#include "slmpm/loan/area.h"
#include "slmpm/machine/machine.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/held.h"
#include "slmpm/message/inbound.h"
#include "slmpm/message/match.h"
#include "slmpm/message/message.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/overlay/overlay.h"
#include "slmpm/stats.h"
#include "slmpm/track/chain.h"
#include "slmpm/workqueue/leaver.h"
#include "slmpm/workqueue/workqueue.h"

/* What rooms keep of every peer, in one piece. The 8-byte paths to its memory read rma.holds. */
struct whole {
	struct rooms rooms;
	struct life life;
	struct figures figures;
	struct am am;
	struct bindings bindings;
	struct loans loans;
	struct messages messages;
	struct reaction reaction;
	struct regions regions;
	struct landing landing;
	struct rma rma;
	struct totals_peer totals;
	struct watermark watermark;
};

static bool parts_make(struct endpoint *ep)
{
	struct whole *w = ep->rooms ? (struct whole *)ep->rooms : malloc(sizeof(*w));

	if (!w)
		return false;
	memset(w, 0, sizeof(*w));
	w->figures.totals = &w->totals;
	w->rooms = (struct rooms){.figures = &w->figures,
				  .reaction = &w->reaction,
				  .loans = &w->loans,
				  .am = &w->am,
				  .regions = &w->regions,
				  .bindings = &w->bindings};
	ep->rooms = &w->rooms;
	ep->life = &w->life;
	ep->link.landing = &w->landing;
	ep->link.watermark = &w->watermark;
	ep->messages = &w->messages;
	ep->rma = &w->rma;
	return true;
}

#ifdef SLMPM_COMPARE

/* Builds with a sanitizer look whether each room has kept its bits of ep->blocked. */
static void parts_compare(const struct endpoint *ep)
{
	const struct {
		uint32_t bit;
		bool blocks;
	} all[] = {
		{BLOCK_STATE, ep->state != SLMPM_PEER_UP || ep->closing},
		{BLOCK_CHECK, ep->link.check},
		{BLOCK_MOVING, ep->moving},
		{BLOCK_QUEUE, !list_empty(&ep->link.queue)},
		{BLOCK_DEFERRED, !list_empty(&ep->link.deferred)},
		{BLOCK_ACTIVE, ep->link.active},
		{BLOCK_FETCH, fetch_busy(ep)},
		{BLOCK_LOAN, ep->lent == LENT_PACKET},
		{BLOCK_KEPT, !list_empty(&ep->kept)},
		{BLOCK_ACCEPT, ep->rooms->listener},
		{BLOCK_ANSWERS, ep->rma->job_count},
		{BLOCK_ASK, ask_waits(ep)},
		{BLOCK_EMULATION, emulate_has_work(ep->rooms->emulation)},
		{BLOCK_MIRRORS, mirror_waits(ep)},
		{BLOCK_BOUND, ep->rooms->bindings->count},
		{BLOCK_OVERLAY, overlay_has_work(ep)},
		{BLOCK_DEPOSIT, deposit_has_work(ep)},
	};

	for (size_t i = 0; i < (all[0].blocks ? 1 : sizeof(all) / sizeof(all[0])); i++)
		if (!(ep->blocked & all[i].bit) == all[i].blocks) {
			fprintf(stderr, "%s: ep->blocked is %x, bit %x is wrong\n", ep->life->name,
				ep->blocked, all[i].bit);
			abort();
		}
}

#endif

_Static_assert((int)EMULATE_END <= (int)WIRE_AM_ACK && (int)DEPOSIT_END <= (int)WIRE_AM_DRIVE &&
		       (int)DRIVE_END <= (int)WIRE_AM_OVERLAY,
	       "each room has numbers of its own");

/* One with a number of the library's own. */
static void parts_handle(struct endpoint *ep, const struct slmpm_am *am)
{
	if (am->id == OVERLAY_ID)
		overlay_arrived(ep, am);
	else if (am->id >= DEPOSIT_WORD && am->id < DEPOSIT_END)
		deposit_arrived(ep, am);
	else if (am->id >= DRIVE_PREPARE && am->id < DRIVE_END)
		drive_arrived(ep, am);
	else
		emulate_handle(ep, am);
}

/* A list of functions, in their order. */
#define PARTS(list, ...)                                                                           \
	.list = (__typeof__(*parts.list)[])                                                        \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

const struct parts parts = {
	/* ---- contexts */
	/* The engine's thread may be in it from then on. */
	PARTS(open, monitor_open, engine_open),
	.attend = engine_attend,
	PARTS(to_threads, remote_share_shortcuts, mirror_close_shortcuts),
	PARTS(deadlines, bootstrap_deadlines, listener_deadlines, silence_deadlines, ask_deadlines,
	      secondary_deadlines, process_deadlines, channel_deadlines, claim_deadlines,
	      dial_deadlines, groups_deadlines, pairs_deadlines, operations_deadlines,
	      drives_deadlines, deposit_deadlines),
	.advance = workqueue_advance,
	.pending = workqueue_pending,
	.collect = group_advance,
	.collect_arm = group_arm,
	.retreat = engine_stop_serving,
	PARTS(unlisten, dial_stop, groups_stop, pairs_stop, listener_free_all),
	/* Mirrors before the regions that they lie in. */
	PARTS(shut, overlay_shut, group_shut, mirror_shut, memory_shut, workqueue_shut, dial_shut,
	      completion_end, engine_close, am_forget, monitor_shut),

	.inspect = monitor_inspect,
	.publish = workqueue_publish,
	.collect_publish = groups_publish,
	.is_shown = monitor_is_shown,
	.step_aside = engine_step_aside,
	.show = engine_show,
	.forget_refused = listener_forget_refused,
	.ask_again = handshake_ask_again,

	/* ---- peers */
	PARTS(before, landing_before, trace_before),
	.peer_size = sizeof(struct whole),
	.make = parts_make,
	PARTS(begin, binding_init, inbound_begin, am_begin_peer, area_begin, memory_begin,
	      rma_begin, monitor_new),
#ifdef SLMPM_COMPARE
	.compare = parts_compare,
#endif
	PARTS(up, memory_up, rma_up, listener_up, totals_begin, receive_up, link_up, dial_up,
	      formation_peer_up, groups_up, pair_up, deposit_up, monitor_up),
	.run_kept = am_run_kept,
	PARTS(step, fetch_step, share_step, ask_step, engine_step, rma_post_step),
	.pushes = {{BLOCK_QUEUE, link_push_queue},
		   {BLOCK_ANSWERS, rma_serve},
		   {BLOCK_EMULATION, emulate_push},
		   {BLOCK_MIRRORS, mirror_push},
		   {BLOCK_DEPOSIT, deposit_push},
		   {BLOCK_OVERLAY, overlay_push}},
	.lost = bootstrap_link_lost,
	.fetches_out = fetch_is_out,
	PARTS(ending, groups_ending, watermark_settle, link_ending, landing_end),
	PARTS(end, binding_end, fetch_end, link_queue_end, emulate_end,
	      /* before the requests whose bytes they move: */
	      rma_move_end, rma_post_end, ask_end, am_ack_end, fifo_end, rma_end,
	      link_drop_deferred, grant_end_all, remote_end_all, mirror_end,
	      /* what has begun to arrive has a receive, which match_end would find without it: */
	      inbound_end, match_end, reservation_end, link_end, totals_end, monitor_ended,
	      piping_peer_ended, dial_ended, groups_end, drive_peer_ended, distant_peer_ended,
	      deposit_ended, overlay_ended, pair_ended),
	.offer = bootstrap_offer,
	.read_ahead = bootstrap_read_ahead,
	.grouped = group_packet,
	.admit = distant_admit,
	.ungrouped = deposit_leave,
	.regrouped = deposit_regrouped,
	.machine = &machine_ops,
	.room = groups_room,
	.process_describe = process_describe,
	.hang_up = bootstrap_stop,
	PARTS(reclaim, bundle_free, bootstrap_reclaim, area_reclaim, monitor_leave_page,
	      secondary_reclaim),
	.close = close_peer,
	/* The last figures are added first; what lies in the ring is given back to it. */
	PARTS(leave, overlay_left, groups_free, reservation_leave, leaver_left, listener_left,
	      dial_left, pair_left, totals_add, monitor_free, held_forget, am_forget_kept,
	      inbound_forget, fifo_forget, bootstrap_free, area_free_all, fetch_free, share_free,
	      memory_forget, secondary_free),
	PARTS(free, addressee_free, bundle_free, emulate_free, rma_free, process_free),

	/* ---- requests */
	.awaits = am_ack_awaits,
	.moved = rma_moved,
	PARTS(finishes, monitor_finished, rma_finished, mirror_finished),
	.active_finished = am_finished,
	.deliver = completion_deliver,
	.unnotify = completion_undo,

	/* ---- messages of the library's own, memory */
	.stream_known = receive_known,
	.stream_claimed = reservation_claimed,
	.fifo_arrived = fifo_arrived,
	.handle = parts_handle,
	.emulated_damaged = emulate_damaged,
	.emulated_tagged = emulate_tagged,
	.uncounted = region_uncounted,
	.mirrored = mirror_lies,
	.address_there = remote_address,
	.address_here = grant_address,
	.revoked = ask_revoke,
	.received = rma_received,
	.refused = rma_refused,
	.fifo_put = fifo_put,
	.landed = mirror_landed,
	.guards = track_guards,
	.unprotect = track_unprotect_any,

	/* ---- in a child of fork */
	PARTS(fork_peer, groups_forked, bootstrap_forked, process_forked, secondary_free),
	PARTS(fork_context, listener_forked_all, engine_forked, monitor_forked, mirror_forked,
	      dial_forked, group_forked),
	PARTS(fork, trace_fork, memory_forked, engine_fork, aggregate_forked, totals_forked,
	      foreign_forked, chain_forked, parent_forked, element_forked),
};

#define ONE_SIDED                                                                                  \
	{                                                                                          \
		.submit = rma_submit, .take_back = rma_take_back, .abandon = rma_abandon,          \
		.ready = rma_ready, .push = rma_push, .explain = message_failed                    \
	}
#define RECEIVE                                                                                    \
	{                                                                                          \
		.submit = message_post, .take_back = message_unpost, .abandon = match_abandon,     \
		.explain = message_failed                                                          \
	}

const struct rma_carrier rma_carriers[] = {
	[RMA_BY_RING] = {.start = rma_ring_start, .take_back = rma_ring_take_back},
	[RMA_BY_ENGINE] = {.start = rma_engine_start, .take_back = rma_engine_take_back},
	[RMA_BY_PEER] = {.reaches = ask_reaches,
			 .start = ask_start,
			 .take_back = ask_take_back,
			 .abandon = ask_abandon},
	[RMA_BY_FABRIC] = {.start = rma_post_start,
			   .take_back = rma_post_take_back,
			   .abandon = rma_post_abandon},
	[RMA_BY_AM] = {.start = emulate_start, .take_back = emulate_take_back},
};

const struct request_ops request_ops[REQUEST_KINDS] = {
	[REQUEST_SEND] = {.submit = message_queue,
			  .take_back = am_ack_withdraw,
			  .abandon = message_abandon,
			  .ready = message_ready,
			  .push = message_push,
			  .explain = message_failed},
	[REQUEST_RECV] = RECEIVE,
	[REQUEST_HOLD] = RECEIVE,
	[REQUEST_COLLECTIVE] = {.explain = operation_failed, .late = operation_late},
	[REQUEST_OVERLAY] = {.explain = overlay_send_failed},
	[REQUEST_PUT] = ONE_SIDED,
	[REQUEST_GET] = ONE_SIDED,
	[REQUEST_ATOMIC] = ONE_SIDED,
};
