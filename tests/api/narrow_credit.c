/* SPDX-License-Identifier: BSD-3-Clause */
/* Credit that barely holds a packet of the longest: the longest must be sent none the less. */
#include <stdlib.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

static void send_and_take(slmpm_peer from, slmpm_peer to, size_t n)
{
	unsigned char *out = malloc(n), *in = malloc(n);
	struct slmpm_iov iov = {in, n};
	struct slmpm_done done;
	slmpm_req req;

	CHECK(out && in, "out of memory");
	actor_fill(out, n, n);
	OK(slmpm_recvv(to, 1, &iov, 1, NULL, &req));
	OK(slmpm_send(from, 1, out, n, PATIENCE / 4));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE / 4), 0);
	CHECK(done.status == 0 && done.len == n && actor_filled(in, n, n), "%zu bytes", n);
	free(out);
	free(in);
}

int main(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_ctx ctx;
	slmpm_peer a, b;

	OK(setenv("SLMPM_EAGER_CREDIT", "64k", 1));
	OK(setenv("SLMPM_PACKET_MAX", "64k", 1));
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_peer_query(a, &info));
	for (size_t n = info.packet_max - 1; n <= info.packet_max + 1; n++)
		send_and_take(a, b, n);
	for (size_t n = 65536 - 65; n <= 65536 + 1; n++)
		send_and_take(b, a, n);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}
