/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a peer: what its control connection, its link, its process and itself tell of it, in
 * any order. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define PIDFD_GRACE_MS 50   /* between the socket's end and the process's */
#define LINK_GRACE_MS  2000 /* and that of a link with a connection of its own */

static bool process_has_ended(const struct control *c)
{
	struct pollfd p = {.fd = c->process.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* What the peer sent last may still be on its way over a link that has its own end. */
static bool link_may_speak(const struct endpoint *ep)
{
	return ep->state == SLMPM_PEER_UP && !ep->link.ended && secondary_speaks(ep) &&
	       !ep->rooms->control->link_lost;
}

bool bootstrap_all_is_here(const struct control *c)
{
	return !c->stream && process_has_ended(c);
}

/* Concluded in so many milliseconds, unless somebody says more before. */
static void conclude_in(struct control *c, uint64_t ms)
{
	c->deadline = clock_now() + ms * UINT64_C(1000000);
	list_remove(&c->node);
	list_append(&c->ep->ctx->deadlines, &c->node);
	context_changed(c->ep->ctx);
}

/* Others may hold the link, whose end does not come then. Of a peer that has left because this side
 * has closed it may be waited for less: nothing is lost that it was bound to say. */
static void drain_link_out(struct control *c)
{
	bool soon = bootstrap_all_is_here(c) || c->ep->life->sent_end;
	uint64_t dead_ms = (uint64_t)config_get()->dead_ms;
	uint64_t grace = dead_ms < LINK_GRACE_MS ? dead_ms : LINK_GRACE_MS;

	c->latest = clock_now() + grace * UINT64_C(1000000);
	conclude_in(c, soon && PIDFD_GRACE_MS < grace ? PIDFD_GRACE_MS : grace);
}

/* At the deadline of one that has ended: is more coming in? */
static bool still_comes(struct control *c)
{
	if (!bootstrap_all_is_here(c) || !link_may_speak(c->ep) || clock_now() >= c->latest ||
	    !progress_drain(c->ep) || !link_may_speak(c->ep))
		return false;
	conclude_in(c, PIDFD_GRACE_MS);
	return true;
}

static const char *stream_end(int error)
{
	switch (error) {
	case ECONNRESET:
	case EPIPE: return "its connection was reset";
	case ETIMEDOUT: return "its machine does not answer";
	case EHOSTUNREACH:
	case ENETUNREACH: return "its machine cannot be reached";
	default: return "its connection failed";
	}
}

static const char *how_it_ended(const struct endpoint *ep, bool gone)
{
	const struct control *c = ep->rooms->control;
	const char *lost = ep->link.port->lost;

	if (gone)
		return "its process ended";
	if (ep->rooms->secondary && lost) /* of all links: more than of the control's */
		return lost;
	if (c->stream && c->stream->error)
		return stream_end(c->stream->error);
	return lost && (c->stream || c->step != HUNG_UP) ? lost : "it left the connection";
}

/* Its process ended well, but did not close. What it had sent lies in this side's memory; or lay in
 * its own, and in its kernel, which drops it where something is unread. */
static void end_unclosed(struct endpoint *ep, const char *why)
{
	bool here = link_maps(ep) && !secondary_speaks(ep);
	char text[160];

	snprintf(text, sizeof(text), "%s%s", why,
		 here ? "" : " and did not close: what it sent last may be lost");
	endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, text);
}

/* GONE: its process has ended; else it has only left. */
static void conclude(struct endpoint *ep, bool gone)
{
	struct control *c = ep->rooms->control;
	bool lost = gone || (c->stream && c->stream->error), normal;
	char why[96], text[128];

	snprintf(why, sizeof(why), "%s", how_it_ended(ep, gone));
	list_remove(&c->node);
	normal = ep->rooms->process && parts.process_describe(ep, why, sizeof(why));
	if (ep->state == SLMPM_PEER_CONNECTING) {
		snprintf(text, sizeof(text), "%.90s before it connected", why);
		endpoint_refused(ep, lost ? SLMPM_EDEAD : SLMPM_ECLOSED, text);
		return;
	}
	progress_drain(ep);
	if (ep->state != SLMPM_PEER_UP)
		return;
	if (ep->link.ended) /* how its process ended is no concern of the connection's */
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it closed the connection");
	else if (ep->life->sent_end) /* it has read that, perhaps before we knew */
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it has been closed");
	else if (normal)
		end_unclosed(ep, why);
	else
		endpoint_lost(ep, why);
	/* It may not know yet; nor, where this side calls that an end in order, whether it is one. */
	if (c->link_lost && c->step == CONNECTED)
		bootstrap_stop(ep, ep->life->error == SLMPM_EDEAD ? why : NULL);
}

/* Why it refuses us; anything else than these is its way of breaking the protocol. */
static int refusal_of(uint32_t error)
{
	int code = error <= WIRE_ERROR_LAST ? -wire_status(error) : SLMPM_EPROTO;

	switch (code) {
	case SLMPM_ECLOSED:
	case SLMPM_EVERSION:
	case SLMPM_ENOTSUP:
	case SLMPM_ENOFILE:
	case SLMPM_ENOMEM:
	case SLMPM_EFBIG:
	case SLMPM_EACCES:
	case SLMPM_ELIMIT:
	case SLMPM_ETIMEOUT: return code;
	default: return SLMPM_EPROTO;
	}
}

void bootstrap_bye(struct endpoint *ep, const struct wire_bye *bye)
{
	char said[sizeof(bye->reason)], why[160];

	control_text(said, sizeof(said), bye->reason, sizeof(bye->reason));
	snprintf(why, sizeof(why), "it says: %s", said);
	if (ep->rooms->control->step != CONNECTED) {
		endpoint_refused(ep, refusal_of(LITTLE_32(bye->error)), why);
		return;
	}
	progress_drain(ep); /* what it had sent before can still be received */
	/* Of a group's it has never been up there: nothing that it has sent is lost. */
	if (ep->rooms->pair && refusal_of(LITTLE_32(bye->error)) == SLMPM_ECLOSED)
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, why);
	else
		endpoint_lost(ep, why);
}

/* The process usually ends within a millisecond, and its status tells more: its descriptor, or a
 * deadline, comes back. Not where this side has closed: it was to leave. */
void bootstrap_hang_up(struct endpoint *ep)
{
	struct control *c = ep->rooms->control;

	secondary_left(ep, ep->link.port->process); /* before its number may be another's */
	watch_close(ep->ctx, &c->socket);
	if (c->sent_bye) {
		bootstrap_bye(ep, &c->bye);
		return;
	}
	progress_drain(ep); /* an orderly end lies in the ring */
	c->step = HUNG_UP;
	if (link_may_speak(ep) && ep->rooms->secondary && c->stream && c->stream->error)
		list_remove(&c->node); /* not in order: the other links say whether it is gone */
	else if (link_may_speak(ep))
		drain_link_out(c);
	else if (ep->link.ended || ep->life->sent_end || c->process.fd < 0)
		conclude(ep, c->process.fd < 0 && ep->link.port->pid);
	else
		conclude_in(c, c->link_lost && process_has_ended(c) ? 0 : PIDFD_GRACE_MS);
}

void bootstrap_link_lost(struct endpoint *ep)
{
	struct control *c = ep->rooms->control;

	if (ep->link.ended || c->link_lost || ep->state != SLMPM_PEER_UP)
		return;
	endpoint_block(ep, BLOCK_BROKEN, true);
	c->link_lost = true;
	/* The socket and the process may tell more, and are inspected before a deadline is. */
	conclude_in(c, (c->step == HUNG_UP && c->process.fd < 0) || process_has_ended(c) ?
			       0 :
			       PIDFD_GRACE_MS);
}

void bootstrap_process_ended(struct context *ctx, struct watch *w)
{
	struct endpoint *ep = w->owner;
	struct control *c = ep->rooms->control;

	watch_remove(ctx, w); /* it stays readable for ever */
	/* What it said last still lies in the socket: perhaps the end of the handshake. */
	if (ep->state == SLMPM_PEER_CONNECTING && c->step != HUNG_UP)
		bootstrap_socket_ready(ctx, &c->socket);
	if (link_may_speak(ep))
		progress_drain(ep);
	if (link_may_speak(ep))
		drain_link_out(c);
	else if (ep->state == SLMPM_PEER_CONNECTING || ep->state == SLMPM_PEER_UP)
		conclude(ep, true);
}

/* What an accelerator has sent in time may lie unread in its socket. */
static bool has_spoken(struct control *c)
{
	uint64_t deadline = c->deadline;
	struct endpoint *ep = c->ep;

	if (!ep->rooms->process || c->step == HUNG_UP || c->step == CONNECTED)
		return false;
	bootstrap_socket_ready(ep->ctx, &c->socket);
	return ep->state != SLMPM_PEER_CONNECTING || c->deadline != deadline;
}

uint64_t bootstrap_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH_ENTRY(struct control, c, &ctx->deadlines, node) {
		if (now_ns < c->deadline) {
			next = c->deadline < next ? c->deadline : next;
			continue;
		}
		if (has_spoken(c))
			return 0;
		/* Who comes late finds both at once. Of a peer that is UP none is a handshake's. */
		if (c->step != HUNG_UP && c->step != CONNECTED && !c->link_lost)
			endpoint_refused(c->ep, SLMPM_ETIMEOUT, "handshake not finished in time");
		else if (!still_comes(c))
			conclude(c->ep, process_has_ended(c));
		return 0; /* what runs meanwhile may have changed the list */
	}
	return next;
}
