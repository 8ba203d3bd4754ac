/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting a link between packets; and, where asked for, arrivals that want to be landed first. */
#include "tests/lib/lossy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

struct lossy {
	struct fabric_link base;
	struct fabric_link *real;
	struct wire *wire;
	int side;
	bool landing, said;
	void *into;
	struct fabric_arrival arrival; /* that lands */
};

static struct lossy *lossy_of(struct fabric_link *link)
{
	return (struct lossy *)link;
}

static const struct fabric *real_of(const struct lossy *l)
{
	return l->real->domain->fabric;
}

uint64_t lossy_under_way(const struct wire *w, int side)
{
	return (w->dead || w->mute[side] ? w->reach[side] : w->posted[side]) - w->polled[!side];
}

void lossy_mute(struct wire *w, int side, uint64_t keep, int room)
{
	CHECK(keep <= lossy_under_way(w, side), "so much is not under way");
	w->reach[side] = w->polled[!side] + keep;
	w->deaf[side] = room;
	w->mute[side] = true;
}

void lossy_cut(struct wire *w, const uint64_t keep[SIDES], const int deaf[SIDES])
{
	for (int side = 0; side < SIDES; side++) {
		CHECK(keep[side] <= lossy_under_way(w, side), "so much is not under way");
		w->reach[side] = w->polled[!side] + keep[side];
		w->deaf[side] = deaf[side];
	}
	w->dead = true;
}

static int lost(struct lossy *l)
{
	l->base.lost = "its wire was cut";
	return -EPIPE;
}

static void *lossy_reserve(struct fabric_link *link, uint32_t length)
{
	struct lossy *l = lossy_of(link);

	return l->wire->dead || l->wire->mute[l->side] ? NULL :
							 real_of(l)->reserve(l->real, length);
}

static int land(struct lossy *l, void *into)
{
	CHECK(l->landing, "landed what does not wait for it");
	if (l->said && l->into && l->into != into)
		memset(l->into, 0x5a, 1); /* what has come moves: the old place is nobody's */
	l->said = true;
	l->into = into;
	return 1;
}

static int load(struct lossy *l)
{
	const struct wire *w = l->wire;

	l->base.counts.carried = w->carried[l->side];
	l->base.counts.in_flight = w->in_flight[l->side];
	return 1;
}

static int lossy_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct lossy *l = lossy_of(link);
	struct wire *w = l->wire;
	int rc;

	if (wr->op == FABRIC_LAND)
		return land(l, wr->into);
	if (wr->op == FABRIC_STATUS && wr->flags & FABRIC_LOAD)
		return load(l);
	if (w->dead && !w->deaf[l->side])
		return lost(l);
	if (w->dead) {
		w->deaf[l->side]--;
		return 1; /* into nothing */
	}
	if (w->mute[l->side] && (wr->op != FABRIC_SEND || w->deaf[l->side]-- > 0))
		return 1;
	if (w->mute[l->side]) {
		w->deaf[l->side] = 0;
		return -EAGAIN;
	}
	rc = real_of(l)->post(l->real, wr);
	l->base.violation = l->real->violation;
	l->base.counts = l->real->counts;
	w->posted[l->side] += rc >= 0 && wr->op == FABRIC_SEND;
	return rc;
}

/* It has come as a whole: into its place. */
static int landed(struct lossy *l, struct fabric_arrival *a)
{
	if (!l->said)
		return 0;
	*a = l->arrival;
	if (l->into) {
		memcpy(l->into, a->data, a->length);
		a->data = l->into;
	}
	l->landing = l->said = false;
	l->wire->polled[l->side]++;
	return 1;
}

static int lossy_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	struct lossy *l = lossy_of(link);
	struct wire *w = l->wire;
	uint64_t left = lossy_under_way(w, !l->side);
	int got;

	if (l->landing && left && n)
		return landed(l, arrivals);
	if (w->dead && !left && n)
		return w->deaf[l->side] ? w->deaf[l->side]--, 0 : lost(l);
	n = w->land_min && n ? 1 : n;
	n = left < (uint64_t)n ? (int)left : n;
	got = real_of(l)->poll(l->real, arrivals, n);
	if (got > 0 && !arrivals[got - 1].data && arrivals[got - 1].length) {
		struct fabric_wr ring = {.op = FABRIC_LAND};

		(void)real_of(l)->post(l->real, &ring);
		got--;
	}
	l->base.violation = l->real->violation;
	if (got == 1 && w->land_min && arrivals->length >= w->land_min) {
		l->landing = true;
		l->said = false;
		l->arrival = *arrivals;
		arrivals->data = NULL;
		return 1;
	}
	w->polled[l->side] += got > 0 ? (uint64_t)got : 0;
	return got;
}

static void lossy_release(struct fabric_link *link, const struct fabric_arrival *a)
{
	struct lossy *l = lossy_of(link);

	real_of(l)->release(l->real, a);
}

static void lossy_disconnect(struct fabric_link *link)
{
	(void)link; /* the real one is the test's */
}

const struct fabric lossy_fabric = {
	.name = "lossy",
	.link_size = sizeof(struct lossy),
	.disconnect = lossy_disconnect,
	.reserve = lossy_reserve,
	.post = lossy_post,
	.poll = lossy_poll,
	.release = lossy_release,
};

static int lossy_alloc(struct fabric_domain *domain, struct fabric_memory *m)
{
	(void)domain;
	(void)m;
	return -ENOMEM;
}

static int lossy_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		     struct fabric_blob *blob)
{
	(void)link;
	(void)m;
	(void)own;
	(void)writable;
	(void)blob;
	return -ENOTSUP;
}

const struct fabric lossy_memory = {
	.name = "lossy",
	.link_size = sizeof(struct lossy),
	.disconnect = lossy_disconnect,
	.alloc = lossy_alloc,
	.reg = lossy_reg,
	.reserve = lossy_reserve,
	.post = lossy_post,
	.poll = lossy_poll,
	.release = lossy_release,
};

struct fabric_link *lossy_new(struct wire *w, int side, struct fabric_link *link)
{
	struct lossy *l = calloc(1, sizeof(*l));

	CHECK(l, "out of memory");
	l->base.domain = link->domain;
	l->base.payload_max = link->payload_max;
	l->base.payload_max_in = link->payload_max_in;
	l->real = link;
	l->wire = w;
	l->side = side;
	return &l->base;
}
