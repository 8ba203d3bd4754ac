/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/* waits */
/*
 * Members connected by TCP that wait for one another: what they do differently is found, though no
 * message shows it, or an earlier one did; who is late is named by those that wait for others which
 * wait for it.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/settings.h"

#define MEMBERS 4
#define SHORT   400 /* ms: what never comes */

/* Operation 2, in which rank 1 has another root. */
static int differ(slmpm_group g, uint32_t kind, int rank)
{
	uint64_t from[MEMBERS] = {0}, to[MEMBERS] = {0};

	OK(slmpm_barrier(g, PATIENCE));
	return slmpm_collect(g, kind, from, to, 1, SLMPM_UINT64,
			     kind == SLMPM_COLL_REDUCE ? SLMPM_CALC_SUM : 0, rank == 1 ? 1 : 2, -1);
}

static void is_named(int rc, const char *which)
{
	const char *detail = slmpm_error_detail();

	CHECK(rc == -SLMPM_EINVAL && strstr(detail, which) && strstr(detail, "root 1") &&
		      strstr(detail, "root 2") && strstr(detail, "rank 1 ("),
	      "%d: %s", rc, detail);
}

/* Both roots wait for ever. */
static void wait_for_others(const struct crew *crew, int rank)
{
	const uint32_t kind = *(const uint32_t *)crew->arg;
	int64_t begun = actor_now_ms();
	int rc = differ(crew->group[0], kind, rank);

	begun = actor_now_ms() - begun;
	CHECK(begun < 1000 * actor_slow(), "%lld ms", (long long)begun);
	if (rank == 1 || rank == 2 || rc < 0)
		is_named(rc, "operation 2, ");
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = slmpm_barrier(crew->group[0], PATIENCE);
	is_named(rc, "operation 2, ");
}

/* No root waits: the next operation finds it, or the one after that at members which needed nothing
 * of the one that differs. */
static void wait_for_none(const struct crew *crew, int rank)
{
	const uint32_t kind = *(const uint32_t *)crew->arg;
	int rc = differ(crew->group[0], kind, rank);

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = slmpm_barrier(crew->group[0], PATIENCE);
	is_named(rc, "operation 2, ");
}

/* Rank 3 waits for rank 2, rank 0 for that, and rank 1 for rank 0. */
static void wait_in_line(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	int rc;

	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 2)
		raise(SIGSTOP);
	rc = slmpm_barrier(g, rank == 1 ? SHORT * actor_slow() : PATIENCE);
	CHECK(rc == -SLMPM_ETIMEOUT && strstr(slmpm_error_detail(), "yet from rank 2 ("), "%d: %s",
	      rc, slmpm_error_detail());
}

/* The same of one with a tag: none of those that wait in it is named. */
static void wait_with_tag(const struct crew *crew, int rank)
{
	slmpm_group g = crew->group[0];
	double one = 1, sum = 0;
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = SLMPM_COLL_ALLREDUCE,
				     .type = SLMPM_DOUBLE,
				     .op = SLMPM_CALC_SUM,
				     .from = &one,
				     .to = &sum,
				     .count = 1,
				     .tag = 5};
	int rc;

	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 2)
		raise(SIGSTOP);
	rc = slmpm_collective(g, &c, rank == 1 ? SHORT * actor_slow() : PATIENCE);
	CHECK(rc == -SLMPM_ETIMEOUT &&
		      strstr(slmpm_error_detail(), "have been started by rank 2 ("),
	      "%d: %s", rc, slmpm_error_detail());
	EXPECT(circle_query(g).culprit, 2);
}

int main(void)
{
	static const uint32_t waits[] = {SLMPM_COLL_REDUCE, SLMPM_COLL_GATHER};
	static const uint32_t waits_not[] = {SLMPM_COLL_BROADCAST, SLMPM_COLL_SCATTER};
	struct crew crew = {.members = MEMBERS, .groups = 1, .apart = 7, .body = wait_for_others};

	for (int i = 0; i < 2; i++) {
		crew.arg = &waits[i];
		crew_run(&crew, 10);
	}
	crew.body = wait_for_none;
	for (int i = 0; i < 2; i++) {
		crew.arg = &waits_not[i];
		crew_run(&crew, 10);
	}
	settings_set("SLMPM_COLL_ALGORITHM", "barrier:dissemination");
	crew.body = wait_in_line;
	crew.victim = 2;
	crew.code = -SIGKILL;
	crew_run(&crew, 10);
	crew.body = wait_with_tag;
	crew_run(&crew, 10);
	return 0;
}
