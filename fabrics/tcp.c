/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP fabric: a stream of bytes each way, whose receive engine fills a ring in local memory.
 * Plain calls that never block, or io_uring, and one epoll set a domain to sleep on. Commit
 * discipline: the stream.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fabrics/tcp.h"

#define PARTS         3 /* reads of one poll that make no packet whole */
#define EVENTS        32
#define VAIN          64 /* reads in vain of a link that is read without asking */
/* Of the network's own segments in a packet: so many are best sent by one call. */
#define SEGMENTS_BEST 4

/* ---- opening --------------------------------------------------------------------------------- */

/* What a connection over loopback takes as one piece, once its window has grown. */
static int loopback_segment(void)
{
	uint16_t port;
	uint8_t family;
	int size = 0, call, listener = tcp_listen(NULL, &port, &family);
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (listener < 0)
		return listener;
	call = tcp_call(NULL, port, family);
	if (call >= 0) {
		size = getsockopt(call, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ?
			       -errno :
			       (int)info.tcpi_advmss;
		close(call);
	}
	close(listener);
	return call < 0 ? call : size;
}

/* With a config. */
static void probe_shape(const struct fabric_config *config, struct fabric_caps *caps)
{
	struct ring_shape shape = {config->segments, config->segment_size};
	int rc = config->engine >= FABRIC_ENGINE_URING ? tcp_uring_try() : -ECANCELED;

	caps->uring = rc < 0 ? rc : 1;
	caps->link_memory = tcp_inlet_memory(&shape) + tcp_outlet_memory(&shape);
}

static int tcp_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	int segment = loopback_segment();
	uint32_t best =
		SEGMENTS_BEST * (segment > 4096 && segment < 65536 ? (uint32_t)segment : 65536);
	struct double_mapping m;
	int rc;

	*caps = (struct fabric_caps){
		.ops = 1u << FABRIC_SEND | 1u << FABRIC_FLUSH,
		.memory = FABRIC_MEMORY_HOST,
		.message_max = RING_LENGTH_MAX - TCP_LEAST,
		.packet_best = best / 64 * 64 - TCP_LEAST,
		.land_min = TCP_LAND_MIN,
		.commit = FABRIC_COMMIT_STREAM,
	};
	if (config)
		probe_shape(config, caps);
	if (segment < 0) {
		strcpy(caps->why_not, "no connection over loopback can be made here");
		return segment;
	}
	rc = double_mapping_create(&m, "slmpm-probe", 4096);
	if (rc < 0) {
		strcpy(caps->why_not, "no memory can be mapped twice here");
		return rc;
	}
	double_mapping_destroy(&m);
	return 0;
}

static int tcp_open_domain(struct fabric_domain *domain)
{
	struct tcp_domain *d = (struct tcp_domain *)domain;
	uint8_t engine = domain->config.engine;

	domain->fd = epoll_create1(EPOLL_CLOEXEC);
	if (domain->fd < 0)
		return -errno;
	d->uring_sends = engine == FABRIC_ENGINE_URING || engine == FABRIC_ENGINE_URING_SEND;
	d->no_uring = !d->uring_sends && engine != FABRIC_ENGINE_URING_RECV;
	(void)tcp_uring_open(d);
	return 0;
}

static void tcp_close_domain(struct fabric_domain *domain)
{
	struct tcp_domain *d = (struct tcp_domain *)domain;

	if (domain->forked)
		while (d->lingerers)
			close(d->lingering[--d->lingerers].socket);
	tcp_linger_inspect(d, true);
	tcp_uring_close(d);
	close(domain->fd);
	domain->fd = -1;
}

/* ---- what is not a packet ------------------------------------------------------------------- */

static COLD void tcp_refresh_counts(struct tcp_link *l)
{
	publication_count(&l->base, &l->out.writer, &l->in.reader);
	l->base.counts.in_produced_seen = l->in.total - l->base.start_in;
	l->base.counts.remote_writes = l->out.writer.writes;
}

/* Why it is: lost, or poisoned. */
static int over(struct tcp_link *l)
{
	l->out.train.count = 0; /* its payload is the core's again */
	l->out.train.bytes = 0;
	l->base.violation = l->broken;
	if (l->broken)
		return -EPROTO;
	l->base.lost = l->ended ? l->ended : l->out.failed;
	return -EPIPE;
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

	publish(l, RING_FLUSH);
	sent = tcp_flush(l);
	(void)tcp_receive(l);
	/* says at once that what has come is here: else that takes 40 ms where nothing is sent */
	if (last)
		(void)tcp_set(l->socket, IPPROTO_TCP, TCP_QUICKACK, 1);
	tcp_refresh_counts(l);
	if (tcp_is_over(l))
		return over(l);
	return sent && (!last || tcp_unconfirmed(l->socket) <= 0) ? 1 : -EAGAIN;
}

static int tcp_load(struct tcp_link *l)
{
	struct fabric_counts *c = &l->base.counts;
	int unconfirmed = tcp_unconfirmed(l->socket);

	if (unconfirmed < 0)
		return -ENOTSUP;
	c->in_flight = (uint64_t)unconfirmed + (l->out.tail - l->out.head);
	c->carried =
		((l->out.writer.produced - l->base.domain->config.start) << l->out.writer.shift) -
		c->in_flight;
	return 1;
}

static COLD int tcp_own_keepalive(struct tcp_link *l, uint32_t flags)
{
	if (!l->far && !l->broken)
		return -ENOTSUP;
	if (!l->ended && !l->broken && flags & FABRIC_SILENT) {
		tcp_outlet_fail(l, tcp_reason(ETIMEDOUT));
		tcp_end(l, l->out.failed);
	}
	if (l->ended || l->broken)
		return over(l);
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

static int tcp_status(struct tcp_link *l, unsigned flags)
{
	if (flags & FABRIC_LOAD)
		return tcp_load(l);
	if (flags & FABRIC_SIGN)
		return tcp_own_keepalive(l, flags);
	if (flags & FABRIC_ASK) /* what the peer has published may wait in the socket */
		(void)tcp_receive(l);
	tcp_refresh_counts(l);
	return 1;
}

static COLD int tcp_post_other(struct tcp_link *l, const struct fabric_wr *wr)
{
	switch (wr->op) {
	case FABRIC_FLUSH:
		if (wr->flags & FABRIC_CANCEL)
			return -ENOTSUP;
		return wr->flags & FABRIC_END ? tcp_hang_up(l) :
						tcp_own_flush(l, wr->flags & FABRIC_LAST);
	case FABRIC_HOLD_BACK: return publication_hold_back(&l->out.writer, wr->length);
	case FABRIC_STATUS: return tcp_status(l, wr->flags);
	case FABRIC_LAND: return tcp_land(l, wr->into);
	default: return -ENOTSUP;
	}
}

/* ---- moving bytes --------------------------------------------------------------------------- */

static int tcp_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (UNLIKELY(wr->op != FABRIC_SEND))
		return tcp_post_other(l, wr);
	if (UNLIKELY(tcp_is_over(l)))
		return over(l);
	return tcp_send(l, wr);
}

/* Which links have something to read. */
static void tcp_inspect(struct tcp_domain *d)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(d->base.fd, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct tcp_link *l = events[i].data.ptr;

		if (!l)
			continue;
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

/* One call for a pass over many links that have nothing, and for each that has; none where io_uring
 * receives. */
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
	/* Before the first, so that one pass finds all there is. */
	if (d->base.rescan || !d->inspections) {
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
		if (!may_have(tcp_domain(l), l))
			return 0;
		/* Of a short packet behind a long one the header comes first, and alone. */
		for (int parts = 0; parts < PARTS && !got && !l->broken && !tcp_pauses(l);
		     parts++) {
			if (!tcp_receive(l)) {
				read_in_vain(tcp_domain(l), l);
				return l->ended && l->in.reader.read == l->in.total ? over(l) : 0;
			}
			got = tcp_hand_out(l, arrivals, n);
		}
		if (got || !l->broken)
			return got;
	}
	return over(l);
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

/* A writer may wait for room that we have made and not published; for what it does not wait for, it
 * need not be woken. */
static bool tcp_may_wait(const struct tcp_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_shape shape = {c->segments, c->segment_size};

	return l->in.total - l->in.reader.published >=
	       publication_share(&shape, tcp_packet_max(&shape));
}

static void sleep_on(struct tcp_link *l)
{
	/* What is not read any more would keep the domain awake for ever; so would a socket that
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

	struct tcp_link *l = on ? LIST_FIRST(&d->links) : NULL;

	for (; l; l = LIST_NEXT(l, entry)) {
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
	.reserve = tcp_reserve,
	.post = tcp_post,
	.poll = tcp_poll,
	.release = tcp_release,
	.arm = tcp_arm,
};
