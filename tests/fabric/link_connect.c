/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* How a link of any fabric comes to be: what the fabric says of itself, the rounds, ends at any
 * time, several links side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/fabric_suite.h"

/* ---- what it says of itself ----------------------------------------------------------------- */

static void capabilities_are_complete(void **state)
{
	const struct fabric_config config = {.segments = 1024, .segment_size = 64};
	struct fabric_caps caps;

	(void)state;
	assert_int_equal(fabric->probe(&config, &caps), 0);
	assert_true(caps.link_memory >= (uint64_t)1024 * 64);
	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(fabric->probe(NULL, &caps), 0);
	assert_true(caps.ops & 1u << FABRIC_SEND);
	assert_true(caps.ops & 1u << FABRIC_FLUSH);
	assert_int_equal(caps.ops >> (FABRIC_ATOMIC + 1), 0);
	/* Operations on memory are for memory that can be reached. */
	assert_true(fabric->reg || !(caps.ops >> FABRIC_WRITE));
	assert_true(caps.memory & FABRIC_MEMORY_HOST);
	assert_true(caps.commit <= FABRIC_COMMIT_STREAM);
	if (!bonded_is(fabric))
		assert_string_equal(fabric_find(fabric->name)->name, fabric->name);
	assert_null(fabric_find("no such fabric"));
	assert_null(fabric_at(-1));
	assert_true(fabric->domain_size >= sizeof(struct fabric_domain));
	assert_true(fabric->link_size >= sizeof(struct fabric_link));
	/* Memory for the peer: what is told of is given up, and what is made is told of. */
	assert_int_equal(!fabric->reg, !fabric->dereg);
	assert_true(fabric->reg || !fabric->alloc);
}

/* The longest packet there can be comes through a ring large enough for it. */
static void longest_message_is_as_promised(void **state)
{
	struct fabric_caps caps;
	struct link_pair p;
	uint32_t most;

	(void)state;
	assert_int_equal(fabric->probe(NULL, &caps), 0);
	link_pair_open(&p, fabric, 1u << 18, 64);
	most = p.link[LEFT]->payload_max;
	assert_true(most <= caps.message_max);
	assert_true(most > caps.message_max - caps.message_max / 100 || most >= 1u << 20);
	link_send(p.link[LEFT], 1, most, 0);
	link_take(p.link[RIGHT], 1, most);
	link_pair_close(&p);
}

static void impossible_shapes_are_refused(void **state)
{
	static const struct fabric_shape odd[] = {
		{0, 64}, {1, 64}, {3, 64}, {8, 0}, {8, 63}, {8, 65}, {1u << 31, 1u << 31}, {0, 0},
	};

	(void)state;
	for (const struct fabric_shape *s = odd; s->segments | s->size; s++) {
		struct fabric_config config[SIDES] = {link_config(s->segments, s->size),
						      link_config(64, 64)};
		struct fabric_blob blob = {.fd = -1};
		struct link_pair p;

		link_pair_make(&p, fabric, config);
		assert_true(fabric->address(p.link[LEFT], 0, &blob) < 0);
		link_pair_close(&p);
	}
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void exchange(struct link_pair *p)
{
	for (int side = 0; side < SIDES; side++) {
		uint32_t most = p->link[side]->payload_max;

		assert_int_equal(most, p->link[!side]->payload_max_in);
		assert_true(most < p->domain[!side]->config.segments *
					   p->domain[!side]->config.segment_size);
		for (uint64_t i = 1; i < 30; i++) {
			link_send(p->link[side], i, most, 0);
			link_take(p->link[!side], i, most);
		}
	}
}

static void directions_differ_in_shape(void **state)
{
	(void)state;
	for (const struct fabric_shape *a = fabric_shapes; a->segments; a++) {
		for (const struct fabric_shape *b = fabric_shapes; b->segments; b++) {
			struct fabric_config config[SIDES] = {link_config(a->segments, a->size),
							      link_config(b->segments, b->size)};
			struct link_pair p;

			link_pair_make(&p, fabric, config);
			link_pair_connect(&p);
			exchange(&p);
			link_pair_close(&p);
		}
	}
}

/* HALF: one side has spoken in the last round, and the other has listened, no more. */
static void end_early(int rounds, bool half)
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
	struct fabric_blob blob, unheard;
	struct link_pair p;
	int rc[SIDES];

	link_pair_make(&p, fabric, config);
	for (int i = 0; i < rounds; i++)
		link_pair_round(&p, i, rc);
	if (half) {
		link_ask(p.link[LEFT], rounds, &blob);
		link_ask(p.link[RIGHT], rounds, &unheard);
		(void)fabric->connect(p.link[RIGHT], rounds, &blob);
		link_forget(&blob);
		link_forget(&unheard);
	}
	link_pair_close(&p);
}

static void disconnect_ends_any_state(void **state)
{
	int rounds = link_pair_rounds(fabric);

	(void)state;
	for (int i = 0; i <= rounds; i++)
		end_early(i, false);
	for (int i = 0; i < rounds; i++)
		end_early(i, true);
}

/* One side goes; the other, which does not know, goes on, and nothing happens to it. */
static void peer_may_disconnect_first(struct link_pair *p)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	uint64_t sent = 1, taken = 1;

	link_send(p->link[LEFT], 1, 0, 0);
	fabric->disconnect(p->link[LEFT]);
	link_fill(p->link[RIGHT], &sent);
	link_take(p->link[RIGHT], taken, 0);
	link_expect_no_more(p->link[RIGHT]);
	/* Where one path of a bond notices, and the other never does, the core tells it. */
	if (bonded_is(fabric))
		(void)fabric->post(p->link[RIGHT], &flush);
	else
		link_flush_totals(p->link[RIGHT]);
	fabric->arm(p->domain[RIGHT], true);
	fabric->arm(p->domain[RIGHT], false);
}

static void one_side_outlives_the_other(void **state)
{
	(void)state;
	fabric_each_shape(peer_may_disconnect_first);
}

/* ---- side by side --------------------------------------------------------------------------- */

#define PEERS 5

static void connect_in(struct fabric_domain *hub, struct fabric_link *spoke, struct link_end *end)
{
	int fds[2], rc[2] = {1, 1};
	struct fabric_config config = link_config(64, 64);
	struct fabric_blob blob[2];
	struct link_pair pair;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	link_end_open(end, fabric, &config, LEFT, fds[1]);
	end->link->active = true;
	spoke->domain = hub;
	spoke->bell = fds[0];
	link_place(spoke);
	pair = (struct link_pair){.domain = {hub, end->domain}, .link = {spoke, end->link}};
	for (int round = 0; rc[0] == 1; round++) {
		link_ask(spoke, round, &blob[0]);
		link_ask(end->link, round, &blob[1]);
		rc[0] = fabric->connect(spoke, round, &blob[1]);
		rc[1] = fabric->connect(end->link, round, &blob[0]);
		link_forget(&blob[0]);
		link_forget(&blob[1]);
		link_pair_settle(&pair, round, rc, PATIENCE);
		assert_int_equal(rc[0], rc[1]);
	}
	assert_int_equal(rc[0], 0);
}

static bool has_rung(const struct fabric_link *l)
{
	char bell;

	return recv(l->bell, &bell, 1, MSG_DONTWAIT) == 1;
}

static void a_domain_has_many_links(void **state)
{
	struct fabric_config config = link_config(64, 64);
	struct fabric_domain *hub = test_calloc(1, fabric->domain_size);
	struct fabric_link *spoke[PEERS];
	struct link_end end[PEERS];

	(void)state;
	hub->fabric = fabric;
	hub->config = config;
	assert_int_equal(fabric->open(hub), 0);
	for (int i = 0; i < PEERS; i++) {
		spoke[i] = test_calloc(1, fabric->link_size);
		connect_in(hub, spoke[i], &end[i]);
	}
	for (int gone = 0; gone < PEERS; gone++) {
		/* The announcement reaches all that are left, and each of them alone wakes. */
		fabric->arm(hub, true);
		for (int i = gone; i < PEERS; i++) {
			link_send(end[i].link, (uint64_t)i, 8, 0);
			assert_true(has_rung(spoke[i]) || link_comes_soon(hub));
		}
		fabric->arm(hub, false);
		for (int i = gone; i < PEERS; i++) {
			link_take(spoke[i], (uint64_t)i, 8);
			link_expect_nothing(spoke[i]);
			link_send(spoke[i], 100 + (uint64_t)i, 8, 0);
			link_take(end[i].link, 100 + (uint64_t)i, 8);
		}
		fabric->disconnect(spoke[gone]);
		link_end_close(&end[gone]);
	}
	for (int i = 0; i < PEERS; i++) {
		close(spoke[i]->bell);
		test_free(spoke[i]);
	}
	fabric->close(hub);
	test_free(hub);
}

#define LEAVERS   20
#define LINGERERS 16

/* Those that have not been heard out wait, so many at most, and harm nobody who stays. */
static void links_that_part_are_few(void **state)
{
	struct fabric_domain *hub = test_calloc(1, fabric->domain_size);
	struct fabric_link *spoke[LEAVERS];
	struct link_end end[LEAVERS];
	int before;

	(void)state;
	hub->fabric = fabric;
	hub->config = link_config(64, 64);
	assert_int_equal(fabric->open(hub), 0);
	for (int i = 0; i < LEAVERS; i++) {
		spoke[i] = test_calloc(1, fabric->link_size);
		connect_in(hub, spoke[i], &end[i]);
	}
	before = actor_descriptors();
	for (int i = 1; i < LEAVERS; i++)
		fabric->disconnect(spoke[i]);
	if (hub->fd >= 0)
		assert_true(actor_descriptors() <= before - (LEAVERS - 1 - LINGERERS));
	link_send(spoke[0], 1, 8, 0);
	link_take(end[0].link, 1, 8);
	fabric->disconnect(spoke[0]);
	for (int i = 0; i < LEAVERS; i++) {
		link_end_close(&end[i]);
		close(spoke[i]->bell);
		test_free(spoke[i]);
	}
	fabric->close(hub);
	test_free(hub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(capabilities_are_complete),
		FABRIC_TEST(longest_message_is_as_promised),
		FABRIC_TEST(impossible_shapes_are_refused),
		FABRIC_TEST(directions_differ_in_shape),
		FABRIC_TEST(disconnect_ends_any_state),
		FABRIC_TEST(one_side_outlives_the_other),
		FABRIC_TEST(a_domain_has_many_links),
		FABRIC_TEST(links_that_part_are_few),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
