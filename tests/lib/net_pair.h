/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of peers in one context, joined by TCP by way of the relay; and two that nothing is done
 * to. */
#ifndef TESTS_LIB_NET_PAIR_H
#define TESTS_LIB_NET_PAIR_H

#include "tests/lib/actor.h"
#include "tests/lib/proxy.h"

/* The relay's connections of a pair, in the order in which they are made. */
enum { NET_CONTROL, NET_DATA, NET_CONNECTIONS };

#define NET_PAIRS (PROXY_CONNECTIONS / NET_CONNECTIONS)

struct net_pair {
	slmpm_peer end[PROXY_WAYS]; /* the first connected: what it says goes forth */
	unsigned first;             /* of its connections */
};

struct net {
	slmpm_ctx ctx;
	slmpm_listener listener;
	char url[360];
	struct net_pair pair[NET_PAIRS];
	unsigned pairs;
	slmpm_peer other[2]; /* bystanders: joined by TCP, past the relay */
};

struct net_rules {
	struct proxy_rule rule[NET_CONNECTIONS][PROXY_WAYS];
};

/* The relay, a context, a listener, the bystanders. */
void net_open(struct net *n);
void net_shut(struct net *n);
/* One more pair; RULES hold from the first byte on, or NULL. Net_try may fail; after net_join a
 * message has gone each way. */
int net_try(struct net *n, const struct net_rules *rules, int timeout_ms);
struct net_pair *net_join(struct net *n, const struct net_rules *rules);
/* Until it has so many connections: with several links more come. */
void net_await(const struct net *n, const struct net_pair *p, unsigned connections);
/* From so many bytes on that have yet to pass. */
void net_rule(const struct net_pair *p, unsigned connection, enum proxy_way way,
	      struct proxy_rule rule);
uint64_t net_passed(const struct net_pair *p, unsigned connection, enum proxy_way way);
/* Which of its links has passed most on. With several links the bystanders' may be counted
 * between. */
unsigned net_busiest(const struct net_pair *p);
/* All are closed, in whatever state. */
void net_part(struct net *n);
/* The bystanders can still talk. */
void net_check_others(struct net *n);

#endif
