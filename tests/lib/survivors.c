/* SPDX-License-Identifier: BSD-3-Clause */
/* What members of a broken group do until it works again. */
#include "tests/lib/survivors.h"

#include <string.h>

#define MOST 100000 /* operations until one fails */

void survivors_fail(int rc, int error, const char *part)
{
	CHECK(rc == -error && strstr(slmpm_error_detail(), part), "%d (%s), expected %d, %s", rc,
	      slmpm_error_detail(), -error, part);
}

void survivors_break(slmpm_group g)
{
	int rc = 0;

	for (int k = 0; k < MOST && rc == 0; k++)
		rc = slmpm_barrier(g, PATIENCE);
	CHECK(rc < 0, "nothing has happened");
}

void survivors_shrink(slmpm_group g)
{
	EXPECT(slmpm_group_shrink(g, PATIENCE), 0);
}

void survivors_sum(slmpm_group g, int n, int rank, unsigned generation, int times)
{
	struct slmpm_group_info info = circle_query(g);
	int64_t one[2] = {rank, 1}, sum[2];

	CHECK(info.rank == rank && info.members == (uint32_t)n && info.generation == generation,
	      "rank %d of %u, generation %llu; expected %d of %d", info.rank, info.members,
	      (unsigned long long)info.generation, rank, n);
	for (int k = 0; k < times; k++) {
		OK(slmpm_allreduce(g, one, sum, 2, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
		CHECK(sum[0] == n * (n - 1) / 2 && sum[1] == n, "%lld, %lld", (long long)sum[0],
		      (long long)sum[1]);
	}
}
