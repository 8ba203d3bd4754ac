/* SPDX-License-Identifier: BSD-3-Clause */
/* A deadline is kept while there is traffic of others. */
#include <string.h>

#include "tests/lib/actor.h"

#define PIECES 4096

/* A message of 4 GiB in one mebibyte of memory: every pass of progress moves some of it. */
static void post(slmpm_peer from, slmpm_peer to, slmpm_req req[2])
{
	static struct slmpm_iov out[PIECES], in[PIECES];
	static char memory[2][1 << 20];

	for (int i = 0; i < PIECES; i++) {
		out[i] = (struct slmpm_iov){memory[0], sizeof(memory[0])};
		in[i] = (struct slmpm_iov){memory[1], sizeof(memory[1])};
	}
	OK(slmpm_recvv(to, 1, in, PIECES, NULL, &req[0]));
	OK(slmpm_sendv(from, 1, out, PIECES, NULL, &req[1]));
}

int main(void)
{
	struct slmpm_done done;
	slmpm_peer a, b;
	slmpm_req req[2];
	slmpm_ctx ctx;
	int64_t begin, took;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	post(a, b, req);
	begin = actor_now_ms();
	EXPECT(slmpm_recv(b, 2, NULL, 0, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_recv(b, 2, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	took = actor_now_ms() - begin;
	EXPECT(slmpm_test(&req[0], &done), 0); /* or this shows nothing */
	CHECK(took >= 20 && took < 20 + 100 * actor_slow(), "20 ms took %d", (int)took);
	EXPECT(slmpm_wait(req, 1, &done, 1), -SLMPM_ETIMEOUT);
	OK(slmpm_close(a, 0) == -SLMPM_ETIMEOUT ? 0 : 1);
	OK(slmpm_close(b, 0));
	OK(slmpm_shut(ctx, 0));
	return 0;
}
