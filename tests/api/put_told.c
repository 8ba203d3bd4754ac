/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * How the end of puts, gets and atomic operations is told, on every way: by counters and queues
 * here, by notifications there. Both ends in one context.
 */
#include <string.h>

#include "tests/lib/way.h"

#define SIZE (1 << 17)

static slmpm_ctx ctx;
static slmpm_peer near, far; /* the accessor as the owner sees it; the owner as it is seen */
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *base;
static unsigned char out[SIZE], in[SIZE];

static void by_counter_and_queue(void)
{
	enum { MANY = 40 };
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	struct slmpm_done done;
	slmpm_req req;
	uint64_t seen = 0, old, word[MANY];

	OK(slmpm_ctr_create(ctx, &how.ctr));
	for (uint64_t i = 0; i < MANY; i++) {
		word[i] = i;
		OK(slmpm_put(rmem, i * 8, &word[i], 8, &how, NULL));
	}
	OK(slmpm_ctr_wait(how.ctr, SLMPM_ALL, PATIENCE));
	REFUSED(slmpm_put(rmem, 0, &seen, 8, &how, &req), SLMPM_EINVAL, "only one");
	OK(slmpm_ctr_destroy(how.ctr));
	how.ctr.id = 0;
	OK(slmpm_flush(far, PATIENCE));
	OK(slmpm_cq_create(ctx, &how.cq));
	for (uint64_t i = 0; i < MANY; i++) {
		how.cookie = i;
		OK(slmpm_get(rmem, i * 8, in + i * 8, 8, &how, NULL));
	}
	how.cookie = MANY;
	OK(slmpm_atomic(rmem, MANY * 8, SLMPM_SWAP, 64, 5, 0, &old, &how, NULL));
	for (int i = 0; i <= MANY; i++) {
		EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
		CHECK(!done.status &&
			      done.op == (done.cookie < MANY ? SLMPM_OP_GET : SLMPM_OP_ATOMIC),
		      "completion %d", i);
		CHECK(done.cookie == MANY || !memcmp(in + done.cookie * 8, &done.cookie, 8),
		      "what was got");
		seen |= UINT64_C(1) << done.cookie;
	}
	CHECK(seen == (UINT64_C(2) << MANY) - 1, "each once");
	OK(slmpm_cq_destroy(how.cq));
}

/* ---- notifications --------------------------------------------------------------------------- */

static void notifications(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_NOTIFY, .timeout_ms = PATIENCE};
	uint64_t before = actor_stats(near).notifications;
	struct slmpm_done done;
	slmpm_ctr ctr;
	slmpm_cq cq;

	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_mem_notify(mem, ctr, cq));
	for (uint32_t i = 0; i < 30; i++) {
		size_t n = i * i * 100;

		actor_fill(out, i, n);
		how.imm = i;
		OK(slmpm_put(rmem, i, out, n, &how, NULL));
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.op == SLMPM_OP_NOTIFY && done.imm == i && done.cookie == i &&
			      done.len == n && done.peer.id == near.id,
		      "notification %u", i);
		CHECK(actor_filled(base + i, i, n), "the bytes come first");
	}
	OK(slmpm_ctr_wait(ctr, 30, PATIENCE));
	OK(slmpm_mem_notify(mem, (slmpm_ctr){0}, (slmpm_cq){0}));
	OK(slmpm_put(rmem, 0, out, 10, &how, NULL));
	OK(slmpm_flush(far, PATIENCE));
	while (slmpm_progress(ctx))
		;
	EXPECT(actor_stats(near).notifications - before, 31);
	REFUSED(slmpm_get(rmem, 0, in, 10, &how, NULL), SLMPM_EINVAL, "flags");
	OK(slmpm_ctr_destroy(ctr));
	OK(slmpm_cq_destroy(cq));
}

/* More notifications than the credit covers wait for the queue to be polled. */
static void notified_without_end(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_NOTIFY};
	struct slmpm_done done;
	slmpm_ctr none = {0};
	uint64_t sent = 0;
	slmpm_cq cq;
	int rc;

	OK(slmpm_cq_create(ctx, &cq));
	OK(slmpm_mem_notify(mem, none, cq));
	how.timeout_ms = 20;
	while ((rc = slmpm_put(rmem, 0, out, 8, &how, NULL)) == 0)
		CHECK(++sent < 100000, "nobody stops a peer's notifications");
	EXPECT(rc, -SLMPM_ETIMEOUT);
	for (uint64_t i = 0; i < sent; i++)
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	how.timeout_ms = PATIENCE;
	OK(slmpm_put(rmem, 0, out, 8, &how, NULL));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	OK(slmpm_mem_notify(mem, none, (slmpm_cq){0}));
	OK(slmpm_cq_destroy(cq));
}

static int all_of_it(const struct way *w)
{
	(void)w;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &far, &near);
	base = way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	rmem = way_reach(mem, near, far, SLMPM_READ_WRITE);
	way_check(rmem);
	by_counter_and_queue();
	notifications();
	notified_without_end();
	OK(slmpm_close(near, PATIENCE));
	OK(slmpm_close(far, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	return way_each(all_of_it, 15);
}
