/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Packets of which the next one follows at once (FABRIC_STAYS): a fabric may keep them back until
 * then, and what they are made of not a moment longer. It cannot be read afterwards, here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"

#define TRAIN_MOST   6
#define PAYLOAD_MOST 150000
#define STRIDE       (PAYLOAD_MOST / 4096 * 4096 + 4096)
#define TRAINS       12 /* of each shape */

static unsigned char *memory;
static struct rng chance;

static void access_to_memory(int protection)
{
	assert_int_equal(mprotect(memory, TRAIN_MOST * STRIDE, protection), 0);
}

static uint32_t some_length(const struct fabric_link *l)
{
	uint32_t most = l->payload_max < PAYLOAD_MOST ? l->payload_max : PAYLOAD_MOST;
	uint32_t length = rng_below(&chance, most + 1);

	return rng_one_in(&chance, 3) ? length % 100 : length;
}

/* The packet of that number, out of the I-th place: what post said. */
static int ride(struct fabric_link *l, uint64_t seed, uint32_t length, int i, uint16_t flags)
{
	unsigned char *at = memory + (size_t)i * STRIDE;
	int rc;
	struct fabric_wr wr = {
		.op = FABRIC_SEND,
		.kind = (uint8_t)(seed % 249 + 1),
		.flags = flags,
		.length = length,
		.data = at,
		.head = {seed, ~seed, seed << 40 | length},
	};

	actor_fill(at, seed, length);
	rc = fabric->post(l, &wr);
	return rc ? rc : 1; /* taken, if not all of it has left */
}

/* In place of the one that was to follow. Links that are joined may refuse what they have
 * reserved. */
static int build(struct fabric_link *l, uint64_t seed, uint32_t length)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	struct fabric_wr wr = {
		.op = FABRIC_SEND,
		.kind = (uint8_t)(seed % 249 + 1),
		.flags = FABRIC_BUILT,
		.length = length,
		.head = {seed, ~seed, seed << 40 | length},
	};
	void *at = fabric->reserve(l, length);
	int rc;

	access_to_memory(PROT_NONE);
	if (!at)
		return -EAGAIN;
	actor_fill(at, seed, length);
	rc = fabric->post(l, &wr);
	rc = rc ? rc : 1;
	if (rc == -EAGAIN && bonded_is(fabric))
		(void)fabric->post(l, &flush); /* gives it back */
	else
		assert_int_equal(rc, 1);
	return rc;
}

/* From packet *SENT on; whether there was room for all of them. */
static bool send_train(struct fabric_link *l, uint64_t *sent, uint32_t *lengths)
{
	int n = 1 + (int)rng_below(&chance, TRAIN_MOST), rc = 1;
	bool built = rng_one_in(&chance, 4);

	access_to_memory(PROT_READ | PROT_WRITE);
	for (int i = 0; i < n && rc == 1; i++) {
		lengths[*sent] = some_length(l);
		if (built && i && i == n - 1) {
			rc = build(l, *sent, lengths[*sent]);
		} else {
			rc = ride(l, *sent, lengths[*sent], i,
				  i < n - 1 ? (uint16_t)FABRIC_STAYS : 0);
		}
		assert_true(rc == 1 || rc == -EAGAIN);
		*sent += rc == 1;
	}
	access_to_memory(PROT_NONE);
	return rc == 1;
}

static void trains_arrive(struct link_pair *p)
{
	static uint32_t lengths[1 + TRAINS * (TRAIN_MOST + 1)];
	uint64_t sent = 1, taken = 1;

	for (int i = 0; i < TRAINS; i++) {
		/* Now and then not before the ring is full. */
		if (send_train(p->link[LEFT], &sent, lengths) && rng_one_in(&chance, 2))
			continue;
		for (; taken < sent; taken++)
			link_take(p->link[RIGHT], taken, lengths[taken]);
		link_expect_nothing(p->link[RIGHT]);
		link_flush_totals(p->link[RIGHT]);
		link_await_totals(p->link[LEFT]);
	}
	for (; taken < sent; taken++)
		link_take(p->link[RIGHT], taken, lengths[taken]);
	link_expect_nothing(p->link[RIGHT]);
}

static void trains_arrive_whole(void **state)
{
	(void)state;
	chance.state = rng_run_seed(0x7a1);
	fabric_each_shape(trains_arrive);
}

/* Whatever is said of the packet behind it then, a packet is not looked at afterwards. */
static void an_end_within_a_train(void **state)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	struct link_pair p;
	struct fabric_arrival a;
	uint32_t length;
	int rc;

	(void)state;
	link_pair_open(&p, fabric, 16384, 64);
	length = p.link[LEFT]->payload_max < 60000 ? p.link[LEFT]->payload_max : 60000;
	access_to_memory(PROT_READ | PROT_WRITE);
	assert_int_equal(ride(p.link[LEFT], 1, length, 0, FABRIC_STAYS), 1);
	fabric->disconnect(p.link[RIGHT]);
	rc = ride(p.link[LEFT], 2, length, 1, FABRIC_STAYS);
	if (rc == 1)
		rc = ride(p.link[LEFT], 3, length, 2, 0);
	assert_true(rc == 1 || rc == -EAGAIN || link_is_lost(p.link[LEFT], rc));
	access_to_memory(PROT_NONE);
	for (int i = 0; i < 10; i++) {
		(void)fabric->poll(p.link[LEFT], &a, 1);
		(void)fabric->post(p.link[LEFT], &flush);
	}
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(trains_arrive_whole),
		FABRIC_TEST(an_end_within_a_train),
	};

	memory = mmap(NULL, TRAIN_MOST * STRIDE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
