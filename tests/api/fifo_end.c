/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * The end of puts into a FIFO: when both sides hear that they are done; what the target may do with
 * an entry, also when its origin is gone.
 */
#include <string.h>
#include <unistd.h>

#include "tests/api/fifo.h"

/* ---- ends ----------------------------------------------------------------------------------- */

static slmpm_ctr ctr;
static slmpm_cq cq;

static void begin_counting(void)
{
	open_pair(0);
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
}

static void put_word(const struct slmpm_how *how, slmpm_req *req)
{
	OK(slmpm_put(rmem, 8, "abcdefgh", 8, how, req));
}

static void drop_next(int timeout_ms)
{
	struct slmpm_fifo e;

	OK(slmpm_fifo_take(b, &e, timeout_ms));
	OK(slmpm_fifo_drop(&e));
}

/* In the order in which the entries are disposed of. */
static void by_requests(void)
{
	const struct slmpm_how how = how_with(SLMPM_REMOTE, PATIENCE);
	struct slmpm_done done;
	struct slmpm_fifo e, f;
	slmpm_req req[3];

	for (int i = 0; i < 3; i++)
		put_word(&how, &req[i]);
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_fifo_take(b, &f, PATIENCE));
	EXPECT(slmpm_cancel(req[2]), -SLMPM_EBUSY);
	EXPECT(slmpm_wait(req, 3, &done, 20), -SLMPM_ETIMEOUT);
	OK(slmpm_fifo_store(&f, mem, 0, NULL, NULL)); /* not where it was meant to go */
	EXPECT(slmpm_wait(req, 3, &done, PATIENCE), 1);
	CHECK(done.op == SLMPM_OP_PUT && done.len == 8 && done.peer.id == a.id && !done.status &&
		      memcmp(there, "abcdefgh", 9) == 0,
	      "op %u of %llu bytes: %d", done.op, (unsigned long long)done.len, done.status);
	OK(slmpm_fifo_drop(&e));
	EXPECT(slmpm_wait(req, 3, &done, PATIENCE), 0);
	drop_next(0);
	EXPECT(slmpm_wait(req, 3, &done, PATIENCE), 2);
}

static void by_counter_and_queue(void)
{
	struct slmpm_how how = how_with(SLMPM_REMOTE, PATIENCE);
	struct slmpm_done done;

	how.ctr = ctr;
	put_word(&how, NULL);
	how = how_with(0, 0);
	how.cq = cq;
	how.cookie = 5;
	put_word(&how, NULL);
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1); /* its buffer is free */
	CHECK(done.cookie == 5 && done.op == SLMPM_OP_PUT, "op %u", done.op);
	EXPECT(slmpm_ctr_wait(ctr, SLMPM_ALL, 20), -SLMPM_ETIMEOUT);
	drop_next(PATIENCE);
	drop_next(PATIENCE);
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
}

/* Given up by its origin: it is in the FIFO all the same, its end is nobody's. */
static void given_up(void)
{
	const struct slmpm_how how = how_with(SLMPM_REMOTE, 10);
	struct slmpm_done done;
	struct slmpm_fifo e;
	slmpm_req req;

	EXPECT(slmpm_put(rmem, 8, "abcdefgh", 8, &how, NULL), -SLMPM_ETIMEOUT);
	drop_next(PATIENCE);
	put_word(&how, &req);
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_close(b, PATIENCE)); /* its entries go with it */
	EXPECT(slmpm_fifo_drop(&e), -SLMPM_EHANDLE);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_ECLOSED);
}

static int ends(void *unused)
{
	(void)unused;
	begin_counting();
	by_requests();
	by_counter_and_queue();
	given_up();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- stores --------------------------------------------------------------------------------- */

/* Four, each of which is told in another way. */
static void store_four(uint64_t round)
{
	struct slmpm_how local = {.size = sizeof(local), .timeout_ms = -1};
	size_t len = longest / 2 - round;
	struct slmpm_done done;
	slmpm_req req[4];

	for (uint64_t i = 0; i < 4; i++) {
		struct slmpm_fifo e;

		put(i * len, round * 4 + i, len);
		e = take(i * len, round * 4 + i, len);
		local.ctr.id = i == 1 ? ctr.id : 0;
		local.cq.id = i == 2 ? cq.id : 0;
		OK(slmpm_fifo_store(&e, e.mem, e.offset, i ? &local : NULL,
				    i % 3 ? NULL : &req[i]));
		CHECK(!e.id, "the entry can be used twice");
	}
	OK(slmpm_flush(b, PATIENCE)); /* is not in the way, and not held up */
	EXPECT(slmpm_cancel(req[3]), -SLMPM_EBUSY);
	EXPECT(slmpm_wait(&req[0], 1, &done, PATIENCE), 0);
	CHECK(done.op == SLMPM_OP_STORE && done.len == len && !done.status && done.peer.id == b.id,
	      "op %u", done.op);
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	EXPECT(done.op, SLMPM_OP_STORE);
	EXPECT(slmpm_wait(&req[3], 1, &done, PATIENCE), 0);
	for (uint64_t i = 0; i < 4; i++)
		CHECK(actor_filled(there + i * len, round * 4 + i, len), "round %d", (int)round);
}

/* The origin hears of a store that it is done only then. */
static void store_for_origin(void)
{
	struct slmpm_how how = how_with(SLMPM_REMOTE, -1);
	struct slmpm_done done;
	struct slmpm_fifo e;
	slmpm_req store, out;

	how.imm = 77;
	actor_fill(here, 77, longest);
	memset(there, 0, SIZE);
	OK(slmpm_put(rmem, 0, here, longest, &how, &out));
	e = take(0, 77, longest);
	OK(slmpm_fifo_store(&e, mem, 0, NULL, &store));
	EXPECT(slmpm_wait(&out, 1, &done, PATIENCE), 0);
	CHECK(!done.status && actor_filled(there, 77, longest), "done before it was stored");
	EXPECT(slmpm_wait(&store, 1, &done, PATIENCE), 0);
}

/* A region does not end under a store. */
static void end_region(void)
{
	struct slmpm_done done;
	struct slmpm_fifo e;
	slmpm_req store;

	put(0, 78, longest);
	e = take(0, 78, longest);
	OK(slmpm_fifo_store(&e, mem, 0, NULL, &store));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	EXPECT(slmpm_wait(&store, 1, &done, 0), 0);
}

static int stores(void *unused)
{
	(void)unused;
	begin_counting();
	for (uint64_t round = 0; round < 20; round++)
		store_four(round);
	store_for_origin();
	end_region();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* The origin closes: what it has put is still there, and can be stored; also what is on its way. */
static int orphans(void *unused)
{
	struct slmpm_done done;
	struct slmpm_fifo e;
	slmpm_req req;

	(void)unused;
	for (int i = 0; i < 10; i++) {
		open_pair(0);
		put(0, 1, longest / 2);
		put(0, 2, longest / 4);
		e = take(0, 1, longest / 2);
		OK(slmpm_fifo_store(&e, mem, 0, NULL, &req));
		usleep((useconds_t)i * 10);
		OK(slmpm_close(a, PATIENCE));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(!done.status && actor_filled(there, 1, longest / 2), "the store was lost");
		while (slmpm_send(b, 1, NULL, 0, 0) == 0)
			;
		e = take(0, 2, longest / 4);
		OK(slmpm_fifo_store(&e, mem, SIZE / 2, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &done, 0), 0);
		CHECK(actor_filled(there + SIZE / 2, 2, longest / 4), "the last store");
		EXPECT(slmpm_fifo_take(b, &e, PATIENCE), -SLMPM_ECLOSED);
		EXPECT(slmpm_fifo_take(slmpm_any(ctx), &e, PATIENCE), -SLMPM_ECLOSED);
		OK(slmpm_shut(ctx, PATIENCE)); /* with the region */
	}
	return 0;
}

int main(void)
{
	fifo_each_engine(ends);
	fifo_each_engine(stores);
	fifo_each_engine(orphans);
	return 0;
}
