/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages of two peers at once, each to a receive that would take either's. */
#include <stdlib.h>

#include "tests/lib/net_pair.h"

#define LONG  200000
#define PAIRS 2
#define TURNS 8

static void exchange(struct net *n, uint64_t turn)
{
	static unsigned char out[PAIRS][LONG], in[PAIRS][LONG];
	slmpm_req sent[PAIRS], got[PAIRS];
	struct slmpm_done done[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		struct slmpm_iov room = {in[i], LONG};

		OK(slmpm_recvv(slmpm_any(n->ctx), SLMPM_ANY_STREAM, &room, 1, NULL, &got[i]));
	}
	for (int i = 0; i < PAIRS; i++) {
		struct slmpm_iov all = {out[i], LONG};

		actor_fill(out[i], turn * PAIRS + (uint64_t)i, LONG);
		/* Each piece a while after the one before: the two take turns. */
		net_rule(&n->pair[i], NET_DATA, PROXY_FORTH,
			 (struct proxy_rule){PROXY_DELAY, 0, 500});
		OK(slmpm_sendv(n->pair[i].end[0], (uint32_t)i, &all, 1, NULL, &sent[i]));
	}
	for (int i = 0; i < PAIRS; i++) {
		OK(slmpm_wait(&got[i], 1, &done[i], PATIENCE));
		CHECK(actor_filled(in[i], turn * PAIRS + done[i].stream, LONG),
		      "turn %d: other bytes in the message of peer %u", (int)turn, done[i].stream);
		OK(slmpm_wait(&sent[i], 1, NULL, PATIENCE));
	}
}

int main(void)
{
	struct net n;

	setenv("SLMPM_LOG_LEVEL", "none", 1);
	net_open(&n);
	for (int i = 0; i < PAIRS; i++)
		(void)net_join(&n, NULL);
	for (uint64_t turn = 0; turn < TURNS; turn++)
		exchange(&n, turn);
	net_shut(&n);
	return 0;
}
