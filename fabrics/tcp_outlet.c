/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is sent: a short packet is built in the staging buffer and goes from there, a long one goes
 * from where it lies, those of one message several a call; what the socket does not take stays
 * staged. A packet is taken only where all of it would find room there, so that it can never be
 * half taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fabrics/tcp.h"
#include "shm/copy.h"

#define GATHER_MAX  4096  /* payload that is copied rather than sent from where it lies */
#define MORE_MAX    32768 /* staged bytes that go out although more is to follow */
#define CREDITS_MAX 4096  /* bytes of credits in the staging buffer, beside the packets */
#define TRAIN_MAX   (TCP_TRAIN * (262144 + 2048)) /* bytes */
#define RECEIVES    16                            /* in one post, for room */
#define ALIGNMENT   64

static const unsigned char zeros[4096];

static size_t longest_for(const struct ring_shape *peer)
{
	return (size_t)tcp_packet_max(peer) * peer->segment_size;
}

/* The longest packet or train, and then still each word that its room was held back for. */
static size_t staging_for(const struct ring_shape *peer)
{
	size_t longest = longest_for(peer);

	return (longest > TRAIN_MAX ? longest : TRAIN_MAX) +
	       (size_t)FABRIC_HOLD_MAX(peer->segments) * peer->segment_size + CREDITS_MAX;
}

/* And where a packet is built. */
size_t tcp_outlet_memory(const struct ring_shape *peer)
{
	return (staging_for(peer) + longest_for(peer) + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
}

int tcp_outlet_open(struct tcp_link *l, const struct ring_shape *peer)
{
	struct tcp_outlet *o = &l->out;
	uint64_t start = l->base.domain->config.start;

	ring_writer_init(&o->writer, &(struct ring_setup){.shape = *peer, .start = start});
	o->size = staging_for(peer);
	o->staging = aligned_alloc(ALIGNMENT, tcp_outlet_memory(peer));
	if (!o->staging)
		return -ENOMEM;
	l->base.payload_max = tcp_payload_max(peer);
	return 0;
}

void tcp_outlet_close(struct tcp_link *l)
{
	free(l->out.staging);
	l->out.staging = NULL;
}

/* ---- room ----------------------------------------------------------------------------------- */

#define CONSUMED_MASK ((UINT64_C(1) << TCP_CONSUMED_BITS) - 1)

bool tcp_credited(struct ring_writer *w, uint64_t word)
{
	uint64_t known = w->consumed + w->held_back;
	uint64_t more = (word - known) & CONSUMED_MASK;

	if (PEER_FAULT(more > w->produced - known))
		return false;
	w->consumed += more;
	return true;
}

static bool has_credit(const struct tcp_outlet *o, size_t bytes)
{
	const struct ring_writer *w = &o->writer;

	return w->produced + (bytes >> w->shift) - w->consumed <= w->mask + 1;
}

static size_t tcp_outlet_staged(const struct tcp_outlet *o)
{
	return o->tail - o->head;
}

/* Credits have a part of their own: counted as long as one of them may be there. */
static bool has_space(const struct tcp_outlet *o, size_t bytes)
{
	size_t held_back = (size_t)o->writer.held_back << o->writer.shift;

	return tcp_outlet_staged(o) + o->train.bytes + bytes + held_back + CREDITS_MAX <=
	       o->size + o->credits;
}

static bool has_room(const struct tcp_outlet *o, size_t bytes)
{
	return has_space(o, bytes) && has_credit(o, bytes);
}

/* BYTES behind what is staged, in one piece. */
static unsigned char *append(struct tcp_outlet *o, size_t bytes)
{
	unsigned char *at;

	if (o->tail + bytes > o->size) {
		memmove(o->staging, o->staging + o->head, tcp_outlet_staged(o));
		o->tail -= o->head;
		o->head = 0;
	}
	at = o->staging + o->tail;
	o->tail += bytes;
	return at;
}

/* ---- the socket ----------------------------------------------------------------------------- */

void tcp_outlet_fail(struct tcp_link *l, const char *why)
{
	l->out.failed = why;
	l->base.fails = true;
}

static void tcp_outlet_failed(struct tcp_link *l, int error)
{
	if (error != EAGAIN && error != EINTR && error != ENOBUFS && error != ENOMEM)
		tcp_outlet_fail(l, tcp_reason(error));
}

/* Behind each attempt to send all. */
static void note_lag(struct tcp_link *l)
{
	l->base.lags = tcp_outlet_staged(&l->out);
	if (LIKELY(!l->base.lags))
		return;
	l->base.quiet = false;
	if (!(l->interest & EPOLLOUT)) /* a sleeper does not wait for room so far */
		tcp_rouse(l);
}

/* LEAD bytes. */
static void put_header(struct tcp_link *l, unsigned char *at, uint32_t lead, uint32_t length,
		       uint8_t kind, const uint64_t *head)
{
	struct ring_reader *r = &l->in.reader;
	uint64_t word = (uint64_t)kind << TCP_KIND_SHIFT | (uint64_t)length << TCP_LENGTH_SHIFT |
			(r->consumed & CONSUMED_MASK);

	r->published = r->consumed; /* each frame tells it */
	word = LITTLE_64(tcp_checked(word, head[0] ^ head[1] ^ head[2]));
	memcpy(at, &word, sizeof(word));
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
		word = LITTLE_64(head[i]);
		memcpy(at + RING_WORD + 8 * i, &word, sizeof(word));
	}
	if (lead > TCP_HEADER)
		memset(at + TCP_HEADER, 0, TCP_LEAST - TCP_HEADER);
	l->out.writer.writes++;
}

static bool stage_credit(struct tcp_link *l)
{
	static const uint64_t none[FABRIC_HEAD_WORDS];
	struct tcp_outlet *o = &l->out;

	o->deferred = o->credits + TCP_LEAST > CREDITS_MAX;
	if (o->deferred)
		return false;
	o->credits += TCP_LEAST;
	put_header(l, append(o, TCP_LEAST), TCP_LEAST, 0, 0, none);
	return true;
}

/* N bytes of what is staged have gone. */
static void gone(struct tcp_outlet *o, size_t n)
{
	o->head += n;
	if (o->head == o->tail)
		o->head = o->tail = o->credits = 0;
}

static ssize_t send_out(struct tcp_link *l, struct iovec *from, size_t n)
{
	struct msghdr msg = {.msg_iov = from, .msg_iovlen = n};

	if (UNLIKELY(tcp_domain(l)->uring_sends))
		return tcp_uring_send(l, &msg);
	if (n == 1)
		return send(l->socket, from->iov_base, from->iov_len, MSG_NOSIGNAL);
	return sendmsg(l->socket, &msg, MSG_NOSIGNAL);
}

/* Bytes of N pieces but the first DONE ones. */
static void stage_rest(struct tcp_outlet *o, const struct iovec *from, size_t n, size_t done)
{
	for (size_t i = 0; i < n; i++) {
		size_t part = from[i].iov_len < done ? from[i].iov_len : done;
		size_t rest = from[i].iov_len - part;

		done -= part;
		if (rest)
			memcpy(append(o, rest), (unsigned char *)from[i].iov_base + part, rest);
	}
}

static size_t pieces_of(const struct tcp_car *car, struct iovec *to)
{
	to[0] = (struct iovec){(void *)(uintptr_t)car->head, car->lead};
	to[1] = (struct iovec){(void *)(uintptr_t)car->data, car->length};
	to[2] = (struct iovec){(void *)(uintptr_t)zeros,
			       car->pad < sizeof(zeros) ? car->pad : sizeof(zeros)};
	return car->pad ? 3 : 2;
}

/* What is staged, and the train. */
static void depart(struct tcp_link *l)
{
	struct tcp_outlet *o = &l->out;
	size_t n = 1, before = tcp_outlet_staged(o), done;
	size_t pad = o->train.cars[o->train.count - 1].pad; /* only the last one's may be long */
	struct iovec from[1 + 3 * TCP_TRAIN] = {{o->staging + o->head, before}};
	ssize_t rc = 0;

	for (uint32_t i = 0; i < o->train.count; i++)
		n += pieces_of(&o->train.cars[i], &from[n]);
	o->train.count = 0;
	o->train.bytes = 0;
	if (!o->failed)
		rc = send_out(l, before ? from : &from[1], before ? n : n - 1);
	if (rc < 0)
		tcp_outlet_failed(l, errno);
	done = rc < 0 ? 0 : (size_t)rc;
	l->base.left += done;
	if (done < before)
		o->head += done;
	else
		gone(o, before);
	stage_rest(o, &from[1], n - 1, done < before ? 0 : done - before);
	if (pad > sizeof(zeros)) {
		memset(append(o, pad - sizeof(zeros)), 0, pad - sizeof(zeros));
		(void)tcp_flush(l);
	}
	note_lag(l);
}

bool tcp_flush(struct tcp_link *l)
{
	struct tcp_outlet *o = &l->out;

	if (o->train.count)
		depart(l);
	while (o->head != o->tail && !o->failed) {
		size_t asked = tcp_outlet_staged(o);
		ssize_t n = send_out(l, &(struct iovec){o->staging + o->head, asked}, 1);

		if (n < 0) {
			tcp_outlet_failed(l, errno);
			break;
		}
		l->base.left += (uint64_t)n;
		gone(o, (size_t)n);
		if (n < (ssize_t)asked)
			break;
		if (o->deferred)
			(void)stage_credit(l);
	}
	note_lag(l);
	return o->head == o->tail;
}

void tcp_credit(struct tcp_link *l)
{
	if (l->out.train.count)
		depart(l);
	if (stage_credit(l))
		(void)tcp_flush(l);
}

/* ---- packets -------------------------------------------------------------------------------- */

/* Bytes that a packet takes. */
static size_t tcp_outlet_extent(const struct tcp_outlet *o, uint32_t length)
{
	return (size_t)tcp_span(length, o->writer.shift) << o->writer.shift;
}

/* Now, or a moment later: what is known of the peer's ring, and what stands in the way here. */
static bool tcp_outlet_make_room(struct tcp_link *l, size_t bytes)
{
	struct tcp_outlet *o = &l->out;

	if (!has_room(o, bytes))
		(void)tcp_flush(l);
	/* A peer that waits for room itself has no other way to tell; one that lies could go on for
	 * ever. */
	for (int i = 0; i < RECEIVES && !has_credit(o, bytes) && tcp_receive(l); i++)
		;
	return has_room(o, bytes);
}

static void tcp_outlet_gather(struct tcp_link *l, const struct fabric_wr *wr, const void *data,
			      size_t bytes)
{
	unsigned char *at = append(&l->out, bytes);
	uint32_t lead = tcp_lead(wr->length);

	put_header(l, at, lead, wr->length, wr->kind, wr->head);
	copy_payload(at + lead, data, wr->length);
	memset(at + lead + wr->length, 0, bytes - lead - wr->length);
	if (!(wr->flags & FABRIC_MORE) || tcp_outlet_staged(&l->out) >= MORE_MAX)
		(void)tcp_flush(l);
	else
		l->base.quiet = false; /* the next poll sends it, if nothing follows */
}

static void send_long(struct tcp_link *l, const struct fabric_wr *wr, const void *data,
		      size_t bytes)
{
	struct tcp_train *t = &l->out.train;
	struct tcp_car *car = &t->cars[t->count++];

	car->lead = tcp_lead(wr->length);
	car->length = wr->length;
	car->pad = (uint32_t)(bytes - car->lead - wr->length);
	car->data = data;
	t->bytes += bytes;
	put_header(l, car->head, car->lead, wr->length, wr->kind, wr->head);
	if (!(wr->flags & FABRIC_STAYS) || wr->flags & FABRIC_BUILT || t->count == TCP_TRAIN ||
	    car->pad > sizeof(zeros) || l->base.lags)
		depart(l);
	else
		l->base.quiet = false;
}

int tcp_send(struct tcp_link *l, const struct fabric_wr *wr)
{
	struct tcp_outlet *o = &l->out;
	const void *data = wr->data;
	size_t bytes;

	if (UNLIKELY(wr->length > l->base.payload_max)) {
		(void)tcp_flush(l);
		return -EAGAIN;
	}
	bytes = tcp_outlet_extent(o, wr->length);
	if (UNLIKELY(wr->flags & FABRIC_BUILT)) { /* its room was found by reserve */
		data = o->staging + o->size;
	} else if (UNLIKELY(!has_room(o, bytes)) && !tcp_outlet_make_room(l, bytes)) {
		return -EAGAIN;
	}
	o->writer.produced += bytes >> o->writer.shift;
	if (wr->length <= GATHER_MAX && !o->train.count)
		tcp_outlet_gather(l, wr, data, bytes);
	else
		send_long(l, wr, data, bytes);
	return !l->base.lags;
}

void *tcp_reserve(struct fabric_link *link, uint32_t length)
{
	struct tcp_link *l = (struct tcp_link *)link;
	size_t bytes = tcp_outlet_extent(&l->out, length);

	if (UNLIKELY(l->out.train.count))
		(void)tcp_flush(l);
	/* The length first: near 2^32 a sum would come out small. */
	if (length > link->payload_max || tcp_is_over(l) || !tcp_outlet_make_room(l, bytes))
		return NULL;
	return l->out.staging + l->out.size;
}
