/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of a line: by rank from the origin's on, but those of one host stand together, the
 * origin's own first, so that the bytes enter each host once. An origin knows where the members are
 * as who founded the group sees them; others see them otherwise, so it goes with the request. On
 * one machine there is none.
 */
#include "slmpm/deposit/deposit.h"

#include <stdlib.h>
#include <string.h>

/* ---- hosts ----------------------------------------------------------------------------------- */

/* The host in tcp://HOST:PORT, [HOST] or HOST; its length. */
static const char *host_of(const char *url, size_t *len)
{
	const char *host = url + strlen("tcp://"), *end = strrchr(url, ':');

	if (*host == '[') {
		host++;
		end--;
	}
	*len = end > host ? (size_t)(end - host) : 0;
	return host;
}

static bool same_host(const struct group *g, uint32_t a, uint32_t b)
{
	const struct distant *x = member_of(g, a)->distant, *y = member_of(g, b)->distant;
	size_t n = strlen(g->host), m = n;
	const char *s = x ? host_of(x->url, &n) : g->host, *t = y ? host_of(y->url, &m) : g->host;

	return n == m && !memcmp(s, t, n);
}

/* The least rank on RANK's host; of the own host the own. */
static uint32_t host_id(const struct group *g, uint32_t rank)
{
	const uint32_t self = g->boards.rank;
	uint32_t r = 0;

	if (same_host(g, rank, self))
		return self;
	while (r < rank && !same_host(g, rank, r))
		r++;
	return r;
}

/* For each rank; NULL: there is no memory. */
static const uint16_t *hosts_of(struct deposits *d)
{
	const struct group *g = d->group;

	if (d->hosts)
		return d->hosts;
	d->hosts = malloc(g->boards.size * sizeof(*d->hosts));
	for (uint32_t r = 0; d->hosts && r < g->boards.size; r++)
		d->hosts[r] = (uint16_t)host_id(g, r);
	return d->hosts;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool order_room(struct line *l)
{
	const uint32_t size = line_size(l);

	free(l->order);
	l->order = malloc(2 * size * sizeof(*l->order));
	l->place = l->order ? l->order + size : NULL;
	l->ordered = 0;
	for (uint32_t r = 0; l->order && r < size; r++)
		l->place[r] = UINT16_MAX;
	return l->order;
}

static void order_add(struct line *l, uint32_t rank)
{
	l->place[rank] = (uint16_t)l->ordered;
	l->order[l->ordered++] = (uint16_t)rank;
}

static void order_add_host(struct line *l, const uint16_t *hosts, uint32_t host)
{
	const uint32_t size = line_size(l);

	for (uint32_t i = 1; i < size; i++) {
		uint32_t r = (l->origin + i) % size;

		if (hosts[r] == host && ranks_have(&l->ranks, r))
			order_add(l, r);
	}
}

static bool is_by_rank(const struct line *l)
{
	const uint32_t size = line_size(l);

	for (uint32_t i = 1; i < l->ordered; i++)
		if ((l->order[i] + size - l->origin) % size <
		    (l->order[i - 1] + size - l->origin) % size)
			return false;
	return true;
}

static void order_drop(struct line *l)
{
	free(l->order);
	l->order = l->place = NULL;
	l->ordered = 0;
}

/* Where there is no memory it is by rank alone. */
void line_order(struct line *l)
{
	const uint32_t size = line_size(l);
	const uint16_t *hosts = l->of->group->apart ? hosts_of(l->of) : NULL;

	if (!hosts || !order_room(l))
		return;
	order_add_host(l, hosts, l->origin);
	for (uint32_t i = 1; i < size; i++) {
		uint32_t r = (l->origin + i) % size;

		if (ranks_have(&l->ranks, r) && l->place[r] == UINT16_MAX)
			order_add_host(l, hosts, hosts[r]);
	}
	if (is_by_rank(l))
		order_drop(l);
}

uint32_t order_after(const struct line *l, const struct ranks *s, uint32_t rank)
{
	uint32_t i = rank == l->origin ? 0 : l->place[rank] + 1u;

	for (; i < l->ordered; i++)
		if (ranks_have(s, l->order[i]))
			return l->order[i];
	return BOARD_NONE;
}

/* ---- as it travels --------------------------------------------------------------------------- */

void order_fill(const struct line *l, unsigned char *to)
{
	for (uint32_t i = 0; i < l->ordered; i++) {
		const uint16_t rank = LITTLE_16(l->order[i]);

		memcpy(to + i * sizeof(rank), &rank, sizeof(rank));
	}
}

static uint16_t order_at(const struct wire_order *o, uint32_t i)
{
	uint16_t rank;

	memcpy(&rank, o->ranks + i * sizeof(rank), sizeof(rank));
	return LITTLE_16(rank);
}

bool order_is_sound(const struct wire_order *o, const struct ranks *line, uint32_t size)
{
	struct ranks there = {{0}};

	if (!o->count)
		return true;
	for (uint32_t i = 0; i < o->count; i++) {
		const uint16_t rank = order_at(o, i);

		if (rank >= size || ranks_have(&there, rank))
			return false;
		ranks_add(&there, rank);
	}
	for (uint32_t i = 0; i < RANK_WORDS; i++)
		if (line->bits[i] & ~there.bits[i])
			return false;
	return true;
}

bool order_take(struct line *l, const struct wire_order *o)
{
	if (!o->count)
		return true;
	if (!order_room(l))
		return false;
	for (uint32_t i = 0; i < o->count; i++)
		order_add(l, order_at(o, i));
	return true;
}
