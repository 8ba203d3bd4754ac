/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Peers with several links over TCP, of which some are cut in the middle of a stream both ways: by
 * a reset or one way's end. Each message arrives once, whole and in order; so it does when
 * the control connection breaks; and with the last link comes the definite error.
 */
#include <string.h>

#include "tests/lib/net_flow.h"
#include "tests/lib/random.h"

#define LINKS    4u
#define MESSAGES 300u

enum { FIRST_LINK = 1, CONNECTIONS = 1 + LINKS }; /* of a pair; 0 is the control connection */

static struct net net;

static struct net_pair *join(void)
{
	struct net_pair *p = net_join(&net, NULL);

	net_await(&net, p, CONNECTIONS);
	return p;
}

static void cut(const struct net_pair *p, unsigned connection, enum proxy_fate fate, uint64_t later)
{
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct proxy_rule rule = {.fate = fate};

		rule.at = proxy_passed(p->first + connection, (enum proxy_way)way) + later;
		proxy_rule(p->first + connection, (enum proxy_way)way, rule);
	}
}

/* The link in use, then the next one, at some bytes from there on. */
static void links_are_cut(enum proxy_fate fate, struct rng *chance)
{
	struct net_pair *p = join();

	flows_open(p);
	flows_run(&net, MESSAGES / 4);
	for (unsigned i = 1; i < LINKS; i++) {
		cut(p, FIRST_LINK + i - 1, fate, rng_below(chance, 500000));
		flows_run(&net, (i + 1) * MESSAGES / LINKS);
	}
	net_check_others(&net);
	flows_close();
	net_part(&net);
}

/* Whoever cannot say farewell any more is not gone. */
static void control_is_cut(void)
{
	struct net_pair *p = join();

	flows_open(p);
	flows_run(&net, 50);
	cut(p, NET_CONTROL, PROXY_RESET, 0);
	flows_run(&net, 100);
	cut(p, FIRST_LINK, PROXY_RESET, 1000);
	flows_run(&net, 150);
	for (unsigned i = 0; i < 4 * LINKS; i++) /* also those that have come back, or would */
		cut(p, FIRST_LINK + i, PROXY_RESET, 0);
	for (int way = 0; way < PROXY_WAYS; way++) {
		unsigned char byte;
		int64_t rc = slmpm_recv(p->end[way], 2, &byte, 1, NULL, PATIENCE);

		CHECK(rc == -SLMPM_EDEAD, "without a link: %lld (%s)", (long long)rc,
		      slmpm_error_detail());
		CHECK(strstr(slmpm_error_detail(), "link 0: ") &&
			      strstr(slmpm_error_detail(), "link 1: "),
		      "not all reasons: %s", slmpm_error_detail());
	}
	net_check_others(&net);
	flows_close();
	net_part(&net);
}

/* An orderly end is none of a link's losses, also where the control connection has gone before. */
static void peers_part_in_order(bool control)
{
	struct net_pair *p = join();
	unsigned char byte = 0;
	int64_t rc;

	if (!control) {
		flows_open(p);
		cut(p, NET_CONTROL, PROXY_RESET, 0);
		flows_run(&net, 50);
		flows_close();
	}
	for (int k = 0; k < 20; k++)
		OK(slmpm_send(p->end[0], 1, &byte, 1, PATIENCE));
	OK(slmpm_close(p->end[0], PATIENCE));
	p->end[0] = (slmpm_peer){0};
	for (int k = 0; k < 20; k++)
		EXPECT(slmpm_recv(p->end[1], 1, &byte, 1, NULL, PATIENCE), 1);
	rc = slmpm_recv(p->end[1], 1, &byte, 1, NULL, PATIENCE);
	CHECK(rc == -SLMPM_ECLOSED, "after an orderly end: %lld (%s)", (long long)rc,
	      slmpm_error_detail());
	net_part(&net);
}

int main(void)
{
	struct rng chance = {rng_run_seed(0x11)};

	setenv("SLMPM_LINKS", "4", 1);
	setenv("SLMPM_LINKS_LOG", "1m", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	net_open(&net);
	for (int i = 0; i < 10; i++)
		peers_part_in_order(i % 2);
	for (int i = 0; i < 4; i++)
		links_are_cut(i % 2 ? PROXY_HALF_CLOSE : PROXY_RESET, &chance);
	control_is_cut();
	net_shut(&net);
	return 0;
}
