/* SPDX-License-Identifier: BSD-3-Clause */
/* By which link of a network the next bytes go: by the one that has them there first. */
#include "slmpm/mode/mode.h"

#include "tests/lib/test.h"

#define GIGABIT  125000 /* bytes a millisecond */
#define PATIENCE 200    /* us */
#define PACKET   65536

static int spread(struct mode_load a, struct mode_load b, int present)
{
	struct mode_load loads[] = {a, b, {.able = false}};

	return mode_spread(loads, 3, present, PACKET, PATIENCE);
}

static struct mode_load load(uint64_t in_flight, uint64_t rate)
{
	return (struct mode_load){.able = true, .in_flight = in_flight, .rate = rate};
}

static void present_is_left_when_loaded(void)
{
	CHECK(spread(load(20000, GIGABIT), load(0, GIGABIT), 0) == 0, "it has little to do");
	CHECK(spread(load(200000, GIGABIT), load(0, GIGABIT), 0) == 1, "it has much");
	CHECK(spread(load(0, GIGABIT), load(200000, GIGABIT), 1) == 0, "the other way round");
	CHECK(spread(load(200000, GIGABIT), load(190000, GIGABIT), 0) == 0, "so has the other");
	CHECK(spread(load(900000, 100 * GIGABIT), load(0, GIGABIT), 0) == 0, "it is quick");
}

static void slow_one_is_spared(void)
{
	CHECK(spread(load(200000, GIGABIT), load(0, GIGABIT / 5), 0) == 0, "2.6 ms, not 2");
	CHECK(spread(load(900000, GIGABIT), load(0, GIGABIT / 5), 0) == 1, "2.6 ms, not 7");
	CHECK(spread(load(900000, GIGABIT), load(180000, GIGABIT / 5), 0) == 0, "10 ms, not 7");
	CHECK(spread(load(900000, GIGABIT), load(0, GIGABIT / 10), 0) == 0, "too slow at all");
	CHECK(spread(load(60000, GIGABIT / 10), load(0, GIGABIT), 0) == 1, "from there it goes");
}

/* What is not known is taken to be alike. */
static void unknown_ones_are_tried(void)
{
	CHECK(spread(load(200000, GIGABIT), load(0, 0), 0) == 1, "as quick as this one");
	CHECK(spread(load(200000, 0), load(0, 0), 0) == 0, "little for whatever it is");
	CHECK(spread(load(500000, 0), load(0, 0), 0) == 1, "much, and nothing there");
	CHECK(spread(load(500000, 0), load(500000, 0), 0) == 0, "much here and there");
}

static void others_are_left_alone(void)
{
	struct mode_load shared = {.able = false};

	CHECK(spread(load(900000, GIGABIT), shared, 0) == 0, "one that cannot tell");
	CHECK(spread(shared, load(0, GIGABIT), 0) == 0, "from one that cannot tell");
	CHECK(!mode_is_loaded(&shared, 0), "nobody knows");
}

int main(void)
{
	present_is_left_when_loaded();
	slow_one_is_spared();
	unknown_ones_are_tried();
	others_are_left_alone();
	return 0;
}
