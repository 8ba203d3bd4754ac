/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Peers that lie in the rounds in which a link of any fabric comes to be: by a byte, a length, a
 * descriptor, by what belongs to another connection. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bonded.h"
#include "tests/lib/fabric_suite.h"

#define ROUNDS 16 /* more would be no handshake */

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

enum { FLIP, LENGTH, LOST, OTHER };

struct lie {
	int round, what;
	int value; /* FLIP: which byte; LENGTH: this; OTHER: which descriptor */
};

static void tell(struct fabric_blob *blob, const struct lie *lie)
{
	switch (lie->what) {
	case FLIP: blob->bytes[lie->value] ^= 0xff; break;
	case LENGTH: blob->length = (uint32_t)lie->value; break;
	default: link_forget(blob); blob->fd = lie->what == OTHER ? descriptor(lie->value) : -1;
	}
}

/* The bytes of a link whose handshake was tampered with may be lost or refused, never altered. */
static void exchange_or_end(struct link_pair *p)
{
	struct fabric_arrival a;

	for (int side = 0; side < SIDES; side++) {
		if (link_put(p->link[side], 7, 20, 0) != 1)
			continue;
		(void)link_comes_soon(p->domain[!side]);
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

/* A bond has no rounds but those of its links, one after the other, of which the links' own rows
 * tell. */
static int rounds_of_one(void)
{
	if (bonded_is(fabric))
		skip();
	return link_pair_rounds(fabric);
}

static void altered_bytes_alter_no_packet(void **state)
{
	int rounds = rounds_of_one();

	(void)state;
	for (int round = 0; round < rounds; round++) {
		struct fabric_blob blob = honest_blob(round);

		for (int i = 0; i < (int)blob.length; i++)
			lie_once(round, FLIP, i, NULL);
	}
}

static void other_lengths_are_refused(void **state)
{
	int rounds = rounds_of_one();

	(void)state;
	for (int round = 0; round < rounds; round++) {
		struct fabric_blob blob = honest_blob(round);

		for (int n = 0; n <= (int)sizeof(blob.bytes); n++)
			if (n != (int)blob.length)
				lie_once(round, LENGTH, n, "another length");
	}
}

static void other_descriptors_are_refused(void **state)
{
	int rounds = rounds_of_one();

	(void)state;
	for (int round = 0; round < rounds; round++) {
		if (honest_blob(round).fd >= 0)
			lie_once(round, LOST, 0, "a missing descriptor");
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
	int rounds = rounds_of_one();

	(void)state;
	for (link_pair_active = 0; link_pair_active < SIDES; link_pair_active++)
		mix(rounds);
	link_pair_active = LEFT;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(altered_bytes_alter_no_packet),
		FABRIC_TEST(other_lengths_are_refused),
		FABRIC_TEST(other_descriptors_are_refused),
		FABRIC_TEST(connections_do_not_mix),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
