/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No deadlock over a torus under the rule of its channels: every state of rings with one buffer for
 * each channel of each link, and that without the rule some of them are stuck; no channel of any
 * shape waits for itself; all-to-all of 64 with these buffers ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <slmpm_network.h>

#include "tests/lib/random.h"

#define CHANNELS 2
#define NOTHING  0xff

static struct slmpm_network net;

static void make_torus_of(uint32_t x, uint32_t y, uint32_t z)
{
	const uint32_t extent[3] = {x, y, z};

	net.size = sizeof(net);
	assert_int_equal(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, 0, extent, 7), 0);
}

static uint32_t after(uint32_t node, uint32_t link)
{
	int there = slmpm_network_neighbour(&net, node, link);

	assert_true(there >= 0);
	return (uint32_t)there;
}

static uint32_t channel_of(uint32_t node, uint32_t link, uint32_t to)
{
	int channel = slmpm_network_channel(&net, node, link, to);

	assert_in_range(channel, 0, CHANNELS - 1);
	return (uint32_t)channel;
}

/* ---- all states of a ring -------------------------------------------------------------------- */

#define RING    6 /* nodes, at most */
#define BUFFERS (RING * 2 * CHANNELS)
#define TABLE   (1u << 22)

/* Each buffer, behind a link, holds nothing or a packet, of which its target says all. */
struct state {
	unsigned char to[BUFFERS];
};

static bool ruled; /* by the rule; else there is one buffer for each link */
static struct state *table;
static struct state *queue;
static uint32_t known, stuck;

static uint32_t buffer_of(uint32_t node, uint32_t link, uint32_t to)
{
	return (node * 2 + link) * CHANNELS + (ruled ? channel_of(node, link, to) : 0);
}

static uint64_t digest(const struct state *s)
{
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(s->to); i++)
		h = (h ^ s->to[i]) * 1099511628211u;
	return h ^ h >> 29;
}

static void visit(const struct state *s)
{
	uint32_t i = (uint32_t)digest(s) % TABLE;

	for (; table[i].to[0] || table[i].to[1]; i = (i + 1) % TABLE)
		if (!memcmp(&table[i], s, sizeof(*s)))
			return;
	assert_true(known < TABLE / 2);
	table[i] = *s;
	queue[known++] = *s;
}

/* Into the buffer behind LINK of NODE, if that is empty. */
static bool enter(struct state s, uint32_t from_buffer, uint32_t node, uint32_t link, uint32_t to)
{
	uint32_t buffer = buffer_of(node, link, to);

	if (s.to[buffer] != NOTHING)
		return false;
	s.to[buffer] = (unsigned char)to;
	if (from_buffer != BUFFERS)
		s.to[from_buffer] = NOTHING;
	visit(&s);
	return true;
}

/* New packets from NODE to TO. Where both ways round are as long either is tried. */
static void inject(const struct state *s, uint32_t node, uint32_t to)
{
	uint32_t link = (uint32_t)slmpm_network_next_hop(&net, node, to);

	enter(*s, BUFFERS, node, link, to);
	if ((to + net.nodes - node) % net.nodes * 2 == net.nodes)
		enter(*s, BUFFERS, node, link ^ 1, to);
}

/* The packet in BUFFER: it arrives, or goes on. */
static bool move_on(struct state s, uint32_t buffer)
{
	uint32_t node = after(buffer / CHANNELS / 2, buffer / CHANNELS % 2), to = s.to[buffer];

	if (to == node) {
		s.to[buffer] = NOTHING;
		visit(&s);
		return true;
	}
	return enter(s, buffer, node, (uint32_t)slmpm_network_next_hop(&net, node, to), to);
}

/* A state is stuck where packets are under way and none can move. */
static void follow(struct state s)
{
	bool moved = false, under_way = false;

	for (uint32_t b = 0; b < net.nodes * 2 * CHANNELS; b++) {
		if (s.to[b] == NOTHING)
			continue;
		under_way = true;
		if (move_on(s, b))
			moved = true;
	}
	if (under_way && !moved)
		stuck++;
	for (uint32_t node = 0; node < net.nodes; node++)
		for (uint32_t to = 0; to < net.nodes; to++)
			if (to != node)
				inject(&s, node, to);
}

static void search_ring(uint32_t nodes, bool by_rule)
{
	struct state first;

	make_torus_of(nodes, 1, 1);
	ruled = by_rule;
	known = stuck = 0;
	table = calloc(TABLE, sizeof(*table));
	queue = malloc(TABLE / 2 * sizeof(*queue));
	assert_non_null(table);
	assert_non_null(queue);
	memset(&first, NOTHING, sizeof(first));
	visit(&first);
	for (uint32_t i = 0; i < known; i++)
		follow(queue[i]);
	free(table);
	free(queue);
}

static void ring_under_the_rule(void **state)
{
	(void)state;
	for (uint32_t nodes = 3; nodes <= 5; nodes++) {
		search_ring(nodes, true);
		print_message("ring of %u: %u states, %u stuck\n", nodes, known, stuck);
		assert_int_equal(stuck, 0);
		assert_true(known > 60);
	}
}

static void ring_without_it(void **state)
{
	(void)state;
	for (uint32_t nodes = 4; nodes <= 5; nodes++) {
		search_ring(nodes, false);
		print_message("ring of %u without the rule: %u states, %u stuck\n", nodes, known,
			      stuck);
		assert_true(stuck > 0);
	}
}

/* ---- who waits for whom, in any shape -------------------------------------------------------- */

#define NODES 128
#define EDGES (NODES * SLMPM_NETWORK_LINKS * CHANNELS)

static uint64_t waits_for[EDGES]; /* bit l * 2 + c: for channel c of link l behind it */
static unsigned char colour[EDGES];

static void note_routes(uint32_t from, uint32_t to)
{
	uint32_t before = EDGES;

	for (uint32_t here = from; here != to;) {
		uint32_t link = (uint32_t)slmpm_network_next_hop(&net, here, to);
		uint32_t way = link * CHANNELS + channel_of(here, link, to);

		if (before != EDGES)
			waits_for[before] |= UINT64_C(1) << way;
		before = here * SLMPM_NETWORK_LINKS * CHANNELS + way;
		here = after(here, link);
	}
}

static bool is_in_circle(uint32_t edge)
{
	uint32_t node = edge / (SLMPM_NETWORK_LINKS * CHANNELS);
	uint32_t there, link = edge / CHANNELS % SLMPM_NETWORK_LINKS;

	if (colour[edge] || !waits_for[edge])
		return colour[edge] == 1;
	colour[edge] = 1;
	there = after(node, link);
	for (uint32_t way = 0; way < SLMPM_NETWORK_LINKS * CHANNELS; way++)
		if (waits_for[edge] >> way & 1 &&
		    is_in_circle(there * SLMPM_NETWORK_LINKS * CHANNELS + way))
			return true;
	colour[edge] = 2;
	return false;
}

static void expect_no_circle(void)
{
	assert_true(net.nodes <= NODES);
	memset(waits_for, 0, sizeof(waits_for));
	memset(colour, 0, sizeof(colour));
	for (uint32_t a = 0; a < net.nodes; a++)
		for (uint32_t b = 0; b < net.nodes; b++)
			note_routes(a, b);
	for (uint32_t e = 0; e < net.nodes * SLMPM_NETWORK_LINKS * CHANNELS; e++)
		assert_false(is_in_circle(e));
}

static void no_circles(void **state)
{
	static const uint32_t shapes[][3] = {{3, 3, 3}, {4, 4, 4}, {5, 4, 3}, {16, 1, 1},
					     {7, 2, 8}, {1, 9, 9}, {5, 5, 5}};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		make_torus_of(shapes[i][0], shapes[i][1], shapes[i][2]);
		expect_no_circle();
	}
	for (uint32_t nodes = 1; nodes <= NODES; nodes += 9) {
		assert_int_equal(slmpm_network_make(&net, SLMPM_NETWORK_TREE, nodes, NULL, 0), 0);
		expect_no_circle();
	}
}

/* ---- all to all ------------------------------------------------------------------------------ */

/* One buffer behind each channel of each link; packets move in any order that chance gives. */
static void all_to_all(void **state)
{
	static unsigned char buffer[64 * SLMPM_NETWORK_LINKS * CHANNELS];
	static uint32_t next[64]; /* of each node, how many it has sent */
	struct rng g = {rng_run_seed(4)};
	uint32_t arrived = 0, idle = 0;

	(void)state;
	make_torus_of(4, 4, 4);
	memset(buffer, NOTHING, sizeof(buffer));
	while (arrived < 64 * 63) {
		uint32_t b = rng_below(&g, sizeof(buffer) + 64), node, to, link, into;
		unsigned char *from = b < sizeof(buffer) ? &buffer[b] : NULL;

		assert_true(idle++ < 1000000);
		node = from ? b / CHANNELS / SLMPM_NETWORK_LINKS : b - (uint32_t)sizeof(buffer);
		if (from ? *from == NOTHING : next[node] == 63)
			continue;
		if (from)
			node = after(node, b / CHANNELS % SLMPM_NETWORK_LINKS);
		to = from ? *from : (node + 1 + next[node]) % 64;
		if (to != node) {
			link = (uint32_t)slmpm_network_next_hop(&net, node, to);
			into = (node * SLMPM_NETWORK_LINKS + link) * CHANNELS +
			       channel_of(node, link, to);
			if (buffer[into] != NOTHING)
				continue;
			buffer[into] = (unsigned char)to;
		}
		arrived += to == node;
		if (from)
			*from = NOTHING;
		else
			next[node]++;
		idle = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_under_the_rule),
		cmocka_unit_test(ring_without_it),
		cmocka_unit_test(no_circles),
		cmocka_unit_test(all_to_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
