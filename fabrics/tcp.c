/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP fabric: a stream of bytes each way, whose receive engine fills a ring in local memory. Plain
 * calls that never block, or io_uring, and one epoll set a domain to sleep on. Commit discipline: the
 * stream.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fabrics/publication.h"
#include "fabrics/tcp.h"

#define PARTS  3 /* reads of one poll that make no packet whole */
#define EVENTS 32
#define VAIN   64 /* reads in vain of a link that is read without asking */

/* ---- what is not a packet ------------------------------------------------------------------- */

static COLD void tcp_refresh_counts(struct tcp_link *l)
{
	struct fabric_counts *c = &l->base.counts;
	const struct ring_reader *r = &l->in.reader;
	const struct tcp_outlet *o = &l->out;
	uint64_t start = l->base.domain->config.start, start_in = l->base.start_in;

	c->produced = o->produced - start;
	c->consumed_seen = o->consumed + o->held_back - start;
	c->out_segments = o->segments;
	c->read = r->read - start_in;
	c->consumed = r->consumed - start_in;
	c->in_segments = r->mask + 1;
	c->in_produced_seen = l->in.total - start_in;
	c->remote_writes = o->frames;
	c->produced_publications = 0;
	for (int i = 0; i < RING_CAUSES; i++)
		c->publications[i] = r->publications[i];
}

/* Its payload is the core's again. */
static void forget_train(struct tcp_outlet *o)
{
	o->train.count = 0;
	o->train.bytes = 0;
}

static int lost(struct tcp_link *l)
{
	forget_train(&l->out);
	l->base.lost = l->ended ? l->ended : l->out.failed;
	return -EPIPE;
}

static int tcp_poisoned(struct tcp_link *l)
{
	forget_train(&l->out);
	l->base.violation = l->broken;
	return -EPROTO;
}

/* Whatever the thresholds say. */
static COLD void publish(struct tcp_link *l, enum ring_cause cause)
{
	uint64_t before = l->in.reader.published;

	ring_publish_consumed(&l->in.reader, cause);
	if (l->in.reader.published != before)
		tcp_credit(l);
}

static COLD int tcp_own_flush(struct tcp_link *l, bool last)
{
	bool sent;

	l->out.built = 0;
	publish(l, RING_FLUSH);
	sent = tcp_flush(l);
	(void)tcp_receive(l);
	if (last)
		tcp_acknowledge(l->socket);
	tcp_refresh_counts(l);
	if (l->broken)
		return tcp_poisoned(l);
	if (l->ended || l->out.failed)
		return lost(l);
	return sent && (!last || tcp_has_arrived(l->socket)) ? 1 : -EAGAIN;
}

static int tcp_load(struct tcp_link *l)
{
	struct fabric_counts *c = &l->base.counts;
	int unconfirmed = tcp_unconfirmed(l->socket);

	if (unconfirmed < 0)
		return -ENOTSUP;
	c->in_flight = (uint64_t)unconfirmed + (l->out.tail - l->out.head);
	c->carried =
		((l->out.produced - l->base.domain->config.start) << l->out.shift) - c->in_flight;
	return 1;
}

static COLD int tcp_own_keepalive(struct tcp_link *l, uint32_t flags)
{
	if (l->broken)
		return tcp_poisoned(l);
	if (!l->far)
		return -ENOTSUP;
	if (!l->ended && flags & FABRIC_SILENT) {
		tcp_outlet_fail(l, tcp_reason(ETIMEDOUT));
		tcp_end(l, l->out.failed);
	}
	if (l->ended)
		return lost(l);
	tcp_keepalive(l, flags);
	return 1;
}

static COLD int tcp_hang_up(struct tcp_link *l)
{
	(void)tcp_flush(l);
	(void)shutdown(l->socket, SHUT_WR);
	if (!l->out.failed)
		tcp_outlet_fail(l, "this side ended it");
	return 1;
}

static COLD int tcp_hold_back(struct tcp_outlet *o, uint32_t segments)
{
	if (segments > FABRIC_HOLD_MAX(o->segments))
		return -EINVAL;
	o->consumed += o->held_back;
	o->consumed -= segments;
	o->held_back = segments;
	return 1;
}

/* What the peer has published may wait in the socket. */
static COLD int tcp_count(struct tcp_link *l, bool ask)
{
	if (ask)
		(void)tcp_receive(l);
	tcp_refresh_counts(l);
	return 1;
}

static int tcp_status(struct tcp_link *l, unsigned flags)
{
	if (flags & FABRIC_LOAD)
		return tcp_load(l);
	return flags & FABRIC_SIGN ? tcp_own_keepalive(l, flags) : tcp_count(l, flags & FABRIC_ASK);
}

static COLD int tcp_post_other(struct tcp_link *l, const struct fabric_wr *wr)
{
	switch (wr->op) {
	case FABRIC_FLUSH:
		if (wr->flags & FABRIC_CANCEL)
			return -ENOTSUP;
		return wr->flags & FABRIC_END ? tcp_hang_up(l) :
						tcp_own_flush(l, wr->flags & FABRIC_LAST);
	case FABRIC_HOLD_BACK: return tcp_hold_back(&l->out, wr->length);
	case FABRIC_STATUS: return tcp_status(l, wr->flags);
	case FABRIC_LAND: return tcp_land(l, wr->into);
	default: return -ENOTSUP;
	}
}

/* ---- moving bytes --------------------------------------------------------------------------- */

static void *tcp_reserve_packet(struct fabric_link *link, uint32_t length)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (UNLIKELY(l->out.train.count))
		(void)tcp_flush(l);
	return l->ended || l->broken || l->out.failed ? NULL : tcp_reserve(l, length);
}

static int tcp_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (UNLIKELY(wr->op != FABRIC_SEND))
		return tcp_post_other(l, wr);
	if (UNLIKELY(l->broken))
		return tcp_poisoned(l);
	if (UNLIKELY(l->ended || l->out.failed))
		return lost(l);
	return tcp_send(l, wr);
}

/* Which links have something to read. */
static void tcp_inspect(struct tcp_domain *d)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(d->base.fd, events, EVENTS, 0);

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr) {
			struct tcp_link *l = events[i].data.ptr;

			l->ready = true;
			l->base.quiet = false;
		}
}

/* Among many, one that is read in vain again and again is watched by the epoll set again. */
static void read_in_vain(struct tcp_domain *d, struct tcp_link *l)
{
	if (l->intake.used || l->ended || l->base.over)
		return;
	if (tcp_uring_wanted(l))
		tcp_uring_join(l);
	else if (d->count > 1 && !l->interest && ++l->streak >= VAIN &&
		 tcp_watch_link(l, EPOLLIN) == 0)
		l->streak = 0;
}

/* One call for a pass over many links that have nothing, and for each that has; none for those that are
 * received by io_uring. */
static bool may_have(struct tcp_domain *d, struct tcp_link *l)
{
	if (l->ready)
		return true;
	if (l->intake.used) {
		tcp_uring_inspect(d);
		return l->ready;
	}
	if (d->count == 1 || !l->interest)
		return true;
	if (d->base.rescan ||
	    !d->inspections) { /* before the first, so that one pass finds all there is */
		tcp_inspect(d);
		d->base.rescan = false;
		d->inspections = 0;
	}
	if (++d->inspections >= d->count - d->armed)
		d->inspections = 0;
	l->base.quiet = !l->ready && !tcp_stages(l);
	return l->ready;
}

static int tcp_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct tcp_link *l = (struct tcp_link *)link;
	int got;

	if (UNLIKELY(tcp_stages(l)))
		(void)tcp_flush(l);
	got = tcp_hand_out(l, arrivals, n);
	if (got || !n)
		return got;
	if (LIKELY(!l->ended && !l->broken)) {
		if (!may_have((struct tcp_domain *)link->domain, l))
			return 0;
		/* Of a short packet behind a long one the header comes first, and alone. */
		for (int parts = 0; parts < PARTS && !got && !l->broken && !tcp_pauses(l);
		     parts++) {
			if (!tcp_receive(l)) {
				read_in_vain((struct tcp_domain *)link->domain, l);
				return l->ended && l->in.reader.read == l->in.total ? lost(l) : 0;
			}
			got = tcp_hand_out(l, arrivals, n);
		}
		if (got || !l->broken)
			return got;
	}
	return l->broken ? tcp_poisoned(l) : lost(l);
}

static void tcp_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct ring_packet p = {.total = a->token, .segments = a->span};
	uint64_t published = l->in.reader.published;

	ring_release(&l->in.reader, &p);
	if (UNLIKELY(l->in.reader.published != published))
		tcp_credit(l);
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/* A writer may wait for room that we have made and not told of; what it does not wait for, it need not
 * be woken for. */
static bool tcp_may_wait(const struct tcp_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_shape shape = {c->segments, c->segment_size};

	return tcp_untold(l) >= publication_share(&shape, tcp_packet_max(&shape));
}

static void sleep_on(struct tcp_link *l)
{
	/* What nobody reads any more would keep the domain awake for ever; so would a socket that
	 * takes nothing. */
	uint32_t events = l->base.over ? 0 : EPOLLIN;

	if (l->ended)
		return;
	if (l->base.over && l->intake.armed)
		tcp_uring_leave(l);
	if (l->intake.armed)
		events = 0;
	if (tcp_stages(l) && !l->out.failed)
		events |= EPOLLOUT;
	if (tcp_watch_link(l, events) == 0)
		l->streak = 0;
}

static void tcp_arm(struct fabric_domain *domain, bool on)
{
	struct tcp_domain *d = (struct tcp_domain *)domain;

	for (struct tcp_link *l = on ? d->links : NULL; l; l = l->next) {
		if (tcp_may_wait(l))
			publish(l, RING_SLEEP);
		if (tcp_stages(l))
			(void)tcp_flush(l);
		sleep_on(l);
		tcp_refresh_counts(l);
	}
	d->asleep = on;
	if (d->uring)
		tcp_uring_sleep(d);
	if (on && d->lingerers)
		tcp_linger_inspect(d, false);
}

const struct fabric fabric_tcp = {
	.name = "tcp",
	.domain_size = sizeof(struct tcp_domain),
	.link_size = sizeof(struct tcp_link),
	.room_factor = 4, /* each word of room is a packet, and costs both sides a call */
	.probe = tcp_probe,
	.open = tcp_open_domain,
	.close = tcp_close_domain,
	.address = tcp_address,
	.connect = tcp_connect,
	.disconnect = tcp_disconnect,
	.reserve = tcp_reserve_packet,
	.post = tcp_post,
	.poll = tcp_poll,
	.release = tcp_release,
	.arm = tcp_arm,
};
