/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rest of an announced message is asked for as soon as the head of its first packet has come,
 * and that packet is held up. The receive stays, or leaves.
 */
#include <string.h>

#include "tests/lib/net_pair.h"

#define LONG 1000000u
#define HELD 100000u /* bytes of the first packet */

static struct net net;
static struct net_pair *pair;
static unsigned char out[LONG], in[LONG], elsewhere[LONG];

static uint64_t packets_sent(slmpm_peer to)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(to, &stats, sizeof(stats)));
	return stats.sent_packets;
}

static void pass(enum proxy_fate fate, uint64_t at)
{
	net_rule(pair, NET_DATA, PROXY_FORTH, (struct proxy_rule){fate, at, 0});
}

/* Both under way, the first packet within, and the rest asked for. */
static void begin(slmpm_req *send, slmpm_req *receive)
{
	struct slmpm_iov from = {out, LONG}, to = {in, LONG};
	uint64_t before, passed;

	pair = net_join(&net, NULL);
	before = packets_sent(pair->end[1]);
	passed = net_passed(pair, NET_DATA, PROXY_FORTH);
	pass(PROXY_SILENCE, HELD);
	OK(slmpm_recvv(pair->end[1], 1, &to, 1, NULL, receive));
	OK(slmpm_sendv(pair->end[0], 1, &from, 1, NULL, send));
	for (int i = 0; packets_sent(pair->end[1]) == before; i++) {
		CHECK(i < 2000, "nothing is asked for");
		EXPECT(slmpm_wait(receive, 1, NULL, 1), -SLMPM_ETIMEOUT);
	}
	CHECK(net_passed(pair, NET_DATA, PROXY_FORTH) - passed <= HELD, "more has come");
}

static void play(bool leaves)
{
	slmpm_req send, receive;
	struct slmpm_done done;

	memset(in, 0, LONG);
	begin(&send, &receive);
	if (leaves) {
		OK(slmpm_cancel(receive));
		memset(in, 0, LONG);
	}
	pass(PROXY_PASS, PROXY_NOW);
	if (leaves)
		EXPECT(slmpm_recv(pair->end[1], 1, elsewhere, LONG, NULL, PATIENCE), LONG);
	EXPECT(slmpm_wait(&receive, 1, &done, PATIENCE), 0);
	EXPECT(done.status, leaves ? -SLMPM_ECANCELED : 0);
	EXPECT(slmpm_wait(&send, 1, &done, PATIENCE), 0);
	OK(done.status);
	CHECK(actor_filled(leaves ? elsewhere : in, 1, LONG), "it is damaged");
	for (size_t i = 0; leaves && i < LONG; i++)
		CHECK(!in[i], "byte %zu of a receive that has left was written", i);
	net_check_others(&net);
	net_part(&net);
}

int main(void)
{
	setenv("SLMPM_MONITOR_MS", "0", 1); /* no packets of its own */
	actor_fill(out, 1, LONG);
	net_open(&net);
	play(false);
	play(true);
	net_shut(&net);
	return 0;
}
