/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory fabric: each side owns one sealed memfd that holds its inbound ring, and the
 * other side writes into it. Commit discipline: a word a packet.
 *
 *     own object    [ produced | consumed | asleep | segments ... ]   all written by the peer
 *     peer's object  the same, all written from here
 */
#include <errno.h>
#include <string.h>

#include "fabrics/shm.h"
#include "shm/copy.h"

static const char *const violation_names[RING_VIOLATIONS] = {
	[RING_SOUND] = "none",
	[RING_BAD_TAG] = "commit word",
	[RING_BAD_LENGTH] = "packet length",
	[RING_BAD_PRODUCED] = "produced total",
	[RING_BAD_CONSUMED] = "consumed total",
};

/* This side's ring, and the bits of both. */
static uint64_t shm_link_memory(const struct fabric_config *config)
{
	struct ring_shape shape = {config->segments, config->segment_size};

	return ring_size(&shape) + 2 * ring_bits_size(&shape);
}

static int shm_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	struct mapping m;
	int rc = mapping_create(&m, "slmpm-probe", 4096);

	*caps = (struct fabric_caps){
		.ops = 1u << FABRIC_SEND | 1u << FABRIC_FLUSH | 1u << FABRIC_WRITE |
		       1u << FABRIC_READ | 1u << FABRIC_ATOMIC,
		.memory = FABRIC_MEMORY_HOST,
		.message_max = RING_LENGTH_MAX - RING_WORD - FABRIC_HEAD_SIZE,
		.packet_best = 16384,
		.whole_best = copy_has_vectors() ? 65536 : 0, /* elsewhere not measured */
		.commit = FABRIC_COMMIT_WORD,
		.membarrier = barrier_works(),
		.link_memory = config ? shm_link_memory(config) : 0,
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

	domain->fd = -1;
	d->membarrier = domain->config.membarrier && barrier_works();
	return 0;
}

static void shm_close_domain(struct fabric_domain *domain)
{
	(void)domain; /* nothing but its links, and they are gone */
}

/* ---- moving bytes --------------------------------------------------------------------------- */

static int shm_poisoned(struct shm_link *l, enum ring_violation violation)
{
	l->base.violation = violation_names[violation];
	return -EPROTO;
}

static COLD void shm_refresh_counts(struct shm_link *l)
{
	struct fabric_counts *c = &l->base.counts;

	(void)ring_room(&l->writer); /* for what the peer has read */
	publication_count(&l->base, &l->writer, &l->reader);
	c->in_produced_seen = c->consumed + ring_unread(&l->reader);
	c->remote_writes = l->writer.writes + l->reader.writes + l->bell.writes;
	c->produced_publications = l->writer.publications;
	c->bells = l->bell.bells;
}

static COLD int shm_flush(struct shm_link *l)
{
	if (l->built) {
		ring_abort(&l->writer);
		l->built = NULL;
	}
	ring_publish_produced(&l->writer);
	ring_publish_consumed(&l->reader, RING_FLUSH);
	l->has_deferred = false;
	doorbell_check(&l->bell);
	shm_refresh_counts(l);
	if (l->writer.violation)
		return shm_poisoned(l, l->writer.violation);
	return 1;
}

/* What is not a packet. */
static COLD int shm_post_other(struct shm_link *l, const struct fabric_wr *wr)
{
	switch (wr->op) {
	case FABRIC_FLUSH:
		return wr->flags & (FABRIC_END | FABRIC_CANCEL) ? -ENOTSUP : shm_flush(l);
	case FABRIC_HOLD_BACK: return publication_hold_back(&l->writer, wr->length);
	case FABRIC_STATUS:
		if (wr->flags & (FABRIC_LOAD | FABRIC_SIGN))
			return -ENOTSUP;
		shm_refresh_counts(l);
		return 1;
	default: return shm_reach(l, wr);
	}
}

/* No room: a peer that sleeps must know what there is before we wait for it. */
static COLD int no_room(struct shm_link *l)
{
	if (l->writer.violation)
		return shm_poisoned(l, l->writer.violation);
	ring_publish_produced(&l->writer);
	l->has_deferred = false;
	doorbell_check(&l->bell);
	return -EAGAIN;
}

static inline void put_head(unsigned char *to, const uint64_t *head)
{
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
		uint64_t word = LITTLE_64(head[i]);
		memcpy(to + 8 * i, &word, 8);
	}
}

static inline unsigned char *stage(struct shm_link *l)
{
	uintptr_t past = (uintptr_t)l->staging % LOAN_ALIGNMENT;

	return l->staging + (LOAN_ALIGNMENT - past) % LOAN_ALIGNMENT;
}

static void *shm_reserve(struct fabric_link *link, uint32_t length)
{
	struct shm_link *l = (struct shm_link *)link;
	unsigned char *at;

	if (UNLIKELY(length > link->payload_max)) /* near 2^32 the sum below would come out small */
		return NULL;
	at = ring_reserve(&l->writer, FABRIC_HEAD_SIZE + length);

	if (UNLIKELY(!at)) {
		(void)no_room(l);
		return NULL;
	}
	l->built = at;
	l->staged = length <= STAGED_MAX;
	return l->staged ? stage(l) : at + FABRIC_HEAD_SIZE;
}

static HOT int shm_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct shm_link *l = (struct shm_link *)link;
	unsigned char *at;

	if (UNLIKELY(wr->op != FABRIC_SEND))
		return shm_post_other(l, wr);
	if (UNLIKELY(wr->flags & FABRIC_BUILT)) {
		at = l->built;
		l->built = NULL;
		if (l->staged)
			copy_payload(at + FABRIC_HEAD_SIZE, stage(l), wr->length);
	} else {
		at = ring_reserve(&l->writer, FABRIC_HEAD_SIZE + wr->length);
		if (UNLIKELY(!at))
			return no_room(l);
		copy_payload(at + FABRIC_HEAD_SIZE, wr->data, wr->length);
	}
	put_head(at, wr->head);
	ring_commit(&l->writer, FABRIC_HEAD_SIZE + wr->length, wr->kind);
	if (wr->flags & FABRIC_MORE)
		l->has_deferred = true;
	else
		doorbell_check(&l->bell);
	return 1;
}

static HOT int shm_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct shm_link *l = (struct shm_link *)link;
	uint64_t published = l->reader.published;
	struct ring_packet p;
	int got = 0;

	if (UNLIKELY(l->has_deferred)) {
		l->has_deferred = false;
		doorbell_check(&l->bell);
	}
	for (; got < n; got++) {
		struct fabric_arrival *a = &arrivals[got];
		int rc = ring_peek(&l->reader, &p);

		if (rc != 1)
			break;
		if (UNLIKELY(PEER_FAULT(p.length < FABRIC_HEAD_SIZE || !p.kind))) {
			l->reader.violation = RING_BAD_LENGTH;
			break;
		}
		for (int i = 0; i < FABRIC_HEAD_WORDS; i++) {
			const uint64_t *word = (const uint64_t *)(const void *)(p.data + 8 * i);
			/* One load a word: the peer may change it meanwhile (R1). */
			a->head[i] = LITTLE_64(*(const volatile uint64_t *)word);
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
		return shm_poisoned(l, l->reader.violation);
	return got;
}

static HOT void shm_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct shm_link *l = (struct shm_link *)link;
	struct ring_packet p = {.total = a->token, .segments = a->span};
	uint64_t published = l->reader.published;

	ring_release(&l->reader, &p);
	/* A writer may sleep for want of room. */
	if (UNLIKELY(l->reader.published != published))
		doorbell_check(&l->bell);
}

/* What a sleeper has not published yet: a peer may wait for room. Without news since the last time
 * it is left asleep, or two that fall asleep would wake each other again and again. */
static void pay(struct shm_link *l)
{
	uint64_t published = l->reader.published;
	bool news = l->has_deferred || l->writer.produced != l->settled;

	ring_publish_produced(&l->writer);
	ring_settle(&l->reader);
	if (news || l->reader.published != published)
		doorbell_check(&l->bell);
	l->has_deferred = false;
	l->settled = l->writer.produced;
}

static void announce_all(struct shm_domain *d)
{
	struct shm_link *l;

	/* First all of it: a peer in this very domain would wake us for what its own end has not
	 * published. */
	LIST_FOREACH(l, &d->links, entry)
		pay(l);
	LIST_FOREACH(l, &d->links, entry) {
		doorbell_announce(&l->bell);
		shm_refresh_counts(l);
	}
	doorbell_announced();
	LIST_FOREACH(l, &d->links, entry) {
		if (doorbell_unfenced(&l->bell)) {
			barrier_all();
			d->base.fenced = true;
			break;
		}
	}
}

static void retract_all(struct shm_domain *d)
{
	struct shm_link *l;

	LIST_FOREACH(l, &d->links, entry)
		doorbell_retract(&l->bell);
	doorbell_retracted();
	LIST_FOREACH(l, &d->links, entry)
		doorbell_resume(&l->bell);
}

static void shm_arm(struct fabric_domain *domain, bool on)
{
	(on ? announce_all : retract_all)((struct shm_domain *)domain);
}

static const _Atomic uint64_t *shm_awaited(const struct fabric_link *link, uint64_t *nothing)
{
	return ring_awaited(&((const struct shm_link *)link)->reader, nothing);
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
	.alloc = shm_alloc,
	.reg = shm_reg,
	.dereg = shm_dereg,
	.reserve = shm_reserve,
	.post = shm_post,
	.poll = shm_poll,
	.release = shm_release,
	.arm = shm_arm,
	.awaited = shm_awaited,
};
