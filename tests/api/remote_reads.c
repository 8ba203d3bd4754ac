/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * What the statistics call remote reads: gets, atomic operations, pieces of fetched messages and of
 * shared puts, messages in loan areas, each on the side that reads, and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/share_pair.h"
#include "tests/lib/way.h"

#define SIZE   ((size_t)1 << 20)
#define TIMES  10
#define STREAM 3

enum { KEY = 1, READS };

static unsigned char bytes[SIZE];

static uint64_t reads(slmpm_peer peer)
{
	return actor_stats(peer).remote_reads;
}

/* ---- one-sided operations, on each way ------------------------------------------------------- */

static int operations(const struct way *w)
{
	slmpm_peer near, far;
	slmpm_rmem rmem;
	slmpm_ctx ctx;
	slmpm_mem mem;

	(void)w;
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &near, &far);
	(void)way_region(ctx, 4096, SLMPM_READ_WRITE, &mem);
	rmem = way_reach(mem, near, far, SLMPM_READ_WRITE);
	for (int i = 0; i < TIMES; i++) {
		uint64_t value = 0;

		OK(slmpm_put(rmem, 0, &value, sizeof(value), NULL, NULL));
		OK(slmpm_flush(far, PATIENCE));
		EXPECT(reads(far), 2 * i);
		OK(slmpm_get(rmem, 0, &value, sizeof(value), NULL, NULL));
		OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, &value, NULL, NULL));
		EXPECT(reads(far), 2 * i + 2);
	}
	EXPECT(reads(near), 0);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_close(far, PATIENCE));
	OK(slmpm_close(near, PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- large messages, puts, loans ------------------------------------------------------------- */

struct trial {
	const char *fetch, *share;
	bool fetched, shared; /* are pieces to be read? */
};

static void tell_reads(slmpm_peer peer)
{
	uint64_t n = reads(peer);

	OK(slmpm_send(peer, READS, &n, sizeof(n), PATIENCE));
}

static uint64_t hear_reads(slmpm_peer peer)
{
	uint64_t n;

	EXPECT(slmpm_recv(peer, READS, &n, sizeof(n), NULL, PATIENCE), sizeof(n));
	return n;
}

static void receive(slmpm_peer peer)
{
	EXPECT(slmpm_recv(peer, STREAM, bytes, SIZE, NULL, PATIENCE), SIZE);
	tell_reads(peer);
}

static void receive_loan(slmpm_peer peer)
{
	const void *at;

	EXPECT(slmpm_hold(peer, STREAM, &at, NULL, PATIENCE), SIZE);
	OK(slmpm_release(peer, at));
	tell_reads(peer);
}

/* Reads, or is the target of the puts. */
static int reader(slmpm_peer host, char **words)
{
	struct share_side s;
	slmpm_ctx none = {0};
	(void)words;

	for (int i = 0; i < TIMES; i++)
		receive(host);
	receive_loan(host);
	share_side_open(&s, none, host, SIZE);
	share_side_await(&s, STREAM);
	tell_reads(host);
	share_side_close(&s);
	return 0;
}

static int large(void *arg)
{
	const struct trial *t = arg;
	uint64_t n = 0, before;
	struct share_side s;
	slmpm_peer peer;
	slmpm_ctx ctx;
	void *at;

	setenv("SLMPM_FETCH", t->fetch, 1);
	setenv("SLMPM_SHARE", t->share, 1);
	setenv("SLMPM_WAIT", "spin",
	       1); /* the target of a put is there in time, if it has a processor */
	OK(slmpm_default(&ctx));
	peer = actor_spawn("reader", NULL, NULL);
	for (int i = 0; i < TIMES; i++) {
		OK(slmpm_send(peer, STREAM, bytes, SIZE, PATIENCE));
		n = hear_reads(peer);
	}
	if (t->fetched && !actor_stats(peer).rget_messages)
		printf("    nobody attaches here: no message is fetched\n");
	else
		CHECK(!n == !t->fetched, "a large message is read in %llu pieces",
		      (unsigned long long)n);
	before = n;
	OK(slmpm_loan(peer, STREAM, SIZE, &at, PATIENCE));
	OK(slmpm_commit(peer, at, SIZE, NULL));
	n = hear_reads(peer);
	EXPECT(n, before + way_maps());
	before = n;
	share_side_open(&s, ctx, peer, SIZE);
	for (int64_t end = actor_now_ms() + 2000; actor_now_ms() < end;) {
		OK(slmpm_put(s.to, 0, s.from, SIZE, NULL, NULL));
		if (actor_stats(peer).shared_puts || !t->shared)
			break;
	}
	OK(slmpm_send(peer, STREAM, NULL, 0, PATIENCE));
	n = hear_reads(peer);
	CHECK(!(n - before) == !actor_stats(peer).shared_puts, "%llu pieces of %llu shared puts",
	      (unsigned long long)(n - before), (unsigned long long)actor_stats(peer).shared_puts);
	CHECK(t->shared || n == before, "puts are shared");
	printf("    fetch %s, share %s: %llu reads, %llu of shared puts\n", t->fetch, t->share,
	       (unsigned long long)n, (unsigned long long)(n - before));
	EXPECT(reads(peer), 0); /* who sends and puts reads nothing */
	share_side_close(&s);
	actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", reader}, {NULL, NULL}};
	static struct trial trials[] = {{"always", "always", true, true},
					{"never", "never", false, false}};
	int failed;

	actor_begin(argc, argv, roles);
	failed = way_each(operations, 10);
	for (int i = 0; i < 2; i++)
		failed |= child_run(large, &trials[i], 20 * (unsigned)actor_slow());
	return failed ? 1 : 0;
}
