/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting two ends over shared memory, in three rounds: each offers its ring's object, maps the
 * other's, and closes the seals of its own once the other has said that it is mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabrics/publication.h"
#include "fabrics/shm.h"

enum { ROUND_OFFER, ROUND_MAPPED, ROUND_SEALED };

struct offer { /* little-endian, round 0 */
	uint32_t segments, segment_size;
	uint64_t epoch, start;
	uint32_t membarrier, zero;
};
_Static_assert(sizeof(struct offer) == 32, "wire layout");

static int make_own_object(struct shm_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_words *words;
	int rc;

	l->peer_fd = l->peer.fd = -1;
	l->own_shape = (struct ring_shape){c->segments, c->segment_size};
	rc = ring_shape_check(&l->own_shape);
	if (rc < 0)
		return rc;
	if (getrandom(&l->own_epoch, sizeof(l->own_epoch), 0) != sizeof(l->own_epoch))
		return -EIO;
	rc = mapping_create(&l->own, "slmpm-ring", ring_size(&l->own_shape));
	if (rc < 0)
		return rc;
	words = l->own.base;
	atomic_init(&words->produced, LITTLE_64(c->start));
	atomic_init(&words->consumed, LITTLE_64(c->start));
	atomic_init(&words->asleep, LITTLE_64(doorbell_first(c->start)));
	/* This side only reads it: let the processor hold us to that. */
	if (mprotect(l->own.base, l->own.size, PROT_READ) != 0)
		return -errno;
	return 0;
}

int shm_address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct shm_link *l = (struct shm_link *)link;
	const struct shm_domain *d = (const struct shm_domain *)link->domain;
	struct offer offer;
	uint64_t epoch;

	switch (round) {
	case ROUND_OFFER: {
		int rc = make_own_object(l);

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
	case ROUND_MAPPED:
	case ROUND_SEALED:
		epoch = LITTLE_64(l->peer_epoch); /* echoed: both speak of the same connection */
		memcpy(out->bytes, &epoch, sizeof(epoch));
		out->length = sizeof(epoch);
		return 0;
	default: return -EINVAL;
	}
}

/* Where the peer's total begins, before it stores any: its rings are set up once this side has
 * answered. */
static int begin_produced(const struct shm_link *l)
{
	uint64_t start = LITTLE_64(l->base.start_in);

	if (l->base.start_in == l->base.domain->config.start)
		return 0;
	return pwrite(l->own.fd, &start, sizeof(start), offsetof(struct ring_words, produced)) ==
			       (ssize_t)sizeof(start) ?
		       0 :
		       -EIO;
}

static int take_offer(struct shm_link *l, struct fabric_blob *in)
{
	const struct shm_domain *d = (const struct shm_domain *)l->base.domain;
	struct offer offer;
	int rc;

	if (in->length != sizeof(offer) || in->fd < 0)
		return -EPROTO;
	memcpy(&offer, in->bytes, sizeof(offer));
	l->peer_shape.segments = LITTLE_32(offer.segments);
	l->peer_shape.segment_size = LITTLE_32(offer.segment_size);
	l->peer_epoch = LITTLE_64(offer.epoch);
	l->base.start_in = LITTLE_64(offer.start);
	if (ring_shape_check(&l->peer_shape) < 0 || LITTLE_32(offer.membarrier) > 1 || offer.zero)
		return -EPROTO;
	rc = begin_produced(l);
	if (rc < 0)
		return rc;
	rc = mapping_attach(&l->peer, in->fd, ring_size(&l->peer_shape), MAPPING_WRITE);
	if (rc < 0)
		return rc;
	mapping_populate(&l->peer, in->fd);
	l->bell.no_membarrier = l->bell.fence = !d->membarrier || !offer.membarrier;
	l->peer_fd = in->fd;
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
	l->base.access = (const _Atomic unsigned char *)l->own.base + SHM_ACCESS_OFFSET;
	shm_find_access(l);
	l->bell.all = &l->base.domain->bells;
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

static int shm_connect_take_round(struct shm_link *l, int round, struct fabric_blob *in)
{
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

static void shm_connect_leave_domain(struct shm_link *l)
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

void shm_disconnect(struct fabric_link *link)
{
	struct shm_link *l = (struct shm_link *)link;

	if (l->connected)
		shm_connect_leave_domain(l);
	shm_close_memory(l);
	if (!l->own.base) /* never got as far as an object */
		return;
	if (link->domain->forked) /* mappings have not come along */
		l->own.base = l->peer.base = NULL;
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
