/* SPDX-License-Identifier: BSD-3-Clause */
/* A work queue from A to B, both in one context, to B's region; work requests and their ends. */
#ifndef TESTS_API_WORKQUEUE_H
#define TESTS_API_WORKQUEUE_H

#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define WORDS 1024

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_cq cq;
static slmpm_wq wq;
static slmpm_mem mem;
static slmpm_rmem far;
static uint64_t *there; /* B's region */
static uint64_t here[WORDS];

static inline void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static inline void create(uint32_t depth, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = depth, .flags = flags};

	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
}

/* A receive queue of a stream of PEER. */
static inline slmpm_wq receive_queue_of(slmpm_peer peer, uint32_t stream, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | flags,
				     .cq = cq,
				     .peer = peer,
				     .stream = stream};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

static inline void begin_in(uint32_t context_flags, uint32_t depth, uint32_t flags)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = context_flags};
	struct slmpm_key key;
	void *base;

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, WORDS * 8, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &far));
	settle();
	OK(slmpm_cq_create(ctx, &cq));
	create(depth, flags);
}

static inline void begin(uint32_t depth, uint32_t flags)
{
	begin_in(0, depth, flags);
}

static inline void end(void)
{
	OK(slmpm_shut(ctx, PATIENCE));
	REFUSED(slmpm_wq_destroy(wq), SLMPM_EHANDLE, "no such work queue");
}

static inline void post(struct slmpm_wr wr)
{
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static inline struct slmpm_wr message(uint32_t stream, const struct slmpm_iov *iov, uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_SEND,
				 .peer = a,
				 .stream = stream,
				 .iov = iov,
				 .iov_count = 1,
				 .cookie = cookie,
				 .imm = (uint32_t)cookie + 1};
}

static inline struct slmpm_wr one_sided(uint32_t op, uint64_t word, const struct slmpm_iov *iov,
					uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = op,
				 .rmem = far,
				 .offset = word * 8,
				 .iov = iov,
				 .iov_count = 1,
				 .cookie = cookie};
}

static inline struct slmpm_wr add(uint64_t word, uint64_t n, uint64_t *old, uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_ATOMIC,
				 .atomic = SLMPM_FETCH_ADD,
				 .bits = 64,
				 .rmem = far,
				 .offset = word * 8,
				 .operand = n,
				 .old = old,
				 .cookie = cookie};
}

static inline struct slmpm_wr receive(uint32_t stream, const struct slmpm_iov *iov, uint64_t cookie)
{
	struct slmpm_wr wr = message(stream, iov, cookie);

	wr.op = SLMPM_OP_RECV;
	wr.imm = 0;
	return wr;
}

static inline struct slmpm_done next(uint64_t cookie, uint32_t op, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.op == op && done.status == status &&
		      done.peer.id == a.id,
	      "cookie %llu, op %u, status %d instead of %llu, %u, %d",
	      (unsigned long long)done.cookie, done.op, done.status, (unsigned long long)cookie, op,
	      status);
	return done;
}

static inline void empty(void)
{
	struct slmpm_done done;

	settle();
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

/* Longer than what comes unasked; it is to be freed. */
static inline struct slmpm_iov long_one(void)
{
	size_t n = message_eager(a) * 2;
	struct slmpm_iov whole = {calloc(1, n), n};

	CHECK(whole.base, "out of memory");
	return whole;
}

/* PLAY by each way that one-sided operations can go. */
static inline void by_each_way(int (*play)(void *way))
{
	static char *const ways[] = {"auto", "ring", "am", "tag"};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int rc = child_run(play, ways[i], 25);

		CHECK(rc == 0, "SLMPM_RMA=%s: %d", ways[i], rc);
	}
}

#endif
