/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies behind a message stays in the ring until its own receive: who takes one message after
 * the other finds none of them kept in memory, whatever their size and way.
 */
#include "tests/lib/actor.h"

#define LONG  24576 /* several packets, and well within the credit */
#define COUNT 20

static const slmpm_ctx none;

static uint64_t kept(slmpm_peer peer)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	return stats.unexpected;
}

static void long_ones(slmpm_peer a, slmpm_peer b)
{
	static unsigned char out[LONG], in[LONG];

	for (unsigned i = 0; i < COUNT; i++) {
		actor_fill(out, i, LONG);
		OK(slmpm_send(a, 1, out, LONG, PATIENCE));
	}
	for (unsigned i = 0; i < COUNT; i++) {
		EXPECT(slmpm_recv(b, 1, in, LONG, NULL, PATIENCE), LONG);
		CHECK(actor_filled(in, i, LONG), "message %u is damaged", i);
	}
	CHECK(kept(b) == 0, "%llu long messages were kept", (unsigned long long)kept(b));
}

/* The first is taken by a request that was posted before; the others lie in the same packet. */
static void a_burst(slmpm_peer a, slmpm_peer b)
{
	const struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = -1};
	uint64_t out, in;
	struct slmpm_iov from = {&out, sizeof(out)}, to = {&in, sizeof(in)};
	slmpm_req req;

	OK(slmpm_recvv(b, 1, &to, 1, NULL, &req));
	for (out = 0; out < COUNT - 1; out++)
		OK(slmpm_sendv(a, 1, &from, 1, &more, NULL));
	OK(slmpm_send(a, 1, &out, sizeof(out), PATIENCE));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	CHECK(in == 0, "the first is number %llu", (unsigned long long)in);
	for (uint64_t i = 1; i < COUNT; i++) {
		EXPECT(slmpm_recv(b, 1, &in, sizeof(in), NULL, PATIENCE), sizeof(in));
		CHECK(in == i, "%llu after %llu", (unsigned long long)in,
		      (unsigned long long)i - 1);
	}
	CHECK(kept(b) == 0, "%llu of a burst were kept", (unsigned long long)kept(b));
}

int main(void)
{
	slmpm_ctx ctx;
	slmpm_peer a, b;

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	long_ones(a, b);
	a_burst(a, b);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}
