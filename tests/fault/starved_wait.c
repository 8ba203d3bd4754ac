/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * A relative WAIT that is refused for want of memory has taken nothing of its total: the same one,
 * posted again, waits for no more than it would have.
 */
#include <errno.h>

#include "tests/lib/actor.h"

#define WAITS 64u

/* ---- memory that is refused ------------------------------------------------------------------ */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);

static bool is_refused;

void *malloc(size_t n)
{
	errno = ENOMEM;
	return is_refused ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	errno = ENOMEM;
	return is_refused ? NULL : __libc_calloc(n, size);
}

/* ---- the queues ------------------------------------------------------------------------------ */

static slmpm_ctx ctx;
static slmpm_ctr ctr;

static slmpm_wq create(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	slmpm_wq wq;

	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq));
	return wq;
}

static int post(slmpm_wq wq, uint32_t op)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .flags = SLMPM_RELATIVE, .ctr = ctr, .value = 1};

	wr.op = op;
	return slmpm_post(wq, &wr, 1);
}

static uint64_t done(slmpm_wq wq)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	while (slmpm_progress(ctx) > 0)
		;
	OK(slmpm_wq_query(wq, &info));
	return info.done;
}

int main(void)
{
	slmpm_wq waits, counts;
	unsigned refused = 0;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_ctr_create(ctx, &ctr));
	waits = create();
	counts = create();
	for (unsigned i = 0; i < WAITS; i++) {
		int rc;

		is_refused = true;
		rc = post(waits, SLMPM_OP_WAIT);
		is_refused = false;
		CHECK(rc == 1 || rc == -SLMPM_ENOMEM, "%d (%s)", rc, slmpm_error_detail());
		refused += rc < 0;
		if (!i) /* that of the first one is not where counting begins */
			EXPECT(post(counts, SLMPM_OP_COUNT), 1);
		if (rc < 0)
			EXPECT(post(waits, SLMPM_OP_WAIT), 1);
	}
	CHECK(refused >= 3, "%u refused", refused);
	for (unsigned i = 0; i < WAITS; i++) {
		EXPECT(done(waits), i);
		EXPECT(post(counts, SLMPM_OP_COUNT), 1);
	}
	EXPECT(done(waits), WAITS);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
