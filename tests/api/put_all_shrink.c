/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * One put to many while a target dies: the others are in slmpm_group_shrink by then, so that each
 * side would wait for the other; and one that the origin has no connection with, so that others
 * know how it went; and one that begins before all have what slmpm_group_shrink has agreed on.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_deposit.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define SPACE 3
#define SOON  1500 /* ms: it ends before */

static _Atomic int *stage;
static char memory[1000];

static void await_stage(const struct crew *c, int n)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(stage) < n && actor_now_ms() < end)
		if (!slmpm_progress(c->ctx))
			usleep(100);
	CHECK(atomic_load(stage) >= n, "stage %d, not %d", atomic_load(stage), n);
}

/* REQ: it is not waited for; or NULL. */
static int put(const struct crew *c, const int32_t *ranks, int n, slmpm_req *req)
{
	static const char from[sizeof(memory)] = "x";
	const struct slmpm_put_spec p = {.size = sizeof(p),
					 .flags = *(const uint32_t *)c->arg,
					 .space = SPACE,
					 .len = sizeof(from),
					 .from = from,
					 .rank = ranks,
					 .count = n};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = SOON * actor_slow()};

	return slmpm_put_all(c->group[0], &p, &how, req);
}

/* ---- the others shrink ----------------------------------------------------------------------- */

static void shrinks(const struct crew *c, int rank)
{
	const slmpm_group g = c->group[0];

	OK(slmpm_group_space(g, SPACE, memory, sizeof(memory)));
	OK(slmpm_barrier(g, PATIENCE));
	atomic_fetch_add(stage, 1); /* a barrier of messages may still lack the victim's */
	if (rank == c->victim) {
		await_stage(c, c->members);
		raise(SIGKILL);
	}
	if (rank == 0) {
		usleep(30000 * (useconds_t)actor_slow()); /* without progress: it knows nothing */
		REFUSED(put(c, NULL, 0, NULL), SLMPM_EDEAD, "rank 3");
	} else {
		REFUSED(slmpm_barrier(g, PATIENCE), SLMPM_EDEAD, "rank 3");
	}
	OK(slmpm_group_shrink(g, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
}

/* ---- a target knows first -------------------------------------------------------------------- */

static const int32_t both[] = {1, 2};

/* Without progress: until member 2 has begun to shrink, which it does in a moment. */
static void sleep_until_shrunk(const struct crew *c, useconds_t us)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(stage) < c->members + 2 && actor_now_ms() < end)
		usleep(100);
	usleep(us);
}

/* Rank 2 shrinks, and rank 1 sees that before rank 0 inspects the line again: it has the death of
 * rank 3 as the reason, not rank 2, which lives. */
static void begins_before(const struct crew *c)
{
	struct slmpm_done done;
	slmpm_req req;

	OK(put(c, both, 2, &req));
	CHECK(slmpm_progress(c->ctx) >= 0, "%s", slmpm_error_detail());
	atomic_store(stage, c->members + 1);
	sleep_until_shrunk(c, 7000); /* as a rule within a tick */
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, -SLMPM_EDEAD);
	EXPECT(done.imm, c->victim);
	atomic_store(stage, c->members + 3);
}

static void target_knows(const struct crew *c, int rank)
{
	const slmpm_group g = c->group[0];

	OK(slmpm_group_space(g, SPACE, memory, sizeof(memory)));
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 0)
		OK(put(c, both, 2, NULL));
	OK(slmpm_barrier(g, PATIENCE));
	atomic_fetch_add(stage, 1);
	await_stage(c, c->members);
	if (rank == 0)
		begins_before(c);
	while (atomic_load(stage) <= c->members)
		usleep(100);
	if (rank == c->victim)
		raise(SIGKILL);
	if (rank == 1)
		sleep_until_shrunk(c, 3000);
	if (rank == 2) {
		REFUSED(slmpm_barrier(g, PATIENCE), SLMPM_EDEAD, "rank 3");
		atomic_store(stage, c->members + 2);
	} else {
		await_stage(c, c->members + 3);
	}
	OK(slmpm_group_shrink(g, PATIENCE));
}

/* ---- others know ----------------------------------------------------------------------------- */

/* Rank 3 alone has a connection with rank 2, and says what it has seen a while after the death. */
static void others_know(const struct crew *c, int rank)
{
	static const int32_t targets[] = {1, 2};
	slmpm_peer peer;

	OK(slmpm_group_space(c->group[0], SPACE, memory, sizeof(memory)));
	if (rank == 3) {
		OK(slmpm_group_peer(c->group[0], 0, &peer, PATIENCE));
		OK(slmpm_group_peer(c->group[0], 2, &peer, PATIENCE));
		atomic_store(stage, 1);
	}
	await_stage(c, 1);
	if (rank == c->victim) {
		atomic_store(stage, 2);
		raise(SIGKILL);
	}
	if (rank == 3) {
		while (atomic_load(stage) < 2)
			usleep(100);
		usleep(60000);
	}
	await_stage(c, 2);
	if (rank == 0) {
		usleep(20000);
		REFUSED(put(c, targets, 2, NULL), SLMPM_EDEAD, "rank 2");
		atomic_store(stage, 3);
	}
	await_stage(c, 3);
}

/* ---- it begins with the verdict -------------------------------------------------------------- */

/* Rank 0 has it before some others, which are to keep the request until they have it. */
static void begins_at_once(const struct crew *c, int rank)
{
	const slmpm_group g = c->group[0];

	OK(slmpm_group_space(g, SPACE, memory, sizeof(memory)));
	OK(slmpm_barrier(g, PATIENCE));
	atomic_fetch_add(stage, 1);
	if (rank == c->victim) {
		await_stage(c, c->members);
		raise(SIGKILL);
	}
	REFUSED(slmpm_barrier(g, PATIENCE), SLMPM_EDEAD, "rank 3");
	OK(slmpm_group_shrink(g, PATIENCE));
	if (rank == 0)
		OK(put(c, NULL, 0, NULL));
	OK(slmpm_barrier(g, PATIENCE));
	EXPECT(memory[0], rank == 0 ? 0 : 'x');
}

static void play_with(int members, crew_body *body, uint64_t apart, uint32_t flags, int victim)
{
	const struct crew c = {.members = members,
			       .groups = 1,
			       .apart = apart,
			       .body = body,
			       .arg = &flags,
			       .victim = victim,
			       .code = -SIGKILL};

	atomic_store(stage, 0);
	crew_run(&c, 20);
}

static void play(crew_body *body, uint64_t apart, uint32_t flags, int victim)
{
	play_with(4, body, apart, flags, victim);
}

int main(void)
{
	static const uint32_t ways[] = {SLMPM_PUT_ALL_BROADCAST | SLMPM_PUT_ALL_LINE,
					SLMPM_PUT_ALL_FORWARD | SLMPM_PUT_ALL_DIRECT};

	stage = child_common(sizeof(*stage));
	for (int i = 0; i < 2; i++)
		for (uint64_t apart = 0; apart < 16; apart += 14) {
			play(shrinks, apart, ways[i], 3);
			play(target_knows, apart, ways[i], 3);
		}
	play(others_know, 14, ways[0], 2);
	for (int i = 0; i < 8; i++) /* without that, about half of them end late */
		play_with(6, begins_at_once, 62, ways[i % 2], 3);
	return 0;
}
