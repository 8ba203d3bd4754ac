/* SPDX-License-Identifier: BSD-3-Clause */
/* What members of a broken group do until it works again. */
#include "tests/lib/survivors.h"

#include <signal.h>
#include <string.h>

#define MOST   100000 /* operations until one fails */
#define MOMENT 200    /* ms */

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

/* They come once it has named them. */
static void name_suspects(slmpm_group g, slmpm_peer late, pid_t stopped)
{
	const char *said;

	actor_await_state(stopped, "T");
	survivors_fail(slmpm_group_shrink(g, MOMENT), SLMPM_ETIMEOUT,
		       "nothing yet from ranks 1 (process ");
	said = slmpm_error_detail();
	CHECK(strstr(said, ", 2 (process ") && !strstr(said, "3 (process ") &&
		      strstr(said, ", suspect is rank 2: its process is stopped"),
	      "%s", said);
	(void)kill(stopped, SIGCONT);
	actor_tell(late, 1);
}

void survivors_suspects(slmpm_group g, int rank, pid_t stopped)
{
	uint64_t own = UINT64_C(1) << rank, left;
	slmpm_peer other;

	for (int r = 0; r < 4; r++)
		if (r != rank)
			OK(slmpm_group_peer(g, r, &other, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 3)
		raise(SIGKILL);
	survivors_break(g);
	if (rank == 2)
		raise(SIGSTOP);
	else
		OK(slmpm_group_peer(g, 1 - rank, &other, PATIENCE));
	if (rank == 0)
		name_suspects(g, other, stopped);
	else if (rank == 1)
		actor_hear(other, 1);
	survivors_shrink(g);
	survivors_sum(g, 3, rank, 1, 1);
	OK(slmpm_allreduce(g, &own, &left, 1, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE));
	EXPECT(left, 7);
}
