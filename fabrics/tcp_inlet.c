/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive engine: the socket's bytes go straight into the ring, or, a long payload's, to where
 * the core wants them; then the frames among them are inspected, once, and counted.
 *
 *     read_at            scan_at        scan_at + tail
 *     | complete frames  | one that has begun |  free            (mapped twice: nothing wraps)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fabrics/tcp.h"

#define SLACK       4096  /* of a full ring: credits still find a place */
#define RECEIVE_MAX 65536 /* at once */
#define AWAKE       64    /* receives without a sleep */
/* Streams of packets from this length on, one within so many ns behind the other; and for how long,
 * and with how many bytes still to come, a receiver that has taken all there is leaves their sender
 * alone. */
#define PAUSE_FROM  131072
#define PAUSE_FLOW  10000
#define PAUSE_NS    5000
#define PAUSE_LEFT  32768

size_t tcp_inlet_memory(const struct ring_shape *shape)
{
	return (size_t)shape->segments * shape->segment_size + SLACK + ring_bits_size(shape);
}

/* Its pages come with what is received. */
int tcp_inlet_open(struct tcp_link *l)
{
	struct tcp_inlet *in = &l->in;
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_shape shape = {c->segments, c->segment_size};
	uint32_t longest = tcp_packet_max(&shape);
	struct ring_setup setup = {
		.shape = shape,
		.start = l->base.start_in,
		.bits = calloc(1, ring_bits_size(&shape)),
		.out = &in->notified,
		.in = &in->arrived,
	};
	size_t bytes = (size_t)shape.segments * shape.segment_size;
	int rc = setup.bits ? double_mapping_create(&in->memory, "slmpm-ring", bytes + SLACK) :
			      -ENOMEM;

	if (rc < 0) {
		free(setup.bits);
		return rc;
	}
	publication_set(&setup, longest, c);
	in->ring = setup.segments = in->memory.base;
	in->size = in->memory.size;
	in->total = l->base.start_in;
	atomic_init(&in->notified, LITTLE_64(l->base.start_in));
	atomic_init(&in->arrived, LITTLE_64(l->base.start_in));
	ring_reader_init(&in->reader, &setup);
	in->reader.max = longest;
	l->base.payload_max_in = tcp_payload_max(&shape);
	return 0;
}

void tcp_inlet_close(struct tcp_link *l)
{
	if (!l->base.domain->forked) /* a child has no such mapping */
		double_mapping_destroy(&l->in.memory);
	free(l->in.reader.done);
	l->in.reader.done = NULL;
}

/* ---- what has come ------------------------------------------------------------------------ */

static uint64_t tcp_word_at(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return LITTLE_64(word);
}

static uint32_t tcp_length_in(uint64_t word)
{
	return (uint32_t)(word >> TCP_LENGTH_SHIFT) & RING_LENGTH_MAX;
}

static uint8_t tcp_kind_in(uint64_t word)
{
	return (uint8_t)(word >> TCP_KIND_SHIFT);
}

static void tcp_inlet_advance(const struct tcp_inlet *in, size_t *at, size_t bytes)
{
	*at += bytes;
	if (*at >= in->size)
		*at -= in->size;
}

/* The packet that has begun is the one that was handed out without data. */
static bool tcp_is_landing(const struct tcp_inlet *in)
{
	return in->headed && in->landing.waits && in->reader.read == in->total;
}

/* Nothing can be received before the core says where a packet belongs. */
static bool tcp_must_land(const struct tcp_link *l)
{
	const struct tcp_inlet *in = &l->in;

	return in->headed && in->length >= TCP_LAND_MIN &&
	       !(tcp_is_landing(in) && in->landing.said);
}

static size_t tcp_inlet_extent(const struct tcp_inlet *in)
{
	return (size_t)in->segments << in->reader.shift;
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool broken(struct tcp_link *l, const char *rule)
{
	l->broken = rule;
	return false;
}

/* A credit says nothing but its total. */
static bool take_credit(struct tcp_link *l, const unsigned char *at, uint64_t word)
{
	uint64_t rest = tcp_length_in(word);

	for (int i = 1; i <= FABRIC_HEAD_WORDS; i++)
		rest |= tcp_word_at(at + 8 * i);
	return PEER_FAULT(rest) ? broken(l, "credit") : true;
}

static bool tcp_inlet_take_packet(struct tcp_link *l, uint64_t word)
{
	struct tcp_inlet *in = &l->in;
	const struct ring_reader *r = &in->reader;

	in->length = tcp_length_in(word);
	in->segments = tcp_span(in->length, r->shift);
	if (PEER_FAULT(in->segments > r->max))
		return broken(l, "packet length");
	/* No more than it may believe to be free. */
	if (PEER_FAULT(in->total + in->segments - r->published > r->mask + 1))
		return broken(l, "produced total");
	in->headed = true;
	in->flows = in->length >= PAUSE_FROM && tcp_ns() - in->whole_at < PAUSE_FLOW;
	return true;
}

/* What begins at AT: headed, if it is a packet. */
static bool take_header(struct tcp_link *l, const unsigned char *at)
{
	uint64_t word = tcp_word_at(at),
		 rest = tcp_word_at(at + 8) ^ tcp_word_at(at + 16) ^ tcp_word_at(at + 24);

	if (PEER_FAULT(word != tcp_checked(word, rest)))
		return broken(l, "frame header");
	if (!tcp_credited(&l->out.writer, word))
		return broken(l, "consumed total");
	l->base.room = l->out.writer.consumed + l->out.writer.held_back;
	return tcp_kind_in(word) ? tcp_inlet_take_packet(l, word) : take_credit(l, at, word);
}

static void tcp_inlet_complete(struct tcp_inlet *in)
{
	size_t bytes = tcp_inlet_extent(in);

	in->total += in->segments;
	in->tail -= bytes;
	in->large = in->length >= TCP_LAND_MIN;
	if (in->length >= PAUSE_FROM)
		in->whole_at = tcp_ns();
	in->headed = in->alone = false;
	tcp_inlet_advance(in, &in->scan_at, bytes);
}

/* Credits take no segment: what came behind them moves up to where it belongs, each byte once. */
static void scan(struct tcp_link *l)
{
	struct tcp_inlet *in = &l->in;
	size_t gap = 0, extent;

	while (in->headed || in->tail >= TCP_LEAST) {
		unsigned char *at = in->ring + in->scan_at;

		if (!in->headed) {
			if (!take_header(l, at + gap))
				return;
			if (!in->headed) {
				gap += TCP_LEAST;
				in->tail -= TCP_LEAST;
				continue;
			}
		}
		extent = tcp_inlet_extent(in);
		if (gap)
			memmove(at, at + gap, in->tail < extent ? in->tail : extent);
		if (in->tail < extent)
			break;
		tcp_inlet_complete(in);
	}
	if (gap && !in->headed)
		memmove(in->ring + in->scan_at, in->ring + in->scan_at + gap, in->tail);
	atomic_store_explicit(&in->arrived, LITTLE_64(in->total), memory_order_relaxed);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* How many bytes may follow those that are there. */
static size_t window(const struct tcp_inlet *in)
{
	size_t taken = (size_t)(in->total - in->reader.consumed) << in->reader.shift;
	size_t room = in->size - taken - in->tail;

	if (in->headed && in->length >= TCP_LAND_MIN)
		return tcp_inlet_extent(in) - in->tail + TCP_LEAST; /* as the core has said */
	if (in->large && !in->headed && in->tail < TCP_LEAST)
		return TCP_LEAST - in->tail; /* where the next belongs is not known yet */
	return room < RECEIVE_MAX ? room : RECEIVE_MAX;
}

static ssize_t receive(struct tcp_link *l)
{
	struct tcp_inlet *in = &l->in;
	size_t lead = tcp_lead(in->length), body = lead + in->length;
	size_t rest = tcp_inlet_extent(in) - body + TCP_LEAST;
	struct iovec to[2] = {{in->ring + in->scan_at + in->tail, 0}};
	struct msghdr msg = {.msg_iov = to, .msg_iovlen = 1};

	if (tcp_is_landing(in) && in->landing.place && in->tail < body) {
		to[0] = (struct iovec){in->landing.place + (in->tail - lead), body - in->tail};
		to[1] = (struct iovec){in->ring + in->scan_at + body, rest};
		/* The one before it was no part of a stream: what is shorter by a header is quicker. */
		if (!in->alone || rest != TCP_LEAST || l->intake.used)
			msg.msg_iovlen = 2;
	} else {
		to[0].iov_len = window(in);
	}
	if (UNLIKELY(l->intake.used))
		return tcp_uring_take(l, &msg);
	if (msg.msg_iovlen == 1)
		return recv(l->socket, to[0].iov_base, to[0].iov_len, 0);
	return recvmsg(l->socket, &msg, 0);
}

/*
 * Each message to a socket in an epoll set costs its sender the way through the set, on loopback at
 * least: 0.2 us. Who is awake and gets one after the other therefore takes it out.
 */
static void awake(struct tcp_link *l)
{
	if (!l->interest)
		l->streak = 0;
	else if (++l->streak >= AWAKE && tcp_watch_link(l, 0) == 0)
		l->streak = 0;
}

/*
 * The next of the network's segments is some microseconds away, and each look at the socket takes
 * its lock, for which the kernel, which brings that segment, then has to wait.
 */
static void pause_for_more(struct tcp_inlet *in)
{
	if (in->flows && in->headed && tcp_inlet_extent(in) - in->tail >= PAUSE_LEFT)
		in->pause = tcp_ns() + PAUSE_NS;
}

bool tcp_pauses(struct tcp_link *l)
{
	if (l->in.pause && tcp_ns() >= l->in.pause)
		l->in.pause = 0;
	return l->in.pause;
}

/* It would stay readable for ever. */
void tcp_end(struct tcp_link *l, const char *why)
{
	tcp_rouse(l);
	l->ended = why;
	l->base.quiet = false;
	(void)tcp_watch_link(l, 0);
	l->interest = 0;
}

bool tcp_receive(struct tcp_link *l)
{
	ssize_t n;

	if (l->ended || l->broken || tcp_must_land(l))
		return false;
	/* Nothing is in it: its first lines are still at hand. */
	if (!l->in.tail && l->in.reader.consumed == l->in.total)
		l->in.scan_at = l->in.read_at = 0;
	/* A long one goes straight to its place. */
	if (UNLIKELY(l->intake.armed && l->in.headed && l->in.length >= TCP_LAND_MIN))
		tcp_uring_leave(l);
	n = receive(l);
	if (n > 0) {
		tcp_rouse(l);
		l->in.tail += (size_t)n;
		l->base.quiet = false;
		pause_for_more(&l->in);
		scan(l);
		awake(l);
		return true;
	}
	l->ready = false;
	l->in.alone |= !l->in.tail;
	if (n == 0 && (l->in.headed || l->in.tail))
		tcp_end(l, "the peer ended it within a packet");
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		tcp_end(l, tcp_reason(n == 0 ? 0 : errno));
	return false;
}

/* ---- handing out ---------------------------------------------------------------------------- */

/* The next packet to hand out; in the ring, if it is there. */
static void describe(const struct tcp_inlet *in, struct fabric_arrival *a)
{
	const unsigned char *from = in->ring + in->read_at;
	uint64_t word = tcp_word_at(from);

	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		a->head[i] = tcp_word_at(from + RING_WORD + 8 * i);
	a->length = tcp_length_in(word);
	a->data = from + tcp_lead(a->length);
	a->span = tcp_span(a->length, in->reader.shift);
	a->token = in->reader.read + 1;
	a->kind = tcp_kind_in(word);
}

int tcp_hand_out(struct tcp_link *l, struct fabric_arrival *arrivals, int n)
{
	struct tcp_inlet *in = &l->in;
	int got = 0;

	for (; got < n && in->reader.read != in->total; got++) {
		struct fabric_arrival *a = &arrivals[got];

		describe(in, a);
		if (UNLIKELY(in->landing.waits)) { /* there is no other before it */
			a->data = in->landing.place ? in->landing.place : a->data;
			in->landing = (struct tcp_landing){.waits = false};
		}
		in->reader.read += a->span;
		tcp_inlet_advance(in, &in->read_at, (size_t)a->span << in->reader.shift);
	}
	/* A long one whose header is there: the core says where the rest belongs. */
	if (got < n && tcp_must_land(l) && !in->landing.waits) {
		describe(in, &arrivals[got]);
		arrivals[got++].data = NULL;
		in->landing.waits = true;
	}
	return got;
}

int tcp_land(struct tcp_link *l, void *place)
{
	struct tcp_inlet *in = &l->in;
	unsigned char *head = in->ring + in->read_at;
	size_t n = tcp_length_in(tcp_word_at(head)), there = in->tail - TCP_LEAST;
	unsigned char *from = in->landing.place ? in->landing.place : head + TCP_LEAST;
	unsigned char *to = place ? place : head + TCP_LEAST;
	bool whole = in->reader.read != in->total; /* by now, and not handed out again yet */

	if (!in->landing.waits)
		return -EINVAL;
	if (from != to)
		memcpy(to, from, whole || there > n ? n : there);
	in->landing.place = place;
	in->landing.said = true;
	return 1;
}
