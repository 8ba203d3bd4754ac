/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Peers with several links over TCP: these are opened once they are worth it, and made again when
 * they are lost, while the control connection lives or another link does; told by events. What is
 * sent meanwhile comes once and in order; only with the last link and hope gone does the peer.
 */
#include <string.h>

#include "tests/lib/net_flow.h"
#include "tests/lib/random.h"

static struct net net;
static int got[PROXY_WAYS][2]; /* events of links lost, and up, by the end that was told */

static void take_events(const struct net_pair *p)
{
	struct slmpm_event e = {.size = sizeof(e)};

	while (slmpm_next_event(net.ctx, &e, 0) == 1)
		for (int end = 0; end < PROXY_WAYS; end++) {
			if (e.peer.id != p->end[end].id || e.type < SLMPM_EVENT_LINK_UP)
				continue;
			CHECK(!strncmp(e.detail, "link ", 5) && strstr(e.detail, "(tcp 127.0.0.1"),
			      "an event says \"%s\"", e.detail);
			got[end][e.type == SLMPM_EVENT_LINK_UP]++;
		}
}

/* Until both ends have been told of so many since. */
static void await(const struct net_pair *p, int lost, int up)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (got[0][0] < lost || got[1][0] < lost || got[0][1] < up || got[1][1] < up) {
		CHECK(slmpm_progress(net.ctx) >= 0, "progress: %s", slmpm_error_detail());
		take_events(p);
		CHECK(actor_now_ms() < until, "%d and %d of %d lost, %d and %d of %d up", got[0][0],
		      got[1][0], lost, got[0][1], got[1][1], up);
	}
	CHECK(got[0][0] == lost && got[1][0] == lost && got[0][1] == up && got[1][1] == up,
	      "%d and %d of %d lost, %d and %d of %d up", got[0][0], got[1][0], lost, got[0][1],
	      got[1][1], up);
	memset(got, 0, sizeof(got));
}

static void cut(unsigned connection, uint64_t later)
{
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct proxy_rule rule = {.fate = PROXY_RESET};

		rule.at = proxy_passed(connection, (enum proxy_way)way) + later;
		proxy_rule(connection, (enum proxy_way)way, rule);
	}
}

static struct net_pair *join(unsigned connections)
{
	struct net_pair *p = net_join(&net, NULL);

	take_events(p);
	CHECK(proxy_connections() == p->first + connections, "%u connections, not %u",
	      proxy_connections() - p->first, connections);
	flows_open(p);
	return p;
}

/* A few words are not worth a second link; a stream is. */
static void links_are_lazy(void)
{
	struct net_pair *p = join(2);

	await(p, 0, 0);
	flows_run(&net, 40);
	await(p, 0, 1);
	CHECK(proxy_connections() == p->first + 3, "%u connections",
	      proxy_connections() - p->first);
	flows_close();
	net_part(&net);
}

/* With it the only link is replaced, for the control connection lives. */
static void the_only_link_is_cut(void)
{
	struct net_pair *p = join(2);
	unsigned char byte = 5;

	cut(p->first + 1, 0);
	await(p, 1, 2);
	for (int end = 0; end < PROXY_WAYS; end++) {
		EXPECT(slmpm_send(p->end[end], 3, &byte, 1, PATIENCE), 0);
		EXPECT(slmpm_recv(p->end[!end], 3, &byte, 1, NULL, PATIENCE), 1);
	}
	flows_run(&net, 40);
	flows_close();
	net_part(&net);
}

/* Each in turn, of which the newest two live. */
static void links_come_anew(bool control, struct rng *chance)
{
	struct net_pair *p = join(2);
	unsigned next = p->first + 1, messages = 40;

	flows_run(&net, messages);
	await(p, 0, 1);
	if (!control)
		cut(p->first + NET_CONTROL, 0);
	for (unsigned i = 0; i < 12; i++) {
		cut(next, rng_below(chance, 300000));
		flows_run(&net, messages += 40);
		cut(next++, 0); /* if not yet: nearly all may have gone by the other */
		await(p, 1, 1);
	}
	flows_close();
	net_part(&net);
}

/* Nobody answers at the port any more: in bounded time there is no hope left. */
static void nothing_comes_anew(void)
{
	struct net_pair *p = join(2);
	int64_t began = actor_now_ms();
	unsigned char byte;

	for (unsigned i = 2; i < 20; i++)
		for (int way = 0; way < PROXY_WAYS; way++)
			proxy_rule(p->first + i, (enum proxy_way)way,
				   (struct proxy_rule){.fate = PROXY_RESET});
	cut(p->first + 1, 0);
	for (int end = 0; end < PROXY_WAYS; end++) {
		int64_t rc = slmpm_recv(p->end[end], 2, &byte, 1, NULL, PATIENCE);

		CHECK(rc == -SLMPM_EDEAD && strstr(slmpm_error_detail(), "link 0: "),
		      "without a link: %lld (%s)", (long long)rc, slmpm_error_detail());
	}
	CHECK(actor_now_ms() - began < 3000 * actor_slow(), "it took %lld ms",
	      (long long)(actor_now_ms() - began));
	flows_close();
	net_check_others(&net);
	net_part(&net);
}

/* One side refuses what comes, and has no control connection to say so by: the other hears it,
 * too. */
static void one_side_ends(void)
{
	struct net_pair *p = join(2);
	unsigned char byte = 5;

	flows_run(&net, 40);
	await(p, 0, 1);
	for (unsigned i = 3; i < 20; i++)
		net_rule(p, i, PROXY_FORTH, (struct proxy_rule){.fate = PROXY_RESET});
	for (unsigned i = NET_DATA; i < 3; i++)
		net_rule(p, i, PROXY_FORTH, (struct proxy_rule){PROXY_CORRUPT, 0, 1});
	cut(p->first + NET_CONTROL, 0);
	EXPECT(slmpm_send(p->end[0], 3, &byte, 1, PATIENCE), 0);
	EXPECT(slmpm_recv(p->end[1], 3, &byte, 1, NULL, PATIENCE), -SLMPM_EPROTO);
	EXPECT(slmpm_recv(p->end[0], 3, &byte, 1, NULL, PATIENCE), -SLMPM_EDEAD);
	flows_close();
	net_check_others(&net);
	net_part(&net);
}

int main(void)
{
	struct rng chance = {rng_run_seed(0x12)};

	setenv("SLMPM_LINKS", "2", 1);
	setenv("SLMPM_LINKS_LOG", "1m", 1);
	setenv("SLMPM_DEAD_MS", "500", 1);
	net_open(&net);
	links_are_lazy();
	the_only_link_is_cut();
	links_come_anew(true, &chance);
	links_come_anew(false, &chance);
	nothing_comes_anew();
	one_side_ends();
	net_shut(&net);
	return 0;
}
