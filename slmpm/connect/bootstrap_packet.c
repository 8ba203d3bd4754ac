/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a control connection carries: packets of the handshake, doorbells (one byte), offers of loan
 * areas and regions, and the reason of an end.
 */
#include "slmpm/connect/bootstrap.h"

#include <errno.h>

#include "slmpm/loan/area.h"
#include "slmpm/base/error.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/connect/handshake.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"

#define READS_AT_ONCE 256
#define READ_AHEAD    4096 /* more than a socket holds: what was sent before is among them */

int bootstrap_offer(struct endpoint *ep, void *packet, size_t length, uint32_t type, int fd)
{
	if (ep->control->stream) /* what names it could be faster */
		return -ENOTSUP;
	return control_send(ep->control, packet, length, type, fd);
}

static bool is_grant(const struct received *r)
{
	return r->length >= sizeof(r->packet.head) && LITTLE_32(r->packet.head.type) == WIRE_GRANT;
}

/* LOST: its descriptor, at the limit of them. */
static int take_granted(struct endpoint *ep, struct received *r, bool lost)
{
	int fd = r->fd_count ? r->fds[0] : -1;
	int rc = r->fd_count > 1 ? -SLMPM_EPROTO :
				   memory_granted(ep, &r->packet.grant, r->length, &fd, lost);

	if (r->fd_count)
		r->fds[0] = fd;
	return rc;
}

static int take_grant(struct control *c, struct received *r, bool lost)
{
	int rc = c->step == CONNECTED ? take_granted(c->ep, r, lost) : -SLMPM_EPROTO;

	if (rc == -SLMPM_ENOMEM)
		endpoint_end(c->ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for its regions");
	else if (rc < 0)
		endpoint_poison(c->ep, "granted region");
	return rc < 0 ? -EPROTO : 0;
}

static int take_area(struct control *c, struct received *r)
{
	const struct wire_area *area = &r->packet.area;

	if (c->step != CONNECTED || r->length != sizeof(*area) || r->fd_count != 1) {
		endpoint_poison(c->ep, "offer of an area");
		return -EPROTO;
	}
	if (area_offered(c->ep, LITTLE_32(area->area), LITTLE_64(area->size), r->fds[0]) < 0) {
		endpoint_poison(c->ep, "offered area");
		return -EPROTO;
	}
	return 0;
}

static int take_bye(struct control *c, const struct received *r)
{
	if (r->length != sizeof(r->packet.bye) || r->fd_count) {
		endpoint_poison(c->ep, "control packet");
		return -EPROTO;
	}
	bootstrap_bye(c->ep, &r->packet.bye);
	return -EPROTO;
}

static int bootstrap_packet_handle(struct control *c, struct received *r)
{
	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length) {
		endpoint_poison(c->ep, "control packet");
		return -EPROTO;
	}
	if (c->rounds.pending && LITTLE_32(r->packet.head.type) != WIRE_BYE)
		return 0; /* it has left before the link stood */
	switch (LITTLE_32(r->packet.head.type)) {
	case WIRE_AREA: return take_area(c, r);
	case WIRE_GRANT: return take_grant(c, r, false);
	case WIRE_BYE: return take_bye(c, r);
	case WIRE_ROUND:
		return c->step == CONNECTED ? secondary_packet(c->ep, r) : handshake_packet(c, r);
	default: return handshake_packet(c, r);
	}
}

static bool bootstrap_packet_is_bell(const struct received *r)
{
	return r->length == 1 && !r->fd_count;
}

/* What has been read; false: nothing more is to be now. */
static bool bootstrap_packet_take_packet(struct endpoint *ep, struct received *r)
{
	struct control *c = ep->control;
	int rc;

	if (bootstrap_packet_is_bell(r)) {
		ep->stats->wakeups++;
		return true; /* a doorbell: that we are awake is all it wanted */
	}
	rc = bootstrap_packet_handle(c, r);
	control_drop(r);
	if ((rc == -EPIPE || rc == -ECONNRESET) && ep->state == SLMPM_PEER_CONNECTING)
		return true; /* it has left, which is what we read next */
	if (rc < 0 && ep->state == SLMPM_PEER_CONNECTING) {
		int error = error_system(rc, "handshake");

		endpoint_refused(ep, -error, slmpm_error_detail());
	}
	return rc >= 0;
}

/* The same of a packet whose descriptors there was no room for: of all that come with one only a
 * region can be had without. */
static bool take_without_descriptors(struct endpoint *ep, struct received *r)
{
	if (ep->control->step == CONNECTED && is_grant(r))
		return take_grant(ep->control, r, true) >= 0;
	endpoint_refused(ep, SLMPM_ENOFILE,
			 "its memory could not be received: out of file descriptors");
	return false;
}

void bootstrap_socket_ready(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;
	/* Else it is not read now, as where the event may only tell of room to send. */
	bool leaves = c && c->rounds.pending && !(c->stream && c->stream->waiting);

	if (c && c->rounds.pending)
		handshake_ask(c);
	if (c && c->stream)
		control_stream_flush(c);
	for (int i = 0; i < READS_AT_ONCE && c && c->socket.fd >= 0; i++) {
		int rc = c->rounds.pending && !leaves ? 0 : control_receive(c, &r);

		if (rc == 0)
			return;
		if (rc == 2)
			continue;
		if (rc == -EPIPE) {
			bootstrap_hang_up(ep);
			return;
		}
		if (!(rc == -EMFILE ? take_without_descriptors(ep, &r) :
				      bootstrap_packet_take_packet(ep, &r)) ||
		    bootstrap_packet_is_bell(&r))
			return; /* behind a bell there is hardly ever more, which is told again */
	}
}

/* What breaks the rules ends the endpoint later, at the top of progress. */
static void bootstrap_packet_read_ahead(struct endpoint *ep, struct received *r, bool lost)
{
	const struct wire_area *area = &r->packet.area;

	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length)
		return;
	if (is_grant(r)) {
		if (take_granted(ep, r, lost) < 0)
			endpoint_break(ep, "granted region");
	} else if (r->length == sizeof(*area) && r->fd_count == 1 &&
		   LITTLE_32(area->head.type) == WIRE_AREA) {
		(void)area_offered(ep, LITTLE_32(area->area), LITTLE_64(area->size), r->fds[0]);
	} else if (LITTLE_32(r->packet.head.type) == WIRE_ROUND) {
		(void)secondary_packet(ep, r);
	} else if (r->length == sizeof(r->packet.bye) && !r->fd_count &&
		   LITTLE_32(r->packet.head.type) == WIRE_BYE) {
		ep->control->sent_bye = true; /* the end follows, and is where it is looked at */
		ep->control->bye = r->packet.bye;
	}
}

/*
 * In the middle of a packet: only what it needs, the areas and regions offered before it. An end
 * that shows up meanwhile is seen again at the next look.
 */
void bootstrap_read_ahead(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;

	for (int i = 0; c && i < READ_AHEAD && c->socket.fd >= 0; i++) {
		int rc = control_receive(c, &r);

		if (rc == 2)
			continue;
		if (rc != 1 && rc != -EMFILE)
			return;
		bootstrap_packet_read_ahead(ep, &r, rc == -EMFILE);
		control_drop(&r);
		if (r.length == 1) /* a bell that another thread sleeps for */
			context_changed(ep->ctx);
	}
}
