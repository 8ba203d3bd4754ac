/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bond's log beside a plain list: what is put into it comes out again, from whichever packet on
 * the peer wants the rest, over many laps and with acknowledgements between marks; and while it
 * gives back to marks alone, room for the next packet is there as soon as it is trimmed.
 */
#include "slmpm/bond/bond_log.h"

#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define SIZE    8192
#define LONGEST 1500
#define PACKETS 20000

static uint32_t length_of(uint64_t packet)
{
	struct rng g = {packet * 7 + 1};

	return rng_one_in(&g, 3) ? rng_below(&g, LONGEST + 1) : rng_below(&g, 80);
}

static void put(struct bond_log *l, uint64_t packet)
{
	struct fabric_wr wr = {
		.kind = (uint8_t)(packet % 200 + 1),
		.length = length_of(packet),
		.head = {packet, ~packet, packet << 32},
	};

	CHECK((uintptr_t)bond_log_open_data(l) % BOND_ENTRY == 0, "packet %lu", packet);
	memset(bond_log_open_data(l), (int)(packet & 255), wr.length);
	bond_log_commit(l, &wr);
}

static void check(struct bond_entry *e, uint64_t packet)
{
	const unsigned char *data = bond_entry_data(e);

	CHECK(e->kind == packet % 200 + 1 && e->length == length_of(packet) &&
		      e->head[0] == packet && e->head[1] == ~packet && e->head[2] == packet << 32,
	      "packet %lu is another", packet);
	for (uint32_t i = 0; i < e->length; i++)
		CHECK(data[i] == (packet & 255), "packet %lu, byte %u", packet, i);
}

/* All from the tail on, in order. */
static void check_all(const struct bond_log *l)
{
	uint64_t at = l->tail, packet = l->given;

	while (packet < l->put)
		check(bond_log_next(l, &at), packet++);
	CHECK(at == l->head, "%lu bytes behind the last packet", l->head - at);
}

/* The peer has some more; now and then exactly so many are wanted gone. */
static void acknowledge(struct bond_log *l, struct rng *g, uint64_t *acked)
{
	*acked += rng_below(g, (uint32_t)(l->put - *acked) + 1);
	if (rng_one_in(g, 8)) {
		bond_log_trim(l, *acked);
		CHECK(l->given == *acked, "%lu of %lu are given back", l->given, *acked);
	} else {
		bond_log_retire(l, *acked);
		CHECK(l->given <= *acked, "%lu of %lu are given back", l->given, *acked);
	}
}

static void laps(void)
{
	struct rng g = {rng_run_seed(3)};
	uint64_t acked = 0, marked = 0;
	struct bond_log l;

	CHECK(bond_log_open(&l, SIZE, 0) == 0 && l.size == SIZE, "%lu bytes", l.size);
	while (l.put < PACKETS) {
		if (l.head - marked >= SIZE / 4) {
			bond_log_mark(&l);
			marked = l.head;
		}
		if (bond_log_reserve(&l, length_of(l.put), 0)) {
			put(&l, l.put);
		} else {
			bond_log_trim(&l, acked = l.put - rng_below(&g, 2));
			CHECK(bond_log_reserve(&l, length_of(l.put), 0), "no room");
			put(&l, l.put);
		}
		if (rng_one_in(&g, 10))
			acknowledge(&l, &g, &acked);
		if (rng_one_in(&g, 20))
			check_all(&l);
	}
	bond_log_retire(&l, l.put);
	CHECK(l.tail == l.head && !l.marks, "it is not empty");
	bond_log_close(&l);
}

/* With nothing but marks: once those are passed there is room again. */
static void marks(void)
{
	struct bond_log l;
	uint64_t n;

	CHECK(bond_log_open(&l, SIZE, 0) == 0, "open");
	while (bond_log_reserve(&l, length_of(l.put), 0)) {
		put(&l, l.put);
		bond_log_mark(&l); /* more than it remembers */
	}
	n = l.put;
	CHECK(l.marks == BOND_MARKS, "%u marks", l.marks);
	bond_log_retire(&l, 3);
	CHECK(l.given == 3, "%lu of 3", l.given);
	bond_log_retire(&l, n - 1);
	CHECK(l.given == BOND_MARKS, "%lu of %d", l.given, BOND_MARKS);
	check_all(&l);
	bond_log_retire(&l, n);
	CHECK(l.given == n && l.tail == l.head, "%lu of %lu", l.given, n);
	CHECK(!bond_log_reserve(&l, 100, SIZE), "room is left where there is none");
	bond_log_close(&l);
}

int main(void)
{
	laps();
	marks();
	return 0;
}
