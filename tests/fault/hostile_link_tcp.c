/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Lies about links over TCP by who joins them: a wrong token, another pair's, one that is used
 * twice, who calls and is nobody, who never calls, a number that is in use; with the control
 * connection and without it. Refused or poisoned by name and counted, while an honest peer of three
 * links works on.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_link_trial.h"
#include "tests/lib/raw_net_trial.h"

#define LINKS  3
#define STORM  100
#define SILENT 12 /* more than are listened to, less than may wait to be accepted */
#define PAUSE  50 /* ms: so many tries of an honest peer lie in that */

static struct raw_net other; /* a second pair */

static void ended(int call)
{
	CHECK(call >= 0, "nobody listens");
	CHECK(!raw_net_answered(&net, call), "it was let in");
	close(call);
}

static void change(unsigned char to[16], const unsigned char token[16])
{
	memcpy(to, token, 16);
	to[15] ^= 1;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Who has the right one still comes in. */
static void wrong_token(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	unsigned char wrong[16];

	(void)p;
	change(wrong, to.token);
	ended(raw_net_call(&to, wrong, net.own.token));
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

static void own_token_wrong(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	unsigned char wrong[16];

	(void)p;
	change(wrong, net.own.token);
	(void)raw_net_call(&to, to.token, wrong);
}

static void first_links_token(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);

	(void)p;
	ended(raw_net_call(&to, net.heard.token, net.own.token));
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

static void another_pairs(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0), theirs = raw_net_ask(&other, 1, 0);

	(void)p;
	ended(raw_net_call(&to, theirs.token, net.own.token));
	ended(raw_net_call(&theirs, to.token, net.own.token));
	(void)raw_net_join(&net, &to);
	(void)raw_net_join(&other, &theirs);
	raw_net_go_on(&net);
}

static void token_twice(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	int first = raw_net_call(&to, to.token, net.own.token),
	    second = raw_net_call(&to, to.token, net.own.token);
	int in = raw_net_answered(&net, first);

	(void)p;
	in += second >= 0 && raw_net_answered(&net, second);
	CHECK(in == 1, "%d of two were let in", in);
	CHECK(raw_stream_connect(LITTLE_16(to.port)) < 0, "somebody listens still");
	raw_net_go_on(&net);
}

static void nobody(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	int call = raw_stream_connect(LITTLE_16(to.port));

	(void)p;
	(void)raw_stream_say(call, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nabcdef", 40);
	ended(call);
	for (int i = 0; i < SILENT; i++) /* and says nothing */
		CHECK(raw_stream_connect(LITTLE_16(to.port)) >= 0, "nobody listens");
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

/* ---- offers ---------------------------------------------------------------------------------- */

static void offer(void (*spoil)(struct raw_net_offer *o, struct wire_round *w))
{
	struct wire_round w = raw_net_round(&net, 1, 0);
	struct raw_net_offer o = net.own;

	spoil(&o, &w);
	memcpy(w.blob, &o, sizeof(o));
	raw_net_say(&net, &w);
}

RAW_NET_OFFER(old_version, o->version = LITTLE_32(1))
RAW_NET_OFFER(odd_ring, o->segments = LITTLE_32(RAW_NET_SEGMENTS - 1))
RAW_NET_OFFER(with_a_port, o->port = LITTLE_16(80))
RAW_NET_OFFER(other_side, (o->active = 0, o->port = LITTLE_16(80), o->family = 4))
RAW_NET_OFFER(later_start, o->start = LITTLE_64(64))
RAW_NET_OFFER(half_an_offer, w->blob_length = LITTLE_32(sizeof(*o) / 2))

/* ---- numbers --------------------------------------------------------------------------------- */

/* Who begins it again has lost it: so it is here. */
static void link_in_use(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	struct wire_round w = raw_net_round(&net, 1, 1);

	(void)p;
	(void)raw_net_join(&net, &to);
	raw_net_say(&net, &w);
	w = raw_net_hear(&net);
	CHECK(!w.round || strstr((const char *)w.blob, "still being read"), "round %u: %.100s",
	      LITTLE_32(w.round), (const char *)w.blob);
	raw_net_go_on(&net);
}

static void life_in_use(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);
	struct wire_round w = raw_net_round(&net, 1, 0);

	(void)p;
	(void)raw_net_join(&net, &to);
	raw_net_say(&net, &w);
	raw_net_refused(&net, 1, 0, "its time is over");
	raw_net_go_on(&net);
}

/* A listener each: no more in a while than the pair may have links. */
static void storm(struct raw_peer *p)
{
	struct wire_round w;
	int64_t began = actor_now_ms(), pauses;
	unsigned listeners = 0;

	(void)p;
	for (unsigned life = 0; life < STORM; life++) {
		w = raw_net_round(&net, 1, life);
		raw_net_say(&net, &w);
	}
	w = raw_net_round(&net, 1, STORM);
	memcpy(w.name, "none", 5);
	raw_net_say(&net, &w);
	do {
		w = raw_net_hear(&net);
		listeners += !w.round;
	} while (LITTLE_16(w.life) != STORM);
	pauses = (actor_now_ms() - began) / PAUSE + 2;
	CHECK(listeners <= LINKS * pauses, "%u listeners in %lld pauses", listeners,
	      (long long)pauses);
	raw_net_go_on(&net);
}

/* ---- without the control connection ---------------------------------------------------------- */

static void join_by_bond(struct raw_peer *p)
{
	struct raw_net_offer to;

	(void)p;
	raw_net_cut(&net);
	to = raw_net_ask(&net, 1, 0);
	(void)raw_net_join(&net, &to);
	to = raw_net_ask(&net, 2, 0);
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

static void refused_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_net_round(&net, 1, 0);

	(void)p;
	raw_net_cut(&net);
	memcpy(w.name, "none", 5);
	raw_net_say(&net, &w);
	raw_net_refused(&net, 1, 0, "another fabric");
	raw_net_go_on(&net);
}

static void token_by_bond(struct raw_peer *p)
{
	raw_net_cut(&net);
	wrong_token(p);
}

static void storm_by_bond(struct raw_peer *p)
{
	raw_net_cut(&net);
	storm(p);
}

static void beyond_by_bond(struct raw_peer *p)
{
	struct wire_round w = raw_net_round(&net, LINKS, 0);

	(void)p;
	raw_net_cut(&net);
	raw_net_say(&net, &w);
}

static void cut_within_a_round(struct raw_peer *p)
{
	struct raw_net_offer to = raw_net_ask(&net, 1, 0);

	(void)p;
	raw_net_cut(&net);
	(void)raw_net_join(&net, &to);
	raw_net_go_on(&net);
}

/* clang-format off */
static const struct offence offences[] = {
	{"R8", "a wrong token", wrong_token, LINK_STILL},
	{"R8", "a wrong token of its own", own_token_wrong, LINK_RULE, 0},
	{"R8", "the first link's token", first_links_token, LINK_STILL},
	{"R8", "a token twice", token_twice, LINK_STILL},
	{"R8", "who is nobody", nobody, LINK_STILL},
	{"R5", "an old version", old_version, LINK_RULE, 0},
	{"R5", "a ring of odd size", odd_ring, LINK_RULE, 0},
	{"R5", "a port of who calls", with_a_port, LINK_RULE, 0},
	{"R5", "the other side's offer", other_side, LINK_RULE, 0},
	{"R5", "another start", later_start, LINK_RULE, 0},
	{"R5", "half an offer", half_an_offer, LINK_RULE, 0},
	{"R8", "a number in use", link_in_use, LINK_STILL},
	{"R8", "a life in use", life_in_use, LINK_STILL},
	{"R10", "a storm", storm, LINK_STILL},
};

/* The reason cannot be said. */
static const struct offence mute[] = {
	{"R8", "links by the bond", join_by_bond, LINK_STILL},
	{"R6", "another fabric, by the bond", refused_by_bond, LINK_STILL},
	{"R8", "a wrong token, by the bond", token_by_bond, LINK_STILL},
	{"R10", "a storm, by the bond", storm_by_bond, LINK_STILL},
	{"R6", "a link beyond, by the bond", beyond_by_bond, LINK_RULE, 0},
	{"R8", "no control within a round", cut_within_a_round, LINK_STILL},
};

static const struct offence pairs[] = {
	{"R8", "another pair's token", another_pairs, LINK_STILL},
};
/* clang-format on */

/* ---- how they meet --------------------------------------------------------------------------- */

static void come(struct raw_peer *p, const char *at)
{
	net_trial_connect(p, at, LINKS);
	net_trial_greet();
}

static void come_twice(struct raw_peer *p, const char *at)
{
	come(p, at);
	raw_net_begin(&other, at, LINKS);
	raw_stream_greet(&other.control);
	raw_net_first(&other);
}

static void hear_end_by_link(struct raw_peer *p, char reason[112])
{
	(void)p;
	raw_net_hear_end(&net);
	strcpy(reason, LINK_RULE " or opcode");
}

static slmpm_peer second;

static slmpm_peer meet_two(const struct victim *v, const struct offence *o, int (*body)(void *),
			   void *arg, pid_t *pid)
{
	slmpm_peer first;

	(void)o;
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(v->listener, &first, PATIENCE));
	OK(slmpm_accept(v->listener, &second, PATIENCE));
	return first;
}

static void see_two(slmpm_peer peer, const struct offence *o)
{
	link_trial_see(peer, o);
	OK(slmpm_close(second, PATIENCE));
}

/* Tokens of nobody's: two of another pair, two that were wrong, the first link's, and no token at
 * all. */
#define UNAUTHENTICATED 6

static void check_strangers(void)
{
	const char *name;
	uint64_t count = 0;

	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		if (!strcmp(name, "token of a stranger"))
			break;
	CHECK(count == UNAUTHENTICATED, "%llu strangers were counted", (unsigned long long)count);
}

int main(void)
{
	static const struct trial notified = {come, net_trial_hear_end, net_trial_leave,
					      NULL, link_trial_look,    link_trial_see};
	static const struct trial untold = {come, hear_end_by_link, net_trial_leave,
					    NULL, link_trial_look,  link_trial_see};
	static const struct trial two = {come_twice, net_trial_hear_end, net_trial_leave,
					 meet_two,   link_trial_look,    see_two};
	struct victim v;

	net_trial_needs_tcp();
	link_victim_begin_tcp(&v);
	SURVIVE(&v, &notified, offences);
	SURVIVE(&v, &untold, mute);
	SURVIVE(&v, &two, pairs);
	check_strangers();
	link_victim_end(&v);
	return 0;
}
