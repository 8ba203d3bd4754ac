/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions under several threads of one context: one shares, one accepts and writes, one takes back,
 * one gives keys of its own; each call ends, with success or with what the others did to it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"

#define SIZE   8192
#define ROUNDS 300

static slmpm_ctx ctx;
static slmpm_peer owner, other;  /* the acceptor's view, the owner's */
static _Atomic uint64_t current; /* region being shared */
static _Atomic bool over;
static int taken, taken_back;

static void *share(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		slmpm_mem mem;
		void *base;
		int rc;

		OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
		atomic_store(&current, mem.id);
		rc = slmpm_mem_share(mem, other, SLMPM_READ_WRITE, PATIENCE);
		CHECK(rc == 0 || rc == -SLMPM_ECANCELED, "share: %d (%s)", rc,
		      slmpm_error_detail());
		atomic_store(&current, 0);
		OK(slmpm_mem_destroy(mem, PATIENCE));
	}
	atomic_store(&over, true);
	return NULL;
}

static void *accept_all(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		uint64_t word = 42, back = 0;
		slmpm_rmem rmem;
		int rc = slmpm_mem_accept(owner, &rmem, 10);

		if (rc == -SLMPM_ETIMEOUT)
			continue;
		OK(rc);
		taken++;
		rc = slmpm_put(rmem, 8, &word, sizeof(word), NULL, NULL);
		CHECK(rc == 0 || rc == -SLMPM_EACCES, "put: %d (%s)", rc, slmpm_error_detail());
		rc = rc ? rc : slmpm_get(rmem, 8, &back, sizeof(back), NULL, NULL);
		CHECK(rc == -SLMPM_EACCES || (rc == 0 && back == word), "get: %d, %llu (%s)", rc,
		      (unsigned long long)back, slmpm_error_detail());
		OK(slmpm_mem_release(rmem));
	}
	return NULL;
}

/* From each third region, once. */
static void *take_back(void *unused)
{
	uint64_t last = 0;

	(void)unused;
	for (int regions = 0; !atomic_load(&over);) {
		slmpm_mem mem = {atomic_load(&current)};
		int rc;

		(void)slmpm_progress(ctx);
		if (!mem.id || mem.id == last || (last = mem.id, regions++ % 3))
			continue;
		rc = slmpm_mem_revoke(mem, other, PATIENCE);
		CHECK(rc == 0 || rc == -SLMPM_EHANDLE, "revoke: %d (%s)", rc, slmpm_error_detail());
		taken_back += rc == 0;
	}
	return NULL;
}

static void *give_keys(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		static char memory[64];
		struct slmpm_key key;
		slmpm_rmem rmem;
		slmpm_mem mem;
		char byte = 1;

		OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
		OK(slmpm_mem_key(mem, owner, SLMPM_READ_WRITE, &key));
		OK(slmpm_mem_open(other, &key, &rmem));
		OK(slmpm_put(rmem, 63, &byte, 1, NULL, NULL));
		OK(slmpm_mem_release(rmem));
		OK(slmpm_mem_destroy(mem, PATIENCE));
	}
	return NULL;
}

int main(void)
{
	static void *(*const parts[])(void *) = {share, accept_all, take_back, give_keys};
	const struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	pthread_t threads[4];

	CHECK(setenv("SLMPM_ATTACH", "y", 1) == 0, "setenv"); /* both ends are this process */
	OK(slmpm_open(&ctx, &options));
	actor_pair(ctx, &owner, &other);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, parts[i], NULL) == 0, "thread %d", i);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "thread %d", i);
	printf("%d accepted, %d taken back\n", taken, taken_back);
	CHECK(taken > ROUNDS / 4, "only %d were accepted", taken);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
