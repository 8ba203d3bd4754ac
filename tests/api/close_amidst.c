/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A close amidst one-sided operations, of either side: the end of stream is the last that is said,
 * so that it comes to an end while the other side, which has read it, reads no more.
 */
#include <stdlib.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define SIZE 300000

struct run {
	const char *rma, *links;
	bool owner; /* closes */
};

static int close_amidst(void *arg)
{
	const struct run *r = arg;
	static unsigned char out[SIZE], in[SIZE];
	slmpm_peer owner, other;
	struct slmpm_done done;
	struct slmpm_key key;
	slmpm_req req[2];
	slmpm_rmem rmem;
	slmpm_ctx ctx;
	slmpm_mem mem;
	void *base;

	setenv("SLMPM_RMA", r->rma, 1);
	setenv("SLMPM_LINKS", r->links, 1);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &owner, &other);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, owner, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(other, &key, &rmem));
	OK(slmpm_put(rmem, 0, out, SIZE, NULL, &req[0]));
	OK(slmpm_get(rmem, 0, in, SIZE, NULL, &req[1]));
	for (int i = 0; i < 40; i++) /* amidst */
		OK(slmpm_progress(ctx) < 0);
	OK(slmpm_close(r->owner ? owner : other, PATIENCE));
	for (int i = 0; i < 2; i++)
		(void)slmpm_wait(&req[i], 1, &done, PATIENCE);
	OK(slmpm_close(r->owner ? other : owner, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static const char *const rma[] = {"tag", "am", "ring"}, *const links[] = {"1", "2"};

	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_RING_SEGMENTS", "128", 1);
	setenv("SLMPM_PACKET_MAX", "256", 1);
	unsetenv("SLMPM_LINK");
	for (int i = 0; i < 12; i++) {
		struct run r = {rma[i / 4], links[i / 2 % 2], i % 2};
		unsigned seconds = PATIENCE / 1000 / 2;

		CHECK(child_run(close_amidst, &r, seconds * (unsigned)actor_slow()) == 0,
		      "%s, %s links, the %s closes", r.rma, r.links, r.owner ? "owner" : "other");
	}
	return 0;
}
