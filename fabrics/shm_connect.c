/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting two ends over shared memory, in three rounds: each offers its ring's object, maps the
 * other's, and closes the seals of its own once the other has said that it is mapped.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabrics/shm.h"

enum { ROUND_OFFER, ROUND_MAPPED, ROUND_SEALED };

struct offer { /* little-endian, round 0 */
	uint32_t segments, segment_size;
	uint64_t epoch, start;
	uint32_t membarrier, zero;
};
_Static_assert(sizeof(struct offer) == 32, "wire layout");

/* A first word of this side's ring, which the peer alone stores through a mapping. */
static int store_word(const struct shm_link *l, size_t at, uint64_t value)
{
	value = LITTLE_64(value);
	return mapping_store(&l->own, at, &value, sizeof(value));
}

static int make_own_object(struct shm_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	int rc;

	l->peer.fd = -1;
	l->own_shape = (struct ring_shape){c->segments, c->segment_size};
	rc = ring_shape_check(&l->own_shape);
	if (rc < 0)
		return rc;
	if (getrandom(&l->own_epoch, sizeof(l->own_epoch), 0) != sizeof(l->own_epoch))
		return -EIO;
	/* Read-only from the start: the processor holds us to it. */
	rc = mapping_create_read(&l->own, "slmpm-ring", ring_size(&l->own_shape));
	if (rc == 0)
		rc = store_word(l, offsetof(struct ring_words, consumed), c->start);
	if (rc == 0)
		rc = store_word(l, offsetof(struct ring_words, asleep), doorbell_first(c->start));
	return rc;
}

int shm_address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct shm_link *l = (struct shm_link *)link;
	const struct shm_domain *d = (const struct shm_domain *)link->domain;
	uint64_t epoch = LITTLE_64(l->peer_epoch); /* echoed: both speak of the same connection */
	struct offer offer;
	int rc;

	if (round > ROUND_SEALED)
		return -EINVAL;
	if (round != ROUND_OFFER) {
		memcpy(out->bytes, &epoch, sizeof(epoch));
		out->length = sizeof(epoch);
		return 0;
	}
	rc = make_own_object(l);
	if (rc < 0)
		return rc;
	offer = (struct offer){
		.segments = LITTLE_32(l->own_shape.segments),
		.segment_size = LITTLE_32(l->own_shape.segment_size),
		.epoch = LITTLE_64(l->own_epoch),
		.start = LITTLE_64(link->domain->config.start),
		.membarrier = LITTLE_32(d->membarrier),
	};
	memcpy(out->bytes, &offer, sizeof(offer));
	out->length = sizeof(offer);
	out->fd = l->own.fd;
	return 0;
}

static int take_offer(struct shm_link *l, struct fabric_blob *in)
{
	const struct shm_domain *d = (const struct shm_domain *)l->base.domain;
	struct offer offer;
	int rc;

	if (!l->own.base || in->length != sizeof(offer) || in->fd < 0)
		return -EPROTO;
	memcpy(&offer, in->bytes, sizeof(offer));
	l->peer_shape.segments = LITTLE_32(offer.segments);
	l->peer_shape.segment_size = LITTLE_32(offer.segment_size);
	l->peer_epoch = LITTLE_64(offer.epoch);
	l->base.start_in = LITTLE_64(offer.start);
	if (ring_shape_check(&l->peer_shape) < 0 || LITTLE_32(offer.membarrier) > 1 || offer.zero)
		return -EPROTO;
	/* Before the peer stores any total: its rings are set up once this side has answered. */
	rc = store_word(l, offsetof(struct ring_words, produced), l->base.start_in);
	if (rc == 0)
		rc = mapping_attach(&l->peer, in->fd, ring_size(&l->peer_shape), MAPPING_WRITE);
	if (rc < 0)
		return rc;
	(void)mapping_populate(&l->peer, in->fd);
	l->bell.no_membarrier = l->bell.fence = !d->membarrier || !offer.membarrier;
	l->peer.fd = in->fd;
	in->fd = -1;
	return 1;
}

static int check_echo(const struct shm_link *l, const struct fabric_blob *in)
{
	uint64_t epoch;

	if (in->length != sizeof(epoch) || in->fd >= 0)
		return -EPROTO;
	memcpy(&epoch, in->bytes, sizeof(epoch));
	return LITTLE_64(epoch) == l->own_epoch ? 0 : -EPROTO;
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
		.start = l->base.start_in,
		.segments = (unsigned char *)l->own.base + RING_SEGMENTS_OFFSET,
		.bits = calloc(1, ring_bits_size(&l->own_shape)),
		.out = &peer->consumed,
		.in = &own->produced,
	};

	if (!out.bits || !in.bits) {
		free(out.bits);
		free(in.bits);
		return -ENOMEM;
	}
	publication_set(&in, ring_packet_max(&l->own_shape), c);
	ring_writer_init(&l->writer, &out);
	ring_reader_init(&l->reader, &in);
	l->bell.announced = doorbell_first(c->start);
	l->bell.asleep_in = &own->asleep;
	l->bell.asleep_out = &peer->asleep;
	l->bell.fd = &l->base.bell;
	l->bell.all = &l->base.domain->bells;
	l->base.access = (const _Atomic unsigned char *)l->own.base + SHM_ACCESS_OFFSET;
	l->base.peer_access = &l->peer_access;
	l->peer_access = (struct fabric_memory){.base = (unsigned char *)peer + SHM_ACCESS_OFFSET,
						.size = FABRIC_ACCESS_WORDS,
						.ops = 1u << FABRIC_ATOMIC,
						.writable = true};
	l->base.payload_max =
		l->writer.max * l->peer_shape.segment_size - RING_WORD - FABRIC_HEAD_SIZE;
	l->base.payload_max_in =
		l->reader.max * l->own_shape.segment_size - RING_WORD - FABRIC_HEAD_SIZE;
	return 0;
}

static int shm_connect_take_round(struct shm_link *l, int round, struct fabric_blob *in)
{
	int rc = round == ROUND_OFFER ? take_offer(l, in) : check_echo(l, in);

	if (rc < 0 || round == ROUND_OFFER)
		return rc;
	if (round == ROUND_MAPPED) { /* the peer has its mapping: no further writable one */
		rc = mapping_close_seals(&l->own);
		return rc < 0 ? rc : 1;
	}
	/* And so has the owner of ours promised. */
	if (round != ROUND_SEALED || !mapping_seals_closed(l->peer.fd))
		return -EPROTO;
	rc = start_rings(l);
	if (rc < 0)
		return rc;
	close(l->peer.fd);
	close(l->own.fd);
	l->peer.fd = l->own.fd = -1;
	LIST_INSERT_HEAD(&((struct shm_domain *)l->base.domain)->links, l, entry);
	return 0;
}

int shm_connect(struct fabric_link *link, int round, struct fabric_blob *in)
{
	static const char *const wrong[] = {
		[ROUND_OFFER] = "offer of a ring",
		[ROUND_MAPPED] = "answer to the offer of a ring",
		[ROUND_SEALED] = "promise about a ring",
	};
	int rc = shm_connect_take_round((struct shm_link *)link, round, in);

	if (rc == -EPROTO)
		link->violation = round <= ROUND_SEALED ? wrong[round] : "round of connecting";
	return rc;
}

void shm_disconnect(struct fabric_link *link)
{
	struct shm_link *l = (struct shm_link *)link;

	if (l->entry.le_prev)
		LIST_REMOVE(l, entry);
	l->entry.le_prev = NULL;
	shm_close_memory(l);
	if (!l->own.base) /* never got as far as an object */
		return;
	if (link->domain->forked) /* mappings have not come along */
		l->own.base = l->peer.base = NULL;
	mapping_destroy(&l->own);
	mapping_destroy(&l->peer);
	free(l->writer.stale);
	free(l->reader.done);
	l->writer.stale = NULL;
	l->reader.done = NULL;
}
