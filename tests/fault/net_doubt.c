/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * The only link over TCP, or both of two, are lost in the middle of a stream. In bounded time comes
 * the definite error, and with it which messages are in doubt: what has arrived, as the other end
 * counts it, lies in that range, and the range is no longer than what was under way.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/net_pair.h"
#include "tests/lib/random.h"

#define DEAD_MS 300
#define GREETED 50 /* messages before, with that of net_join */
#define UNREAD  64
#define MOST    50 /* connections, with those that are made in vain */

static struct net net;
static unsigned char bytes[4000];

/* With several links all connections at once, and those that would replace them; but the busiest
 * LATER. */
static void cut(const struct net_pair *p, int links, enum proxy_fate fate, uint64_t later)
{
	unsigned link = net_busiest(p);

	for (unsigned i = NET_CONTROL; i < MOST; i++)
		for (int way = 0; way < PROXY_WAYS; way++) {
			struct proxy_rule rule = {.fate = fate, .at = later};

			if (i != link)
				rule = (struct proxy_rule){.fate = PROXY_RESET};
			if (i == link || links > 1)
				net_rule(p, i, (enum proxy_way)way, rule);
		}
}

/* Those that have come, up to N. */
static uint32_t take(const struct net_pair *p, uint32_t taken, uint32_t n)
{
	uint32_t number;

	for (; n; n--, taken++) {
		if (slmpm_recv(p->end[1], 1, bytes, sizeof(bytes), NULL, 0) < 0)
			break;
		memcpy(&number, bytes, sizeof(number));
		CHECK(number == taken, "message %u came as %u", taken, number);
	}
	return taken;
}

/* SIZE bytes at a time until the error, the other end some messages behind: how many were sent. */
static uint32_t stream(const struct net_pair *p, uint32_t size, uint32_t *taken)
{
	int64_t until = actor_now_ms() + PATIENCE;
	uint32_t sent = 0;
	int rc;

	do {
		memcpy(bytes, &sent, sizeof(sent));
		rc = slmpm_send(p->end[0], 1, bytes, size, 10);
		sent += rc == 0;
		if (rc < 0 || sent - *taken > UNREAD)
			*taken = take(p, *taken, UNREAD / 2);
		CHECK(actor_now_ms() < until, "no end after %u messages", sent);
	} while (rc == 0 || rc == -SLMPM_ETIMEOUT);
	CHECK(rc == -SLMPM_EDEAD, "it ended as %d (%s)", rc, slmpm_error_detail());
	return sent;
}

static struct slmpm_event death_of(slmpm_peer peer)
{
	struct slmpm_event e = {.size = sizeof(e)};

	do
		EXPECT(slmpm_next_event(net.ctx, &e, PATIENCE), 1);
	while (e.peer.id != peer.id || e.type != SLMPM_EVENT_DEAD);
	return e;
}

/* So that it shows by which link they go. */
static void greet(const struct net_pair *p)
{
	for (int i = 1; i < GREETED; i++) {
		OK(slmpm_send(p->end[0], 2, bytes, 100, PATIENCE));
		EXPECT(slmpm_recv(p->end[1], 2, bytes, sizeof(bytes), NULL, PATIENCE), 100);
	}
}

static void lose(int links, enum proxy_fate fate, uint32_t size, uint64_t later)
{
	struct net_pair *p = net_join(&net, NULL);
	uint32_t taken = 0, sent;
	struct slmpm_event e;

	net_await(&net, p, 1 + (unsigned)links);
	greet(p);
	cut(p, links, fate, later);
	sent = stream(p, size, &taken);
	e = death_of(p->end[0]);
	taken = take(p, taken, UINT32_MAX);
	printf("%u of %u messages of %u bytes came: told %llu of %llu\n", taken, sent, size,
	       (unsigned long long)e.arrived, (unsigned long long)e.sent);
	CHECK(e.sent >= GREETED + sent && e.sent <= GREETED + sent + 1, "%llu were sent, it says",
	      (unsigned long long)e.sent);
	CHECK(e.arrived <= GREETED + taken && GREETED + taken <= e.sent,
	      "%llu of %llu arrived, it says", (unsigned long long)e.arrived,
	      (unsigned long long)e.sent);
	CHECK(e.arrived > 0 && e.read <= e.written, "nothing is known to have arrived");
	/* Two rings, and what the relay and the sockets hold. */
	CHECK((e.sent - e.arrived) * size < 16 << 20, "%llu messages are in doubt",
	      (unsigned long long)(e.sent - e.arrived));
	net_check_others(&net);
	net_part(&net);
}

static int lose_each(void *arg)
{
	static const enum proxy_fate fates[] = {PROXY_RESET, PROXY_HALF_CLOSE};
	struct rng chance = {rng_run_seed(0xd0)};
	int links = *(int *)arg;
	char text[16];

	snprintf(text, sizeof(text), "%d", DEAD_MS * actor_slow());
	setenv("SLMPM_DEAD_MS", text, 1);
	setenv("SLMPM_LINKS", links > 1 ? "2" : "1", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	setenv("SLMPM_LINKS_LOG", "64k", 1);
	setenv("SLMPM_RING_SEGMENTS", "1024", 1);
	setenv("SLMPM_EAGER_CREDIT", "256k",
	       1); /* it is used up before the cut: so much is known by then */
	net_open(&net);
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		for (uint32_t size = 8; size <= sizeof(bytes); size = size * 22 + 1)
			lose(links, fates[i], size, 1000000 + rng_below(&chance, 1000000));
	net_shut(&net);
	return 0;
}

int main(void)
{
	for (int links = 1; links <= 2; links++)
		EXPECT(child_run(lose_each, &links, 50), 0);
	return 0;
}
