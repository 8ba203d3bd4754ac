/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only: sanitizers touch what they allocate */
/* Entries of a deep work queue, one by one, take no more of its memory than one at a time needs. */
#include <sys/resource.h>

#include "tests/lib/actor.h"

#define DEEP  4096 /* entries of some hundred bytes, */
#define PAGES 200  /* which are more than so many pages */

/* Pages that the process has touched first. */
static long faults(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return u.ru_minflt;
}

int main(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = DEEP};
	struct slmpm_wr one = {
		.size = sizeof(one), .op = SLMPM_OP_COUNT, .flags = SLMPM_SILENT, .value = 1};
	slmpm_ctx ctx;
	slmpm_wq wq;
	long before;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_ctr_create(ctx, &one.ctr));
	OK(slmpm_cq_create(ctx, &o.cq));
	before = faults();
	OK(slmpm_wq_create(ctx, &o, &wq));
	for (unsigned i = 0; i < DEEP; i++)
		EXPECT(slmpm_post(wq, &one, 1), 1);
	before = faults() - before;
	printf("%ld pages\n", before);
	CHECK(before < PAGES, "%ld pages for entries one by one", before);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
