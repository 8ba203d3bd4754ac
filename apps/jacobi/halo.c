/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The halo of a tile: what its neighbours' edges are. Each neighbour has a region here, with room
 * for an even and an odd iteration, and puts its edge there; the notifications are counted. Two are
 * enough: a neighbour puts an edge once it has this tile's of the iteration before, and that was
 * sent when this accelerator was through with the one before that.
 */
#include <stdlib.h>

#include "apps/jacobi/jacobi.h"

#define LOOK_MS 100

static size_t bytes_of(const struct halo *h, int side)
{
	return tile_length(h->tile, side) * sizeof(double);
}

/* Where the edge of ITERATION lies, in bytes. */
static size_t offset_of(const struct halo *h, int side, uint64_t iteration)
{
	return iteration % 2 * bytes_of(h, side);
}

/* ---- the beginning -------------------------------------------------------------------------- */

/* A region for the neighbour at SIDE, which it gets the key to. */
static int offer(struct halo *h, int side)
{
	const slmpm_ctx ctx = {0};
	struct halo_side *s = &h->side[side];
	struct slmpm_key key;
	void *base;
	int rc = slmpm_mem_alloc(ctx, 2 * bytes_of(h, side), SLMPM_WRITE, &s->mem, &base);

	if (rc == 0)
		rc = slmpm_ctr_create(ctx, &s->arrived);
	if (rc == 0)
		rc = slmpm_mem_notify(s->mem, s->arrived, (slmpm_cq){0});
	if (rc == 0)
		rc = slmpm_mem_key(s->mem, s->peer, SLMPM_WRITE, &key);
	if (rc < 0)
		return rc;
	s->in = base;
	s->out = malloc(2 * bytes_of(h, side));
	if (!s->out)
		return -SLMPM_ENOMEM;
	return slmpm_send(s->peer, STREAM_KEY, &key, sizeof(key), START_MS);
}

static int accept(struct halo_side *s)
{
	struct slmpm_key key;
	int64_t n = slmpm_recv(s->peer, STREAM_KEY, &key, sizeof(key), NULL, START_MS);

	if (n >= 0 && n != sizeof(key))
		return -SLMPM_EPROTO;
	return n < 0 ? (int)n : slmpm_mem_open(s->peer, &key, &s->there);
}

int halo_make(struct halo *h, struct tile *t, slmpm_group group, const struct slmpm_network *net,
	      int rank)
{
	int rc = slmpm_ctr_create((slmpm_ctx){0}, &h->sent), neighbour;

	h->tile = t;
	for (int side = 0; side < SIDES && rc >= 0; side++) {
		neighbour = slmpm_network_neighbour(net, (uint32_t)rank, (uint32_t)side);
		if (neighbour < 0)
			continue;
		rc = slmpm_group_peer(group, neighbour, &h->side[side].peer, START_MS);
		if (rc >= 0)
			rc = offer(h, side);
	}
	for (int side = 0; side < SIDES && rc >= 0; side++)
		if (h->side[side].peer.id)
			rc = accept(&h->side[side]);
	return rc;
}

/* ---- iterations ----------------------------------------------------------------------------- */

int halo_send(struct halo *h, uint64_t iteration)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_NOTIFY, .ctr = h->sent};
	int rc = slmpm_ctr_wait(h->sent, SLMPM_ALL, -1); /* `out` is free again */

	overlap_begin(&h->time);
	for (int side = 0; side < SIDES && rc >= 0; side++) {
		struct halo_side *s = &h->side[side];
		double *edge = s->out + offset_of(h, side, iteration) / sizeof(double);

		if (!s->peer.id)
			continue;
		tile_edge(h->tile, iteration, side, edge);
		rc = slmpm_put(s->there, offset_of(h, side, iteration), edge, bytes_of(h, side),
			       &how, NULL);
	}
	return rc;
}

static bool is_there(const struct halo_side *s, uint64_t iteration)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	return !s->peer.id || (slmpm_ctr_query(s->arrived, &info) == 0 && info.done >= iteration);
}

bool halo_has_come(struct halo *h, uint64_t iteration)
{
	if (h->time.began == 0) /* noted before */
		return true;
	for (int side = 0; side < SIDES; side++)
		if (!is_there(&h->side[side], iteration))
			return false;
	overlap_end(&h->time);
	return true;
}

/* As long as the neighbour lives: it may be stopped. */
static int await(const struct halo_side *s, uint64_t iteration)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int rc;

	while ((rc = slmpm_ctr_wait(s->arrived, iteration, LOOK_MS)) == -SLMPM_ETIMEOUT)
		if (slmpm_peer_query(s->peer, &info) < 0 || info.state > SLMPM_PEER_UP)
			return -SLMPM_EDEAD;
	return rc;
}

int halo_receive(struct halo *h, uint64_t iteration)
{
	int rc = 0;

	for (int side = 0; side < SIDES && rc >= 0; side++)
		if (h->side[side].peer.id)
			rc = await(&h->side[side], iteration);
	halo_has_come(h, iteration);
	for (int side = 0; side < SIDES && rc >= 0; side++)
		if (h->side[side].peer.id)
			tile_rim(h->tile, iteration, side,
				 h->side[side].in + offset_of(h, side, iteration) / sizeof(double));
	return rc;
}

int halo_end(struct halo *h)
{
	int rc = slmpm_ctr_wait(h->sent, SLMPM_ALL, START_MS);

	for (int side = 0; side < SIDES && rc >= 0; side++)
		if (h->side[side].peer.id)
			rc = slmpm_flush(h->side[side].peer, START_MS);
	return rc;
}
