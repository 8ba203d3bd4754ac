/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A node that breaks the rules of a network: each impossible packet ends its connection, and the
 * network at all nodes, which learn by whom; what is out of place is dropped.
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/overlay/overlay.h"
#include "tests/lib/child.h"
#include "tests/lib/crew.h"
#include "tests/unit/paired.h"

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

/* A line: 0 - 1 - 2. */
#define LIAR    0
#define HONEST  1
#define BEHIND  2
#define SIZE    3
#define BUFFERS 2
#define PACKET  64
#define LONGEST 1000

static uint32_t number; /* of the last network */

static slmpm_overlay laid(const struct crew *c)
{
	const struct slmpm_overlay_options options = {.size = sizeof(options),
						      .buffers = BUFFERS,
						      .packet = PACKET,
						      .message_max = LONGEST,
						      .unread_max = 1};
	const uint32_t extent[3] = {SIZE, 1, 1};
	struct slmpm_network net = {.size = sizeof(net)};
	slmpm_overlay o;

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, SIZE, extent, 0));
	OK(slmpm_overlay_open(&o, c->group[0], &net, &options, PATIENCE));
	number++;
	return o;
}

/* False: the connection has ended. */
static bool post(const struct crew *c, struct endpoint *ep, const void *head, size_t head_len,
		 const void *data, size_t len)
{
	int rc = -1;

	for (int i = 0; i < 1000 && rc != 1 && ep->state == SLMPM_PEER_UP; i++) {
		rc = am_post(ep, 0, wire_route(am_stream(OVERLAY_ID, head_len), 0),
			     WIRE_FLAG_ACTIVE | WIRE_FLAG_UNCHARGED, head, (uint32_t)head_len, data,
			     (uint32_t)len);
		(void)slmpm_progress(c->ctx);
	}
	return rc == 1;
}

/* ---- what it sends --------------------------------------------------------------------------- */

struct bad {
	const char *name;
	struct overlay_head head[4]; /* one after the other; number: to be added */
	uint32_t len[4];             /* of data */
	int count;
	int head_more; /* bytes */
};

static unsigned char data[2 * PACKET];

#define HEAD(k, ...)                                                                               \
	{                                                                                          \
		.kind = OVERLAY_##k, __VA_ARGS__                                                   \
	}
/* Of 10 bytes to the neighbour; what follows changes it. */
#define MESSAGE(...) HEAD(MESSAGE, .source = LIAR, .target = HONEST, .total = 10, __VA_ARGS__)
#define PART(...)                                                                                  \
	HEAD(MESSAGE, .source = LIAR, .target = HONEST, .total = 2 * PACKET, .stream = 0,          \
	     __VA_ARGS__)
#define EXCHANGED HEAD(EXCHANGE, .source = LIAR, .target = HONEST, .total = 10)
#define ONE(what, bytes)                                                                           \
	{                                                                                          \
#what, {what }, {bytes }, 1, 0                                                     \
	}
#define TWO(first, n, second, m)                                                                   \
	{                                                                                          \
#second, {first, second }, {n, m }, 2, 0                                           \
	}

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

static const struct bad bads[] = {
	{"a short head", {MESSAGE(.stream = 1)}, {10}, 1, -1},
	{"a long head", {MESSAGE(.stream = 1)}, {10}, 1, 8},
	ONE(MESSAGE(.number = SLMPM_OVERLAY_MAX), 10), /* more than there can be */
	ONE(MESSAGE(.number = 1), 10),                 /* it has not been laid */
	ONE(MESSAGE(.kind = 0), 10),
	ONE(MESSAGE(.kind = OVERLAY_KINDS), 10),
	ONE(MESSAGE(.kind = 255), 10),
	ONE(MESSAGE(.channel = 1), 10),
	ONE(MESSAGE(.channel = 2), 10),
	ONE(MESSAGE(.channel = 255), 10),
	ONE(MESSAGE(.zero = 1), 10),
	/* routes */
	ONE(MESSAGE(.source = HONEST), 10),
	ONE(MESSAGE(.source = BEHIND), 10),
	ONE(MESSAGE(.source = SIZE), 10),
	ONE(MESSAGE(.source = UINT32_MAX), 10),
	ONE(MESSAGE(.target = LIAR), 10),
	ONE(MESSAGE(.target = SIZE), 10),
	ONE(MESSAGE(.target = UINT32_MAX), 10),
	ONE(MESSAGE(.kind = OVERLAY_EXCHANGE, .target = BEHIND), 10),
	ONE(MESSAGE(.kind = OVERLAY_EXCHANGE, .source = BEHIND), 10),
	/* lengths */
	ONE(MESSAGE(.total = 11), 10),
	ONE(MESSAGE(.total = 9), 10),
	ONE(MESSAGE(.total = 0), 10),
	ONE(MESSAGE(.target = BEHIND, .total = 11), 10),
	ONE(MESSAGE(.total = LONGEST + 1), PACKET),
	ONE(MESSAGE(.total = UINT64_MAX), PACKET),
	ONE(MESSAGE(.total = PACKET + 1), PACKET + 1),
	ONE(MESSAGE(.offset = 10), 0),
	ONE(MESSAGE(.offset = 11), 10),
	ONE(MESSAGE(.offset = UINT64_MAX), 11),
	/* order */
	ONE(PART(.offset = PACKET), PACKET),
	TWO(PART(.offset = 0), PACKET, PART(.offset = 0), PACKET),
	TWO(PART(.offset = 0), PACKET, PART(.offset = PACKET, .stream = 1), PACKET),
	TWO(PART(.offset = 0), PACKET, PART(.offset = PACKET, .total = 2 * PACKET - 1), PACKET - 1),
	TWO(PART(.offset = 0), PACKET, PART(.offset = PACKET, .kind = OVERLAY_EXCHANGE), PACKET),
	{"three exchanges", {EXCHANGED, EXCHANGED, EXCHANGED}, {10, 10, 10}, 3, 0},
	/* the first is taken, the next two are kept */
	{"beyond credit",
	 {MESSAGE(.stream = 1), MESSAGE(.stream = 1), MESSAGE(.stream = 1), MESSAGE(.stream = 1)},
	 {10, 10, 10, 10},
	 4,
	 0},
	/* words */
	ONE(HEAD(CREDIT, .count = 0), 0),
	ONE(HEAD(CREDIT, .count = 1), 0),
	ONE(HEAD(CREDIT, .count = UINT32_MAX), 0),
	ONE(HEAD(CREDIT, .count = 1, .channel = 1), 0),
	ONE(HEAD(BREAK, .count = 0), 0),
	ONE(HEAD(BREAK, .count = WIRE_ERROR_LAST + 1), 0),
	ONE(HEAD(BREAK, .count = 1, .source = SIZE), 0),
	ONE(HEAD(BREAK, .count = 1, .source = HONEST), 1),
	ONE(HEAD(CAME, .source = 0), 0), /* no node is behind it */
	ONE(HEAD(OVER, .source = 0), 0), /* not all have come */
	ONE(HEAD(HELLO, .source = 0), sizeof(struct overlay_hello)),
	ONE(HEAD(HELLO, .number = 1), sizeof(struct overlay_hello) - 1),
	TWO(HEAD(HELLO, .number = 2), sizeof(struct overlay_hello), HEAD(HELLO, .number = 2),
	    sizeof(struct overlay_hello)),
	ONE(HEAD(BREAK, .number = 3, .count = 1), 0),
};

/* Its own library does not know of it: the credit that comes back is to be none too much. */
static void takes_room(const struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct edge, e, &ep->rooms->overlays->edges, of_peer)
		if (e->net->number == number)
			e->channel[0].room -= e->channel[0].room > 0;
}

static void lie(const struct crew *c, const struct bad *b)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	struct endpoint *ep = link_with(c, HONEST);

	for (int i = 0; i < b->count; i++) {
		struct {
			struct overlay_head head;
			uint64_t more;
		} h = {.head = b->head[i]};

		h.head.number += number;
		takes_room(ep);
		if (!post(c, ep, &h, (size_t)((int)sizeof(h.head) + b->head_more), data, b->len[i]))
			break;
	}
	while (ep->state == SLMPM_PEER_UP && actor_now_ms() < end)
		(void)slmpm_progress(c->ctx);
	CHECK(ep->state != SLMPM_PEER_UP, "%s is taken", b->name);
}

/* No call receives meanwhile. */
static struct slmpm_overlay_info broken(const struct crew *c, slmpm_overlay o)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_overlay_info info = {.size = sizeof(info)};

	do
		OK(slmpm_overlay_query(o, &info));
	while (!info.status && actor_now_ms() < end && slmpm_progress(c->ctx) >= 0);
	return info;
}

static void impossible(const struct crew *c, int rank)
{
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		slmpm_overlay o = laid(c);

		OK(slmpm_barrier(c->group[0], PATIENCE));
		if (rank == LIAR) {
			lie(c, &bads[i]);
		} else {
			struct slmpm_overlay_info info = broken(c, o);

			CHECK(info.status == -SLMPM_EPROTO && info.culprit == LIAR,
			      "%s: %d, by rank %d", bads[i].name, info.status, info.culprit);
		}
		OK(slmpm_overlay_close(o, PATIENCE));
		OK(slmpm_barrier(c->group[0], PATIENCE));
	}
}

/* ---- what is dropped, or believed ------------------------------------------------------------ */

static void believed(const struct crew *c, int rank)
{
	const struct overlay_head old[] = {MESSAGE(.stream = 1), HEAD(CREDIT, .count = 7),
					   HEAD(OVER, .count = 0), HEAD(BREAK, .count = 9)};
	struct overlay_head h = HEAD(BREAK, .count = wire_error(-SLMPM_EDEAD), .source = BEHIND);
	struct slmpm_overlay_info info;
	slmpm_overlay o = laid(c);
	char byte = 1;

	OK(slmpm_overlay_close(o, PATIENCE));
	o = laid(c);
	if (rank == LIAR) { /* of the network that has been closed */
		struct endpoint *ep = link_with(c, HONEST);

		for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
			struct overlay_head then = old[i];

			then.number = number - 1;
			CHECK(post(c, ep, &then, sizeof(then), data, i ? 0 : 10), "it has ended");
		}
		OK(slmpm_overlay_send(o, BEHIND, 3, &byte, 1, NULL, NULL));
	}
	if (rank == BEHIND)
		EXPECT(slmpm_overlay_recv(o, LIAR, 3, &byte, 1, NULL, PATIENCE), 1);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	h.number = number;
	if (rank == LIAR) {
		CHECK(post(c, link_with(c, HONEST), &h, sizeof(h), NULL, 0), "it has ended");
	} else {
		info = broken(c, o);
		CHECK(info.status == -SLMPM_EDEAD && info.culprit == BEHIND, "%d, by rank %d",
		      info.status, info.culprit);
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void body(const struct crew *c, int rank)
{
	number = 0;
	impossible(c, rank);
	believed(c, rank);
}

int main(void)
{
	const struct crew c = {.members = SIZE, .groups = 1, .body = body};

	if (!sockets_have_cookies())
		test_skip("sockets have no cookies here");
	crew_run(&c, 50);
	return 0;
}
