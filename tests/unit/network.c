/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks against what their words say: all pairs of nodes of many shapes by a breadth-first
 * search over neighbours that are found by definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <slmpm_network.h>

#define MOST     256 /* nodes */
#define OK(call) assert_int_equal((call), 0)

static struct slmpm_network torus_of(uint32_t x, uint32_t y, uint32_t z, uint32_t wrap)
{
	struct slmpm_network net = {.size = sizeof(net)};
	const uint32_t extent[3] = {x, y, z};

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, x * y * z, extent, wrap));
	assert_int_equal(net.nodes, x * y * z);
	assert_int_equal(net.links, 6);
	assert_memory_equal(net.extent, extent, sizeof(extent));
	return net;
}

static struct slmpm_network tree_of(uint32_t nodes)
{
	struct slmpm_network net = {.size = sizeof(net)};

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TREE, nodes, NULL, 0));
	assert_int_equal(net.nodes, nodes);
	assert_int_equal(net.links, 3);
	assert_int_equal(net.channels, 1);
	return net;
}

/* ---- by definition --------------------------------------------------------------------------- */

/* Along X, Y and Z of a node, x counting fastest. */
static void place_of(const struct slmpm_network *net, uint32_t rank, uint32_t at[3])
{
	at[0] = rank % net->extent[0];
	at[1] = rank / net->extent[0] % net->extent[1];
	at[2] = rank / net->extent[0] / net->extent[1];
}

static int torus_adjacent(const struct slmpm_network *net, uint32_t wrap, uint32_t a, uint32_t b)
{
	uint32_t one[3], other[3];
	int steps = 0;

	place_of(net, a, one);
	place_of(net, b, other);
	for (int d = 0; d < 3; d++) {
		int apart = abs((int)one[d] - (int)other[d]);

		if (wrap >> d & 1 && apart == (int)net->extent[d] - 1 && apart > 0)
			apart = 1;
		steps += apart > 1 ? 2 : apart;
	}
	return steps == 1;
}

static int tree_adjacent(uint32_t a, uint32_t b)
{
	return (b && (b - 1) / 2 == a) || (a && (a - 1) / 2 == b);
}

static unsigned char adjacent[MOST][MOST];
static uint32_t far[MOST][MOST]; /* hops */

static void search_from(uint32_t nodes, uint32_t start)
{
	static uint32_t queue[MOST];
	uint32_t head = 0, tail = 0, *hops = far[start];

	for (uint32_t i = 0; i < nodes; i++)
		hops[i] = UINT32_MAX;
	hops[start] = 0;
	queue[tail++] = start;
	while (head < tail) {
		uint32_t here = queue[head++];

		for (uint32_t i = 0; i < nodes; i++) {
			if (!adjacent[here][i] || hops[i] != UINT32_MAX)
				continue;
			hops[i] = hops[here] + 1;
			queue[tail++] = i;
		}
	}
	assert_int_equal(tail, nodes);
}

static void define(const struct slmpm_network *net, uint32_t wrap)
{
	assert_true(net->nodes <= MOST);
	for (uint32_t a = 0; a < net->nodes; a++)
		for (uint32_t b = 0; b < net->nodes; b++)
			adjacent[a][b] = (unsigned char)(net->kind == SLMPM_NETWORK_TREE ?
								 tree_adjacent(a, b) :
								 torus_adjacent(net, wrap, a, b));
	for (uint32_t a = 0; a < net->nodes; a++)
		search_from(net->nodes, a);
}

/* ---- the calls against it -------------------------------------------------------------------- */

static uint32_t back_of(const struct slmpm_network *net, uint32_t rank, uint32_t link)
{
	if (net->kind == SLMPM_NETWORK_TORUS)
		return link ^ 1;
	if (link != SLMPM_NETWORK_PARENT)
		return SLMPM_NETWORK_PARENT;
	return rank % 2 ? SLMPM_NETWORK_LEFT : SLMPM_NETWORK_RIGHT;
}

/* Each of the adjacent ones by one link, which the other one has back. */
static void expect_neighbours(const struct slmpm_network *net, uint32_t rank)
{
	unsigned char seen[MOST] = {0};

	for (uint32_t link = 0; link < net->links; link++) {
		int there = slmpm_network_neighbour(net, rank, link);

		if (there == -SLMPM_ENOENT)
			continue;
		assert_in_range(there, 0, net->nodes - 1);
		assert_true(adjacent[rank][there]);
		assert_false(seen[there]);
		seen[there] = 1;
		assert_int_equal(slmpm_network_neighbour(net, (uint32_t)there,
							 back_of(net, rank, link)),
				 rank);
	}
	assert_memory_equal(seen, adjacent[rank], net->nodes);
}

static void expect_coords(const struct slmpm_network *net, uint32_t rank)
{
	uint32_t at[3] = {9, 9, 9}, want[3];

	OK(slmpm_network_coords(net, rank, at));
	assert_int_equal(slmpm_network_rank(net, at), rank);
	if (net->kind == SLMPM_NETWORK_TORUS) {
		place_of(net, rank, want);
		assert_memory_equal(at, want, sizeof(want));
		return;
	}
	assert_int_equal(at[0], far[0][rank]); /* the level */
	assert_int_equal((1u << at[0]) - 1 + at[1], rank);
	assert_int_equal(at[2], 0);
}

/* 1: the rest of the way along this dimension crosses its border. */
static int want_channel(const struct slmpm_network *net, uint32_t here, uint32_t link, uint32_t to)
{
	uint32_t one[3], other[3];

	if (net->kind == SLMPM_NETWORK_TREE)
		return 0;
	place_of(net, here, one);
	place_of(net, to, other);
	return link % 2 ? one[link / 2] < other[link / 2] : one[link / 2] > other[link / 2];
}

/* Hop by hop: no more than the least, each closer, the dimensions in their order. */
static void expect_route(const struct slmpm_network *net, uint32_t from, uint32_t to)
{
	uint32_t here = from, last = 0;

	assert_int_equal(slmpm_network_hops(net, from, to), far[from][to]);
	for (uint32_t left = far[from][to]; left; left--) {
		int link = slmpm_network_next_hop(net, here, to), channel, next;

		assert_in_range(link, 0, net->links - 1);
		channel = slmpm_network_channel(net, here, (uint32_t)link, to);
		assert_in_range(channel, 0, net->channels - 1);
		assert_int_equal(channel, want_channel(net, here, (uint32_t)link, to));
		next = slmpm_network_neighbour(net, here, (uint32_t)link);
		assert_in_range(next, 0, net->nodes - 1);
		assert_int_equal(far[next][to], left - 1);
		if (net->kind == SLMPM_NETWORK_TORUS) {
			assert_true((uint32_t)link / 2 >= last / 2);
			if (here != from && (uint32_t)link / 2 == last / 2)
				assert_int_equal(link, last);
		}
		last = (uint32_t)link;
		here = (uint32_t)next;
	}
	assert_int_equal(here, to);
	assert_int_equal(slmpm_network_next_hop(net, to, to), -SLMPM_ENOENT);
}

static void expect_all(const struct slmpm_network *net, uint32_t wrap)
{
	uint32_t longest = 0;

	define(net, wrap);
	for (uint32_t a = 0; a < net->nodes; a++) {
		expect_coords(net, a);
		expect_neighbours(net, a);
		for (uint32_t b = 0; b < net->nodes; b++) {
			expect_route(net, a, b);
			longest = far[a][b] > longest ? far[a][b] : longest;
		}
	}
	assert_int_equal(net->diameter, longest);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void tori(void **state)
{
	static const uint32_t shapes[][3] = {{3, 3, 3}, {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 2},
					     {4, 1, 1}, {1, 5, 1}, {1, 1, 6}, {7, 2, 3}, {8, 5, 2},
					     {4, 4, 4}, {1, 3, 4}, {5, 1, 2}, {16, 1, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (uint32_t wrap = 0; wrap <= SLMPM_NETWORK_WRAP; wrap++) {
			const uint32_t *s = shapes[i];
			struct slmpm_network net = torus_of(s[0], s[1], s[2], wrap);
			uint32_t long_ones = 0;

			for (int d = 0; d < 3; d++)
				long_ones |= s[d] > 2 ? 1u << d : 0;
			assert_int_equal(net.wrap, wrap & long_ones);
			assert_int_equal(net.channels, net.wrap ? 2 : 1);
			expect_all(&net, wrap);
		}
}

static void trees(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= 66; nodes++) {
		struct slmpm_network net = tree_of(nodes);

		expect_all(&net, 0);
	}
}

/* The same, where there are as many as may be. */
static void greatest(void **state)
{
	struct slmpm_network net = tree_of(INT32_MAX), ring = torus_of(INT32_MAX, 1, 1, 1);
	uint32_t at[3];

	(void)state;
	assert_int_equal(net.diameter, 60);
	assert_int_equal(slmpm_network_hops(&net, INT32_MAX - 1, (1u << 30) - 1), 60);
	assert_int_equal(slmpm_network_hops(&net, INT32_MAX - 1, INT32_MAX - 2), 2);
	assert_int_equal(slmpm_network_next_hop(&net, 0, INT32_MAX - 1), SLMPM_NETWORK_RIGHT);
	assert_int_equal(slmpm_network_neighbour(&net, INT32_MAX - 1, 2), -SLMPM_ENOENT);
	OK(slmpm_network_coords(&net, INT32_MAX - 1, at));
	assert_int_equal(at[0], 30);
	assert_int_equal(slmpm_network_rank(&net, at), INT32_MAX - 1);
	assert_int_equal(ring.diameter, INT32_MAX / 2);
	assert_int_equal(slmpm_network_hops(&ring, INT32_MAX - 1, 1), 2);
	assert_int_equal(slmpm_network_next_hop(&ring, INT32_MAX - 1, 1), SLMPM_NETWORK_X_UP);
}

static void expect_shape(uint32_t nodes, uint32_t x, uint32_t y, uint32_t z, const char *want)
{
	struct slmpm_network net = {.size = sizeof(net)};
	const uint32_t extent[3] = {x, y, z};
	char got[64];

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, nodes, x || y || z ? extent : NULL, 7));
	snprintf(got, sizeof(got), "%ux%ux%u", net.extent[0], net.extent[1], net.extent[2]);
	assert_string_equal(got, want);
}

static void shapes_chosen(void **state)
{
	(void)state;
	expect_shape(1, 0, 0, 0, "1x1x1");
	expect_shape(2, 0, 0, 0, "2x1x1");
	expect_shape(13, 0, 0, 0, "13x1x1");
	expect_shape(27, 0, 0, 0, "3x3x3");
	expect_shape(36, 0, 0, 0, "4x3x3");
	expect_shape(64, 0, 0, 0, "4x4x4");
	expect_shape(100, 0, 0, 0, "5x5x4");
	expect_shape(65536, 0, 0, 0, "64x32x32");
	expect_shape(24, 0, 2, 0, "4x2x3");
	expect_shape(24, 0, 6, 2, "2x6x2");
	expect_shape(0, 5, 4, 3, "5x4x3");
	expect_shape(7, 1, 0, 1, "1x7x1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tori),
		cmocka_unit_test(trees),
		cmocka_unit_test(greatest),
		cmocka_unit_test(shapes_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
