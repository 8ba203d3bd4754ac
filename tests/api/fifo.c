/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Puts into a FIFO: what the target sees of them, in every length; in which order, for which
 * credit; by several threads; what the calls refuse.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/fifo.h"

/* ---- every length, stored and not ----------------------------------------------------------- */

static int lengths(void *unused)
{
	size_t all[] = {0, 1, 8, 4096, 8136, 8137, 30000, 100000, 0, 0, SIZE - 1000};
	struct slmpm_fifo e;

	(void)unused;
	open_pair(0);
	all[8] = longest;
	all[9] = longest + 1;
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
	EXPECT(slmpm_fifo_take(b, &e, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_fifo_take(a, &e, 5), -SLMPM_ETIMEOUT);
	EXPECT(slmpm_fifo_take(slmpm_any(ctx), &e, 0), -SLMPM_EAGAIN);
	actor_fill(here, 9, 8);
	how.imm = 9;
	OK(slmpm_putv(rmem, &span, 1, pieces, 2, &how, NULL));
	how.flags &= ~SLMPM_MORE;
	OK(slmpm_putv(rmem, &span, 1, pieces, 2, &how, NULL));
	for (int i = 0; i < 2; i++) {
		e = take(64, 9, 8);
		OK(slmpm_fifo_drop(&e));
	}
	OK(slmpm_peer_stats(a, &stats, sizeof(stats)));
	CHECK(stats.puts == 202 && stats.put_bytes == bytes + 16, "%d puts", (int)stats.puts);
	CHECK(stats.fifo_puts == 202 && stats.fifo_bytes == bytes + 16 && !stats.fifo_entries,
	      "%d puts of %d bytes", (int)stats.fifo_puts, (int)stats.fifo_bytes);
	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	CHECK(!stats.fifo_puts && stats.fifo_entries == 202, "%d came", (int)stats.fifo_entries);
	close_pair();
	return 0;
}

/* ---- long ones ------------------------------------------------------------------------------ */

static bool has_engine(void)
{
	const char *kind = getenv("SLMPM_ENGINE");

	return kind && strcmp(kind, "none") != 0;
}

/* Beyond the credit: one of them is there at a time, and the others wait with all that is behind
 * them; one that is given up makes way. Stored by the engine, where there is one. */
static int long_ones(void *unused)
{
	static unsigned char more[3][SIZE];
	const size_t len = SIZE - 4096;
	struct slmpm_how how = how_with(SLMPM_REMOTE, PATIENCE), soon = how_with(0, 50);
	struct slmpm_stats stats;
	struct slmpm_fifo e;
	const struct slmpm_iov over = {(void *)(uintptr_t) "over", 4};
	slmpm_req way[3], message, store;
	struct slmpm_done done;

	(void)unused;
	open_pair(0);
	for (uint32_t i = 0; i < 3; i++) {
		actor_fill(more[i], i, len);
		how.imm = i;
		OK(slmpm_put(rmem, i, more[i], len, &how, &way[i]));
	}
	OK(slmpm_sendv(a, 1, &over, 1, NULL, &message));
	for (uint32_t i = 0; i < 3; i++) {
		e = take(i, i, len);
		EXPECT(slmpm_fifo_take(b, &(struct slmpm_fifo){.id = 0}, 20), -SLMPM_ETIMEOUT);
		EXPECT(slmpm_test(&way[i], &done), 0);
		OK(slmpm_fifo_store(&e, mem, 0, NULL, &store));
		EXPECT(slmpm_wait(&store, 1, &done, PATIENCE), 0);
		CHECK(done.len == len && actor_filled(there, i, len), "entry %u", i);
		EXPECT(slmpm_wait(&way[i], 1, &done, PATIENCE), 0);
		OK(done.status);
	}
	EXPECT(slmpm_wait(&message, 1, &done, PATIENCE), 0);
	EXPECT(slmpm_recv(b, 1, here, 4, NULL, PATIENCE), 4);
	OK(slmpm_peer_stats(b, &stats, sizeof(stats)));
	CHECK(stats.engine_in_bytes + stats.helped_in_bytes == (has_engine() ? 3 * len : 0),
	      "the engine: %llu and %llu", (unsigned long long)stats.engine_in_bytes,
	      (unsigned long long)stats.helped_in_bytes);
	EXPECT(stats.engine_in, has_engine() ? 3 : 0);
	EXPECT(stats.engine_out + stats.engine_out_bytes, 0);
	put(0, 7, len);
	EXPECT(slmpm_put(rmem, 0, more[0], len, &soon, NULL), -SLMPM_ETIMEOUT);
	e = take(0, 7, len);
	OK(slmpm_fifo_drop(&e));
	put(0, 8, len);
	e = take(0, 8, len);
	OK(slmpm_fifo_drop(&e));
	EXPECT(slmpm_fifo_take(b, &e, 0), -SLMPM_EAGAIN);
	close_pair();
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
		EXPECT(rc, -SLMPM_EAGAIN);
		CHECK(n > 0, "none");
		EXPECT(slmpm_send(a, 1, here, longest / 2, 0), -SLMPM_EAGAIN);
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
	EXPECT(slmpm_fifo_take(b, &e, 0), -SLMPM_EAGAIN);
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
	unsigned seconds = 20 * (unsigned)actor_slow();

	CHECK(child_run(order, NULL, seconds) == 0, "see above");
	CHECK(child_run(credit, NULL, seconds) == 0, "see above");
	CHECK(child_run(refusals, NULL, seconds) == 0, "see above");
	fifo_each_engine(lengths);
	fifo_each_engine(long_ones);
	fifo_each_engine(threads);
	return 0;
}
