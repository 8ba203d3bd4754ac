/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* one-thread */
/* waits */
/*
 * Operations that a host drives, and one member that is stopped or computes in their midst: of each
 * kind that one is named, at the host and at the others, and none that only waits for it.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define MEMBERS 4
#define COUNT   200000 /* elements: not in one turn of progress */
#define ROOT    1
#define TAG     5
#define SOON    (300 * actor_slow()) /* ms */

struct trial {
	uint32_t kind;
	int victim;
	bool stops; /* as its process shows; else it makes no progress */
	bool apart; /* by TCP */
};

static struct {
	struct trial of;
	_Atomic int ready, checked;
	_Atomic bool computes, over, begun;
	int64_t from[MEMBERS][COUNT], to[MEMBERS][MEMBERS * COUNT];
} * all;

/* ---- members --------------------------------------------------------------------------------- */

static void serve(slmpm_group group, int rank, slmpm_cq cq)
{
	const struct slmpm_how how = {.size = sizeof(how), .cq = cq};
	struct slmpm_done done;

	OK(slmpm_group_space(group, 1, all->from[rank], sizeof(all->from[rank])));
	OK(slmpm_group_space(group, 2, all->to[rank], sizeof(all->to[rank])));
	OK(slmpm_group_serve(group, &how));
	atomic_fetch_add(&all->ready, 1);
	while (!atomic_load(&all->over)) {
		if (rank == all->of.victim && atomic_load(&all->computes))
			usleep(1000);
		else
			(void)slmpm_cq_wait(cq, &done, 1, 5);
	}
}

static void await_ends(slmpm_group group)
{
	int64_t end = actor_now_ms() + PATIENCE;
	struct slmpm_group_info info;

	while (info = circle_query(group), info.begun != info.done) {
		CHECK(actor_now_ms() < end, "an operation does not end");
		usleep(1000);
	}
}

static void accelerate(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;
	slmpm_cq cq;

	(void)unused;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	OK(slmpm_cq_create(circle_own, &cq));
	serve(group, i, cq);
	if (atomic_load(&all->begun))
		circle_breaks(group, -SLMPM_ETIMEOUT, all->of.victim);
	atomic_fetch_add(&all->checked, 1);
	actor_hear(founder, 1);
	(void)slmpm_group_serve(group, NULL);
	await_ends(group);
	OK(slmpm_group_destroy(group));
}

/* ---- the host -------------------------------------------------------------------------------- */

static void await_count(const _Atomic int *count, int n)
{
	int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(count) < n) {
		CHECK(actor_now_ms() < end, "%d of %d", atomic_load(count), n);
		(void)slmpm_progress((slmpm_ctx){0});
		usleep(1000);
	}
}

static void hold_up(const struct circle *c)
{
	if (!all->of.stops)
		atomic_store(&all->computes, true);
	else
		kill(c->pids[all->of.victim], SIGSTOP);
}

static void names_the_victim(const struct slmpm_done *done)
{
	char rank[16];

	CHECK(done->status == -SLMPM_ETIMEOUT && done->imm == (uint32_t)all->of.victim,
	      "kind %u, %d, rank %u: %s", all->of.kind, done->status, done->imm,
	      slmpm_error_detail());
	for (int r = 0; r < MEMBERS; r++) {
		snprintf(rank, sizeof(rank), "rank %d (", r);
		CHECK(!strstr(slmpm_error_detail(), rank) == (r != all->of.victim),
		      "kind %u, rank %d: %s", all->of.kind, r, slmpm_error_detail());
	}
	atomic_store(&all->begun, strstr(slmpm_error_detail(), "has not ended") != NULL);
}

static void drive(const struct circle *c, slmpm_group group)
{
	const struct slmpm_drive d = {.size = sizeof(d),
				      .kind = all->of.kind,
				      .type = SLMPM_INT64,
				      .op = SLMPM_CALC_SUM,
				      .root = ROOT,
				      .from_space = 1,
				      .to_space = 2,
				      .count = COUNT};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done = {0};
	slmpm_req req;

	OK(slmpm_group_drive(group, &d, &how, NULL));
	how.timeout_ms = SOON;
	for (int i = 0; !done.status; i++) {
		CHECK(i < 3, "it ends without rank %d", all->of.victim);
		OK(slmpm_group_drive(group, &d, &how, &req));
		if (i == 0) {
			usleep(300);
			hold_up(c);
		}
		OK(slmpm_wait(&req, 1, &done, PATIENCE));
	}
	names_the_victim(&done);
}

static int hold_one_up(void *unused)
{
	struct circle c = {.apart = all->of.apart ? UINT64_MAX : 0};
	const bool stops = all->of.stops;
	slmpm_group group;

	(void)unused;
	circle_begin(&c, MEMBERS, accelerate, NULL, 60);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MEMBERS, TAG, PATIENCE));
	await_count(&all->ready, MEMBERS);
	drive(&c, group);
	atomic_store(&all->over, true);
	await_count(&all->checked, MEMBERS - stops);
	if (stops) {
		kill(c.pids[all->of.victim], SIGKILL);
		EXPECT(circle_wait(&c, all->of.victim), -SIGKILL);
	}
	for (int i = 0; i < MEMBERS; i++)
		if (!stops || i != all->of.victim)
			actor_tell(c.peers[i], 1);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

int main(void)
{
	static const uint32_t kinds[] = {SLMPM_COLL_BROADCAST, SLMPM_COLL_REDUCE, SLMPM_COLL_GATHER,
					 SLMPM_COLL_SCAN, SLMPM_COLL_ALLREDUCE};
	char what[64];

	settings_set("SLMPM_ENGINE", "none");
	all = child_common(sizeof(*all));
	for (int way = 0; way < 4; way++)
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			for (int victim = ROOT; victim < MEMBERS; victim += 2) {
				all->of = (struct trial){kinds[k], victim, way & 1, way & 2};
				atomic_store(&all->ready, 0);
				atomic_store(&all->checked, 0);
				atomic_store(&all->computes, false);
				atomic_store(&all->over, false);
				atomic_store(&all->begun, false);
				snprintf(what, sizeof(what), "kind %u, rank %d, %s%s", kinds[k],
					 victim, way & 1 ? "stopped" : "computing",
					 way & 2 ? ", apart" : "");
				settings_run(what, hold_one_up, NULL);
			}
	return 0;
}
