/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair in one context, and a region of one end's whose FIFO the other puts into. */
#ifndef TESTS_API_FIFO_H
#define TESTS_API_FIFO_H

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE ((size_t)2 << 20)

static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char *there, here[SIZE];
static slmpm_mem mem;
static slmpm_rmem rmem;
static size_t longest; /* that may arrive without asking */

static inline void open_pair(uint32_t flags)
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

static inline void close_pair(void)
{
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static inline struct slmpm_how how_with(uint32_t flags, int timeout_ms)
{
	return (struct slmpm_how){
		.size = sizeof(struct slmpm_how),
		.flags = SLMPM_FIFO | flags,
		.timeout_ms = timeout_ms,
	};
}

static inline void put(uint64_t offset, uint64_t seed, size_t len)
{
	struct slmpm_how how = how_with(0, PATIENCE);

	how.imm = (uint32_t)seed;
	actor_fill(here, seed, len);
	OK(slmpm_put(rmem, offset, here, len, &how, NULL));
}

static inline struct slmpm_fifo take(uint64_t offset, uint64_t seed, size_t len)
{
	struct slmpm_fifo e;

	OK(slmpm_fifo_take(b, &e, PATIENCE));
	CHECK(e.peer.id == b.id && e.mem.id == mem.id && e.offset == offset && e.len == len &&
		      e.imm == (uint32_t)seed && actor_filled(e.data, seed, len),
	      "%zu bytes for %llu of put %u, not %zu for %llu of %u", e.len,
	      (unsigned long long)e.offset, e.imm, len, (unsigned long long)offset, (unsigned)seed);
	return e;
}

static inline bool is_blank(const unsigned char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i])
			return false;
	return true;
}

/* Whoever moves what is stored. */
static inline void fifo_each_engine(int (*body)(void *))
{
	static const char *const kinds[] = {"none", "inline", "thread"};

	for (int i = 0; i < 3; i++) {
		settings_set("SLMPM_ENGINE", kinds[i]);
		printf("%s\n", kinds[i]);
		fflush(stdout);
		CHECK(child_run(body, NULL, 20 * (unsigned)actor_slow()) == 0, "see above");
	}
}

#endif
