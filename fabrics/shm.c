/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory fabric: each side owns one sealed memfd that holds its inbound ring, and the
 * other side writes into it. Commit discipline: a word a packet.
 *
 *     own object    [ produced | consumed | asleep | segments ... ]   all written by the peer
 *     peer's object  the same, all written from here
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabrics/fabric.h"
#include "shm/doorbell.h"
#include "shm/mapping.h"
#include "shm/ring.h"

enum { ROUND_OFFER, ROUND_MAPPED, ROUND_SEALED };

struct shm_domain {
	struct fabric_domain base;
	bool membarrier; /* both halves work in this process */
	struct shm_link *links;
};

struct shm_link {
	struct fabric_link base;
	/* hot */
	struct ring_writer writer;
	struct ring_reader reader;
	struct doorbell bell;
	void *built; /* an open reservation */
	bool quiet;  /* a post said MORE: the bell is still owed */
	/* cold */
	struct mapping own, peer;
	struct ring_shape own_shape, peer_shape;
	uint64_t own_epoch, peer_epoch;
	int peer_fd; /* until its seals have been seen closed */
	bool connected;
	struct shm_link *next;
};

struct offer { /* little-endian, round 0 */
	uint32_t segments, segment_size;
	uint64_t epoch, start;
	uint32_t membarrier, zero;
};
_Static_assert(sizeof(struct offer) == 32, "wire layout");

static const char *const violation_names[RING_VIOLATIONS] = {
	[RING_SOUND] = "none",
	[RING_BAD_TAG] = "commit word",
	[RING_BAD_LENGTH] = "packet length",
	[RING_BAD_PRODUCED] = "produced total",
	[RING_BAD_CONSUMED] = "consumed total",
};

static int shm_probe(struct fabric_caps *caps)
{
	struct mapping m;
	int rc = mapping_create(&m, "slmpm-probe", 4096);

	*caps = (struct fabric_caps){
		.ops = 1u << FABRIC_SEND | 1u << FABRIC_FLUSH,
		.memory = FABRIC_MEMORY_HOST,
		.links_max = 1,
		.message_max = RING_LENGTH_MAX - RING_WORD - FABRIC_HEAD_SIZE,
		.commit = FABRIC_COMMIT_WORD,
	};
	if (rc < 0) {
		strcpy(caps->why_not, "no sealed memfd can be made here");
		return rc;
	}
	mapping_destroy(&m);
	return 0;
}

static int shm_open_domain(struct fabric_domain *domain)
{
	struct shm_domain *d = (struct shm_domain *)domain;

	d->membarrier = domain->config.membarrier && doorbell_can_membarrier();
	return 0;
}

static void shm_close_domain(struct fabric_domain *domain)
{
	(void)domain; /* nothing but its links, and they are gone */
}

/* ---- connecting ----------------------------------------------------------------------------- */

static int make_own_object(struct shm_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	int rc;

	l->peer_fd = -1;
	l->own_shape = (struct ring_shape){c->segments, c->segment_size};
	rc = ring_shape_check(&l->own_shape);
	if (rc < 0)
		return rc;
	if (getrandom(&l->own_epoch, sizeof(l->own_epoch), 0) != sizeof(l->own_epoch))
		return -EIO;
	rc = mapping_create(&l->own, "slmpm-ring", ring_size(&l->own_shape));
	if (rc < 0)
		return rc;
	/* This side only reads it: let the processor hold us to that. */
	if (mprotect(l->own.base, l->own.size, PROT_READ) != 0)
		return -errno;
	return 0;
}

static int shm_address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct shm_link *l = (struct shm_link *)link;
	const struct shm_domain *d = (const struct shm_domain *)link->domain;
	struct offer offer;
	uint64_t epoch;

	out->fd_count = 0;
	switch (round) {
	case ROUND_OFFER: {
		int rc = make_own_object(l);

		if (rc < 0)
			return rc;
		offer = (struct offer){
			.segments = LITTLE32(l->own_shape.segments),
			.segment_size = LITTLE32(l->own_shape.segment_size),
			.epoch = LITTLE64(l->own_epoch),
			.start = LITTLE64(link->domain->config.start),
			.membarrier = LITTLE32(d->membarrier),
		};
		memcpy(out->bytes, &offer, sizeof(offer));
		out->length = sizeof(offer);
		out->fds[0] = l->own.fd;
		out->fd_count = 1;
		return 0;
	}
	case ROUND_MAPPED:
	case ROUND_SEALED:
		epoch = LITTLE64(l->peer_epoch); /* echoed: both speak of the same connection */
		memcpy(out->bytes, &epoch, sizeof(epoch));
		out->length = sizeof(epoch);
		return 0;
	default: return -EINVAL;
	}
}

static int take_offer(struct shm_link *l, struct fabric_blob *in)
{
	const struct shm_domain *d = (const struct shm_domain *)l->base.domain;
	struct offer offer;
	int rc;

	if (in->length != sizeof(offer) || in->fd_count != 1)
		return -EPROTO;
	memcpy(&offer, in->bytes, sizeof(offer));
	l->peer_shape.segments = LITTLE32(offer.segments);
	l->peer_shape.segment_size = LITTLE32(offer.segment_size);
	l->peer_epoch = LITTLE64(offer.epoch);
	if (ring_shape_check(&l->peer_shape) < 0 || LITTLE32(offer.membarrier) > 1 || offer.zero ||
	    LITTLE64(offer.start) != l->base.domain->config.start)
		return -EPROTO;
	rc = mapping_attach(&l->peer, in->fds[0], ring_size(&l->peer_shape), MAPPING_WRITE);
	if (rc < 0)
		return rc;
	l->bell.fence = !d->membarrier || !offer.membarrier;
	l->peer_fd = in->fds[0];
	in->fds[0] = -1;
	return 1;
}

static int check_echo(const struct shm_link *l, const struct fabric_blob *in)
{
	uint64_t epoch;

	if (in->length != sizeof(epoch) || in->fd_count != 0)
		return -EPROTO;
	memcpy(&epoch, in->bytes, sizeof(epoch));
	return LITTLE64(epoch) == l->own_epoch ? 0 : -EPROTO;
}

/* p of N, less what the core may hold back while it gathers releases (FABRIC_DUE). */
static uint32_t threshold(const struct ring_shape *shape, uint32_t permille)
{
	uint32_t part = (uint32_t)((uint64_t)shape->segments * permille / 1000);
	uint32_t live = shape->segments - ring_packet_max(shape) + 1 - FABRIC_DUE(shape->segments);

	if (!permille)
		return 0;
	if (part > live)
		part = live;
	return part ? part : 1;
}

/* Both ends have both objects: set the rings up from the private copies of their geometry. */
static int start_rings(struct shm_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_words *own = l->own.base, *peer = l->peer.base;
	struct ring_setup out = {
		.shape = l->peer_shape,
		.epoch = (uint32_t)l->peer_epoch,
		.start = c->start,
		.segments = (unsigned char *)l->peer.base + RING_SEGMENTS_OFFSET,
		.bits = calloc(1, ring_bits_size(&l->peer_shape)),
		.out = &peer->produced,
		.in = &own->consumed,
	};
	struct ring_setup in = {
		.shape = l->own_shape,
		.epoch = (uint32_t)l->own_epoch,
		.start = c->start,
		.segments = (unsigned char *)l->own.base + RING_SEGMENTS_OFFSET,
		.bits = calloc(1, ring_bits_size(&l->own_shape)),
		.out = &peer->consumed,
		.in = &own->produced,
		.threshold = threshold(&l->own_shape, c->threshold_permille),
		.batch = c->batch ? c->batch : l->own_shape.segments / 16,
	};

	if (!out.bits || !in.bits) {
		free(out.bits);
		free(in.bits);
		return -ENOMEM;
	}
	ring_writer_init(&l->writer, &out);
	ring_reader_init(&l->reader, &in);
	l->bell.asleep_in = &own->asleep;
	l->bell.asleep_out = &peer->asleep;
	l->bell.fd = l->base.bell;
	l->base.payload_max =
		l->writer.max * l->peer_shape.segment_size - RING_WORD - FABRIC_HEAD_SIZE;
	l->base.payload_max_in =
		l->reader.max * l->own_shape.segment_size - RING_WORD - FABRIC_HEAD_SIZE;
	return 0;
}

static void join_domain(struct shm_link *l)
{
	struct shm_domain *d = (struct shm_domain *)l->base.domain;

	l->next = d->links;
	d->links = l;
	l->connected = true;
}

static int shm_connect(struct fabric_link *link, int round, struct fabric_blob *in)
{
	struct shm_link *l = (struct shm_link *)link;
	int rc;

	switch (round) {
	case ROUND_OFFER: return take_offer(l, in);
	case ROUND_MAPPED: /* the peer has its mapping: no further one may be made writable */
		rc = check_echo(l, in);
		if (rc == 0)
			rc = mapping_close_seals(&l->own);
		return rc < 0 ? rc : 1;
	case ROUND_SEALED: /* and so has the owner of ours promised */
		rc = check_echo(l, in);
		if (rc == 0 && !mapping_seals_closed(l->peer_fd))
			rc = -EPROTO;
		if (rc == 0)
			rc = start_rings(l);
		if (rc < 0)
			return rc;
		close(l->peer_fd);
		l->peer_fd = -1;
		close(l->own.fd);
		l->own.fd = -1;
		join_domain(l);
		return 0;
	default: return -EPROTO;
	}
}

static void leave_domain(struct shm_link *l)
{
	struct shm_domain *d = (struct shm_domain *)l->base.domain;

	for (struct shm_link **at = &d->links; *at; at = &(*at)->next) {
		if (*at == l) {
			*at = l->next;
			break;
		}
	}
	l->connected = false;
}

static void shm_disconnect(struct fabric_link *link)
{
	struct shm_link *l = (struct shm_link *)link;

	if (l->connected)
		leave_domain(l);
	if (!l->own.base) /* never got as far as an object */
		return;
	if (l->peer_fd >= 0)
		close(l->peer_fd);
	l->peer_fd = -1;
	mapping_destroy(&l->own);
	mapping_destroy(&l->peer);
	free(l->writer.stale);
	free(l->reader.done);
	l->writer.stale = NULL;
	l->reader.done = NULL;
}

/* ---- moving bytes --------------------------------------------------------------------------- */

static int poisoned(struct shm_link *l, enum ring_violation violation)
{
	l->base.violation = violation_names[violation];
	return -EPROTO;
}

static COLD void refresh_counts(struct shm_link *l)
{
	struct fabric_counts *c = &l->base.counts;
	uint64_t reader_writes = l->reader.writes;

	c->in_produced_seen = l->reader.consumed + ring_unread(&l->reader);
	(void)ring_room(&l->writer);
	c->produced = l->writer.produced;
	c->consumed_seen = l->writer.consumed;
	c->out_segments = l->writer.mask + 1;
	c->read = l->reader.read;
	c->consumed = l->reader.consumed;
	c->in_segments = l->reader.mask + 1;
	c->remote_writes = l->writer.writes + reader_writes + l->bell.writes;
	c->produced_publications = l->writer.publications;
	c->bells = l->bell.bells;
	for (int i = 0; i < RING_CAUSES; i++)
		c->publications[i] = l->reader.publications[i];
}

static COLD int flush(struct shm_link *l)
{
	if (l->built) {
		ring_abort(&l->writer);
		l->built = NULL;
	}
	ring_publish_produced(&l->writer);
	ring_publish_consumed(&l->reader, RING_FLUSH);
	l->quiet = false;
	doorbell_check(&l->bell);
	refresh_counts(l);
	if (l->writer.violation)
		return poisoned(l, l->writer.violation);
	return 1;
}

/* No room: a peer that sleeps must know what there is before we wait for it. */
static COLD int no_room(struct shm_link *l)
{
	if (l->writer.violation)
		return poisoned(l, l->writer.violation);
	ring_publish_produced(&l->writer);
	l->quiet = false;
	doorbell_check(&l->bell);
	return -EAGAIN;
}

static inline void put_head(unsigned char *to, const uint64_t *head)
{
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
		uint64_t word = LITTLE64(head[i]);
		memcpy(to + 8 * i, &word, 8);
	}
}

/* Short payloads without a call: two overlapping moves cover each range. */
static inline void put_payload(unsigned char *to, const unsigned char *from, uint32_t n)
{
	if (n > 32) {
		memcpy(to, from, n);
	} else if (n >= 16) {
		memcpy(to, from, 16);
		memcpy(to + n - 16, from + n - 16, 16);
	} else if (n >= 8) {
		memcpy(to, from, 8);
		memcpy(to + n - 8, from + n - 8, 8);
	} else if (n >= 4) {
		memcpy(to, from, 4);
		memcpy(to + n - 4, from + n - 4, 4);
	} else {
		for (uint32_t i = 0; i < n; i++)
			to[i] = from[i];
	}
}

static void *shm_reserve(struct fabric_link *link, uint32_t length)
{
	struct shm_link *l = (struct shm_link *)link;
	unsigned char *at = ring_reserve(&l->writer, FABRIC_HEAD_SIZE + length);

	if (UNLIKELY(!at)) {
		(void)no_room(l);
		return NULL;
	}
	l->built = at;
	return at + FABRIC_HEAD_SIZE;
}

static int shm_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct shm_link *l = (struct shm_link *)link;
	unsigned char *at;

	if (UNLIKELY(wr->op != FABRIC_SEND))
		return wr->op == FABRIC_FLUSH ? flush(l) : -ENOTSUP;
	if (UNLIKELY(wr->flags & FABRIC_BUILT)) {
		at = l->built;
		l->built = NULL;
	} else {
		at = ring_reserve(&l->writer, FABRIC_HEAD_SIZE + wr->length);
		if (UNLIKELY(!at))
			return no_room(l);
		put_payload(at + FABRIC_HEAD_SIZE, wr->data, wr->length);
	}
	put_head(at, wr->head);
	ring_commit(&l->writer, FABRIC_HEAD_SIZE + wr->length, wr->kind,
		    UNLIKELY(wr->flags & FABRIC_ASK) ? RING_ASK : 0);
	if (wr->flags & FABRIC_MORE)
		l->quiet = true;
	else
		doorbell_check(&l->bell);
	return 1;
}

static int shm_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct shm_link *l = (struct shm_link *)link;
	uint64_t published = l->reader.published;
	struct ring_packet p;
	int got = 0;

	if (UNLIKELY(l->quiet)) {
		l->quiet = false;
		doorbell_check(&l->bell);
	}
	for (; got < n; got++) {
		struct fabric_arrival *a = &arrivals[got];
		int rc = ring_peek(&l->reader, &p);

		if (rc != 1)
			break;
		if (UNLIKELY(p.length < FABRIC_HEAD_SIZE || !p.kind)) {
			l->reader.violation = RING_BAD_LENGTH;
			break;
		}
		for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
			const uint64_t *word = (const uint64_t *)(const void *)(p.data + 8 * i);
			/* One load a word: the peer may change it meanwhile (R1). */
			a->head[i] = LITTLE64(*(const volatile uint64_t *)word);
		}
		a->data = p.data + FABRIC_HEAD_SIZE;
		a->length = p.length - FABRIC_HEAD_SIZE;
		a->span = p.segments;
		a->token = p.total;
		a->kind = p.kind;
	}
	/* A pad was given back: a writer may sleep for want of its room. */
	if (UNLIKELY(l->reader.published != published))
		doorbell_check(&l->bell);
	if (UNLIKELY(!got && l->reader.violation))
		return poisoned(l, l->reader.violation);
	return got;
}

static void shm_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct shm_link *l = (struct shm_link *)link;
	struct ring_packet p = {.total = a->token, .segments = a->span};
	uint64_t published = l->reader.published;

	ring_release(&l->reader, &p);
	/* A writer may sleep for want of room. */
	if (UNLIKELY(l->reader.published != published))
		doorbell_check(&l->bell);
}

static void shm_arm(struct fabric_domain *domain, bool on)
{
	struct shm_domain *d = (struct shm_domain *)domain;
	bool barrier = false;

	for (struct shm_link *l = d->links; l; l = l->next) {
		if (!on) {
			doorbell_retract(&l->bell);
			continue;
		}
		/* What a sleeper owes: a peer may wait for room, or count what is unread. */
		ring_publish_produced(&l->writer);
		ring_publish_consumed(&l->reader, RING_SLEEP);
		l->quiet = false;
		doorbell_check(&l->bell);
		doorbell_announce(&l->bell);
		refresh_counts(l);
		barrier |= !l->bell.fence;
	}
	if (barrier)
		doorbell_barrier();
}

const struct fabric fabric_shm = {
	.name = "shm",
	.domain_size = sizeof(struct shm_domain),
	.link_size = sizeof(struct shm_link),
	.probe = shm_probe,
	.open = shm_open_domain,
	.close = shm_close_domain,
	.address = shm_address,
	.connect = shm_connect,
	.disconnect = shm_disconnect,
	.reserve = shm_reserve,
	.post = shm_post,
	.poll = shm_poll,
	.release = shm_release,
	.arm = shm_arm,
};
