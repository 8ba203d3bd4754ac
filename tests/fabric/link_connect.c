/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* How a link of any fabric comes to be: what the fabric says of itself, the rounds, peers that lie
 * in them, ends at any time, several links side by side. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bonded.h"
#include "tests/lib/fabric_suite.h"

#define ROUNDS 16 /* more would be no handshake */

/* ---- what it says of itself ----------------------------------------------------------------- */

static void capabilities_are_complete(void **state)
{
	struct fabric_caps caps;

	(void)state;
	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(fabric->probe(&caps), 0);
	assert_true(caps.ops & 1u << FABRIC_SEND);
	assert_true(caps.ops & 1u << FABRIC_FLUSH);
	assert_int_equal(caps.ops >> (FABRIC_ATOMIC + 1), 0);
	/* Operations on memory are for memory that can be reached. */
	assert_true(fabric->reg || !(caps.ops >> FABRIC_WRITE));
	assert_true(caps.memory & FABRIC_MEMORY_HOST);
	assert_true(caps.links_max >= 1 && caps.links_max < 1024);
	assert_true(caps.commit <= FABRIC_COMMIT_STREAM);
	if (!bonded_is(fabric))
		assert_string_equal(fabric_find(fabric->name)->name, fabric->name);
	assert_null(fabric_find("no such fabric"));
	assert_null(fabric_at(-1));
	assert_true(fabric->domain_size >= sizeof(struct fabric_domain));
	assert_true(fabric->link_size >= sizeof(struct fabric_link));
	/* Memory for the peer: all three or none. */
	assert_int_equal(!fabric->alloc, !fabric->reg);
	assert_int_equal(!fabric->reg, !fabric->dereg);
}

/* The longest packet there can be comes through a ring large enough for it. */
static void longest_message_is_as_promised(void **state)
{
	struct fabric_caps caps;
	struct link_pair p;
	uint32_t most;

	(void)state;
	assert_int_equal(fabric->probe(&caps), 0);
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
		struct fabric_blob blob = {.fds = {-1, -1}};
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

static int rounds_needed(void)
{
	struct link_pair p;

	link_pair_open(&p, fabric, 64, 64);
	link_pair_close(&p);
	return p.rounds;
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
	int rounds = rounds_needed();

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

/* ---- lies ----------------------------------------------------------------------------------- */

static int descriptor(int kind)
{
	int fds[2];

	switch (kind) {
	case 0: return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1: return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case 2: return memfd_create("empty", MFD_CLOEXEC);
	case 3: /* large enough, and its owner can take the pages away at any time */
		fds[0] = memfd_create("unsealed", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fds[0], 4096 + 64 * 64), 0);
		return fds[0];
	case 4:
		if (pipe2(fds, O_CLOEXEC) != 0)
			return -1;
		close(fds[1]);
		return fds[0];
	default: return -1;
	}
}
#define DESCRIPTORS 5

enum { FLIP, LENGTH, LOST, MORE, OTHER };

struct lie {
	int round, what;
	int value; /* FLIP: which byte; LENGTH: this; OTHER: which descriptor */
};

static void tell(struct fabric_blob *blob, const struct lie *lie)
{
	switch (lie->what) {
	case FLIP: blob->bytes[lie->value] ^= 0xff; break;
	case LENGTH: blob->length = (uint32_t)lie->value; break;
	case MORE: blob->fds[blob->fd_count++] = descriptor(2); break;
	default:
		link_forget(blob);
		blob->fd_count = lie->what == OTHER;
		blob->fds[0] = lie->what == OTHER ? descriptor(lie->value) : -1;
	}
}

/* A packet takes no longer. */
static bool comes_soon(struct fabric_domain *domain)
{
	struct pollfd p = {.fd = domain->fd, .events = POLLIN};

	domain->fabric->arm(domain, true);
	return domain->fd >= 0 && poll(&p, 1, 1000) == 1;
}

/* The bytes of a link whose handshake was tampered with may be lost or refused, never altered. */
static void exchange_or_end(struct link_pair *p)
{
	struct fabric_arrival a;

	for (int side = 0; side < SIDES; side++) {
		if (link_put(p->link[side], 7, 20, 0) != 1)
			continue;
		(void)comes_soon(p->domain[!side]);
		if (fabric->poll(p->link[!side], &a, 1) == 1)
			link_check(&a, 7, 20);
	}
}

#define NEVER 300 /* ms: as good as a refusal, which the core's deadline makes it */

/* LEFT lies to RIGHT: the number of rounds until RIGHT, or LEFT for what RIGHT answers, refuses, or
 * nobody comes; 0 when both say connected. */
static int handshake(struct link_pair *p, const struct lie *lie)
{
	int rc[SIDES] = {1, 1};

	for (int round = 0; round < ROUNDS; round++) {
		struct fabric_blob blob[SIDES];

		for (int side = 0; side < SIDES; side++)
			link_ask(p->link[side], round, &blob[side]);
		if (round == lie->round)
			tell(&blob[LEFT], lie);
		for (int side = 0; side < SIDES; side++) {
			struct fabric_link *l = p->link[!side];

			rc[!side] = fabric->connect(l, round, &blob[side]);
			link_forget(&blob[side]);
			assert_true(rc[!side] != -EPROTO || (l->violation && l->violation[0]));
		}
		link_pair_settle(p, round, rc, NEVER);
		if (rc[LEFT] < 0 || rc[RIGHT] < 0 || rc[LEFT] == 2 || rc[RIGHT] == 2)
			return round + 1;
		if (rc[LEFT] == 0 && rc[RIGHT] == 0)
			return 0;
	}
	fail_msg("no end of the handshake");
	return 0;
}

static void lie_once(int round, int what, int value, const char *expected)
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
	struct lie lie = {round, what, value};
	struct link_pair p;
	int refused;

	for (int began = 0; began < SIDES; began++) {
		link_pair_active = began;
		link_pair_make(&p, fabric, config);
		refused = handshake(&p, &lie);
		if (!refused)
			exchange_or_end(&p);
		if (expected && !refused)
			fail_msg("%s in round %d is not refused", expected, round);
		link_pair_close(&p);
	}
	link_pair_active = LEFT;
}

static struct fabric_blob honest_blob(int round)
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
	struct fabric_blob blob;
	struct link_pair p;
	int rc[SIDES];

	link_pair_make(&p, fabric, config);
	for (int i = 0; i < round; i++)
		link_pair_round(&p, i, rc);
	link_ask(p.link[LEFT], round, &blob);
	link_forget(&blob);
	link_pair_close(&p);
	return blob;
}

/* A bond has no rounds but those of its links, one after the other, of which the links' own rows tell. */
static void skip_bonds(void)
{
	if (bonded_is(fabric))
		skip();
}

static void altered_bytes_alter_no_packet(void **state)
{
	int rounds;

	(void)state;
	skip_bonds();
	rounds = rounds_needed();
	for (int round = 0; round < rounds; round++) {
		struct fabric_blob blob = honest_blob(round);

		for (int i = 0; i < (int)blob.length; i++)
			lie_once(round, FLIP, i, NULL);
	}
}

static void other_lengths_are_refused(void **state)
{
	int rounds;

	(void)state;
	skip_bonds();
	rounds = rounds_needed();
	for (int round = 0; round < rounds; round++) {
		struct fabric_blob blob = honest_blob(round);

		for (int n = 0; n <= (int)sizeof(blob.bytes); n++)
			if (n != (int)blob.length)
				lie_once(round, LENGTH, n, "another length");
	}
}

static void other_descriptors_are_refused(void **state)
{
	int rounds;

	(void)state;
	skip_bonds();
	rounds = rounds_needed();
	for (int round = 0; round < rounds; round++) {
		if (honest_blob(round).fd_count)
			lie_once(round, LOST, 0, "a missing descriptor");
		lie_once(round, MORE, 0, "a descriptor too many");
		for (int kind = 0; kind < DESCRIPTORS; kind++)
			lie_once(round, OTHER, kind, "a wrong descriptor");
	}
}

static int worst_of(struct link_pair *p, int round, int rc[2][SIDES])
{
	int worst = 1;

	/* Each may wait for what one of the other pair does. */
	for (int i = 0; i < 10; i++)
		for (int pair = 0; pair < 2; pair++)
			link_pair_settle(&p[pair], round, rc[pair], 20);
	for (int i = 0; i < 4; i++)
		worst = rc[i / 2][i % 2] < worst ? rc[i / 2][i % 2] : worst;
	return worst;
}

/* What belongs to another connection of the same two processes comes to nothing. */
static void mix(int rounds)
{
	for (int mixed = 0; mixed < rounds; mixed++) {
		struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
		struct fabric_blob blob[2][SIDES], swap;
		struct link_pair p[2];
		int rc[2][SIDES], worst = 1;

		link_pair_make(&p[0], fabric, config);
		link_pair_make(&p[1], fabric, config);
		for (int round = 0; round < rounds && worst == 1; round++) {
			for (int i = 0; i < 4; i++)
				link_ask(p[i / 2].link[i % 2], round, &blob[i / 2][i % 2]);
			if (round == mixed) {
				swap = blob[0][LEFT];
				blob[0][LEFT] = blob[1][LEFT];
				blob[1][LEFT] = swap;
			}
			for (int i = 0; i < 4; i++) {
				struct fabric_blob *in = &blob[i / 2][i % 2];
				struct fabric_link *l = p[i / 2].link[!(i % 2)];

				rc[i / 2][!(i % 2)] = fabric->connect(l, round, in);
				link_forget(in);
			}
			worst = worst_of(p, round, rc);
		}
		assert_true(worst < 0);
		link_pair_close(&p[0]);
		link_pair_close(&p[1]);
	}
}

static void connections_do_not_mix(void **state)
{
	int rounds;

	(void)state;
	skip_bonds();
	rounds = rounds_needed();
	for (link_pair_active = 0; link_pair_active < SIDES; link_pair_active++)
		mix(rounds);
	link_pair_active = LEFT;
}

/* ---- side by side --------------------------------------------------------------------------- */

#define PEERS 5

static void connect_in(struct fabric_domain *hub, struct fabric_link *spoke, struct link_end *end)
{
	int fds[2], rc[2] = {1, 1};
	struct fabric_config config = link_config(64, 64);
	struct fabric_blob blob[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	link_end_open(end, fabric, &config, LEFT, fds[1]);
	end->link->active = true;
	spoke->domain = hub;
	spoke->bell = fds[0];
	for (int round = 0; rc[0] == 1; round++) {
		link_ask(spoke, round, &blob[0]);
		link_ask(end->link, round, &blob[1]);
		rc[0] = fabric->connect(spoke, round, &blob[1]);
		rc[1] = fabric->connect(end->link, round, &blob[0]);
		link_forget(&blob[0]);
		link_forget(&blob[1]);
		while (rc[0] == 2 || rc[1] == 2) {
			if (rc[1] == 2)
				rc[1] = fabric->connect(end->link, round, NULL);
			if (rc[0] == 2)
				rc[0] = fabric->connect(spoke, round, NULL);
		}
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
			assert_true(has_rung(spoke[i]) || comes_soon(hub));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(capabilities_are_complete),
		FABRIC_TEST(longest_message_is_as_promised),
		FABRIC_TEST(impossible_shapes_are_refused),
		FABRIC_TEST(directions_differ_in_shape),
		FABRIC_TEST(disconnect_ends_any_state),
		FABRIC_TEST(one_side_outlives_the_other),
		FABRIC_TEST(altered_bytes_alter_no_packet),
		FABRIC_TEST(other_lengths_are_refused),
		FABRIC_TEST(other_descriptors_are_refused),
		FABRIC_TEST(connections_do_not_mix),
		FABRIC_TEST(a_domain_has_many_links),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
