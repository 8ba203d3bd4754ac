/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Packets that are handed out before their payload has come: it lands where the core says, in the
 * ring where it says nothing, and is moved when it says another place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"
#include "tests/lib/stream_relay.h"

#define LONG  70000
#define GUARD 64

struct place {
	unsigned char bytes[GUARD + 200000 + GUARD];
};

static void *clean(struct place *p)
{
	memset(p, 0x5a, sizeof(*p));
	return p->bytes + GUARD;
}

/* Nothing but N bytes in the middle has been touched. */
static bool is_within(const struct place *p, uint32_t n)
{
	for (size_t i = 0; i < sizeof(p->bytes); i++)
		if ((i < GUARD || i >= GUARD + n) && p->bytes[i] != 0x5a)
			return false;
	return true;
}

static int land(struct fabric_link *l, void *into)
{
	struct fabric_wr wr = {.op = FABRIC_LAND, .into = into};

	return l->domain->fabric->post(l, &wr);
}

static struct place here, there;

/* The header of a packet whose rest has not come; none of it is handed out with data. */
static void announced(struct stream_relay *r, struct link_pair *p, uint64_t seed, size_t bytes)
{
	struct fabric_arrival a;
	size_t rest = bytes;
	int n;

	while (rest)
		rest -= stream_relay_move(r, LEFT, rest);
	while ((n = p->domain[RIGHT]->fabric->poll(p->link[RIGHT], &a, 1)) == 0)
		stream_relay_await(r, p, RIGHT);
	assert_int_equal(n, 1);
	assert_null(a.data);
	assert_true(a.length == LONG && a.head[0] == seed && a.kind == seed % 249 + 1);
	/* And once only. */
	assert_int_equal(p->domain[RIGHT]->fabric->poll(p->link[RIGHT], &a, 1), 0);
}

/* The rest comes; where its data is. */
static const void *finished(struct stream_relay *r, struct link_pair *p, uint64_t seed)
{
	struct fabric_arrival a;
	int n;

	while ((n = p->domain[RIGHT]->fabric->poll(p->link[RIGHT], &a, 1)) == 0) {
		stream_relay_all(r);
		(void)p->domain[LEFT]->fabric->poll(p->link[LEFT], &a, 0);
	}
	assert_int_equal(n, 1);
	link_check(&a, seed, LONG);
	p->domain[RIGHT]->fabric->release(p->link[RIGHT], &a);
	return a.data;
}

/* Of the packet's bytes, BEFORE have come when the first place is said, MIDWAY when the second. */
static void land_at(void *first, void *second, size_t before, size_t midway)
{
	struct stream_relay r;
	struct link_pair p;
	struct fabric_arrival a;
	const void *at;

	stream_relay_open(&r, &p, 8192, 64);
	link_send(p.link[LEFT], 1, LONG, 0);
	announced(&r, &p, 1, before);
	assert_int_equal(land(p.link[RIGHT], first), 1);
	for (size_t rest = midway - before; rest;)
		rest -= stream_relay_move(&r, LEFT, rest);
	if (midway > before)
		stream_relay_await(&r, &p, RIGHT);
	while (link_awaits_bell(&p.end[RIGHT], 0))
		assert_int_equal(p.domain[RIGHT]->fabric->poll(p.link[RIGHT], &a, 1), 0);
	assert_int_equal(land(p.link[RIGHT], second), 1);
	if (first && first != second)
		memset(first, 0x5a, LONG);
	at = finished(&r, &p, 1);
	assert_true(second ? at == second : at != first);
	assert_true(is_within(&here, second == here.bytes + GUARD ? LONG : 0));
	assert_true(is_within(&there, second == there.bytes + GUARD ? LONG : 0));
	/* The stream goes on behind it. */
	link_send(p.link[LEFT], 2, 8, 0);
	link_send(p.link[LEFT], 3, LONG, 0);
	stream_relay_all(&r);
	link_take(p.link[RIGHT], 2, 8);
	stream_relay_close(&r, &p);
}

static void payload_lands_where_it_is_said(void **state)
{
	static const size_t moments[] = {64, 65, 1000, 64 + LONG - 1};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = i; j < 4; j++) {
			void *a = clean(&here), *b = clean(&there);

			land_at(a, a, moments[i], moments[j]);
			clean(&here);
			land_at(NULL, NULL, moments[i], moments[j]);
			land_at(NULL, a, moments[i], moments[j]);
			clean(&here);
			land_at(a, NULL, moments[i], moments[j]);
			clean(&here);
			land_at(a, b, moments[i], moments[j]);
		}
	}
}

/* Where nothing waits, there is nothing to say. */
static void landing_out_of_turn_is_refused(void **state)
{
	struct link_pair p;

	(void)state;
	link_pair_open(&p, stream_fabric(), 8192, 64);
	assert_true(land(p.link[RIGHT], NULL) < 0);
	link_send(p.link[LEFT], 1, 8, 0);
	link_take(p.link[RIGHT], 1, 8);
	assert_true(land(p.link[RIGHT], clean(&here)) < 0);
	link_pair_close(&p);
}

/* Lost before all of it has come: that, and no half packet. */
static void an_end_before_the_payload(void **state)
{
	struct stream_relay r;
	struct link_pair p;
	struct fabric_arrival a;
	int n;

	(void)state;
	for (int said = 0; said < 2; said++) {
		stream_relay_open(&r, &p, 8192, 64);
		link_send(p.link[LEFT], 1, LONG, 0);
		announced(&r, &p, 1, 5000);
		if (said)
			assert_int_equal(land(p.link[RIGHT], clean(&here)), 1);
		stream_relay_end(&r, RIGHT);
		if (!said)
			assert_int_equal(land(p.link[RIGHT], clean(&here)), 1);
		while ((n = p.domain[RIGHT]->fabric->poll(p.link[RIGHT], &a, 1)) == 0)
			stream_relay_await(&r, &p, RIGHT);
		assert_true(link_is_lost(p.link[RIGHT], n));
		assert_true(is_within(&here, LONG));
		stream_relay_close(&r, &p);
	}
}

/* ---- streams -------------------------------------------------------------------------------- */

struct reader {
	struct rng chance;
	uint64_t taken;
	struct place *landing; /* of the packet that is landing */
	int elsewhere;
};

/* What it does with an arrival: some packets land in one place, some in the other, some in the
 * ring. */
static void handle(struct fabric_link *l, struct reader *r, struct fabric_arrival *a)
{
	uint32_t length = link_length(l->payload_max_in, r->taken);

	if (!a->data) {
		uint32_t where = rng_below(&r->chance, 3);

		r->landing = where == 0 ? &here : where == 1 ? &there : NULL;
		assert_int_equal(land(l, r->landing ? clean(r->landing) : NULL), 1);
		if (rng_one_in(&r->chance, 4))
			assert_int_equal(land(l, NULL), 1);
		return;
	}
	if (a->data == here.bytes + GUARD || a->data == there.bytes + GUARD) {
		assert_true(is_within(r->landing, length));
		r->elsewhere++;
	}
	link_check(a, r->taken++, length);
	l->domain->fabric->release(l, a);
}

static void take_some(struct fabric_link *l, struct reader *r)
{
	struct fabric_arrival a[4];
	int n = l->domain->fabric->poll(l, a, 1 + (int)rng_below(&r->chance, 4));

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		assert_true(a[i].data || i == n - 1);
		handle(l, r, &a[i]);
	}
}

static void streams_land(void **state)
{
	struct reader r = {.taken = 1};
	struct link_pair p;
	uint64_t sent = 1;

	(void)state;
	r.chance.state = rng_run_seed(0x1a);
	link_pair_open(&p, stream_fabric(), 8192, 64);
	/* What has come whole by the time it is asked for does not land. */
	while ((r.taken < 1500 / (unsigned)actor_slow() || !r.elsewhere) && r.taken < 15000) {
		link_fill(p.link[LEFT], &sent);
		take_some(p.link[RIGHT], &r);
	}
	assert_true(r.elsewhere > 0);
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(payload_lands_where_it_is_said),
		FABRIC_TEST(landing_out_of_turn_is_refused),
		FABRIC_TEST(an_end_before_the_payload),
		FABRIC_TEST(streams_land),
	};

	(void)stream_fabric();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
