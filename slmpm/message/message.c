/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way: how a message that cannot go or come at once is posted, waited for, taken
 * back, and what is said about its end.
 */
#include "slmpm/message/message.h"

#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/message/match.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/wait.h"
#include "slmpm/choice/pick.h"
#include "slmpm/completion/completion.h"

#define STOPPED_MS 1000 /* who is not through with a share of a message in this time has stopped */

int message_truncated(const struct slmpm_done *done, uint64_t cap)
{
	return error_set(SLMPM_ETRUNC, "a message of %llu bytes on stream %u for a buffer of %llu",
			 (unsigned long long)done->len, done->stream, (unsigned long long)cap);
}

static int one_sided_failed(const struct request *r, const char *name)
{
	const char *call = r->kind == REQUEST_GET    ? "slmpm_get" :
			   r->kind == REQUEST_ATOMIC ? "slmpm_atomic" :
						       "slmpm_put";

	switch (-r->result.status) {
	case SLMPM_EACCES:
		return error_set(SLMPM_EACCES,
				 "%s: %s has taken the region back, or allows no such access", call,
				 name);
	case SLMPM_EBUSY:
		return error_set(SLMPM_EBUSY,
				 "%s: the engine of %s has begun it and reacts no more", call,
				 name);
	default: return error_set(-r->result.status, "%s: refused by %s", call, name);
	}
}

/* The peer has answered that no handler there had it. */
static int handler_failed(const struct endpoint *ep, const struct request *r)
{
	if (r->result.status == -SLMPM_ENOENT)
		return error_set(SLMPM_ENOENT, "%s has no handler 0x%x", ep->life->name,
				 r->result.stream);
	return error_set(-r->result.status, "%s: %llu bytes for handler 0x%x", ep->life->name,
			 (unsigned long long)r->result.len, r->result.stream);
}

int message_failed(const struct request *r)
{
	/* By its handle: another thread may have closed it meanwhile. */
	struct endpoint *ep = handle_get(&endpoint_table, r->result.peer.id);

	switch (-r->result.status) {
	case SLMPM_ETRUNC: return message_truncated(&r->result, r->length);
	case SLMPM_ECHECKSUM:
		if (request_is_one_sided(r))
			return error_set(SLMPM_ECHECKSUM, "a one-sided operation with %s",
					 ep ? ep->life->name : "a peer");
		return error_set(SLMPM_ECHECKSUM, "a message of %llu bytes from %s",
				 (unsigned long long)r->result.len, ep ? ep->life->name : "a peer");
	case SLMPM_ENOMEM:
		if (ep && ep->state != SLMPM_PEER_UP)
			return endpoint_error(ep);
		return error_set(SLMPM_ENOMEM, "for a message");
	case SLMPM_ENOTSUP:
	case SLMPM_ESTATE:
		if (ep && ep->life->error == -r->result.status) /* in the handshake */
			return endpoint_error(ep);
		return ep ? rail_refused(ep, "", r->hint, r->result.status) :
			    error_set(-r->result.status, "no peer is left");
	case SLMPM_EDISABLED:
		return binding_refusal(r->result.stream, ep ? ep->life->name : "a peer");
	case SLMPM_ECANCELED: return error_set(SLMPM_ECANCELED, "the request was taken back");
	default:
		if (ep && ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
			return endpoint_error(ep);
		if (request_is_one_sided(r))
			return one_sided_failed(r, ep ? ep->life->name : "the peer");
		if (r->fifo.out && ep)
			return handler_failed(ep, r);
		return error_set(-r->result.status, "%s", ep ? ep->life->name : "no peer is left");
	}
}

int message_queue(struct request *r)
{
	if (UNLIKELY(endpoint_is_blocked(r->ep, BLOCK_BOUND)) && !r->wire) {
		int rc = binding_enter(r->ep, r);

		if (rc)
			return rc < 0 ? rc : 0;
	}
	link_enqueue(r->ep, r);
	(void)link_push(r->ep);
	return 0;
}

/* The peer knows, or will, that it does not come. */
static void message_recall(struct request *r)
{
	if (r->numbered) {
		/* Only what is announced counts as sent when it is received. */
		r->ep->stats->sent_messages--;
		r->ep->stats->sent_bytes -= r->length;
	}
	if (r->ep->messages->unasked_out == r)
		r->ep->messages->unasked_out = NULL;
	if (r->announced && !r->streaming)
		list_remove(&r->node);
	else
		link_dequeue(r->ep, r);
	if (r->ep->link.active == r)
		message_set_active(r->ep, NULL);
	if (r->bound_stream)
		binding_return(r->ep, r->stream);
	r->bound_stream = false;
}

bool message_withdraw(struct request *r)
{
	if (message_is_out(r))
		return false;
	if (UNLIKELY(r->claims)) {
		claim_leave(r->ep, r);
		return true;
	}
	if (r->fetch) {
		if (!fetch_take_back(r))
			return false;
	} else if (r->numbered) {
		link_control(r->ep, WIRE_WITHDRAW, r->seq, 0, NULL, 0);
	}
	message_recall(r);
	return true;
}

struct endpoint *message_abandon(struct request *r)
{
	if (!r->fetch || link_is_read_next(r->ep))
		return NULL;
	fetch_forget(r);
	link_control(r->ep, WIRE_WITHDRAW, r->seq, WIRE_WITHDRAW_END, NULL, 0);
	message_recall(r);
	return r->ep;
}

bool message_unpost(struct request *r)
{
	if (r->message)
		return match_undo(r) == 0;
	match_unpost(r);
	return true;
}

static bool is_done(void *arg)
{
	return ((struct request *)arg)->done;
}

/* Who waits no longer: one that is out cannot be taken back, and so has been sent; unless an answer
 * is to tell. */
static bool end_if_out(struct request *r)
{
	if (!message_is_out(r) || r->done)
		return false;
	message_sent(r->ep, r);
	return r->done;
}

/* ---- waiting for it ------------------------------------------------------------------------- */

/* Would it have gone directly, but for a link that lags or the next sample? */
static bool may_go_now(struct request *r)
{
	uint32_t most = r->wire ? r->ep->packet_max : r->ep->only_max;

	if (sample_gives_way(r))
		return true;
	return r->piece_count == (r->wire ? 2 : 1) && !r->hint && r->length <= most &&
	       r->length < r->ep->fetch_min && link_presses_on(r->ep);
}

/* 1, or 0: it has not begun; or why it never will. */
static int goes_now(struct request *r)
{
	int rc = 0;

	if (may_go_now(r)) {
		rc = request_submit(r);
		if (rc == 0)
			rc = r->done || end_if_out(r);
		if (rc == 0)
			(void)request_take_back(r);
	}
	link_pressed_on(r->ep);
	return rc;
}

/* Inside a handler: only what is there is taken, and only what goes at once is sent. */
static COLD int await_in_handler(struct request *r)
{
	bool receives = r->kind == REQUEST_RECV || r->kind == REQUEST_HOLD;
	struct inbound *m = receives ? match_find(r) : NULL;
	int gone = r->kind == REQUEST_SEND && !r->fifo.tag ? goes_now(r) : 0;

	if (gone)
		return gone < 0 ? gone : request_explain(r);
	if (!m || !inbound_complete(m))
		return context_in_handler("a message");
	match_give(m, r);
	return request_explain(r);
}

/* Taking it back failed for now; what is being copied by the other side is seen through. */
static bool may_try_again(const struct request *r)
{
	return r->fetch || (r->message && r->message->fetch) || r->kind >= REQUEST_PUT;
}

/* Takes it back; half of it may be beyond recall, and is waited for. 0: taken back or done. */
static int see_through(struct request *r)
{
	uint64_t until = clock_deadline(STOPPED_MS);
	bool sends = r->kind == REQUEST_SEND || r->kind == REQUEST_PUT;

	while (!r->done && !end_if_out(r) && !request_take_back(r) && !match_cut(r)) {
		struct endpoint *ep = NULL;

		(void)wait_until(r->ctx, is_done, r, may_try_again(r) ? 1 : -1);
		if (!r->done && clock_now() >= until)
			ep = request_ops[r->kind].abandon(r);
		if (!ep)
			continue;
		if (r->kind == REQUEST_HOLD)
			return 0; /* the memory is ours */
		return error_set(SLMPM_EBUSY,
				 "%s does not go on %s the buffer: leave it to that peer until %s"
				 "it is closed or has ended",
				 ep->life->name, sends ? "reading" : "writing into",
				 r->kind >= REQUEST_PUT ? "slmpm_flush succeeds, " : "");
	}
	return 0;
}

/* The operation had begun and was given up: what of it has been done is not known. */
static bool may_be_done(const struct request *r)
{
	return r->fifo.out || (r->kind >= REQUEST_PUT && r->numbered && r->rma.span_count);
}

/* EAGAIN says that the same call again does nothing twice. */
static COLD int explain_late(const struct request *r, int timeout_ms)
{
	const char *what = request_is_one_sided(r) ? "the operation is not done at" :
			   r->fifo.out             ? "no handler has run yet at" :
			   r->kind == REQUEST_SEND ? "not sent to" :
						     "nothing from";

	return late_from(r->ctx, r->ep, may_be_done(r) ? -1 : timeout_ms, what);
}

int message_await(struct request *r, int timeout_ms)
{
	int rc;

	if (UNLIKELY(r->ctx->handling))
		return await_in_handler(r);
	rc = request_submit(r);
	if (rc < 0)
		return rc;
	if (!timeout_ms && r->kind == REQUEST_SEND)
		fetch_hurry(r);
	rc = r->done ? 0 : wait_until(r->ctx, is_done, r, timeout_ms);
	if (r->done)
		return request_explain(r);
	rc = see_through(r);
	if (rc < 0 || r->done)
		return rc < 0 ? rc : request_explain(r);
	return explain_late(r, timeout_ms);
}

/* Nothing can be sent around a loan that lies in the ring; beside an area all can. */
static int check_no_loan(const struct endpoint *ep)
{
	if (LIKELY(ep->lent != LENT_PACKET))
		return 0;
	return error_set(SLMPM_EBUSY, "a loan to %s is open: commit or abort it first",
			 ep->life->name);
}

int message_begin(struct request *r, int rc, const struct slmpm_how *how, slmpm_req *req)
{
	bool blocks = completion_blocks(how, req);

	if (rc == 0 && blocks)
		rc = check_no_loan(r->ep);
	if (rc == 0)
		rc = completion_bind(r, how, req);
	if (rc == 0)
		rc = blocks ? message_await(r, how ? how->timeout_ms : -1) : request_submit(r);
	if (rc < 0 || blocks)
		request_drop(r);
	else if (req)
		req->id = handle_id(r);
	return rc;
}
