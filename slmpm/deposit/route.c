/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which form a put's request has, and whether its bytes go along the line or from the origin to
 * each. A line sends them once by each link, and every member waits for those before it: which of
 * both is less depends on links and processors, so it is learned from what both have cost
 * (choice.h), for each set of targets, the bytes' route for each power of two of their length.
 */
#include "slmpm/deposit/deposit.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/choice/choice.h"

#define FORWARDS 16 /* more targets than so many: at first only the last of them answers */
#define MOST     64 /* more than so many: the origin connects with all by flag alone */
#define SETS     8  /* of targets; the one that was not used for longest makes room */
#define LENGTHS  24
#define SHORT    9  /* what is shorter than 2^9 bytes is of the first length */
#define TRIES    4  /* of the route that seems longer */
#define STEADY   8  /* of what is LONG on one machine, where one put varies by half */
#define BEFORE   64 /* puts that are LONG, over links, before the first of few tries */

#define NEAR (UINT64_C(512) << 10) /* at first more goes along the line: on one machine, ... */
#define FAR  (UINT64_C(16) << 10)  /* ... and between several */
#define LONG (UINT64_C(512) << 10)
#define UNIT (UINT64_C(64) << 10) /* costs are for it: of one put then */

struct put_learned {
	struct list node;
	struct ranks targets;
	struct choice form;           /* the other one: forwards */
	struct choice bytes[LENGTHS]; /* the other one: direct */
};

/* ---- sets of targets ------------------------------------------------------------------------- */

static unsigned length_class(uint64_t len)
{
	unsigned bits = 63 - (unsigned)__builtin_clzll(len | 1);
	unsigned class = bits < SHORT ? 0 : bits - SHORT + 1;

	return class < LENGTHS ? class : LENGTHS - 1;
}

/* How long ones are tried. */
static void route_set_long(struct choice *c, bool apart)
{
	c->tries = apart ? 1 : STEADY;
	c->left = apart ? BEFORE : 0;
}

static void route_set(struct put_learned *r, const struct line *l)
{
	const bool apart = l->of->group->apart;

	r->targets = l->ranks;
	r->form = (struct choice){.usual = l->put.awaited > FORWARDS, .tries = TRIES};
	for (unsigned i = 0; i < LENGTHS; i++) {
		const uint64_t len = UINT64_C(1) << (SHORT + i);

		r->bytes[i] = (struct choice){.usual = len <= (apart ? FAR : NEAR), .tries = TRIES};
		if (len >= LONG)
			route_set_long(&r->bytes[i], apart);
	}
}

static struct put_learned *route_new(struct deposits *d)
{
	struct put_learned *r = NULL;

	if (d->route_count == SETS) {
		r = LIST_ENTRY(d->routes.next, struct put_learned, node);
		list_remove(&r->node);
		return r;
	}
	r = calloc(1, sizeof(*r));
	d->route_count += r != NULL;
	return r;
}

static bool has_connections(const struct line *l)
{
	for (uint32_t r = 0; r < line_size(l); r++)
		if (ranks_have(&l->ranks, r) && !pair_endpoint(l->of->group, r))
			return false;
	return true;
}

/* To send to each, or to be answered by each, takes a connection with each. Where many members put
 * to many that would be one between any two, all of which are inspected by every wait from then on:
 * so of more than a few targets an origin chooses while no other's put has come here, or where it
 * has all these connections. */
static bool route_makes_mesh(const struct line *l)
{
	return !list_empty(&l->of->lines) && !has_connections(l);
}

static bool route_may_be_any(const struct line *l)
{
	const uint32_t n = l->put.awaited;

	return n <= FORWARDS ? n > 1 : n <= MOST && !route_makes_mesh(l);
}

/* Of L's targets; NULL: there is no memory. */
static struct put_learned *route_of(const struct line *l)
{
	struct deposits *d = l->of;
	struct put_learned *r;

	LIST_EACH_ENTRY(struct put_learned, known, &d->routes, node)
		if (!memcmp(&known->targets, &l->ranks, sizeof(l->ranks))) {
			list_remove(&known->node);
			list_append(&d->routes, &known->node);
			return known;
		}
	r = route_new(d);
	if (!r)
		return NULL;
	route_set(r, l);
	list_append(&d->routes, &r->node);
	return r;
}

void routes_free(struct deposits *d)
{
	LIST_EACH_ENTRY(struct put_learned, r, &d->routes, node)
		free(r);
	list_init(&d->routes);
	d->route_count = 0;
	d->route.of = NULL;
}

/* ---- of a put -------------------------------------------------------------------------------- */

void route_ask(struct line *l)
{
	const uint32_t n = l->put.awaited;
	struct put_route *p = &l->of->route;

	*p = (struct put_route){.of = route_may_be_any(l) ? route_of(l) : NULL,
				.many = n > FORWARDS};
	if (l->put.flags & (SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_FORWARD)) {
		l->forwards = l->put.flags & SLMPM_PUT_ALL_FORWARD;
	} else if (!p->of) {
		l->forwards = n > FORWARDS;
	} else {
		l->forwards = choice_takes_other(&p->of->form);
		p->note = choice_taken(&p->of->form, l->forwards);
		p->since = clock_now();
	}
}

void route_answered(const struct line *l)
{
	struct put_route *p = &l->of->route;

	if (p->note != CHOICE_UNTIMED && !l->refusal.error)
		choice_learn(&p->of->form, l->forwards, p->note, clock_now() - p->since, UNIT);
	p->note = CHOICE_UNTIMED;
}

/* The bytes' choice, where it is one: all that were asked get them. */
static struct choice *choice_for(const struct line *l)
{
	struct put_learned *r = l->of->route.of;

	if (!r || l->refusal.error || memcmp(&r->targets, &l->ranks, sizeof(l->ranks)) != 0)
		return NULL;
	return &r->bytes[length_class(l->len)];
}

void route_move(struct line *l)
{
	struct put_route *p = &l->of->route;
	/* Another's put may have come since the request went. */
	struct choice *c = p->many && route_makes_mesh(l) ? NULL : choice_for(l);

	if (l->put.flags & (SLMPM_PUT_ALL_LINE | SLMPM_PUT_ALL_DIRECT)) {
		l->direct = l->put.flags & SLMPM_PUT_ALL_DIRECT;
	} else if (c) {
		l->direct = choice_takes_other(c);
		p->note = choice_taken(c, l->direct);
		p->since = clock_now();
	}
}

void route_moved(const struct line *l)
{
	struct put_route *p = &l->of->route;
	struct choice *c = choice_for(l);
	unsigned class = length_class(l->len);
	uint64_t unit = UNIT;

	/* Those of one class differ by less than twice. */
	if (class && class < LENGTHS - 1)
		unit = UNIT * (l->len >> (class - 1)) >> SHORT;
	if (c && p->note != CHOICE_UNTIMED)
		choice_learn(c, l->direct, p->note, clock_now() - p->since, unit);
	p->note = CHOICE_UNTIMED;
}

uint32_t route_flags(const struct line *l)
{
	return (l->forwards ? SLMPM_PUT_ALL_FORWARD : SLMPM_PUT_ALL_BROADCAST) |
	       (l->direct ? SLMPM_PUT_ALL_DIRECT : SLMPM_PUT_ALL_LINE);
}
