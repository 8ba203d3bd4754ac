/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which message is which receive's: receives that are posted, and messages that came before theirs
 * was, by node and peer. What is of one pair is taken in the order in which it was added.
 */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE  UINT32_MAX
#define FIRST 1024 /* buckets */

struct item {
	uint32_t node, peer, lane;
	uint32_t next; /* of its bucket, or of those that are not used */
};

/* The link of the list on which an item of the pair would hang: a bucket's. */
static uint32_t *bucket_of(const struct matches *m, uint32_t node, uint32_t peer)
{
	uint32_t h = node * UINT32_C(0x9e3779b1) ^ peer * UINT32_C(0x85ebca6b);

	h ^= h >> 15;
	return &m->heads[h & (m->buckets - 1)];
}

/* Behind all others of its bucket. */
static void hang(struct matches *m, uint32_t item)
{
	uint32_t *link = bucket_of(m, m->items[item].node, m->items[item].peer);

	while (*link != NONE)
		link = &m->items[*link].next;
	m->items[item].next = NONE;
	*link = item;
}

static void set_buckets(struct matches *m, uint32_t buckets)
{
	m->buckets = buckets;
	m->heads = malloc(buckets * sizeof(*m->heads));
	if (!m->heads) {
		fprintf(stderr, "slmpm_sim: out of memory: %u buckets\n", buckets);
		exit(1);
	}
	for (uint32_t i = 0; i < buckets; i++)
		m->heads[i] = NONE;
}

/* The order within a bucket stays. */
static void grow_buckets(struct matches *m)
{
	const struct matches old = *m;
	uint32_t next;

	set_buckets(m, old.buckets ? old.buckets * 2 : FIRST);
	for (uint32_t b = 0; b < old.buckets; b++)
		for (uint32_t i = old.heads[b]; i != NONE; i = next) {
			next = m->items[i].next;
			hang(m, i);
		}
	free(old.heads);
}

void match_add(struct matches *m, uint32_t node, uint32_t peer, uint32_t lane)
{
	uint32_t i = m->unused;

	if (m->has_unused) {
		m->unused = m->items[i].next;
		m->has_unused = m->unused != NONE;
	} else {
		m->items = grown(m->items, &m->room, m->used, sizeof(*m->items));
		i = m->used++;
	}
	m->items[i] = (struct item){node, peer, lane, NONE};
	if (m->count++ >= m->buckets)
		grow_buckets(m);
	hang(m, i);
}

bool match_take(struct matches *m, uint32_t node, uint32_t peer, uint32_t *lane)
{
	uint32_t *link, i;

	if (!m->count)
		return false;
	link = bucket_of(m, node, peer);
	while (*link != NONE && (m->items[*link].node != node || m->items[*link].peer != peer))
		link = &m->items[*link].next;
	i = *link;
	if (i == NONE)
		return false;
	*lane = m->items[i].lane;
	*link = m->items[i].next;
	m->items[i].next = m->has_unused ? m->unused : NONE;
	m->unused = i;
	m->has_unused = true;
	m->count--;
	return true;
}

void match_drop(struct matches *m)
{
	free(m->heads);
	free(m->items);
}
