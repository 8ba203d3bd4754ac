/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries that wait and count, and what has become of queues, counters and entries. */
#ifndef TESTS_API_WORKQUEUE_ENTRY_H
#define TESTS_API_WORKQUEUE_ENTRY_H

#include "tests/api/workqueue.h"

static inline struct slmpm_wr entry(uint32_t op, uint32_t channel, uint64_t value, uint32_t flags)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = op,
				 .flags = flags,
				 .channel = channel,
				 .value = value};
}

/* It is known by COOKIE. */
static inline struct slmpm_wr known(struct slmpm_wr wr, uint64_t cookie)
{
	wr.cookie = cookie;
	return wr;
}

static inline struct slmpm_wr on_counter(uint32_t op, slmpm_ctr ctr, uint32_t channel,
					 uint64_t value, uint32_t flags)
{
	struct slmpm_wr wr = entry(op, channel, value, flags);

	wr.ctr = ctr;
	return wr;
}

static inline struct slmpm_wr wait_for(slmpm_ctr ctr, uint32_t channel, uint64_t value,
				       uint32_t flags)
{
	return on_counter(SLMPM_OP_WAIT, ctr, channel, value, flags);
}

static inline struct slmpm_wr count(slmpm_ctr ctr, uint32_t channel, uint64_t value, uint32_t flags)
{
	return on_counter(SLMPM_OP_COUNT, ctr, channel, value, flags);
}

static inline slmpm_ctr counter(void)
{
	slmpm_ctr ctr;

	OK(slmpm_ctr_create(ctx, &ctr));
	return ctr;
}

static inline uint64_t counted(slmpm_ctr ctr)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(ctr, &info));
	return info.done;
}

static inline struct slmpm_wq_info look(slmpm_wq which)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(which, &info));
	return info;
}

static inline slmpm_wq another(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

static inline void post_to(slmpm_wq which, struct slmpm_wr wr)
{
	EXPECT(slmpm_post(which, &wr, 1), 1);
}

/* The next completion; of one that failed, LEN too. */
static inline void expect(uint64_t cookie, int status, uint64_t len)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status && (!status || done.len == len),
	      "cookie %llu, status %d, %llu instead of %llu, %d, %llu",
	      (unsigned long long)done.cookie, done.status, (unsigned long long)done.len,
	      (unsigned long long)cookie, status, (unsigned long long)len);
}

#endif
