/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything comes byte by byte, or late, from the first byte of the handshake on: nothing is
 * lost, doubled or changed by it, and nobody takes it for an end.
 */
#include <string.h>

#include "tests/lib/net_pair.h"

#define LONG 40000u /* beyond what goes in one piece */

static struct net net;
static struct net_pair *pair;
static unsigned char out[LONG], in[LONG];

static void message(enum proxy_way way, size_t size, uint64_t seed)
{
	actor_fill(out, seed, size);
	OK(slmpm_send(pair->end[way], 3, out, size, PATIENCE));
	EXPECT(slmpm_recv(pair->end[!way], 3, in, sizeof(in), NULL, PATIENCE), size);
	CHECK(actor_filled(in, seed, size), "%zu bytes are damaged", size);
}

/* Several at once: they are sent before the first is received. */
static void burst(enum proxy_way way, unsigned n)
{
	uint64_t got;

	for (uint64_t i = 0; i < n; i++)
		OK(slmpm_send(pair->end[way], 4, &i, sizeof(i), PATIENCE));
	for (uint64_t i = 0; i < n; i++) {
		EXPECT(slmpm_recv(pair->end[!way], 4, &got, sizeof(got), NULL, PATIENCE),
		       sizeof(got));
		CHECK(got == i, "message %llu comes as number %llu", (unsigned long long)got,
		      (unsigned long long)i);
	}
}

static void one_sided(size_t size)
{
	struct slmpm_key key;
	slmpm_rmem remote;
	uint64_t old = 1;
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc(net.ctx, LONG, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, pair->end[1], SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(pair->end[0], &key, &remote));
	actor_fill(out, size, size);
	OK(slmpm_put(remote, 0, out, size, NULL, NULL));
	OK(slmpm_flush(pair->end[0], PATIENCE));
	CHECK(actor_filled(base, size, size), "a put of %zu bytes is damaged", size);
	memset(in, 0, sizeof(in));
	OK(slmpm_get(remote, 0, in, size, NULL, NULL));
	CHECK(actor_filled(in, size, size), "a get of %zu bytes is damaged", size);
	memset(base, 0, 8);
	OK(slmpm_atomic(remote, 0, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	CHECK(old == 0 && *(uint64_t *)base == 5, "an addition went wrong");
	OK(slmpm_mem_release(remote));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* All four streams of bytes under that rule. */
static void converse(enum proxy_fate fate, uint32_t arg, size_t longest)
{
	struct net_rules rules;

	for (int i = 0; i < 2; i++)
		for (int way = 0; way < PROXY_WAYS; way++)
			rules.rule[i][way] = (struct proxy_rule){fate, 0, arg};
	pair = net_join(&net, &rules);
	for (int way = 0; way < PROXY_WAYS; way++) {
		message((enum proxy_way)way, 0, 1);
		message((enum proxy_way)way, 8, 2);
		message((enum proxy_way)way, 33, 3);
		message((enum proxy_way)way, 3000, 4);
		message((enum proxy_way)way, longest, 5);
		burst((enum proxy_way)way, 40);
	}
	one_sided(700);
	one_sided(longest);
	net_check_others(&net);
	net_part(&net);
}

int main(void)
{
	net_open(&net);
	converse(PROXY_TRICKLE, 0, 20000);
	converse(PROXY_DELAY, 3000, LONG);
	net_shut(&net);
	return 0;
}
