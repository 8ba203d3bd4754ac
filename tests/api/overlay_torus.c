/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Tori, meshes and trees over links, by 27 real processes and by fewer: all to all, with the least
 * buffers there can be, in the order of the calls; each node passes on what its place on the routes
 * says, and nothing else; exchanges with all neighbours; two networks over one group.
 */
#include <stdlib.h>
#include <string.h>

#include <slmpm_overlay.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define TURNS   2 /* messages of each pair */
#define LONGEST 200
#define PACKET  64
#define PACKETS 500
#define ROUNDS  5
#define PART    150 /* bytes of an exchange: several packets */
#define MOST    64  /* nodes */

struct trial {
	uint32_t kind, extent[3], wrap, nodes;
};

/* Of the K-th message from FROM to TO: all know it. */
static uint32_t length_of(uint32_t from, uint32_t to, uint32_t k)
{
	return (from * 131 + to * 17 + k * 71) % (LONGEST + 1);
}

static unsigned char byte_of(uint32_t from, uint32_t to, uint32_t k, uint32_t i)
{
	return (unsigned char)(from * 7 + to * 3 + k * 5 + i);
}

static uint32_t packets_of(uint32_t from, uint32_t to, uint32_t k)
{
	uint32_t len = length_of(from, to, k);

	return len ? (len + PACKET - 1) / PACKET : 1;
}

static struct slmpm_network made(const struct trial *t)
{
	struct slmpm_network net = {.size = sizeof(net)};

	OK(slmpm_network_make(&net, t->kind, t->nodes, t->extent[0] ? t->extent : NULL, t->wrap));
	return net;
}

/* ---- all to all ------------------------------------------------------------------------------ */

static slmpm_req reqs[MOST * TURNS];
static unsigned char *texts[MOST * TURNS];

static int send_all(slmpm_overlay o, uint32_t own, uint32_t n)
{
	int sent = 0;

	for (uint32_t k = 0; k < TURNS; k++)
		for (uint32_t d = 1; d < n; d++) {
			uint32_t to = (own + d) % n, len = length_of(own, to, k);
			unsigned char *text = malloc(len + 1);

			CHECK(text, "no memory");
			for (uint32_t i = 0; i < len; i++)
				text[i] = byte_of(own, to, k, i);
			texts[sent] = text;
			OK(slmpm_overlay_send(o, to, k, text, len, NULL, &reqs[sent]));
			sent++;
		}
	return sent;
}

static void receive_one(slmpm_overlay o, uint32_t own, uint32_t *next, uint32_t from)
{
	struct slmpm_overlay_message m = {.size = sizeof(m)};
	unsigned char text[LONGEST];
	int64_t len =
		slmpm_overlay_recv(o, from, SLMPM_ANY_STREAM, text, sizeof(text), &m, PATIENCE);
	uint32_t k;

	CHECK(len >= 0, "%s", slmpm_error_detail());
	k = next[m.source]++;
	CHECK(k < TURNS && m.stream == k && m.len == (uint64_t)len &&
		      len == length_of(m.source, own, k),
	      "message %u of rank %u on stream %u: %lld bytes", k, m.source, m.stream,
	      (long long)len);
	for (uint32_t i = 0; i < len; i++)
		CHECK(text[i] == byte_of(m.source, own, k, i), "byte %u of rank %u", i, m.source);
}

static void all_to_all(slmpm_overlay o, uint32_t own, uint32_t n)
{
	uint32_t next[MOST] = {0};
	struct slmpm_done done;
	int sent = send_all(o, own, n);

	for (uint32_t i = 0; i < (n - 1) * TURNS; i++)
		receive_one(o, own, next, i ? SLMPM_OVERLAY_ANY : (own + 1) % n);
	for (int i = 0; i < sent; i++) {
		EXPECT(slmpm_wait(&reqs[i], 1, &done, PATIENCE), 0);
		CHECK(done.status == 0 && done.op == SLMPM_OP_SEND, "status %d", done.status);
		free(texts[i]);
	}
}

/* What this node has passed on, as the routes say. */
static void check_routes(slmpm_overlay o, const struct slmpm_network *net, uint32_t own)
{
	struct slmpm_overlay_info info = {.size = sizeof(info)};
	uint64_t passed = 0, came = 0, sent = 0, hops = 0, over = 0;

	for (uint32_t from = 0; from < net->nodes; from++)
		for (uint32_t to = 0; to < net->nodes; to++) {
			uint32_t at = from, packets = 0;

			if (from == to)
				continue;
			for (uint32_t k = 0; k < TURNS; k++)
				packets += packets_of(from, to, k);
			sent += from == own ? packets : 0;
			came += to == own ? packets : 0;
			hops = 0;
			while (at != to) {
				passed += at == own && at != from ? packets : 0;
				at = (uint32_t)slmpm_network_neighbour(
					net, at, (uint32_t)slmpm_network_next_hop(net, at, to));
				hops++;
			}
			CHECK(hops == (uint64_t)slmpm_network_hops(net, from, to), "%u to %u", from,
			      to);
		}
	OK(slmpm_overlay_query(o, &info));
	CHECK(info.sent == sent && info.delivered == came && info.forwarded == passed,
	      "rank %u: sent %llu of %llu, delivered %llu of %llu, forwarded %llu of %llu", own,
	      (unsigned long long)info.sent, (unsigned long long)sent,
	      (unsigned long long)info.delivered, (unsigned long long)came,
	      (unsigned long long)info.forwarded, (unsigned long long)passed);
	for (int l = 0; l < SLMPM_NETWORK_LINKS; l++)
		over += info.over[l];
	CHECK(over == sent + passed && !info.held[0] && !info.held[1] && !info.unread,
	      "%llu over links", (unsigned long long)over);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static void exchange(slmpm_overlay o, const struct slmpm_network *net, uint32_t own, uint32_t round)
{
	unsigned char mine[SLMPM_NETWORK_LINKS][PART], theirs[SLMPM_NETWORK_LINKS][PART];
	struct slmpm_iov out[SLMPM_NETWORK_LINKS] = {{0}}, in[SLMPM_NETWORK_LINKS] = {{0}};
	const uint32_t len = PART - round * 30;

	for (uint32_t l = 0; l < net->links; l++) {
		for (uint32_t i = 0; i < len; i++)
			mine[l][i] = byte_of(own, l, round, i);
		out[l] = (struct slmpm_iov){mine[l], len};
		in[l] = (struct slmpm_iov){theirs[l], PART};
	}
	OK(slmpm_overlay_exchange(o, out, in, PATIENCE));
	for (uint32_t l = 0; l < net->links; l++) {
		int there = slmpm_network_neighbour(net, own, l);
		uint32_t back = l ^ 1;

		if (there < 0) {
			CHECK(in[l].len == PART, "link %u leads nowhere", l);
			continue;
		}
		if (net->kind == SLMPM_NETWORK_TREE)
			back = l ? SLMPM_NETWORK_PARENT : own % 2 ? 1 : 2;
		CHECK(in[l].len == len, "%zu bytes over link %u", (size_t)in[l].len, l);
		for (uint32_t i = 0; i < len; i++)
			CHECK(theirs[l][i] == byte_of((uint32_t)there, back, round, i),
			      "link %u, byte %u", l, i);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void use(const struct crew *crew, int rank)
{
	const struct trial *t = crew->arg;
	const struct slmpm_network net = made(t);
	const struct slmpm_overlay_options least = {
		.size = sizeof(least), .buffers = 1, .packet = PACKET};
	slmpm_overlay o;

	OK(slmpm_overlay_open(&o, crew->group[0], &net, &least, PATIENCE));
	all_to_all(o, (uint32_t)rank, net.nodes);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	check_routes(o, &net, (uint32_t)rank);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	for (uint32_t round = 0; round < ROUNDS; round++)
		exchange(o, &net, (uint32_t)rank, round);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* Each sends much to those two hops away on either side: without the rule of the channels all
 * buffers of a ring are full of packets that wait for the next one. */
static void around(const struct crew *crew, int rank)
{
	const struct slmpm_network net = made(crew->arg);
	const struct slmpm_overlay_options least = {
		.size = sizeof(least), .buffers = 1, .packet = PACKET};
	const uint32_t own = (uint32_t)rank,
		       far[2] = {(own + 2) % net.nodes, (own + net.nodes - 2) % net.nodes};
	static char text[PACKET * PACKETS], got[PACKET * PACKETS];
	struct slmpm_done done;
	slmpm_overlay o;

	OK(slmpm_overlay_open(&o, crew->group[0], &net, &least, PATIENCE));
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	memset(text, rank + 1, sizeof(text));
	for (int i = 0; i < 2; i++)
		OK(slmpm_overlay_send(o, far[i], 0, text, sizeof(text), NULL, &reqs[i]));
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_overlay_recv(o, far[i], 0, got, sizeof(got), NULL, PATIENCE),
		       sizeof(got));
		CHECK(got[0] == (char)(far[i] + 1) && !memcmp(got, got + 1, sizeof(got) - 1),
		      "from %u: %d", far[i], got[0]);
	}
	for (int i = 0; i < 2; i++)
		EXPECT(slmpm_wait(&reqs[i], 1, &done, PATIENCE), 0);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* Two at a time, of which one is not used until the other has. */
static void two(const struct crew *crew, int rank)
{
	static const struct trial second = {SLMPM_NETWORK_TREE, {0}, 0, 8};
	const struct slmpm_network net = made(crew->arg), tree = made(&second);
	slmpm_overlay a, b;

	OK(slmpm_overlay_open(&a, crew->group[0], &net, NULL, PATIENCE));
	OK(slmpm_overlay_open(&b, crew->group[0], &tree, NULL, PATIENCE));
	REFUSED(slmpm_group_destroy(crew->group[0]), SLMPM_EBUSY, "2 networks");
	for (uint32_t k = 0; k < 3; k++) {
		exchange(a, &net, (uint32_t)rank, k);
		all_to_all(b, (uint32_t)rank, tree.nodes);
		exchange(b, &tree, (uint32_t)rank, k);
		all_to_all(a, (uint32_t)rank, net.nodes);
	}
	OK(slmpm_overlay_close(a, PATIENCE));
	all_to_all(b, (uint32_t)rank, tree.nodes);
	OK(slmpm_overlay_close(b, PATIENCE));
}

static void play(const char *what, crew_body *body, const struct trial *t)
{
	const struct crew crew = {.members = (int)t->nodes, .groups = 1, .body = body, .arg = t};
	int64_t before = actor_now_ms();

	crew_run(&crew, 40);
	printf("%s: %lld ms\n", what, (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	static const struct trial torus = {SLMPM_NETWORK_TORUS, {3, 3, 3}, 7, 27},
				  ring = {SLMPM_NETWORK_TORUS, {4, 1, 1}, 1, 4},
				  five = {SLMPM_NETWORK_TORUS, {5, 1, 1}, 1, 5},
				  mesh = {SLMPM_NETWORK_TORUS, {3, 2, 2}, 0, 12},
				  many = {SLMPM_NETWORK_TORUS, {4, 4, 4}, 7, 64},
				  one = {SLMPM_NETWORK_TORUS, {1, 1, 1}, 0, 1},
				  cube = {SLMPM_NETWORK_TORUS, {2, 2, 2}, 0, 8},
				  tree = {SLMPM_NETWORK_TREE, {0}, 0, 10};

	setenv("SLMPM_WAIT", "block", 1); /* there are more processes than processors */
	play("1 node", use, &one);
	play("a ring of 4", use, &ring);
	play("around a ring of 5", around, &five);
	play("a tree of 10", use, &tree);
	play("a mesh of 3 x 2 x 2", use, &mesh);
	play("two over 8", two, &cube);
	play("a torus of 3 x 3 x 3", use, &torus);
	play("a torus of 4 x 4 x 4", use, &many);
	return 0;
}
