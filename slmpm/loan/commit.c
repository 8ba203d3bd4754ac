/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a loan: sent, whole or a part at a time, or given back. */
#include <errno.h>

#include "slmpm/loan/area.h"
#include "slmpm/link/bundle.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/link/binding.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/wait.h"
#include "slmpm/choice/pick.h"
#include "slmpm/bond/bond.h"
#include "slmpm/completion/completion.h"
#include "slmpm/stats.h"

/* A loan without a hint to a link had nothing to choose. */
static uint8_t loan_reason(struct endpoint *ep)
{
	if (!ep->rooms->loans->hint)
		return SLMPM_REASON_SHORT;
	return rail_is_on(ep, mode_hint_link(ep->rooms->loans->hint)) ? SLMPM_REASON_HINT :
									SLMPM_REASON_LINK;
}

static void count_choice(struct endpoint *ep)
{
	struct mode mode = {.way = MODE_PACKETS, .reason = loan_reason(ep)};

	if (bond_is(ep->link.port))
		mode.link = (uint8_t)bond_path(ep->link.port);
	mode_count(&ep->rooms->figures->modes, MODE_SEND, mode);
}

/* -SLMPM_EAGAIN: not now, it stays open. */
static int commit_packet(struct endpoint *ep, uint64_t len, const struct slmpm_how *how)
{
	struct loans *l = ep->rooms->loans;
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = (uint16_t)(mode_packet_flags(l->hint) |
				    (how && how->flags & SLMPM_MORE ? FABRIC_MORE : 0)),
		.length = (uint32_t)len,
		.seq = ep->sent + 1,
		.route = wire_route(l->stream, how ? how->imm : 0),
		.extent = len,
	};
	int rc;

	rc = link_post_built(ep, &p);
	if (rc == -EAGAIN) /* of several links: that which it goes by has no room */
		return -SLMPM_EAGAIN;
	if (rc == -ENOLINK)
		return rail_impossible(ep, "slmpm_commit", l->hint);
	loan_place(ep, LENT_NONE);
	if (rc != 1)
		return endpoint_error(ep);
	link_begun(ep, len);
	if (UNLIKELY(l->hint))
		count_choice(ep);
	ep->charged -= l->length - len;
	return 0;
}

int loan_post_word(struct endpoint *ep, struct area *area, const struct wire_loan *loan,
		   uint16_t flags, uint64_t route, bool first)
{
	struct packet p = {
		.opcode = first ? WIRE_LOAN : WIRE_LOAN_MORE,
		.flags = flags,
		.length = sizeof(*loan),
		.data = loan,
		.seq = first ? ep->sent + 1 : area->seq,
		.route = route,
	};
	int rc = link_post_request(ep, &p, NULL);

	if (rc == 1 && first) {
		link_begun(ep, 0);
		area->seq = ep->sent;
	}
	return rc;
}

/* -SLMPM_EAGAIN: no room for it now. */
static int post_word(struct endpoint *ep, uint64_t len, const struct slmpm_how *how, bool part)
{
	const struct loans *l = ep->rooms->loans;
	const struct wire_loan loan = {
		.ready = LITTLE_64(len),
		.capacity = LITTLE_64(l->length),
		.area = LITTLE_32(l->area->id),
		.final = LITTLE_32(part ? 0 : 1),
	};
	int rc;

	if (ep->life->sent_end) /* behind which nothing is read */
		return error_set(SLMPM_ECLOSED, "%s is being closed", ep->life->name);
	if (!list_empty(&ep->link.deferred) || (ep->bundle.count && !bundle_flush(ep)))
		return -SLMPM_EAGAIN;
	rc = loan_post_word(ep, l->area, &loan, mode_packet_flags(l->hint),
			    wire_route(l->stream, how ? how->imm : 0), !l->begun);
	if (rc == -EAGAIN)
		return -SLMPM_EAGAIN;
	if (rc == -ENOLINK)
		return rail_impossible(ep, "slmpm_commit", l->hint);
	if (rc != 1)
		return endpoint_error(ep);
	if (!l->begun && UNLIKELY(l->hint))
		count_choice(ep);
	return 0;
}

/* The first part opens the message's envelope; it counts against the credit without its bytes. */
static int commit_area(struct endpoint *ep, uint64_t len, const struct slmpm_how *how)
{
	struct loans *l = ep->rooms->loans;
	bool part = how && how->flags & SLMPM_PART;
	int rc = link_maps(ep) ? post_word(ep, len, how, part) : loan_copy(ep, len, how, !part);

	if (rc < 0)
		return rc;
	ep->stats->sent_bytes += len - l->ready;
	l->ready = len;
	l->begun = true;
	if (!part) {
		loan_place(ep, LENT_NONE);
		l->area = NULL;
	}
	return 0;
}

static int check_loan(struct endpoint *ep, const void *buf, const char *call)
{
	if (!buf || !ep->lent || ep->rooms->loans->data != buf)
		return error_set(SLMPM_ESTATE, "%s: no such loan is open to %s", call,
				 ep->life->name);
	return 0;
}

static int check_commit(struct endpoint *ep, const void *buf, uint64_t len,
			const struct slmpm_how *how)
{
	struct loans *l = ep->rooms->loans;
	int rc = check_loan(ep, buf, "slmpm_commit");

	if (rc < 0)
		return rc;
	if (len > l->length || len < l->ready)
		return error_set(SLMPM_EINVAL,
				 "slmpm_commit: %llu bytes of a loan of %llu, %llu are out",
				 (unsigned long long)len, (unsigned long long)l->length,
				 (unsigned long long)l->ready);
	if (!l->area && how && how->flags & SLMPM_PART)
		return error_set(SLMPM_ENOTSUP, "slmpm_commit: a part of a loan inside a packet");
	return 0;
}

static int commit(struct endpoint *ep, uint64_t len, const struct slmpm_how *how)
{
	struct loans *l = ep->rooms->loans;
	bool begins = !l->area || !l->begun;
	int rc = begins && ep->state == SLMPM_PEER_UP ? binding_take_loan(ep, l->stream, !l->area) :
							0;

	if (rc < 0)
		return rc;
	if (ep->state == SLMPM_PEER_UP) {
		rc = l->area ? commit_area(ep, len, how) : commit_packet(ep, len, how);
		if (rc < 0 && begins)
			binding_return_loan(ep, l->stream, !l->area);
	} else {
		rc = endpoint_error(ep);
		loan_place(ep, LENT_NONE);
		ep->rooms->loans->area = NULL;
		ep->ctx->ended = true;
	}
	if (rc == 0 && ep->blocked)
		(void)link_push(ep);
	return rc;
}

/* The same; the counter or the queue of HOW is notified: a loan that has gone is done. */
static int commit_notified(struct endpoint *ep, uint64_t len, const struct slmpm_how *how)
{
	struct slmpm_done done = {
		.len = len,
		.stream = ep->rooms->loans->stream,
		.imm = how->imm,
		.peer = {handle_id(ep)},
		.op = SLMPM_OP_SEND,
		.reason = loan_reason(ep),
	};
	struct context *ctx = ep->ctx;
	bool queued = ep->rooms->loans->area && !link_maps(ep);
	struct notified notified;
	int rc = completion_open(&notified, ctx, how, NULL);

	if (rc < 0)
		return rc;
	rc = commit(ep, len, how);
	if (rc == 0 && !queued && bond_is(ep->link.port))
		done.flags = SLMPM_ON_LINK(bond_path(ep->link.port));
	if (rc < 0)
		completion_undo(&notified);
	else if (queued || !endpoint_is_blocked(ep, BLOCK_LAGS) ||
		 !leaving_notify(ep, &notified, &done))
		completion_done(ctx, &notified, &done);
	return rc;
}

static int take_how(struct slmpm_how *full, const struct slmpm_how *how)
{
	int rc = how_take("slmpm_commit", full, how, SLMPM_MORE | SLMPM_PART);

	if (rc == 0 && completion_wanted(full) && full->flags & SLMPM_PART)
		return error_set(SLMPM_EINVAL, "slmpm_commit: a part has no end to be told");
	return rc;
}

struct commit {
	struct endpoint *ep;
	slmpm_peer peer;
	void *buf;
	uint64_t length;
	const struct slmpm_how *how;
	int timeout_ms;
	uint64_t deadline; /* 0: nothing has been waited for yet */
	int rc;
};

/* However many things are waited for, one behind the other. */
static int time_left(struct commit *c)
{
	if (!c->deadline)
		c->deadline = clock_deadline(c->timeout_ms);
	return clock_ms(clock_now(), c->deadline, -1);
}

/* What was sent before goes first: a loan in an area stands in no queue. */
static bool is_its_turn(const struct endpoint *ep)
{
	return !ep->rooms->loans->area || ep->rooms->loans->begun || ep->state != SLMPM_PEER_UP ||
	       (list_empty(&ep->link.queue) && !ep->link.active &&
		claim_is_free(ep, ep->rooms->loans->stream));
}

/* Taken, or refused: by whoever else may have committed it meanwhile, too. */
static bool is_committed(void *arg)
{
	struct commit *c = arg;
	struct endpoint *ep = c->ep;

	if (c->rc != -SLMPM_EAGAIN) /* asked once more */
		return true;
	if (endpoint_of(c->peer) != ep)
		c->rc = endpoint_bad_handle(c->peer);
	else
		c->rc = check_commit(ep, c->buf, c->length, c->how);
	if (c->rc == 0 && !is_its_turn(ep))
		c->rc = -SLMPM_EAGAIN;
	else if (c->rc == 0)
		c->rc = completion_wanted(c->how) ? commit_notified(ep, c->length, c->how) :
						    commit(ep, c->length, c->how);
	return c->rc != -SLMPM_EAGAIN;
}

static int await_commit(struct commit *c)
{
	struct endpoint *ep = c->ep;
	struct context *ctx = ep->ctx;

	if (LIKELY(is_committed(c)) || wait_until(ctx, is_committed, c, time_left(c)) == 0)
		return c->rc;
	if (context_forbids(ctx, "slmpm_commit"))
		return -SLMPM_ESTATE;
	return is_its_turn(ep) ?
		       late_error(ctx, ep, c->timeout_ms, "no room for a loan to %s any more",
				  ep->life->name) :
		       late_error(ctx, ep, c->timeout_ms, "what was sent before to %s has not gone",
				  ep->life->name);
}

int slmpm_commit(slmpm_peer peer, void *buf, size_t len, const struct slmpm_how *given)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_how full;
	const struct slmpm_how *how = given ? &full : NULL;
	struct commit c = {
		.ep = ep,
		.peer = peer,
		.buf = buf,
		.length = len,
		.how = how,
		.timeout_ms = -1,
		.rc = -SLMPM_EAGAIN,
	};
	struct context *ctx;
	int rc = given ? take_how(&full, given) : 0;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (rc < 0)
		return rc;
	if (how)
		c.timeout_ms = how->timeout_ms;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = await_commit(&c);
	if (rc < 0 && endpoint_of(peer) == ep)
		claim_leave_loan(ep, ep->rooms->loans->stream);
	if (rc == 0 && !completion_wanted(how) && endpoint_of(peer) == ep &&
	    UNLIKELY(endpoint_is_blocked(ep, BLOCK_LAGS)))
		leaving_await(ep, time_left(&c));
	monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}

int slmpm_abort(slmpm_peer peer, void *buf)
{
	struct endpoint *ep = endpoint_of(peer);
	struct loans *l;
	int rc;

	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	l = ep->rooms->loans;
	rc = check_loan(ep, buf, "slmpm_abort");
	if (rc == 0 && l->begun && l->area)
		rc = error_set(SLMPM_ESTATE, "slmpm_abort: a part of the loan is at %s already",
			       ep->life->name);
	if (rc == 0) {
		loan_place(ep, LENT_NONE);
		ep->charged -= l->charge;
		if (l->area)
			l->area->busy = false;
		else
			(void)link_flush(ep);
		l->area = NULL;
		ep->ctx->ended |= ep->state != SLMPM_PEER_UP;
		(void)link_push(ep);
	}
	context_unlock(ep->ctx);
	return rc;
}
