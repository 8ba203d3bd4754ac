/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several processes and threads do atomic operations on the same words at once: some by
 * instructions of their own on the mapping, some through the owner, the owner by C11 atomics. The
 * sums are right, a lock made of compare-and-swap excludes, and swaps lose and double nothing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define PEERS   4
#define THREADS 3
#define ROUNDS  2000
#define TURNS   60 /* with the lock */

struct words { /* each in a line of its own */
	_Atomic uint64_t sum, pad0[7];
	_Atomic uint32_t half, pad1[15];
	_Atomic uint64_t lock, pad2[7];
	uint64_t guarded[2], pad3[6];
	_Atomic uint64_t token, pad4[7];
	uint64_t swapped[16];
};

#define AT(member) offsetof(struct words, member)

static slmpm_rmem rmem;

static uint64_t add(uint64_t offset, int bits, uint64_t n)
{
	uint64_t old = 0;

	OK(slmpm_atomic(rmem, offset, SLMPM_FETCH_ADD, bits, n, 0, &old, NULL, NULL));
	return old;
}

/* Two words that are the same whenever nobody has the lock. */
static void with_lock(void)
{
	struct slmpm_how fence = {
		.size = sizeof(fence), .timeout_ms = PATIENCE, .flags = SLMPM_FENCE};
	uint64_t old, pair[2];

	do {
		OK(slmpm_atomic(rmem, AT(lock), SLMPM_COMPARE_SWAP, 64, 1, 0, &old, NULL, NULL));
		if (old)
			usleep(50);
	} while (old);
	OK(slmpm_get(rmem, AT(guarded), pair, sizeof(pair), &fence, NULL));
	CHECK(pair[0] == pair[1], "%d and %d: two had the lock", (int)pair[0], (int)pair[1]);
	pair[0]++;
	OK(slmpm_put(rmem, AT(guarded), &pair[0], 8, NULL, NULL));
	pair[1]++;
	OK(slmpm_put(rmem, AT(guarded) + 8, &pair[1], 8, NULL, NULL));
	OK(slmpm_atomic(rmem, AT(lock), SLMPM_SWAP, 64, 0, 0, &old, &fence, NULL));
	EXPECT(old, 1);
}

/* What is swapped in comes out once: the sum of all that came out and what is left tells. */
static uint64_t swap_round(uint64_t me)
{
	uint64_t out = 0, old;

	for (uint64_t i = 1; i <= ROUNDS / 4; i++) {
		OK(slmpm_atomic(rmem, AT(token), SLMPM_SWAP, 64, me * ROUNDS + i, 0, &old, NULL,
				NULL));
		out += old;
	}
	return out;
}

static void *work(void *arg)
{
	uint64_t me = (uintptr_t)arg, out;

	for (int i = 0; i < ROUNDS; i++) {
		(void)add(AT(sum), 64, me);
		if (i % 2)
			(void)add(AT(half), 32, UINT32_MAX); /* minus one */
	}
	for (int i = 0; i < TURNS; i++)
		with_lock();
	out = swap_round(me);
	OK(slmpm_put(rmem, AT(swapped) + 8 * me, &out, 8, NULL, NULL));
	return NULL;
}

static slmpm_rmem open_key(slmpm_peer host)
{
	struct slmpm_key key;

	EXPECT(slmpm_recv(host, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(host, &key, &rmem));
	return rmem;
}

static int count(slmpm_peer host, char **words)
{
	open_key(host);
	(void)work((void *)(uintptr_t)strtoull(words[0], NULL, 10));
	OK(slmpm_flush(host, PATIENCE));
	OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	return 0;
}

/* The last of the peers: several threads in one context. */
static int count_by_threads(slmpm_peer none, char **words)
{
	struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	uint64_t first = strtoull(words[0], NULL, 10);
	pthread_t threads[THREADS];
	slmpm_peer host;
	slmpm_ctx ctx;

	(void)none;
	OK(slmpm_open(&ctx, &options));
	OK(slmpm_parent_in(ctx, &host));
	open_key(host);
	for (uint64_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(first + i)));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	OK(slmpm_flush(host, PATIENCE));
	OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"count", count}, {"-threads", count_by_threads}, {NULL, NULL}};
	uint64_t everyone = PEERS + (uint64_t)2 * THREADS, left = PEERS + 2, want = 0, out = 0,
		 in = 0;
	slmpm_peer peers[PEERS + 2];
	struct words *words;
	slmpm_mem mem;
	slmpm_ctx ctx;
	void *base;

	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	OK(slmpm_mem_alloc(ctx, sizeof(struct words), SLMPM_READ_WRITE, &mem, &base));
	words = base;
	for (uint64_t i = 0; i < PEERS + 2; i++) {
		char *ring[] = {"SLMPM_RMA=ring", NULL}, number[8];
		struct slmpm_spawn_options o = {.size = sizeof(o), .envp = i % 2 ? ring : NULL};
		struct slmpm_key key;

		snprintf(number, sizeof(number), "%d",
			 (int)(i < PEERS ? i + 1 : PEERS + 1 + (i - PEERS) * THREADS));
		peers[i] = actor_spawn_with(&o, i < PEERS ? "count" : "-threads", number, NULL);
		OK(slmpm_mem_key(mem, peers[i], SLMPM_READ_WRITE, &key));
		OK(slmpm_send(peers[i], 1, &key, sizeof(key), PATIENCE));
	}
	while (left) {
		struct slmpm_done done;

		for (int i = 0; i < 100; i++)
			atomic_fetch_add(&words->sum, 1000000);
		want += 100 * UINT64_C(1000000);
		if (slmpm_recv(slmpm_any(ctx), 2, NULL, 0, &done, 0) == 0)
			left--;
	}
	for (uint64_t i = 1; i <= everyone; i++) {
		want += i * ROUNDS;
		out += words->swapped[i];
		for (uint64_t k = 1; k <= ROUNDS / 4; k++)
			in += i * ROUNDS + k;
	}
	EXPECT(words->sum, want);
	EXPECT(words->half, (uint32_t) - (int64_t)(everyone * ROUNDS / 2));
	CHECK(words->guarded[0] == everyone * TURNS && words->guarded[1] == everyone * TURNS,
	      "%d times with the lock", (int)words->guarded[0]);
	EXPECT(out + words->token, in);
	for (int i = 0; i < PEERS + 2; i++)
		actor_join(peers[i], 0);
	OK(slmpm_mem_destroy(mem, PATIENCE));
	return 0;
}
