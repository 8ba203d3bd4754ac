/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector, row by row. Every combination of conditions: mode_all.c. */
#include "slmpm/mode/mode.h"

#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/mode_limits.h"

/* ---- rows ----------------------------------------------------------------------------------- */

struct row {
	const char *what;
	struct mode_ask ask;
	struct mode_link link;
	enum mode_force force;
	enum mode_route way;
	enum slmpm_reason reason;
};

#define SEND(...)                                                                                  \
	{                                                                                          \
		.op = MODE_SEND, .size = __VA_ARGS__                                               \
	}
#define PUT(...)                                                                                   \
	{                                                                                          \
		.op = MODE_PUT, .size = __VA_ARGS__                                                \
	}
#define GET(...)                                                                                   \
	{                                                                                          \
		.op = MODE_GET, .size = __VA_ARGS__                                                \
	}
#define ATOMIC(...)                                                                                \
	{                                                                                          \
		.op = MODE_ATOMIC, .size = __VA_ARGS__                                             \
	}
#define HINT(name)   .hint = SLMPM_BY_##name + 1
#define IS(how, why) MODE_##how, SLMPM_REASON_##why

/* clang-format off */
static const struct row rows[] = {
	{ "small message", SEND(8), LINK(P | F), 0, IS(PACKETS, CALL) },
	{ "without another way", SEND(1024 K), LINK(P), 0, IS(PACKETS, CALL) },
	{ "long one, nothing known", SEND(64 K), LINK(P | F), 0, IS(PACKETS, TRIAL) },
	{ "and the other's turn", SEND(64 K), LINK(P | F, .view.trial = true), 0, IS(FETCHED, TRIAL) },
	{ "fetching is faster", SEND(64 K), LINK(P | F, .view.cost = {20, 10}), 0, IS(FETCHED, FASTER) },
	{ "which is asked again", SEND(64 K), LINK(P | F, .view.cost = {20, 10}, .view.trial = true), 0, IS(PACKETS, TRIAL) },
	{ "packets are faster", SEND(64 K), LINK(P | F, .view.cost = {10, 20}), 0, IS(PACKETS, FASTER) },
	{ "which is asked, too", SEND(64 K), LINK(P | F, .view.cost = {10, 20}, .view.trial = true), 0, IS(FETCHED, TRIAL) },
	{ "too short for that", SEND(63 K), LINK(P | F, .view.cost = {20, 10}), 0, IS(PACKETS, CALL) },
	{ "always fetched", SEND(64 K, .always = true), LINK(P | F, .view.cost = {10, 20}), 0, IS(FETCHED, SETTING) },
	{ "who sleeps sends", SEND(64 K, .eager = true), LINK(P | F, .view.sleeps = true, .view.cost = {20, 10}), 0, IS(PACKETS, ABSENT) },
	{ "full ring", SEND(16 K), LINK(P | F, .view.unread = 750), 0, IS(FETCHED, RING) },
	{ "full, and fetching is faster", SEND(16 K), LINK(P | F, .view.unread = 750, .view.cost = {20, 10}), 0, IS(FETCHED, RING) },
	{ "full, and packets are", SEND(16 K), LINK(P | F, .view.unread = 750, .view.cost = {10, 20}), 0, IS(PACKETS, FASTER) },
	{ "which is asked, too", SEND(16 K), LINK(P | F, .view.unread = 750, .view.cost = {10, 20}, .view.trial = true), 0, IS(FETCHED, TRIAL) },
	{ "or the other way round", SEND(16 K), LINK(P | F, .view.unread = 750, .view.cost = {20, 10}, .view.trial = true), 0, IS(PACKETS, TRIAL) },
	{ "not quite full", SEND(16 K), LINK(P | F, .view.unread = 749), 0, IS(PACKETS, CALL) },
	{ "too short to leave it", SEND(16 K - 1), LINK(P | F, .view.unread = 750), 0, IS(PACKETS, CALL) },
	{ "long queue", SEND(16 K), LINK(P | F, .view.queue = 17), 0, IS(FETCHED, QUEUE) },
	{ "not quite long", SEND(16 K), LINK(P | F, .view.queue = 16), 0, IS(PACKETS, CALL) },
	{ "hint for SMT", SEND(64 K, HINT(SMT)), LINK(P | F, .view.cost = {20, 10}), 0, IS(PACKETS, HINT) },
	{ "overruled by the ring", SEND(64 K, HINT(SMT)), LINK(P | F, .view.unread = 1000), 0, IS(FETCHED, RING) },
	{ "but not a strict one", SEND(64 K, HINT(SMT), .strict = true), LINK(P | F, .view.unread = 1000, .view.queue = 99), 0, IS(PACKETS, STRICT) },
	{ "nor the call's own", SEND(64 K, .strict = true), LINK(P | F, .view.unread = 1000, .view.cost = {20, 10}), 0, IS(PACKETS, STRICT) },
	{ "hint for RGET", SEND(8, HINT(RGET)), LINK(P | F), 0, IS(FETCHED, HINT) },
	{ "engine busy, ring light", SEND(8, HINT(RGET)), LINK(P | F, .view.dma = 9, .view.unread = 250), 0, IS(PACKETS, QUEUE) },
	{ "engine busy, ring not", SEND(8, HINT(RGET)), LINK(P | F, .view.dma = 9, .view.unread = 260), 0, IS(FETCHED, HINT) },
	{ "strict RGET", SEND(8, HINT(RGET), .strict = true, .eager = true), LINK(P | F, .view.dma = 9, .view.sleeps = true), 0, IS(FETCHED, STRICT) },
	{ "RGET there is not", SEND(8, HINT(RGET)), LINK(P), 0, IS(PACKETS, ONLY) },
	{ "strictly not", SEND(8, HINT(RGET), .strict = true), LINK(P), 0, IS(NONE, STRICT) },
	{ "a message is not put", SEND(8, HINT(PUT)), LINK(P | F), 0, IS(PACKETS, CALL) },
	{ "strictly neither", SEND(8, HINT(PUT), .strict = true), LINK(P | F), 0, IS(NONE, STRICT) },
	{ "all by DMA", SEND(64 K), LINK(P | F, .view.cost = {10, 20}), MODE_DMA, IS(FETCHED, SETTING) },
	{ "all by SMT", SEND(64 K), LINK(P | F, .view.cost = {20, 10}, .view.unread = 1000), MODE_SMT, IS(PACKETS, SETTING) },
	{ "all by SMT, but for a hint", SEND(64 K, HINT(RGET)), LINK(P | F), MODE_SMT, IS(FETCHED, HINT) },

	{ "put", PUT(8), LINK(C | R), 0, IS(COPY, CALL) },
	{ "out of reach", PUT(8), LINK(R), 0, IS(REQUEST, ONLY) },
	{ "behind what is not done", PUT(8), LINK(C | R, .view.behind = true), 0, IS(REQUEST, ORDER) },
	{ "by the engine", PUT(64 K), LINK(C | E | R), 0, IS(ENGINE, SIZE) },
	{ "not if the call waits", PUT(64 K, .waits = true), LINK(C | E | R), 0, IS(COPY, CALL) },
	{ "nor if it is short", PUT(64 K - 1), LINK(C | E | R), 0, IS(COPY, CALL) },
	{ "of any length, if it is meant", PUT(8, HINT(PUT)), LINK(C | E | R), 0, IS(ENGINE, HINT) },
	{ "but not by who waits", PUT(8, HINT(PUT), .waits = true), LINK(C | E | R), 0, IS(COPY, HINT) },
	{ "nor without a hint", PUT(8), LINK(C | E | R), 0, IS(COPY, CALL) },
	{ "nor for the ring", PUT(8, HINT(REQUEST)), LINK(C | E | R, .view.unread = 800), 0, IS(COPY, RING) },
	{ "by a setting", PUT(8), LINK(C | E | R), MODE_DMA, IS(ENGINE, SETTING) },
	{ "engine busy, ring light", PUT(64 K), LINK(C | E | R, .view.dma = 9), 0, IS(REQUEST, QUEUE) },
	{ "also a get", GET(64 K), LINK(C | E | R, .view.dma = 9), 0, IS(REQUEST, QUEUE) },
	{ "not quite busy", PUT(64 K), LINK(C | E | R, .view.dma = 8), 0, IS(ENGINE, SIZE) },
	{ "ring not light", PUT(64 K), LINK(C | E | R, .view.dma = 9, .view.unread = 260), 0, IS(ENGINE, SIZE) },
	{ "too long for the ring", PUT(1024 K + 1), LINK(C | E | R, .view.dma = 9), 0, IS(ENGINE, SIZE) },
	{ "strict", PUT(64 K, .strict = true), LINK(C | E | R, .view.dma = 9), 0, IS(ENGINE, STRICT) },
	{ "strict, and behind", PUT(64 K, .strict = true), LINK(C | E | R, .view.behind = true), 0, IS(NONE, ORDER) },
	{ "shared is faster", PUT(64 K, .waits = true), LINK(C | S | R, .view.cost = {20, 10}), 0, IS(SHARED, FASTER) },
	{ "copying is", PUT(64 K, .waits = true), LINK(C | S | R, .view.cost = {10, 20}), 0, IS(COPY, FASTER) },
	{ "trial", PUT(64 K, .waits = true), LINK(C | S | R, .view.cost = {10, 20}, .view.trial = true), 0, IS(SHARED, TRIAL) },
	{ "always shared", PUT(64 K, .waits = true, .always = true), LINK(C | S | R, .view.cost = {10, 20}), 0, IS(SHARED, SETTING) },
	{ "by the peer's engine", PUT(128 K, .waits = true), LINK(C | A | R), 0, IS(ASKED, ENGINE) },
	{ "also a get", GET(128 K), LINK(C | A | R), 0, IS(ASKED, ENGINE) },
	{ "not if it is short", PUT(128 K - 1), LINK(C | A | R), 0, IS(COPY, CALL) },
	{ "but if it is hinted for", PUT(64 K, HINT(PUT)), LINK(C | A | R), 0, IS(ASKED, ENGINE) },
	{ "or all are", PUT(64 K), LINK(C | A | R), MODE_DMA, IS(ASKED, SETTING) },
	{ "before it is shared", PUT(128 K), LINK(C | A | S | R, .view.cost = {20, 10}), 0, IS(ASKED, ENGINE) },
	{ "which does not reach it", PUT(128 K, .beyond = true), LINK(C | R), 0, IS(COPY, UNREACHABLE) },
	{ "and need not", PUT(128 K - 1, .beyond = true), LINK(C | R), 0, IS(COPY, CALL) },
	{ "put by SMT", PUT(64 K, HINT(SMT)), LINK(C | E | R), 0, IS(REQUEST, HINT) },
	{ "ring full", PUT(64 K, HINT(SMT), .waits = true), LINK(C | E | R, .view.unread = 800), 0, IS(COPY, RING) },
	{ "and with an engine", PUT(64 K, HINT(SMT)), LINK(C | E | R, .view.unread = 800), 0, IS(ENGINE, RING) },
	{ "queue long", PUT(8, HINT(REQUEST)), LINK(C | E | R, .view.queue = 17), 0, IS(COPY, QUEUE) },
	{ "strict SMT", PUT(8, HINT(SMT), .strict = true), LINK(C | E | R, .view.queue = 17, .view.unread = 1000), 0, IS(REQUEST, STRICT) },
	{ "a put is not fetched", PUT(8, HINT(RGET)), LINK(C | R), 0, IS(COPY, CALL) },
	{ "all by SMT", PUT(8), LINK(C | R, .view.unread = 1000), MODE_SMT, IS(REQUEST, SETTING) },
	{ "all by DMA", PUT(64 K), LINK(C | E | R, .view.dma = 9), MODE_DMA, IS(ENGINE, SETTING) },
	{ "all by DMA, out of reach", PUT(8), LINK(R), MODE_DMA, IS(REQUEST, ONLY) },
	{ "get", GET(8), LINK(C | R), 0, IS(COPY, CALL) },
	{ "atomic", ATOMIC(8), LINK(C | R), 0, IS(COPY, CALL) },
	{ "atomic by request", ATOMIC(8, HINT(REQUEST)), LINK(C | R), 0, IS(REQUEST, HINT) },
	{ "atomic, ring full", ATOMIC(8, HINT(REQUEST)), LINK(C | R, .view.unread = 1000), 0, IS(COPY, RING) },
	{ "other byte order", ATOMIC(8), LINK(R), 0, IS(REQUEST, ONLY) },
};
/* clang-format on */

static void look_at_rows(void)
{
	for (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(*rows); r++) {
		struct mode_limits l = limits;
		struct mode mode;

		l.force = r->force;
		mode = mode_select(&r->ask, &r->link, 1, 0, &l);
		CHECK(mode.way == r->way && mode.reason == r->reason, "%s: way %d for \"%s\"",
		      r->what, mode.way, slmpm_reason_name(mode.reason));
	}
}

/* ---- links ---------------------------------------------------------------------------------- */

/* Whose queue and ring are over their thresholds leaves any link where these are the user's. */
static void look_at_both(void)
{
	struct mode_link links[2] = {LINK(C | E | R, .view.dma = 9, .view.unread = 800),
				     LINK(R, .view.dma = 9)};
	struct mode_limits own = limits;
	struct mode_ask put = PUT(64 K), send = SEND(64 K);
	struct mode mode = mode_select(&put, links, 2, 0, &limits);

	own.own_ring = own.own_queue = own.own_dma = true;
	CHECK(mode.link == 0 && mode.way == MODE_ENGINE, "by default nothing leaves");
	mode = mode_select(&put, links, 2, 0, &own);
	CHECK(mode.link == 1 && mode.way == MODE_REQUEST && mode.reason == SLMPM_REASON_BOTH,
	      "a put: link %d, %s", mode.link, slmpm_reason_name(mode.reason));
	links[0].view.echo = 200;
	links[1].view.echo = 100;
	mode = mode_select(&put, links, 2, 0, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_BOTH, "the other one is cheaper");
	links[1].view.echo = 300;
	mode = mode_select(&put, links, 2, 0, &limits);
	CHECK(mode.link == 0, "it is dearer");
	own.leave = MODE_STAY;
	CHECK(mode_select(&put, links, 2, 0, &own).link == 0, "none is to be left");
	own.leave = MODE_LEAVE_WIRE;
	put.waits = true;
	CHECK(mode_select(&put, links, 2, 0, &own).way == MODE_COPY, "who waits needs no engine");
	put.waits = false;
	put.strict = true;
	CHECK(mode_select(&put, links, 2, 0, &own).link == 0, "strict");
	put.strict = false;
	links[0].view.unread = 250;
	mode = mode_select(&put, links, 2, 0, &own);
	CHECK(mode.link == 0 && mode.way == MODE_REQUEST && mode.reason == SLMPM_REASON_QUEUE,
	      "the ring is light");
	links[1].view.unread = links[0].view.unread = 800;
	CHECK(mode_select(&put, links, 2, 0, &own).link == 0, "the other one is full, too");
	links[1].view.unread = 0;
	links[0].ways = links[1].ways = P;
	mode = mode_select(&send, links, 2, 0, &own);
	CHECK(mode.link == 0, "a message whose queue is short");
	links[0].view.queue = 17;
	mode = mode_select(&send, links, 2, 0, &own);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_BOTH, "a message");
	CHECK(mode_select(&send, links, 2, 0, &limits).link == 0, "nor that by default");
}

/* The user's default link, over a network: a full ring and a long queue are no reason to leave it
 * but by thresholds of the user's own, and not while all in the ring may be read already. */
static void look_at_default(void)
{
	struct mode_link links[2] = {LINK(C), LINK(R, .wire = true, .view.unread = 800)};
	struct mode_limits own = limits;
	struct mode_ask put = PUT(4 K);

	CHECK(mode_select(&put, links, 2, 1, &limits).link == 0, "nobody's default");
	put.set = true;
	CHECK(mode_select(&put, links, 2, 1, &limits).link == 1, "the user's");
	links[0].view.echo = 100;
	links[1].view.echo = 200;
	links[1].view.queue = 17;
	CHECK(mode_select(&put, links, 2, 1, &limits).link == 1, "the other one is cheaper");
	own.own_ring = true;
	CHECK(mode_select(&put, links, 2, 1, &own).link == 0, "a threshold of the ring");
	own.unpublished = 80;
	CHECK(mode_select(&put, links, 2, 1, &own).link == 1, "it may have been read");
	own.own_queue = true;
	CHECK(mode_select(&put, links, 2, 1, &own).link == 0, "a threshold of the queue");
	own.leave = MODE_STAY;
	CHECK(mode_select(&put, links, 2, 1, &own).link == 1, "none is to be left");
	own = limits;
	own.leave = MODE_LEAVE;
	CHECK(mode_select(&put, links, 2, 1, &own).link == 0, "any is to be left");
	links[1].up = false;
	CHECK(mode_select(&put, links, 2, 1, &limits).link == 0, "lost");
}

/* A fabric that others load is left for a link of one's own that has less to do, or only seems to
 * be full. */
static void look_at_crowds(void)
{
	struct mode_link links[2] = {LINK(P), LINK(P)};
	struct mode_limits own = limits;
	struct mode_ask ask = SEND(64 K);
	struct mode mode;

	own.ring = 45;
	own.unpublished = 57;
	links[0].view.all.known = links[1].view.all.known = true;
	links[0].view.all.overloaded = true;
	mode = mode_select(&ask, links, 2, 0, &own);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_AGGREGATE, "not free again yet");
	links[1].view.unread = 570;
	mode = mode_select(&ask, links, 2, 0, &own);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_AGGREGATE, "it may have been read");
	links[1].view.unread = 571;
	CHECK(mode_select(&ask, links, 2, 0, &own).link == 0, "it is full");
	links[1].view.unread = 500;
	links[1].view.queue = 17;
	CHECK(mode_select(&ask, links, 2, 0, &own).link == 0, "its queue is long");
	links[1].view.queue = 0;
	links[1].view.all.overloaded = true;
	CHECK(mode_select(&ask, links, 2, 0, &own).link == 0, "others load both");
	links[0].view.all.overloaded = false;
	mode = mode_select(&ask, links, 2, 0, &own);
	CHECK(mode.link == 0 && mode.reason == SLMPM_REASON_CALL, "it is free");
	own.leave = MODE_STAY;
	links[0].view.all.overloaded = true;
	links[1].view.all.overloaded = false;
	CHECK(mode_select(&ask, links, 2, 0, &own).link == 0, "none is to be left");
}

/* What others see decides as if it were seen here, and says so. */
static void look_at_all_instances(void)
{
	struct mode_link links[3] = {LINK(P), LINK(P), LINK(P)};
	struct mode_limits stay = limits;
	struct mode_ask ask = SEND(64 K);
	struct mode mode;

	for (int i = 0; i < 3; i++)
		links[i].view.all.known = true;
	mode = mode_select(&ask, links, 3, 0, &limits);
	CHECK(mode.link == 0 && mode.reason == SLMPM_REASON_CALL, "nobody does anything");
	links[0].view.all.queue = 17;
	mode = mode_select(&ask, links, 3, 0, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_AGGREGATE, "queues of others");
	links[1].view.all.echo = 20;
	links[2].view.all.echo = 10;
	mode = mode_select(&ask, links, 3, 0, &limits);
	CHECK(mode.link == 2 && mode.reason == SLMPM_REASON_AGGREGATE, "the shorter way");
	links[2].view.all.permille = 750;
	CHECK(mode_select(&ask, links, 3, 0, &limits).link == 1, "its rings are full");
	stay.leave = MODE_STAY;
	CHECK(mode_select(&ask, links, 3, 0, &stay).link == 0, "never");
	look_at_crowds();
	links[0].ways |= F;
	ask.size = 32 K;
	mode = mode_select(&ask, links, 1, 0, &limits);
	CHECK(mode.way == MODE_FETCHED && mode.reason == SLMPM_REASON_AGGREGATE, "past the ring");
	links[0].view.all.queue = 0;
	links[0].view.all.cost[0] = 20;
	links[0].view.all.cost[1] = 10;
	ask.size = 64 K;
	mode = mode_select(&ask, links, 1, 0, &limits);
	CHECK(mode.way == MODE_FETCHED && mode.reason == SLMPM_REASON_AGGREGATE, "what it takes");
}

static void inspect_links(void)
{
	struct mode_link links[3] = {LINK(P), LINK(P), LINK(P)};
	struct mode_limits other = limits;
	struct mode_ask ask = SEND(8);
	struct mode mode = mode_select(&ask, links, 3, 1, &limits);

	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_CALL, "the default link");
	links[1].view.unread = 900;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_CALL, "it is the reader that is late");
	other.leave = MODE_LEAVE;
	mode = mode_select(&ask, links, 3, 1, &other);
	CHECK(mode.link == 0 && mode.reason == SLMPM_REASON_LINK, "all the same, if told to");
	links[1].wire = true;
	other.leave = MODE_STAY;
	mode = mode_select(&ask, links, 3, 1, &other);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_CALL, "or never");
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 0 && mode.reason == SLMPM_REASON_LINK, "one that has less to do");
	links[0].view.queue = 17;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 2 && mode.way == MODE_PACKETS, "the next");
	links[2].up = false;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_CALL, "nobody has");
	links[1].ways |= F;
	ask.size = 64 K;
	links[0].view.queue = 0;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_RING,
	      "it leaves the ring, not the link");
	ask.strict = true;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 1 && mode.reason == SLMPM_REASON_STRICT, "strict");
	links[1].up = false;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.way == MODE_NONE, "strict on a link that is down");
	ask.strict = false;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.link == 0 && mode.reason == SLMPM_REASON_LINK, "a link that is down");
	links[0].up = false;
	mode = mode_select(&ask, links, 3, 1, &limits);
	CHECK(mode.way == MODE_NONE, "all are down");
}

static void inspect_paths(void)
{
	CHECK(mode_path(0, -1) == -1 && mode_path(0, 2) == -1, "none is up");
	CHECK(mode_path(6, -1) == 1 && mode_path(15, -1) == 0, "the first");
	CHECK(mode_path(6, 2) == 2 && mode_path(6, 0) == -1, "the wanted one, or none");
}

static void look_at_forms(void)
{
	CHECK(mode_reaches(MODE_RMA_AUTO) && !mode_reaches(MODE_RMA_RING) &&
		      !mode_reaches(MODE_RMA_TAG),
	      "reach");
	CHECK(mode_form(MODE_RMA_AUTO, true, true) == MODE_RMA_RING, "by default");
	CHECK(mode_form(MODE_RMA_AUTO, true, false) == MODE_RMA_AM, "where the fabric has none");
	CHECK(mode_form(MODE_RMA_RING, true, false) == MODE_RMA_RING, "the setting prevails");
	CHECK(mode_form(MODE_RMA_AM, true, true) == MODE_RMA_AM, "by active messages");
	CHECK(mode_form(MODE_RMA_TAG, true, false) == MODE_RMA_TAG, "by tag");
	CHECK(mode_form(MODE_RMA_TAG, false, true) == MODE_RMA_RING,
	      "which the peer does not know");
	CHECK(mode_form(MODE_RMA_AUTO, false, false) == MODE_RMA_RING, "nor by default");
}

/* ---- fabrics -------------------------------------------------------------------------------- */

static void look_at_fabrics(void)
{
	CHECK(!strcmp(mode_fabric(MODE_HERE, NULL, "shm"), "shm"), "as the setting says");
	CHECK(!strcmp(mode_fabric(MODE_HERE, NULL, "tcp"), "tcp"), "this one, too");
	CHECK(!strcmp(mode_fabric(MODE_THERE, NULL, "shm"), "tcp"), "nothing else goes there");
	CHECK(!strcmp(mode_fabric(MODE_THERE, "ofi", "shm"), "ofi"), "but what was told");
	CHECK(mode_comes_near("shm") && !mode_comes_near("tcp"), "near");
}

int main(void)
{
	look_at_rows();
	look_at_both();
	look_at_default();
	look_at_all_instances();
	inspect_links();
	inspect_paths();
	look_at_forms();
	look_at_fabrics();
	for (int i = 0; i < SLMPM_REASONS; i++)
		CHECK(slmpm_reason_name(i) && strlen(slmpm_reason_name(i)) < 12, "reason %d", i);
	CHECK(!slmpm_reason_name(-1) && !slmpm_reason_name(SLMPM_REASONS), "no reason");
	return 0;
}
