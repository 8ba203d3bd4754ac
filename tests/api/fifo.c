/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Puts into a FIFO: what the target sees of them, in every length; in which order, for which credit;
 * when both sides hear that they are done; what the target may do with an entry, also when its origin
 * is gone; what the calls refuse.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define SIZE ((size_t)2 << 20)

static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char *there, here[SIZE];
static slmpm_mem mem;
static slmpm_rmem rmem;
static size_t longest;

static void open_pair(uint32_t flags)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = flags};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_peer_query(a, &info));
	longest = info.eager_max - 56;
}

static void close_pair(void)
{
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static struct slmpm_how how_with(uint32_t flags, int timeout_ms)
{
	return (struct slmpm_how){
		.size = sizeof(struct slmpm_how),
		.flags = SLMPM_FIFO | flags,
		.timeout_ms = timeout_ms,
	};
}

static void put(uint64_t offset, uint64_t seed, size_t len)
{
	struct slmpm_how how = how_with(0, PATIENCE);

	how.imm = (uint32_t)seed;
	actor_fill(here, seed, len);
	OK(slmpm_put(rmem, offset, here, len, &how, NULL));
}

static struct slmpm_fifo take(uint64_t offset, uint64_t seed, size_t len)
{
	struct slmpm_fifo e;

	OK(slmpm_fifo_take(b, &e, PATIENCE));
	CHECK(e.peer.id == b.id && e.mem.id == mem.id && e.offset == offset && e.len == len &&
		      e.imm == (uint32_t)seed && actor_filled(e.data, seed, len),
	      "%zu bytes for %llu of put %u, not %zu for %llu of %u", e.len,
	      (unsigned long long)e.offset, e.imm, len, (unsigned long long)offset, (unsigned)seed);
	return e;
}

static bool is_blank(const unsigned char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i])
			return false;
	return true;
}

/* ---- every length, stored and not ----------------------------------------------------------- */

static int lengths(void *unused)
{
	size_t all[] = {0, 1, 8, 4096, 8136, 8137, 30000, 100000, 0};
	struct slmpm_fifo e;

	(void)unused;
	open_pair(0);
	all[sizeof(all) / sizeof(*all) - 1] = longest;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		memset(there, 0, SIZE);
		put(3 * i, i + 1, all[i]);
		e = take(3 * i, i + 1, all[i]);
		CHECK(is_blank(there, SIZE), "%zu bytes were stored by nobody", all[i]);
		OK(slmpm_fifo_store(&e, e.mem, e.offset, NULL, NULL));
		CHECK(!e.id && actor_filled(there + 3 * i, i + 1, all[i]), "%zu bytes", all[i]);
		memset(there, 0, SIZE);
		put(0, i + 2, all[i]);
		e = take(0, i + 2, all[i]);
		OK(slmpm_fifo_drop(&e));
		CHECK(!e.id && is_blank(there, SIZE), "what was dropped is stored");
	}
	close_pair();
	return 0;
}

/* ---- order, and who is asked ---------------------------------------------------------------- */

static int order(void *unused)
{
	struct slmpm_how how = how_with(SLMPM_MORE, PATIENCE);
	struct slmpm_iov pieces[2] = {{here, 3}, {here + 3, 5}};
	struct slmpm_span span = {64, 8};
	struct slmpm_stats stats;
	struct slmpm_fifo e;
	unsigned char got[8];
	uint64_t bytes = 0;

	(void)unused;
	open_pair(0);
	for (uint64_t i = 0; i < 200; i++) {
		put(i, i, i % 7 == 0 ? 20000 : i);
		bytes += i % 7 == 0 ? 20000 : i;
	}
	OK(slmpm_send(a, 1, "over", 4, PATIENCE));
	EXPECT(slmpm_recv(b, 1, got, 8, NULL, PATIENCE), 4);
	for (uint64_t i = 0; i < 200; i++) { /* all there: what is behind them is */
		EXPECT(slmpm_fifo_take(i % 2 ? slmpm_any(ctx) : b, &e, 0), 0);
		CHECK(e.imm == i && e.offset == i && e.peer.id == b.id, "%u instead of %u", e.imm,
		      (unsigned)i);
		OK(slmpm_fifo_drop(&e));
	}
	EXPECT(slmpm_fifo_take(b, &e, 0), -SLMPM_ETIMEOUT);
	EXPECT(slmpm_fifo_take(a, &e, 5), -SLMPM_ETIMEOUT);
	EXPECT(slmpm_fifo_take(slmpm_any(ctx), &e, 0), -SLMPM_ETIMEOUT);
	actor_fill(here, 9, 8);
	how.imm = 9;
	OK(slmpm_putv(rmem, &span, 1, pieces, 2, &how, NULL));
	how.flags &= ~SLMPM_MORE;
	OK(slmpm_putv(rmem, &span, 1, pieces, 2, &how, NULL));
	for (int i = 0; i < 2; i++) {
		e = take(64, 9, 8);
		OK(slmpm_fifo_drop(&e));
	}
	EXPECT(slmpm_put(rmem, 0, here, longest + 1, &how, NULL), -SLMPM_ELIMIT);
	OK(slmpm_peer_stats(a, &stats, sizeof(stats)));
	CHECK(stats.puts == 202 && stats.put_bytes == bytes + 16, "%d puts", (int)stats.puts);
	CHECK(stats.fifo_puts == 202 && stats.fifo_bytes == bytes + 16 && !stats.fifo_entries,
	      "%d puts of %d bytes", (int)stats.fifo_puts, (int)stats.fifo_bytes);
	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	CHECK(!stats.fifo_puts && stats.fifo_entries == 202, "%d came", (int)stats.fifo_entries);
	close_pair();
	return 0;
}

/* ---- ends ----------------------------------------------------------------------------------- */

static int ends(void *unused)
{
	struct slmpm_how how = how_with(SLMPM_REMOTE, PATIENCE);
	struct slmpm_done done;
	struct slmpm_fifo e, f;
	slmpm_req req[3];
	slmpm_ctr ctr;
	slmpm_cq cq;

	(void)unused;
	open_pair(0);
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
	for (int i = 0; i < 3; i++)
		OK(slmpm_put(rmem, 8, "abcdefgh", 8, &how, &req[i]));
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
	OK(slmpm_fifo_take(b, &e, 0));
	OK(slmpm_fifo_drop(&e));
	EXPECT(slmpm_wait(req, 3, &done, PATIENCE), 2);

	how.ctr = ctr;
	OK(slmpm_put(rmem, 8, "abcdefgh", 8, &how, NULL));
	how = how_with(0, 0);
	how.cq = cq;
	how.cookie = 5;
	OK(slmpm_put(rmem, 8, "abcdefgh", 8, &how, NULL));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1); /* its buffer is free */
	CHECK(done.cookie == 5 && done.op == SLMPM_OP_PUT, "op %u", done.op);
	EXPECT(slmpm_ctr_wait(ctr, SLMPM_ALL, 20), -SLMPM_ETIMEOUT);
	for (int i = 0; i < 2; i++) {
		OK(slmpm_fifo_take(b, &e, PATIENCE));
		OK(slmpm_fifo_drop(&e));
	}
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));

	/* Given up by its origin: it is in the FIFO all the same, its end is nobody's. */
	how = how_with(SLMPM_REMOTE, 10);
	EXPECT(slmpm_put(rmem, 8, "abcdefgh", 8, &how, NULL), -SLMPM_ETIMEOUT);
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_fifo_drop(&e));
	OK(slmpm_put(rmem, 8, "abcdefgh", 8, &how, &req[0]));
	OK(slmpm_fifo_take(b, &e, PATIENCE));
	OK(slmpm_close(b, PATIENCE)); /* its entries go with it */
	EXPECT(slmpm_fifo_drop(&e), -SLMPM_EHANDLE);
	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_ECLOSED);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- stores --------------------------------------------------------------------------------- */

static int stores(void *unused)
{
	struct slmpm_how local = {.size = sizeof(local), .timeout_ms = -1}, how;
	struct slmpm_done done;
	struct slmpm_fifo e;
	slmpm_req req[4], out;
	slmpm_ctr ctr;
	slmpm_cq cq;

	(void)unused;
	open_pair(0);
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
	for (uint64_t round = 0; round < 20; round++) {
		size_t len = longest / 2 - round;

		for (uint64_t i = 0; i < 4; i++) {
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
		CHECK(done.op == SLMPM_OP_STORE && done.len == len && !done.status &&
			      done.peer.id == b.id,
		      "op %u", done.op);
		OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(done.op, SLMPM_OP_STORE);
		EXPECT(slmpm_wait(&req[3], 1, &done, PATIENCE), 0);
		for (uint64_t i = 0; i < 4; i++)
			CHECK(actor_filled(there + i * len, round * 4 + i, len), "round %d",
			      (int)round);
	}
	/* The origin hears of a store that it is done only then. */
	how = how_with(SLMPM_REMOTE, -1);
	how.imm = 77;
	actor_fill(here, 77, longest);
	memset(there, 0, SIZE);
	OK(slmpm_put(rmem, 0, here, longest, &how, &out));
	e = take(0, 77, longest);
	OK(slmpm_fifo_store(&e, mem, 0, NULL, &req[0]));
	EXPECT(slmpm_wait(&out, 1, &done, PATIENCE), 0);
	CHECK(!done.status && actor_filled(there, 77, longest), "done before it was stored");
	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	/* A region does not end under a store. */
	put(0, 78, longest);
	e = take(0, 78, longest);
	OK(slmpm_fifo_store(&e, mem, 0, NULL, &req[0]));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	EXPECT(slmpm_wait(req, 1, &done, 0), 0);
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

/* ---- several threads ------------------------------------------------------------------------ */

#define PUTS 300

static _Atomic uint64_t taken;

/* One of two that take whatever is there. */
static void *dispose(void *unused)
{
	struct slmpm_fifo e;
	slmpm_req req;
	uint32_t imm;
	int rc;

	(void)unused;
	while (taken < PUTS) {
		rc = slmpm_fifo_take(b, &e, 20);
		if (rc == -SLMPM_ETIMEOUT)
			continue;
		OK(rc);
		taken++;
		imm = e.imm; /* the entry will be zeroed */
		if (imm % 3 == 0) {
			OK(slmpm_fifo_drop(&e));
			continue;
		}
		OK(slmpm_fifo_store(&e, mem, e.offset, NULL, imm % 3 == 1 ? NULL : &req));
		if (imm % 3 == 2)
			EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	}
	return NULL;
}

static int threads(void *unused)
{
	struct slmpm_how how = how_with(SLMPM_REMOTE, PATIENCE);
	pthread_t thread[2];

	(void)unused;
	open_pair(SLMPM_THREADS);
	for (int i = 0; i < 2; i++)
		EXPECT(pthread_create(&thread[i], NULL, dispose, NULL), 0);
	for (uint32_t i = 0; i < PUTS; i++) {
		size_t len = i % 10 ? 100 : longest;

		how.imm = i;
		actor_fill(here, i, len);
		OK(slmpm_put(rmem, 0, here, len, &how, NULL));
		CHECK(i % 3 == 0 || actor_filled(there, i, len), "put %u is done, and not stored",
		      i);
	}
	for (int i = 0; i < 2; i++)
		EXPECT(pthread_join(thread[i], NULL), 0);
	close_pair();
	return 0;
}

/* ---- credit --------------------------------------------------------------------------------- */

static int credit(void *unused)
{
	struct slmpm_how how = how_with(0, 0);
	struct slmpm_fifo e;
	unsigned char got[8];
	int n = 0;

	(void)unused;
	open_pair(0);
	for (int round = 0; round < 3; round++) {
		int rc;

		/* Without taking any: what is in the ring and in the FIFO has its bound. */
		for (n = 0; (rc = slmpm_put(rmem, 0, here, longest / 2, &how, NULL)) == 0; n++)
			CHECK(n < 10000, "%d entries of %zu bytes, and no end", n, longest / 2);
		EXPECT(rc, -SLMPM_ETIMEOUT);
		CHECK(n > 0, "none");
		EXPECT(slmpm_send(a, 1, here, longest / 2, 0), -SLMPM_ETIMEOUT);
		for (int i = 0; i < n; i++) {
			OK(slmpm_fifo_take(b, &e, PATIENCE));
			OK(slmpm_fifo_drop(&e));
		}
		OK(slmpm_send(a, 1, here, 8, PATIENCE));
		EXPECT(slmpm_recv(b, 1, got, 8, NULL, PATIENCE), 8);
	}
	close_pair();
	return 0;
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void refused_puts(void)
{
	static const uint32_t wrong[] = {SLMPM_FENCE, SLMPM_BARRIER, SLMPM_NOTIFY, SLMPM_PART,
					 SLMPM_SILENT};
	struct slmpm_span spans[2] = {{0, 4}, {8, 4}};
	struct slmpm_iov piece = {here, 8};
	struct slmpm_how how;
	struct slmpm_fifo e;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		how = how_with(wrong[i], PATIENCE);
		EXPECT(slmpm_put(rmem, 0, here, 8, &how, NULL), -SLMPM_EINVAL);
	}
	how = how_with(0, PATIENCE);
	EXPECT(slmpm_get(rmem, 0, here, 8, &how, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_putv(rmem, spans, 2, &piece, 1, &how, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_putv(rmem, NULL, 0, NULL, 0, &how, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_put(rmem, SIZE - 7, here, 8, &how, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_put(rmem, 0, NULL, 8, &how, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_put(rmem, 0, here, longest + 1, &how, NULL), -SLMPM_ELIMIT);
	EXPECT(slmpm_fifo_take(b, &e, 0), -SLMPM_ETIMEOUT);
}

static int refusals(void *unused)
{
	struct slmpm_how how = how_with(0, PATIENCE), wrong = {.size = sizeof(wrong), .flags = 1};
	struct slmpm_fifo e, same, none = {.id = 0}, guess;
	slmpm_peer nobody = {0};
	slmpm_mem no_mem = {0};
	struct slmpm_key key;
	slmpm_rmem weak;

	(void)unused;
	open_pair(0);
	refused_puts();
	put(0, 3, 100);
	REFUSED(slmpm_fifo_take(b, NULL, 0), SLMPM_EINVAL, "slmpm_fifo_take");
	EXPECT(slmpm_fifo_take(nobody, &e, 0), -SLMPM_EHANDLE);
	same = e = take(0, 3, 100);
	EXPECT(slmpm_fifo_store(&e, no_mem, 0, NULL, NULL), -SLMPM_EHANDLE);
	EXPECT(slmpm_fifo_store(&e, mem, SIZE - 99, NULL, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_fifo_store(&e, mem, UINT64_MAX, NULL, NULL), -SLMPM_EINVAL);
	EXPECT(slmpm_fifo_store(&e, mem, 0, &wrong, NULL), -SLMPM_EINVAL);
	wrong.size = 3;
	EXPECT(slmpm_fifo_store(&e, mem, 0, &wrong, NULL), -SLMPM_EINVAL);
	REFUSED(slmpm_fifo_store(NULL, mem, 0, NULL, NULL), SLMPM_EINVAL, "slmpm_fifo_store");
	EXPECT(slmpm_fifo_store(&none, mem, 0, NULL, NULL), -SLMPM_EHANDLE);
	REFUSED(slmpm_fifo_drop(NULL), SLMPM_EINVAL, "slmpm_fifo_drop");
	EXPECT(slmpm_fifo_drop(&none), -SLMPM_EHANDLE);
	CHECK(e.id == same.id && actor_filled(e.data, 3, 100), "an error used it up");
	OK(slmpm_fifo_store(&e, mem, SIZE - 100, NULL, NULL));
	EXPECT(slmpm_fifo_store(&same, mem, 0, NULL, NULL), -SLMPM_EHANDLE);
	EXPECT(slmpm_fifo_drop(&same), -SLMPM_EHANDLE);
	/* One that nobody has taken is nobody's, whatever its number. */
	put(0, 4, 8);
	OK(slmpm_send(a, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(b, 1, NULL, 0, NULL, PATIENCE), 0);
	guess = same;
	guess.id = same.id + (UINT64_C(2) << 32);
	EXPECT(slmpm_fifo_drop(&guess), -SLMPM_EHANDLE);
	e = take(0, 4, 8);
	CHECK(e.id == guess.id, "the guess was none");
	OK(slmpm_fifo_drop(&e));
	/* The right to read is none to put. */
	OK(slmpm_mem_key(mem, b, SLMPM_READ, &key));
	OK(slmpm_mem_open(a, &key, &weak));
	EXPECT(slmpm_put(weak, 0, here, 8, &how, NULL), -SLMPM_EACCES);
	OK(slmpm_mem_release(weak));
	OK(slmpm_mem_revoke(mem, b, PATIENCE));
	how.flags |= SLMPM_REMOTE; /* refused here, or there */
	EXPECT(slmpm_put(rmem, 0, here, 8, &how, NULL), -SLMPM_EACCES);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static const char *const kinds[] = {"none", "inline", "thread"};
	unsigned seconds = 20 * (unsigned)actor_slow();

	CHECK(child_run(order, NULL, seconds) == 0, "see above");
	CHECK(child_run(credit, NULL, seconds) == 0, "see above");
	CHECK(child_run(refusals, NULL, seconds) == 0, "see above");
	for (int i = 0; i < 3; i++) {
		CHECK(setenv("SLMPM_ENGINE", kinds[i], 1) == 0, "setenv");
		printf("%s\n", kinds[i]);
		fflush(stdout);
		CHECK(child_run(lengths, NULL, seconds) == 0, "see above");
		CHECK(child_run(ends, NULL, seconds) == 0, "see above");
		CHECK(child_run(stores, NULL, seconds) == 0, "see above");
		CHECK(child_run(orphans, NULL, seconds) == 0, "see above");
		CHECK(child_run(threads, NULL, seconds) == 0, "see above");
	}
	return 0;
}
