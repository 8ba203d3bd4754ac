/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs by way of the relay, one after the other. */
#include "tests/lib/net_pair.h"

#include <string.h>

static void listen_anywhere(struct net *n)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	EXPECT(slmpm_listen(&n->listener, n->ctx, "tcp://127.0.0.1:0"), 0);
	EXPECT(slmpm_listener_query(n->listener, &info), 0);
	snprintf(n->url, sizeof(n->url), "%s#%s", info.url, info.secret);
}

static void greet(slmpm_peer from, slmpm_peer to)
{
	uint64_t word = 1, got = 0;

	EXPECT(slmpm_send(from, 7, &word, sizeof(word), PATIENCE), 0);
	EXPECT(slmpm_recv(to, 7, &got, sizeof(got), NULL, PATIENCE), sizeof(got));
	CHECK(got == 1, "another message");
}

void net_check_others(struct net *n)
{
	greet(n->other[0], n->other[1]);
	greet(n->other[1], n->other[0]);
}

void net_open(struct net *n)
{
	*n = (struct net){0};
	setenv("SLMPM_FABRIC", "tcp", 1); /* on one machine, too */
	EXPECT(slmpm_open(&n->ctx, NULL), 0);
	listen_anywhere(n);
	EXPECT(slmpm_connect(&n->other[0], n->ctx, n->url, PATIENCE), 0);
	EXPECT(slmpm_accept(n->listener, &n->other[1], PATIENCE), 0);
	proxy_start();
	net_check_others(n);
}

int net_try(struct net *n, const struct net_rules *rules, int timeout_ms)
{
	struct net_pair *p = &n->pair[n->pairs];
	int rc;

	CHECK(n->pairs < NET_PAIRS, "no place for one more pair");
	*p = (struct net_pair){.first = proxy_connections()};
	for (unsigned i = 0; rules && i < NET_CONNECTIONS; i++)
		for (int way = 0; way < PROXY_WAYS; way++)
			proxy_rule(p->first + i, (enum proxy_way)way, rules->rule[i][way]);
	rc = slmpm_connect(&p->end[0], n->ctx, n->url, timeout_ms);
	if (rc < 0)
		return rc;
	n->pairs++;
	rc = slmpm_accept(n->listener, &p->end[1], timeout_ms);
	if (rc < 0)
		p->end[1] = (slmpm_peer){0};
	return rc;
}

struct net_pair *net_join(struct net *n, const struct net_rules *rules)
{
	struct net_pair *p = &n->pair[n->pairs];

	EXPECT(net_try(n, rules, PATIENCE), 0);
	greet(p->end[0], p->end[1]);
	greet(p->end[1], p->end[0]);
	return p;
}

void net_await(const struct net *n, const struct net_pair *p, unsigned connections)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (proxy_connections() < p->first + connections) {
		CHECK(slmpm_progress(n->ctx) >= 0, "progress: %s", slmpm_error_detail());
		CHECK(actor_now_ms() < until, "%u of %u connections",
		      proxy_connections() - p->first, connections);
	}
}

void net_rule(const struct net_pair *p, unsigned connection, enum proxy_way way,
	      struct proxy_rule rule)
{
	rule.at += net_passed(p, connection, way);
	proxy_rule(p->first + connection, way, rule);
}

unsigned net_busiest(const struct net_pair *p)
{
	unsigned best = NET_DATA;

	for (unsigned i = NET_DATA; p->first + i < proxy_connections(); i++)
		if (net_passed(p, i, PROXY_FORTH) > net_passed(p, best, PROXY_FORTH))
			best = i;
	return best;
}

uint64_t net_passed(const struct net_pair *p, unsigned connection, enum proxy_way way)
{
	return proxy_passed(p->first + connection, way);
}

void net_part(struct net *n)
{
	slmpm_peer late;

	for (; n->pairs; n->pairs--)
		for (int i = 0; i < PROXY_WAYS; i++)
			if (n->pair[n->pairs - 1].end[i].id)
				(void)slmpm_close(n->pair[n->pairs - 1].end[i], 100);
	while (slmpm_accept(n->listener, &late, 0) == 0)
		(void)slmpm_close(late, 0);
	proxy_forget();
}

void net_shut(struct net *n)
{
	net_part(n);
	for (int i = 0; i < 2; i++)
		EXPECT(slmpm_close(n->other[i], 1000), 0);
	EXPECT(slmpm_unlisten(n->listener), 0);
	EXPECT(slmpm_shut(n->ctx, 1000), 0);
	proxy_stop();
}
