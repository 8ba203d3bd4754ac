/* SPDX-License-Identifier: BSD-3-Clause */
/* A work queue whose entries are CALCs, all of one description. */
#ifndef TESTS_API_WORKQUEUE_CALC_H
#define TESTS_API_WORKQUEUE_CALC_H

#include "tests/lib/actor.h"

static slmpm_cq cq;
static slmpm_wq wq;
static struct slmpm_calc calc;

static inline void post(uint64_t cookie)
{
	struct slmpm_wr wr = {
		.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &calc, .cookie = cookie};

	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static inline struct slmpm_done ended(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.op == SLMPM_OP_CALC && done.status == status,
	      "cookie %llu, op %u, status %d instead of %llu, %d", (unsigned long long)done.cookie,
	      done.op, done.status, (unsigned long long)cookie, status);
	return done;
}

#endif
