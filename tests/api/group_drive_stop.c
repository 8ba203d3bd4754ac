/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * A member that has ended its part of a driven operation breaks the group by an error of its own,
 * then STOP of that operation comes: the first error stays.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG     5
#define MEMBERS 3

static struct {
	_Atomic int ready, held, ends, over;
	int64_t from[MEMBERS], to[MEMBERS];
} * all;

static void progress(slmpm_ctx ctx, int ms)
{
	for (int i = 0; i < ms; i++) {
		slmpm_progress(ctx);
		usleep(1000);
	}
}

static void reach(slmpm_ctx ctx, const _Atomic int *word, int value)
{
	while (*word < value)
		progress(ctx, 1);
}

static void serve_until(slmpm_group g, uint64_t done)
{
	while (circle_query(g).done < done)
		progress(circle_own, 1);
}

/* The second operation is done here, not by rank 1, which the barrier waits for in vain. */
static void break_first(slmpm_group g)
{
	char first[512];
	int rc;

	while (!all->ends)
		usleep(1000);
	serve_until(g, 2);
	OK(slmpm_group_serve(g, NULL));
	rc = slmpm_barrier(g, 100);
	snprintf(first, sizeof(first), "%s", slmpm_error_detail());
	progress(circle_own, 1500); /* STOP comes, at the operation's deadline */
	CHECK(slmpm_barrier(g, 100) == rc, "another error");
	CHECK(!strcmp(slmpm_error_detail(), first), "%s, first: %s", slmpm_error_detail(), first);
	all->over = 1;
}

static void accelerate(slmpm_peer founder, int i, void *unused)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	slmpm_group g;

	(void)unused;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	OK(slmpm_group_space(g, 1, &all->from[i], 8));
	OK(slmpm_group_space(g, 2, &all->to[i], 8));
	OK(slmpm_group_serve(g, &how));
	all->ready++;
	serve_until(g, 1);
	all->ready++;
	if (i == 0)
		break_first(g);
	else if (i == 1)
		reach(circle_own, &all->held, 1);
	else
		reach(circle_own, &all->over, 1);
	while (!all->over)
		usleep(1000);
	actor_hear(founder, 1);
	(void)slmpm_group_serve(g, NULL);
	OK(slmpm_group_destroy(g));
}

static int play(void *unused)
{
	const struct slmpm_drive d = {.size = sizeof(d),
				      .kind = SLMPM_COLL_REDUCE,
				      .type = SLMPM_INT64,
				      .op = SLMPM_CALC_SUM,
				      .root = 1,
				      .from_space = 1,
				      .to_space = 2,
				      .count = 1};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 1200};
	struct circle c = {.apart = UINT64_MAX};
	struct slmpm_done done;
	slmpm_group group;
	slmpm_req req;

	(void)unused;
	circle_begin(&c, MEMBERS, accelerate, NULL, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MEMBERS, TAG, PATIENCE));
	reach(c.ctx, &all->ready, MEMBERS);
	OK(slmpm_group_drive(group, &d, NULL, &req));
	reach(c.ctx, &all->ready, 2 * MEMBERS);
	OK(slmpm_wait(&req, 1, &done, PATIENCE));
	OK(slmpm_group_drive(group, &d, &how, &req));
	progress(c.ctx, 200);
	all->held = 1; /* rank 1 has agreed, and calls no more */
	progress(c.ctx, 20);
	all->ends = 1;
	OK(slmpm_wait(&req, 1, &done, PATIENCE));
	reach(c.ctx, &all->over, 1);
	for (int i = 0; i < MEMBERS; i++)
		actor_tell(c.peers[i], 1);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

int main(void)
{
	settings_set("SLMPM_ENGINE", "none");
	all = child_common(sizeof(*all));
	settings_run("stop of one that has ended", play, NULL);
	return 0;
}
