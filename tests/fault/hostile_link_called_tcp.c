/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Lies about links over TCP by who is called there: a door that is none, or where nobody answers,
 * or somebody else does; and by who asks for a link and never calls it. The first link stays, the
 * try ends in bounded time, refused or poisoned by name, and an honest peer of three links works
 * on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_link_trial.h"
#include "tests/lib/raw_net_called.h"
#include "tests/lib/raw_net_trial.h"

#define LINKS    2
#define TOO_LATE "it takes too long"

static const char secret[] = "00112233445566778899aabbccddeeff";
static int door = -1; /* where the offender is called */

/* ---- where nobody answers -------------------------------------------------------------------- */

static void refused_at(uint16_t port, const char *why)
{
	struct raw_net_offer o;
	unsigned life;

	(void)raw_net_tried(&net, 1, &life);
	o = raw_net_to_call(&net, port);
	raw_net_say_offer(&net, 1, life, &o);
	raw_net_refused(&net, 1, life, why);
}

static void nobody_listens(struct raw_peer *p)
{
	uint16_t port;

	(void)p;
	close(raw_net_door(&port, 1));
	refused_at(port, "Connection refused");
	raw_net_go_on(&net);
}

static void nobody_answers(struct raw_peer *p)
{
	uint16_t port;
	int silent = raw_net_door(&port, 1);

	(void)p;
	refused_at(port, TOO_LATE);
	close(silent);
	raw_net_go_on(&net);
}

/* Its calls are not even confirmed. */
static void no_room_at_the_door(struct raw_peer *p)
{
	uint16_t port;
	int full = raw_net_door(&port, 0), first = raw_stream_connect(port);

	(void)p;
	CHECK(first >= 0, "nobody listens");
	refused_at(port, TOO_LATE);
	close(first);
	close(full);
	raw_net_go_on(&net);
}

static void nobody_offers(struct raw_peer *p)
{
	unsigned life;

	(void)p;
	(void)raw_net_tried(&net, 1, &life);
	raw_net_refused(&net, 1, life, TOO_LATE);
	raw_net_go_on(&net);
}

/* Not of this machine, and nobody said that the network may be trusted. */
static void elsewhere(struct raw_peer *p)
{
	static const unsigned char nowhere[4] = {192, 0, 2, 1};
	struct wire_round w;
	unsigned life;

	(void)p;
	(void)raw_net_tried(&net, 1, &life);
	w = raw_net_round(&net, 1, life);
	w.family = LITTLE_16(4);
	memcpy(w.address, nowhere, sizeof(nowhere));
	raw_net_say(&net, &w);
	raw_net_refused(&net, 1, life, "Permission denied");
	raw_net_go_on(&net);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* One try, up to the answer: the call; what is to be said there in TOKEN, and what was last
 * time. */
static int be_called(unsigned *life, unsigned char token[16])
{
	uint16_t port;
	int at = raw_net_door(&port, 1), call;
	struct raw_net_offer theirs = raw_net_tried(&net, 1, life), own;
	struct raw_net_hello hello;

	own = raw_net_to_call(&net, port);
	raw_net_say_offer(&net, 1, *life, &own);
	call = raw_net_take(at);
	close(at);
	hello = raw_net_listen_to(call);
	CHECK(!memcmp(hello.to, own.token, 16) && !memcmp(hello.from, theirs.token, 16),
	      "other tokens");
	memcpy(token, theirs.token, 16);
	return call;
}

static void right_byte_by_byte(struct raw_peer *p)
{
	unsigned char token[16];
	unsigned life;
	int call = be_called(&life, token);

	(void)p;
	CHECK(raw_stream_say_slowly(call, token, 16, 1), "gone");
	raw_net_go_on(&net);
}

static void ends_within(struct raw_peer *p)
{
	unsigned char token[16];
	unsigned life;
	int call = be_called(&life, token);

	(void)p;
	CHECK(raw_stream_say(call, token, 15), "gone");
	close(call);
	raw_net_refused(&net, 1, life, "Connection refused");
	raw_net_go_on(&net);
}

static void silent_within(struct raw_peer *p)
{
	unsigned char token[16];
	unsigned life;
	int call = be_called(&life, token);

	(void)p;
	CHECK(raw_stream_say(call, token, 15), "gone");
	raw_net_refused(&net, 1, life, TOO_LATE);
	close(call);
	raw_net_go_on(&net);
}

static void answer(const unsigned char spoil[16], const unsigned char *instead)
{
	unsigned char token[16];
	unsigned life;
	int call = be_called(&life, token);

	for (int i = 0; i < 16; i++)
		token[i] = (instead ? instead[i] : token[i]) ^ spoil[i];
	(void)raw_stream_say(call, token, 16);
}

static const unsigned char nothing[16];

static void first_byte_wrong(struct raw_peer *p)
{
	(void)p;
	answer((const unsigned char[16]){1}, NULL);
}

static void last_byte_wrong(struct raw_peer *p)
{
	(void)p;
	answer((const unsigned char[16]){[15] = 0x80}, NULL);
}

static void first_links_token(struct raw_peer *p)
{
	(void)p;
	answer(nothing, net.heard.token);
}

static void first_links_own(struct raw_peer *p)
{
	(void)p;
	answer(nothing, net.own.token);
}

/* That of the try before. */
static void stale_token(struct raw_peer *p)
{
	unsigned char token[16];
	unsigned life;
	int call = be_called(&life, token);

	(void)p;
	close(call);
	raw_net_refused(&net, 1, life, "Connection refused");
	answer(nothing, token);
}

/* Nothing is to be said while it calls. */
static void offer_twice(struct raw_peer *p)
{
	unsigned char token[16];
	struct raw_net_offer o = raw_net_to_call(&net, 1);
	unsigned life;

	(void)p;
	(void)be_called(&life, token);
	raw_net_say_offer(&net, 1, life, &o);
}

/* ---- offers ---------------------------------------------------------------------------------- */

static void offer(void (*spoil)(struct raw_net_offer *o, struct wire_round *w))
{
	struct raw_net_offer o;
	struct wire_round w;
	unsigned life;
	uint16_t port;

	close(raw_net_door(&port, 1));
	(void)raw_net_tried(&net, 1, &life);
	w = raw_net_round(&net, 1, life);
	o = raw_net_to_call(&net, port);
	spoil(&o, &w);
	memcpy(w.blob, &o, sizeof(o));
	raw_net_say(&net, &w);
}

RAW_NET_OFFER(old_version, o->version = LITTLE_32(1))
RAW_NET_OFFER(odd_ring, o->segments = LITTLE_32(RAW_NET_SEGMENTS - 1))
RAW_NET_OFFER(no_port, o->port = 0)
RAW_NET_OFFER(no_family, o->family = 0)
RAW_NET_OFFER(odd_family, o->family = 5)
RAW_NET_OFFER(other_side, (o->active = 1, o->port = 0, o->family = 0))
RAW_NET_OFFER(odd_side, (o->active = 2, o->port = 0, o->family = 0))
RAW_NET_OFFER(later_start, o->start = LITTLE_64(64))
RAW_NET_OFFER(half_an_offer, w->blob_length = LITTLE_32(sizeof(*o) / 2))
RAW_NET_OFFER(more_than_an_offer, w->blob_length = LITTLE_32(sizeof(*o) + 8))
RAW_NET_OFFER(later_round, w->round = LITTLE_32(1))

/* clang-format off */
static const struct offence called[] = {
	{"R8", "where nobody listens", nobody_listens, LINK_STILL},
	{"R8", "where nobody answers", nobody_answers, LINK_STILL},
	{"R8", "where there is no room", no_room_at_the_door, LINK_STILL},
	{"R8", "nowhere at all", nobody_offers, LINK_STILL},
	{"R8", "an address elsewhere", elsewhere, LINK_STILL},
	{"R8", "an answer byte by byte", right_byte_by_byte, LINK_STILL},
	{"R8", "an end within the answer", ends_within, LINK_STILL},
	{"R8", "silence within the answer", silent_within, LINK_STILL},
	{"R8", "a wrong token, first byte", first_byte_wrong, LINK_RULE, 0},
	{"R8", "a wrong token, last byte", last_byte_wrong, LINK_RULE, 0},
	{"R8", "the first link's token", first_links_token, LINK_RULE, 0},
	{"R8", "what the first link was called by", first_links_own, LINK_RULE, 0},
	{"R8", "the token of the try before", stale_token, LINK_RULE, 0},
	{"R8", "an offer twice", offer_twice, LINK_RULE, 0},
	{"R5", "an old version", old_version, LINK_RULE, 0},
	{"R5", "a ring of odd size", odd_ring, LINK_RULE, 0},
	{"R5", "no port", no_port, LINK_RULE, 0},
	{"R5", "no family", no_family, LINK_RULE, 0},
	{"R5", "a family that is none", odd_family, LINK_RULE, 0},
	{"R5", "the other side's offer", other_side, LINK_RULE, 0},
	{"R5", "no side's offer", odd_side, LINK_RULE, 0},
	{"R5", "another start", later_start, LINK_RULE, 0},
	{"R5", "half an offer", half_an_offer, LINK_RULE, 0},
	{"R5", "more than an offer", more_than_an_offer, LINK_RULE, 0},
	{"R8", "a later round", later_round, LINK_RULE, 0},
};
/* clang-format on */

/* ---- who never calls ------------------------------------------------------------------------- */

/* Soon behind the refusal. */
static void await_closed(uint16_t port)
{
	int64_t until = actor_now_ms() + PATIENCE;
	int call;

	while ((call = raw_stream_connect(port)) >= 0) {
		CHECK(actor_now_ms() < until, "somebody listens still");
		close(call);
	}
}

static void never_calls(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);

	(void)p;
	raw_net_refused(&net, 1, 0, TOO_LATE);
	await_closed(LITTLE_16(to.port));
	to = raw_net_ask(&net, 1, 1); /* and may ask again */
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

static void calls_and_is_silent(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	int call = raw_stream_connect(LITTLE_16(to.port));
	char end;

	(void)p;
	raw_net_refused(&net, 1, 0, TOO_LATE);
	CHECK(!raw_stream_read(call, &end, 1), "it is still heard");
	close(call);
	raw_net_go_on(&net);
}

/* clang-format off */
static const struct offence calling[] = {
	{"R10", "a link that nobody calls", never_calls, LINK_STILL},
	{"R10", "a call that says nothing", calls_and_is_silent, LINK_STILL},
};
/* clang-format on */

/* ---- how they meet --------------------------------------------------------------------------- */

static void be_connected(struct raw_peer *p, const char *at)
{
	(void)at;
	net_trial_without_rings(p);
	raw_net_called(&net, door, secret, LINKS);
	raw_stream_greeted(&net.control);
	raw_net_called_first(&net);
}

static void come(struct raw_peer *p, const char *at)
{
	net_trial_connect(p, at, LINKS);
	net_trial_greet();
}

static slmpm_peer call(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	char url[80];
	uint16_t port;
	slmpm_peer peer;

	(void)o;
	door = raw_net_door(&port, 1);
	*pid = child_start(body, arg, 30);
	close(door);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u#%s", port, secret);
	OK(slmpm_connect(&peer, v->ctx, url, PATIENCE));
	return peer;
}

int main(void)
{
	static const struct trial at_their_door = {be_connected,    net_trial_hear_end,
						   net_trial_leave, call,
						   link_trial_look, link_trial_see};
	static const struct trial at_ours = {come, net_trial_hear_end, net_trial_leave,
					     NULL, link_trial_look,    link_trial_see};
	char soon[16];
	struct victim v;

	net_trial_needs_tcp();
	snprintf(soon, sizeof(soon), "%d", 700 * actor_slow());
	setenv("SLMPM_HANDSHAKE_MS", soon, 1); /* also of a try */
	link_victim_begin_tcp(&v);
	SURVIVE(&v, &at_their_door, called);
	SURVIVE(&v, &at_ours, calling);
	link_victim_end(&v);
	return 0;
}
