/* SPDX-License-Identifier: BSD-3-Clause */
/* What a control connection carries: handshakes, doorbells (a byte), offers of areas and regions, a
 * reason of an end. */
#include "slmpm/connect/bootstrap.h"

#include <errno.h>

#include "slmpm/loan/area.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/connect/control.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define READS_AT_ONCE 256
#define READ_AHEAD    4096 /* more than a socket holds: what was sent before is among them */

int bootstrap_offer(struct endpoint *ep, void *packet, size_t length, uint32_t type, int fd)
{
	if (ep->rooms->control->stream) /* what names it could be faster */
		return -ENOTSUP;
	return control_send(ep->rooms->control, packet, length, type, fd);
}

int bootstrap_pass(struct endpoint *ep, void *packet, size_t length, uint32_t type, const int *fds,
		   size_t count)
{
	struct control *c = ep->rooms->control;

	return c ? control_pass(c, packet, length, type, fds, count) : -EPIPE;
}

void bootstrap_await_room(struct endpoint *ep, bool on)
{
	struct control *c = ep->rooms->control;

	if (c && !c->stream && c->socket.room != on)
		watch_for_room(ep->ctx, &c->socket, on);
}

bool bootstrap_passes(const struct endpoint *ep)
{
	const struct control *c = ep->rooms->control;

	return c && !c->stream;
}

static bool both_offer(const struct endpoint *ep, uint32_t feature)
{
	return ep->rooms->control && ep->rooms->control->features & feature;
}

bool bootstrap_forms_groups(const struct endpoint *ep)
{
	return both_offer(ep, WIRE_FEATURE_GROUP);
}

bool bootstrap_forms_local(const struct endpoint *ep)
{
	return both_offer(ep, WIRE_FEATURE_LOCAL);
}

bool bootstrap_takes_members(const struct endpoint *ep)
{
	return both_offer(ep, WIRE_FEATURE_MEMBERS);
}

int bootstrap_process(const struct endpoint *ep)
{
	return ep->rooms->control ? ep->rooms->control->process.fd : -1;
}

static bool is_of_type(const struct received *r, uint32_t type)
{
	return r->length >= sizeof(r->packet.head) && LITTLE_32(r->packet.head.type) == type;
}

/* What it says counts though its descriptors were lost. */
static bool is_known_without(const struct received *r)
{
	return is_of_type(r, WIRE_GRANT) || is_of_type(r, WIRE_GROUP) || is_of_type(r, WIRE_AREA);
}

/* The peer breaks RULE; AHEAD of its turn, amid a packet, that ends it at the top of progress. */
static int packet_broken(struct control *c, bool ahead, const char *rule)
{
	if (ahead)
		endpoint_break(c->ep, rule);
	else
		endpoint_poison(c->ep, rule);
	return -EPROTO;
}

/* WHY: what came cannot be kept, which is no fault of the peer's. */
static int packet_unkept(struct control *c, bool ahead, const char *why)
{
	if (ahead)
		endpoint_break_no_memory(c->ep);
	else
		endpoint_lacks_memory(c->ep, why);
	return -EPROTO;
}

/* The descriptor of an area is lost, which is no fault of the peer's either. */
static int area_lost(const struct control *c, bool ahead)
{
	if (ahead)
		endpoint_break_no_descriptor(c->ep);
	else
		endpoint_no_descriptor(c->ep);
	return -EPROTO;
}

/* LOST: its descriptor, at the limit of them. */
static int take_grant(struct control *c, struct received *r, bool lost, bool ahead)
{
	int fd = r->fd_count ? r->fds[0] : -1, rc = -SLMPM_EPROTO;

	if (c->step == CONNECTED && r->fd_count <= 1)
		rc = memory_granted(c->ep, &r->packet.grant, r->length, &fd, lost);
	if (r->fd_count)
		r->fds[0] = fd;
	if (rc == -SLMPM_ENOMEM)
		return packet_unkept(c, ahead, "no memory for its regions");
	return rc < 0 ? packet_broken(c, ahead, "granted region") : 0;
}

static int take_group(struct control *c, struct received *r, bool lost, bool ahead)
{
	int rc = -SLMPM_EPROTO;

	if (c->step == CONNECTED && r->length == sizeof(r->packet.group))
		rc = parts.grouped(c->ep, &r->packet.group, r->fds, r->fd_count, lost);
	if (rc == -SLMPM_ENOMEM)
		return packet_unkept(c, ahead, "no memory for its group");
	return rc < 0 ? packet_broken(c, ahead, "packet of a group") : 0;
}

static int take_area(struct control *c, struct received *r, bool lost, bool ahead)
{
	const struct wire_area *area = &r->packet.area;
	int rc;

	if (lost && c->step == CONNECTED && r->length == sizeof(*area))
		return area_lost(c, ahead);
	if (c->step != CONNECTED || r->length != sizeof(*area) || r->fd_count != 1)
		return packet_broken(c, ahead, "offer of an area");
	rc = area_offered(c->ep, LITTLE_32(area->area), LITTLE_64(area->size), r->fds[0]);
	if (rc == -ENOMEM)
		return packet_unkept(c, ahead, "no memory for a loan");
	return rc < 0 ? packet_broken(c, ahead, "offered area") : 0;
}

static int take_bye(struct control *c, const struct received *r, bool ahead)
{
	if (r->length != sizeof(r->packet.bye) || r->fd_count)
		return packet_broken(c, ahead, "control packet");
	if (ahead) { /* the end follows, and is where it is inspected */
		c->sent_bye = true;
		c->bye = r->packet.bye;
		return 0;
	}
	bootstrap_bye(c->ep, &r->packet.bye);
	return -EPROTO;
}

static int take_control(struct control *c, struct received *r, bool lost, bool ahead)
{
	uint32_t type = LITTLE_32(r->packet.head.type);

	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length)
		return packet_broken(c, ahead, "control packet");
	if (c->rounds.pending && type != WIRE_BYE)
		return 0; /* it has left before the link stood */
	switch (type) {
	case WIRE_AREA: return take_area(c, r, lost, ahead);
	case WIRE_GRANT: return take_grant(c, r, lost, ahead);
	case WIRE_GROUP: return take_group(c, r, lost, ahead);
	case WIRE_BYE: return take_bye(c, r, ahead);
	}
	if (type == WIRE_ROUND && c->step == CONNECTED) {
		secondary_packet(c->ep, r);
		return 0;
	}
	return ahead ? packet_broken(c, ahead, "control packet out of turn") :
		       handshake_packet(c, r);
}

static bool is_bell(const struct received *r)
{
	return r->length == 1 && !r->fd_count;
}

/* What has been read; false: nothing more is to be now. */
static bool take_packet(struct endpoint *ep, struct received *r)
{
	struct control *c = ep->rooms->control;
	int rc;

	if (is_bell(r)) {
		ep->stats->wakeups++;
		return true; /* a doorbell: that we are awake is all it wanted */
	}
	rc = take_control(c, r, false, false);
	control_drop(r);
	handshake_ends(ep, rc);
	/* It has left, which is what we read next. */
	return rc >= 0 ||
	       ((rc == -EPIPE || rc == -ECONNRESET) && ep->state == SLMPM_PEER_CONNECTING);
}

/* The same of a packet whose descriptors were lost. */
static bool take_without_descriptors(struct endpoint *ep, struct received *r)
{
	if (ep->rooms->control->step == CONNECTED && is_known_without(r))
		return take_control(ep->rooms->control, r, true, false) >= 0;
	ep->life->lacks = ep->state == SLMPM_PEER_CONNECTING;
	endpoint_refused(ep, SLMPM_ENOFILE, "no descriptor is left for the other side's memory");
	return false;
}

void bootstrap_socket_ready(struct context *ctx, struct watch *w)
{
	struct endpoint *ep = w->owner;
	struct control *c = ep->rooms->control;
	struct received r;
	/* Else it is not read now, as where the event may only tell of room to send. */
	bool leaves = c->rounds.pending && !(c->stream && c->stream->waiting);

	(void)ctx;
	if (c->rounds.pending)
		handshake_ask(c);
	if (c->stream && c->stream->waiting) {
		control_stream_flush(c);
		if (!c->stream->waiting)
			parts.room(ep);
	} else if (c->socket.room) {
		parts.room(ep);
	}
	for (int i = 0; i < READS_AT_ONCE && c->socket.fd >= 0; i++) {
		int rc = c->rounds.pending && !leaves ? 0 : control_receive(c, &r);

		if (rc == 0)
			return;
		if (rc == 2)
			continue;
		if (rc == -EPIPE) {
			bootstrap_hang_up(ep);
			return;
		}
		if (!(rc == -EMFILE ? take_without_descriptors(ep, &r) : take_packet(ep, &r)) ||
		    is_bell(&r))
			return; /* behind a bell there is hardly ever more */
	}
}

/* Amid a packet: what it needs, areas and regions offered before it. An end is seen again later. */
void bootstrap_read_ahead(struct endpoint *ep)
{
	struct control *c = ep->rooms->control;
	struct received r;

	for (int i = 0; c && i < READ_AHEAD && c->socket.fd >= 0; i++) {
		int rc = control_receive(c, &r);

		if (rc == 2)
			continue;
		if (rc != 1 && rc != -EMFILE)
			return;
		if (is_bell(&r)) /* that another thread sleeps for */
			context_changed(ep->ctx);
		else if (rc == 1 ||
			 is_known_without(&r)) /* else what it offers could not be received */
			(void)take_control(c, &r, rc == -EMFILE, true);
		control_drop(&r);
	}
}
