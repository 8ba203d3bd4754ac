/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Put, get and atomic operations on every way: all lengths at an edge, lists, fences, what is
 * refused, and their end. Both ends in one context.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/way.h"

#define SIZE (1 << 20)
#define SPAN 37

static slmpm_ctx ctx;
static slmpm_peer near, far; /* the accessor as the owner sees it; the owner as it is seen */
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *base;
static unsigned char out[SIZE], in[SIZE];

/* ---- every length ---------------------------------------------------------------------------- */

static void one_length(size_t n, uint64_t offset)
{
	unsigned char before = base[offset ? offset - 1 : SIZE - 1],
		      behind = base[(offset + n) % SIZE];

	actor_fill(out, n, n);
	OK(slmpm_put(rmem, offset, out, n, NULL, NULL));
	OK(slmpm_flush(far, PATIENCE));
	CHECK(actor_filled(base + offset, n, n), "%zu bytes put at %llu", n,
	      (unsigned long long)offset);
	CHECK(base[offset ? offset - 1 : SIZE - 1] == before && base[(offset + n) % SIZE] == behind,
	      "what lies around %zu bytes at %llu", n, (unsigned long long)offset);
	actor_fill(base + offset, n + 1, n);
	memset(in, 0, n + 1);
	OK(slmpm_get(rmem, offset, in, n, NULL, NULL));
	CHECK(actor_filled(in, n + 1, n) && !in[n], "%zu bytes got", n);
}

static void lengths(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	size_t packet, most = way_current()->slow ? SIZE / 8 : SIZE / 2;

	OK(slmpm_peer_query(far, &info));
	packet = info.packet_max;
	for (size_t n = 0; n < 70; n++)
		one_length(n, 1000 + n % 8);
	for (size_t k = 1; k <= 3; k++)
		for (size_t n = k * packet - 42; n <= k * packet + 2; n++)
			one_length(n, n % 16);
	for (size_t n = 1; n <= most; n *= 2) {
		one_length(n - 1, SIZE - n + 1);
		one_length(n, SIZE - n);
		one_length(n + 1, 3);
	}
	one_length(0, SIZE);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int cut(struct slmpm_span *spans, struct slmpm_iov *pieces, size_t total, int *m)
{
	size_t done = 0;
	int n = 0;

	for (int i = 0; done < total; i++, n++) {
		size_t step = i % 5 == 3 ? 0 : (size_t)(i * i * 31 + 1);

		step = step < total - done && n < SPAN - 1 ? step : total - done;
		/* Backwards, with a gap, so that no order is the natural one. */
		spans[n] = (struct slmpm_span){SIZE - done - step - (uint64_t)n, step};
		done += step;
	}
	done = 0;
	for (*m = 0; done < total; ++*m) {
		size_t step = (size_t)(*m * 777 + 3);

		step = step < total - done && *m < SPAN - 1 ? step : total - done;
		pieces[*m] = (struct slmpm_iov){out + done, step};
		done += step;
	}
	return n;
}

static void lists(void)
{
	struct slmpm_how remote = {
		.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	static const size_t totals[] = {0, 1, 50, 5000, 100000, SIZE / 2};
	struct slmpm_span spans[SPAN], half[2] = {{0, 10}, {20, 10}};
	struct slmpm_iov pieces[SPAN], back, five = {in, 5};

	for (size_t t = 0; t < sizeof(totals) / sizeof(totals[0]); t++) {
		int m, n = cut(spans, pieces, totals[t], &m);

		actor_fill(out, t, totals[t]);
		OK(slmpm_putv(rmem, spans, n, pieces, m, &remote, NULL));
		for (uint64_t i = 0, at = 0; i < (uint64_t)n; at += spans[i++].len)
			CHECK(!memcmp(base + spans[i].offset, out + at, spans[i].len),
			      "span %d of %zu bytes", (int)i, totals[t]);
		memset(in, 0, totals[t]);
		back = (struct slmpm_iov){in, totals[t]};
		OK(slmpm_getv(rmem, spans, n, &back, 1, &remote, NULL));
		CHECK(actor_filled(in, t, totals[t]), "gathered %zu bytes", totals[t]);
	}
	OK(slmpm_putv(rmem, NULL, 0, NULL, 0, NULL, NULL));
	REFUSED(slmpm_putv(rmem, half, 2, &five, 1, NULL, NULL), SLMPM_EINVAL, "bytes here");
	REFUSED(slmpm_getv(rmem, half, 1, NULL, 0, NULL, NULL), SLMPM_EINVAL, "bytes here");
	REFUSED(slmpm_putv(rmem, half, -1, &five, 1, NULL, NULL), SLMPM_EINVAL, "-1 spans");
	REFUSED(slmpm_putv(rmem, NULL, 1, &five, 1, NULL, NULL), SLMPM_EINVAL, "1 spans");
	half[1].offset = SIZE - 9;
	back.len = 20;
	REFUSED(slmpm_getv(rmem, half, 2, &back, 1, NULL, NULL), SLMPM_EINVAL, "of a region of");
}

/* ---- how the end is told --------------------------------------------------------------------- */

static void by_request(void)
{
	enum { MANY = 50 };
	slmpm_req req[MANY];
	struct slmpm_done done;

	for (uint64_t i = 0; i < MANY; i++) {
		actor_fill(out + i * 3000, i, 3000);
		OK(slmpm_put(rmem, i * 3000, out + i * 3000, 3000, NULL, &req[i]));
	}
	for (int i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		CHECK(done.op == SLMPM_OP_PUT && done.len == 3000 && !done.status &&
			      done.peer.id == far.id && !req[i].id,
		      "how put %d ended", i);
	}
	for (uint64_t i = 0; i < MANY; i++) /* more than may be under way */
		OK(slmpm_get(rmem, i * 3000, in + i * 3000, 3000, NULL, &req[i]));
	for (uint64_t i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		CHECK(done.op == SLMPM_OP_GET && done.len == 3000 &&
			      actor_filled(in + i * 3000, i, 3000),
		      "get %d", (int)i);
	}
}

/* A get that is answered amidst a long put does not speak of the put's end. */
static void flushed_after_a_get(void)
{
	enum { TIMES = 4 }; /* more than a ring holds */
	struct slmpm_span spans[TIMES];
	struct slmpm_iov pieces[TIMES];
	unsigned char some[SPAN];
	slmpm_req put, get;
	bool got = false;

	actor_fill(out, 3, SIZE);
	memset(base, 0, SIZE);
	for (int i = 0; i < TIMES; i++) {
		spans[i] = (struct slmpm_span){0, SIZE};
		pieces[i] = (struct slmpm_iov){i < TIMES - 1 ? in : out, SIZE};
	}
	OK(slmpm_putv(rmem, spans, TIMES, pieces, TIMES, NULL, &put));
	OK(slmpm_get(rmem, 0, some, SPAN, NULL, &get));
	while (slmpm_test(&put, NULL) == 0)
		got = got || slmpm_test(&get, NULL) == 1;
	OK(slmpm_flush(far, PATIENCE));
	CHECK(actor_filled(base, 3, SIZE), "a flush came too early");
	if (!got)
		EXPECT(slmpm_wait(&get, 1, NULL, PATIENCE), 0);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Fenced operations come after those before them, and others after a barrier. */
static void order(void)
{
	struct slmpm_how plain = {.size = sizeof(plain)}, fence = plain, barrier = plain;
	slmpm_req req[40];
	uint64_t word[10], got[10];

	fence.flags = SLMPM_FENCE;
	barrier.flags = SLMPM_BARRIER;
	memset(base, 0, 64);
	for (uint64_t i = 0; i < 10; i++) {
		word[i] = i + 1;
		OK(slmpm_put(rmem, 0, &word[i], 8, &plain, &req[4 * i]));
		OK(slmpm_get(rmem, 0, &got[i], 8, i % 2 ? &fence : &barrier, &req[4 * i + 1]));
		OK(slmpm_put(rmem, 8, &word[i], 8, &fence, &req[4 * i + 2]));
		OK(slmpm_put(rmem, 16, &word[i], 8, &barrier, &req[4 * i + 3]));
	}
	for (int i = 0; i < 40; i++)
		EXPECT(slmpm_wait(&req[i], 1, NULL, PATIENCE), 0);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(got[i] == i + 1, "get %d found %d", (int)i, (int)got[i]);
	OK(slmpm_flush(far, PATIENCE));
	CHECK(!memcmp(base, &word[9], 8) && !memcmp(base + 16, &word[9], 8), "the last");
}

/* ---- atomic operations ----------------------------------------------------------------------- */

static void atomics(void)
{
	uint64_t word = 40, old = 0;
	uint32_t half = 7, was = 0;

	memcpy(base + 64, &word, 8);
	memcpy(base + 72, &half, 4);
	memset(base + 76, 0xee, 4);
	OK(slmpm_atomic(rmem, 64, SLMPM_FETCH_ADD, 64, 2, 0, &old, NULL, NULL));
	EXPECT(old, 40);
	OK(slmpm_atomic(rmem, 64, SLMPM_COMPARE_SWAP, 64, UINT64_MAX - 1, 41, &old, NULL, NULL));
	EXPECT(old, 42);
	OK(slmpm_atomic(rmem, 64, SLMPM_COMPARE_SWAP, 64, UINT64_MAX - 1, 42, &old, NULL, NULL));
	EXPECT(old, 42);
	OK(slmpm_atomic(rmem, 64, SLMPM_FETCH_ADD, 64, 5, 0, NULL, NULL, NULL));
	OK(slmpm_atomic(rmem, 64, SLMPM_SWAP, 64, 99, 0, &old, NULL, NULL));
	EXPECT(old, 3);
	memcpy(&word, base + 64, 8);
	EXPECT(word, 99);
	OK(slmpm_atomic(rmem, 72, SLMPM_FETCH_ADD, 32, UINT32_MAX, 0, &was, NULL, NULL));
	EXPECT(was, 7);
	OK(slmpm_atomic(rmem, 72, SLMPM_COMPARE_SWAP, 32, 11, 6, &was, NULL, NULL));
	EXPECT(was, 6);
	OK(slmpm_atomic(rmem, 72, SLMPM_SWAP, 32, 12, 0, &was, NULL, NULL));
	EXPECT(was, 11);
	memcpy(&half, base + 72, 4);
	EXPECT(half, 12);
	CHECK(base[76] == 0xee && base[79] == 0xee, "what lies behind a word of 32 bits");
	REFUSED(slmpm_atomic(rmem, 66, SLMPM_SWAP, 64, 1, 0, &old, NULL, NULL), SLMPM_EINVAL,
		"aligned");
	REFUSED(slmpm_atomic(rmem, 2, SLMPM_SWAP, 32, 1, 0, &was, NULL, NULL), SLMPM_EINVAL,
		"aligned");
	REFUSED(slmpm_atomic(rmem, 0, 4, 64, 1, 0, &old, NULL, NULL), SLMPM_EINVAL, "operation 4");
	REFUSED(slmpm_atomic(rmem, 0, 1, 16, 1, 0, &old, NULL, NULL), SLMPM_EINVAL, "16 bits");
	REFUSED(slmpm_atomic(rmem, SIZE, 1, 64, 1, 0, &old, NULL, NULL), SLMPM_EINVAL, "region");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(void)
{
	slmpm_rmem read_only = way_reach(mem, near, far, SLMPM_READ);
	slmpm_rmem write_only, zero = {0};
	struct slmpm_how how = {.size = 4};
	struct slmpm_key key;
	slmpm_req req;

	REFUSED(slmpm_put(zero, 0, out, 1, NULL, NULL), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_put(rmem, SIZE, out, 1, NULL, NULL), SLMPM_EINVAL, "region of 1048576");
	REFUSED(slmpm_put(rmem, 1, out, SIZE, NULL, NULL), SLMPM_EINVAL, "region of");
	REFUSED(slmpm_put(rmem, SIZE + 1, out, 0, NULL, NULL), SLMPM_EINVAL, "region of");
	REFUSED(slmpm_get(rmem, UINT64_MAX, in, 2, NULL, NULL), SLMPM_EINVAL, "region of");
	REFUSED(slmpm_get(rmem, 2, in, SIZE_MAX, NULL, NULL), SLMPM_EINVAL, "region of");
	REFUSED(slmpm_put(rmem, 0, NULL, 1, NULL, NULL), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_get(rmem, 0, NULL, 1, NULL, &req), SLMPM_EINVAL, "NULL");
	REFUSED(slmpm_put(rmem, 0, out, 1, &how, NULL), SLMPM_EINVAL, ".size");
	how.size = sizeof(how);
	how.flags = SLMPM_PART;
	REFUSED(slmpm_put(rmem, 0, out, 1, &how, NULL), SLMPM_EINVAL, "flags");
	how.flags = 0;
	how.cq.id = 77;
	REFUSED(slmpm_put(rmem, 0, out, 1, &how, NULL), SLMPM_EHANDLE, "");
	REFUSED(slmpm_put(read_only, 0, out, 1, NULL, NULL), SLMPM_EACCES, "no writing");
	REFUSED(slmpm_atomic(read_only, 0, SLMPM_SWAP, 64, 1, 0, NULL, NULL, NULL), SLMPM_EACCES,
		"no writing");
	OK(slmpm_get(read_only, 0, in, 1, NULL, NULL));
	OK(slmpm_mem_key(mem, near, SLMPM_WRITE, &key));
	OK(slmpm_mem_open(far, &key, &write_only));
	REFUSED(slmpm_get(write_only, 0, in, 1, NULL, NULL), SLMPM_EACCES, "no reading");
	OK(slmpm_put(write_only, 0, out, 1, NULL, NULL));
	OK(slmpm_flush(far, PATIENCE));
	REFUSED(slmpm_flush((slmpm_peer){0}, 0), SLMPM_EHANDLE, "zero");
	/* Nothing passes a loan that lies in the ring; with checksums none does. */
	if (!strcmp(way_current()->path, "ring") && !getenv("SLMPM_CHECK")) {
		void *buf;

		OK(slmpm_loan(far, 1, 100, &buf, PATIENCE));
		REFUSED(slmpm_put(rmem, 0, out, 1, NULL, NULL), SLMPM_EBUSY, "loan");
		OK(slmpm_abort(far, buf));
		OK(slmpm_put(rmem, 0, out, 1, NULL, NULL));
	}
	OK(slmpm_mem_release(read_only));
	OK(slmpm_mem_release(write_only));
	REFUSED(slmpm_put(read_only, 0, out, 1, NULL, NULL), SLMPM_EHANDLE, "stale");
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void canceled(void)
{
	enum { MANY = 100, LONG = 500 };
	static struct slmpm_span spans[LONG];
	static struct slmpm_iov pieces[LONG];
	struct slmpm_how once = {.size = sizeof(once)};
	struct slmpm_done done;
	slmpm_req req[MANY];
	int rc[MANY], taken = 0, late = 0;

	if (way_is_direct())
		return;
	for (int i = 0; i < MANY; i++)
		OK(slmpm_get(rmem, 0, in, 100, NULL, &req[i]));
	for (int i = 0; i < MANY; i++) {
		rc[i] = slmpm_cancel(req[i]);
		taken += rc[i] == 0;
		late += rc[i] == -SLMPM_EBUSY;
	}
	for (int i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		EXPECT(done.status, rc[i] ? 0 : -SLMPM_ECANCELED);
	}
	CHECK(taken && late && taken + late == MANY, "%d taken back, %d too late", taken, late);
	/* Far more than one try moves. */
	for (int i = 0; i < LONG; i++) {
		spans[i] = (struct slmpm_span){0, SIZE};
		pieces[i] = (struct slmpm_iov){in, SIZE};
	}
	REFUSED(slmpm_getv(rmem, spans, LONG, pieces, LONG, &once, NULL), SLMPM_ETIMEOUT,
		"not done");
	memset(in, 0x5a, SIZE);
	OK(slmpm_put(rmem, 0, out, SIZE, NULL, NULL));
	OK(slmpm_flush(far, PATIENCE));
	for (int i = 0; i < SIZE; i++)
		CHECK(in[i] == 0x5a, "byte %d came after the call had ended", i);
	/* Given up in the middle, and the next is whole. */
	REFUSED(slmpm_putv(rmem, spans, LONG, pieces, LONG, &once, NULL), SLMPM_ETIMEOUT,
		"not done");
	OK(slmpm_flush(far, PATIENCE)); /* what is still on its way of that is in place */
	one_length(100000, 5);
}

static void closed(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};
	struct slmpm_done done;
	slmpm_req req[2];
	bool direct = way_is_direct() && !getenv("SLMPM_ENGINE");

	OK(slmpm_put(rmem, 0, out, SIZE, &how, &req[0]));
	OK(slmpm_get(rmem, 0, in, 10, NULL, &req[1]));
	OK(slmpm_close(near, PATIENCE) == 0 ? 0 : 1);
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		CHECK(direct ? !done.status : !done.status || done.status == -SLMPM_ECLOSED,
		      "operation %d ended with %d", i, done.status);
	}
	while (slmpm_progress(ctx))
		;
	REFUSED(slmpm_put(rmem, 0, out, 1, NULL, NULL), SLMPM_ECLOSED, "");
	REFUSED(slmpm_get(rmem, 0, in, 1, NULL, &req[0]), SLMPM_ECLOSED, "");
	REFUSED(slmpm_flush(far, 0), SLMPM_ECLOSED, "");
	OK(slmpm_close(far, 0));
	REFUSED(slmpm_put(rmem, 0, out, 1, NULL, NULL), SLMPM_EHANDLE, "");
}

static int everything(const struct way *w)
{
	struct slmpm_stats asked, asker;

	(void)w;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &far, &near);
	base = way_region(ctx, SIZE, SLMPM_READ_WRITE, &mem);
	rmem = way_reach(mem, near, far, SLMPM_READ_WRITE);
	way_check(rmem);
	lengths();
	lists();
	by_request();
	flushed_after_a_get();
	order();
	atomics();
	refused();
	canceled();
	asker = actor_stats(far);
	asked = actor_stats(near);
	CHECK(asker.puts && asker.put_bytes && asker.gets && asker.get_bytes && asker.atomics,
	      "what was counted");
	CHECK(!asked.violations && !asker.violations && !asked.refused, "refused %d",
	      (int)asked.refused);
	CHECK(way_is_direct() || asked.served, "what was served");
	closed();
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	return way_each(everything, 15);
}
