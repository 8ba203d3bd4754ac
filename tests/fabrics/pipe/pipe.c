/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets over a pipe: the ring that they are received into, and the table of functions. */
#include "tests/fabrics/pipe/pipe.h"

#include <string.h>
#include <sys/uio.h>

#define STEPS_AT_ONCE 192 /* three a frame: it begins, is received, ends */

static inline uint32_t span_of(uint32_t length, uint32_t shift)
{
	return length ? (length + (1u << shift) - 1) >> shift : 1;
}

static void refresh_counts(struct pipe_link *l)
{
	struct fabric_counts *c = &l->pub.counts;

	c->produced = l->produced;
	c->consumed_seen = l->consumed_seen;
	c->out_segments = l->peer.segments;
	c->read = l->read;
	c->in_produced_seen = l->total;
	c->consumed = l->consumed;
	c->in_segments = l->shape.segments;
}

/* ---- in ---- */

static int packet_begins(struct pipe_link *l, const struct frame *f, uint32_t length)
{
	uint32_t span = span_of(length, l->shift);

	if (PEER_FAULT(!f->kind))
		return pipe_violates(l, "kind");
	if (PEER_FAULT(length > l->pub.payload_max_in))
		return pipe_violates(l, "length");
	if (PEER_FAULT(l->total - l->consumed + span > l->shape.segments))
		return pipe_violates(l, "room");
	l->to = l->ring + ((l->total & (l->shape.segments - 1)) << l->shift);
	return 0;
}

static int credit_comes(struct pipe_link *l, uint64_t consumed)
{
	if (PEER_FAULT(consumed - l->consumed_seen > l->produced - l->consumed_seen))
		return pipe_violates(l, "consumed");
	l->consumed_seen = consumed;
	l->pub.room++;
	return 0;
}

static int access_comes(struct pipe_link *l, uint64_t word, uint64_t value)
{
	if (PEER_FAULT(word >= FABRIC_ACCESS_WORDS || value > FABRIC_ACCESS_REVOKED))
		return pipe_violates(l, "access");
	atomic_store_explicit(&l->access[word], (unsigned char)value, memory_order_release);
	return 0;
}

/* A whole head has come. */
static int frame_begins(struct pipe_link *l)
{
	const struct frame *f = &l->frame;
	uint32_t length;

	l->frame = l->next;
	l->next_have = 0;
	l->receiving = true;
	l->left = length = LITTLE_32(f->length);
	if (PEER_FAULT(length > FRAME_PAYLOAD))
		return pipe_violates(l, "length");
	if (f->type == FRAME_PACKET)
		return packet_begins(l, f, length);
	return pipe_memory_begins(l, f, length);
}

/* All of a frame has come. */
static int frame_ends(struct pipe_link *l)
{
	const struct frame *f = &l->frame;
	uint32_t length = LITTLE_32(f->length);

	l->receiving = false;
	switch (f->type) {
	case FRAME_PACKET:
		l->heads[l->total & (l->shape.segments - 1)] = *f;
		l->total += span_of(length, l->shift);
		return 0;
	case FRAME_CREDIT: return credit_comes(l, frame_word(f, 0));
	case FRAME_ACCESS: return access_comes(l, frame_word(f, 0), frame_word(f, 1));
	default: return pipe_memory_ends(l, f, length);
	}
}

static int link_ends(struct pipe_link *l)
{
	l->pub.lost = "the other end of the pipe is closed";
	l->pub.fails = true;
	return l->dead = -EPIPE;
}

/* The rest of the payload and the next head, by one call. 1: something came. */
static int receive(struct pipe_link *l)
{
	struct iovec io[2] = {{l->to, l->left},
			      {(unsigned char *)&l->next + l->next_have,
			       sizeof(l->next) - l->next_have}};
	ssize_t n = readv(l->in, io, 2);

	if (n < 0 && errno == EFAULT && l->receiving) {
		pipe_memory_faults(l, &l->frame);
		return 1;
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : link_ends(l);
	if (n == 0)
		return link_ends(l);
	if (pipe_domain(l)->armed)
		l->pub.domain->roused = true;
	if ((size_t)n < l->left) {
		l->to += n;
		l->left -= (uint32_t)n;
	} else {
		l->next_have += (uint32_t)n - l->left;
		l->left = 0;
	}
	return 1;
}

/* Takes in what has come, a bounded share: packets into the ring. */
static void take_in(struct pipe_link *l)
{
	int rc = 0;

	for (int steps = STEPS_AT_ONCE; steps && rc >= 0 && !l->dead; steps--) {
		if (l->receiving && !l->left)
			rc = frame_ends(l);
		else if (!l->receiving && l->next_have == sizeof(l->next))
			rc = frame_begins(l);
		else if (!receive(l))
			return;
	}
}

/* The next packet of the ring. */
static void hand_out(struct pipe_link *l, struct fabric_arrival *a)
{
	uint64_t at = l->read & (l->shape.segments - 1);
	const struct frame *f = &l->heads[at];

	memcpy(a->head, f->word, sizeof(a->head));
	a->kind = f->kind;
	a->length = LITTLE_32(f->length);
	a->span = span_of(a->length, l->shift);
	a->token = l->read;
	a->data = l->ring + (at << l->shift);
	l->read += a->span;
}

static int pipe_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct pipe_link *l = (struct pipe_link *)link;
	int got = 0;

	if (!l->dead) {
		take_in(l);
		pipe_pump(l);
		if (l->dead)
			pipe_unwatch(l);
	}
	while (got < n && l->read != l->total)
		hand_out(l, &arrivals[got++]);
	return got || l->read != l->total ? got : l->dead;
}

/* ---- out ---- */

static bool has_room(const struct pipe_link *l, uint32_t span)
{
	return l->produced - l->consumed_seen + span + l->held <= l->peer.segments;
}

/* Who sends alone never polls: what the reader has given back is looked for here. */
static bool finds_room(struct pipe_link *l, uint32_t span)
{
	if (!has_room(l, span))
		take_in(l);
	return has_room(l, span);
}

static void *pipe_reserve(struct fabric_link *link, uint32_t length)
{
	struct pipe_link *l = (struct pipe_link *)link;

	if (l->dead || length > l->pub.payload_max || l->stage_head != l->stage_tail ||
	    !finds_room(l, span_of(length, l->out_shift)))
		return NULL;
	return l->built;
}

static int post_packet(struct pipe_link *l, const struct fabric_wr *wr)
{
	struct frame f = {.type = FRAME_PACKET, .kind = wr->kind, .length = LITTLE_32(wr->length)};
	uint32_t span = span_of(wr->length, l->out_shift);
	bool built = wr->flags & FABRIC_BUILT;
	int rc;

	if (!built && (wr->length > l->pub.payload_max || !finds_room(l, span)))
		return l->dead ? l->dead : -EAGAIN;
	memcpy(f.word, wr->head, sizeof(f.word));
	/* A reservation has the stage to itself; of short ones there are no more than segments. */
	rc = pipe_send(l, &f, built ? l->built : wr->data, built || wr->length <= FABRIC_WORD_MAX);
	if (rc >= 0)
		l->produced += span;
	return rc;
}

static int post_flush(struct pipe_link *l, unsigned flags)
{
	if (l->consumed != l->published)
		pipe_publish(l, RING_FLUSH);
	take_in(l);
	pipe_pump(l);
	refresh_counts(l);
	if (l->dead || l->pub.lags)
		return l->dead ? l->dead : -EAGAIN;
	if (flags & FABRIC_END)
		pipe_end(l);
	return 1;
}

static int pipe_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct pipe_link *l = (struct pipe_link *)link;
	int rc;

	if (wr->op == FABRIC_FLUSH && wr->flags & FABRIC_CANCEL) {
		pipe_cancel(l);
		return 1;
	}
	if (wr->op != FABRIC_STATUS && (l->dead || l->ended))
		return l->dead ? l->dead : -EPIPE;
	switch (wr->op) {
	case FABRIC_SEND: rc = post_packet(l, wr); break;
	case FABRIC_WRITE:
	case FABRIC_READ:
	case FABRIC_ATOMIC: rc = pipe_begin(l, wr); break;
	case FABRIC_FLUSH: rc = post_flush(l, wr->flags); break;
	case FABRIC_HOLD_BACK:
		if (wr->length > FABRIC_HOLD_MAX(l->peer.segments))
			return -EINVAL;
		l->held = wr->length;
		return 1;
	case FABRIC_STATUS:
		if (wr->flags & (FABRIC_LOAD | FABRIC_SIGN))
			return -ENOTSUP;
		refresh_counts(l);
		return 1;
	default: return -ENOTSUP;
	}
	/* The sleeper has not been told to wait for room in this pipe. */
	if (l->choked && !l->watched && pipe_domain(l)->armed)
		l->pub.domain->roused = true;
	return rc;
}

/* ---- given back ---- */

static void release_later(struct pipe_link *l, uint64_t token, uint32_t span)
{
	uint64_t mask = l->shape.segments - 1;

	for (uint64_t s = token; s != token + span; s++)
		l->released[(s & mask) >> 6] |= UINT64_C(1) << (s & mask & 63);
	l->gaps += span;
	while (l->gaps && l->released[(l->consumed & mask) >> 6] >> (l->consumed & mask & 63) & 1) {
		l->released[(l->consumed & mask) >> 6] &=
			~(UINT64_C(1) << (l->consumed & mask & 63));
		l->consumed++;
		l->gaps--;
	}
}

static void pipe_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct pipe_link *l = (struct pipe_link *)link;

	if (a->token == l->consumed && !l->gaps)
		l->consumed += a->span;
	else
		release_later(l, a->token, a->span);
	if (!l->threshold)
		pipe_publish(l, RING_EVERY);
	else if (l->read - l->published >= l->threshold && l->consumed - l->published >= l->batch)
		pipe_publish(l, RING_THRESHOLD);
}

static void pipe_arm(struct fabric_domain *domain, bool on)
{
	struct pipe_domain *d = (struct pipe_domain *)domain;

	d->armed = on;
	for (struct pipe_link *l = on ? d->links : NULL; l; l = l->another) {
		if (l->dead)
			continue;
		if (l->consumed != l->published)
			pipe_publish(l, RING_SLEEP);
		pipe_pump(l);
		l->choked |= l->refused;
		l->refused = false;
		pipe_watch(l);
		refresh_counts(l);
	}
}

const struct fabric fabric_pipe = {
	.name = "pipe",
	.domain_size = sizeof(struct pipe_domain),
	.link_size = sizeof(struct pipe_link),
	.probe = pipe_probe,
	.open = pipe_open,
	.close = pipe_close,
	.address = pipe_address,
	.connect = pipe_connect,
	.disconnect = pipe_disconnect,
	.reg = pipe_reg,
	.dereg = pipe_dereg,
	.reserve = pipe_reserve,
	.post = pipe_post,
	.poll = pipe_poll,
	.release = pipe_release,
	.arm = pipe_arm,
};
