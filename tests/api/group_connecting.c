/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * Joins of groups whose founder has yet to connect: they wait for it, up to their deadline, and say
 * so; those that are given up by then were never there, and those that are not come in order; a
 * founder that ends before ends them.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"

#define SHORT  750 /* ms: what comes later */
#define GROUPS 3

static void found_all(slmpm_peer host)
{
	slmpm_peer members[2] = {{0}, host};
	slmpm_group group[GROUPS];

	for (uint32_t k = 0; k < GROUPS; k++) {
		OK(slmpm_group_create(&group[k], (slmpm_ctx){0}, members, 2, k, PATIENCE));
		OK(slmpm_barrier(group[k], PATIENCE));
	}
	for (uint32_t k = 0; k < GROUPS; k++)
		OK(slmpm_group_destroy(group[k]));
}

/* Before it connects. */
static int role_late(slmpm_peer host, char **unused)
{
	(void)unused;
	usleep(2 * SHORT * 1000 * (unsigned)actor_slow());
	OK(slmpm_parent(&host));
	found_all(host);
	return 0;
}

static int role_never(slmpm_peer host, char **unused)
{
	(void)host;
	(void)unused;
	usleep(SHORT * 1000);
	return 7;
}

static void leave(slmpm_group group)
{
	OK(slmpm_barrier(group, PATIENCE));
	OK(slmpm_group_destroy(group));
}

static int waits(void *unused)
{
	slmpm_peer founder = actor_spawn("-late", NULL, NULL);
	struct slmpm_group_info info;
	slmpm_group group[GROUPS], given_up;

	(void)unused;
	REFUSED(slmpm_group_join(&group[0], founder, 0, 0), SLMPM_EAGAIN, "timeout of 0");
	for (int k = 0; k < 20; k++) /* more than may be under way */
		REFUSED(slmpm_group_join(&given_up, founder, 9, 1), SLMPM_ETIMEOUT,
			"founds it, has not connected yet");
	OK(slmpm_group_join_start(&group[0], founder, 0));
	OK(slmpm_group_join_start(&given_up, founder, 9));
	OK(slmpm_group_join_start(&group[1], founder, 1));
	OK(slmpm_group_destroy(given_up));
	info = circle_query(group[0]);
	CHECK(info.status == -SLMPM_EAGAIN && !info.members, "status %d", info.status);
	REFUSED(slmpm_barrier(group[1], PATIENCE), SLMPM_EAGAIN, "has not connected yet");
	while (circle_query(group[0]).status == -SLMPM_EAGAIN)
		usleep(1000);
	leave(group[0]);
	while (circle_query(group[1]).status == -SLMPM_EAGAIN)
		usleep(1000);
	leave(group[1]);
	OK(slmpm_group_join(&group[2], founder, 2, PATIENCE));
	leave(group[2]);
	actor_join(founder, 0);
	return 0;
}

static int blocks(void *unused)
{
	slmpm_peer founder = actor_spawn("-late", NULL, NULL);
	slmpm_group group;

	(void)unused;
	for (uint32_t k = 0; k < GROUPS; k++) {
		OK(slmpm_group_join(&group, founder, k, PATIENCE));
		leave(group);
	}
	actor_join(founder, 0);
	return 0;
}

static int ends(void *unused)
{
	slmpm_peer founder = actor_spawn("-never", NULL, NULL);
	slmpm_group group, started;

	(void)unused;
	OK(slmpm_group_join_start(&started, founder, 1));
	REFUSED(slmpm_group_join(&group, founder, 2, PATIENCE), SLMPM_EDEAD, "before it connected");
	REFUSED(slmpm_barrier(started, PATIENCE), SLMPM_EDEAD, "before it connected");
	OK(slmpm_group_destroy(started));
	actor_join(founder, 7);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"-late", role_late}, {"-never", role_never}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	EXPECT(child_run(waits, NULL, 30), 0);
	EXPECT(child_run(blocks, NULL, 30), 0);
	EXPECT(child_run(ends, NULL, 30), 0);
	return 0;
}
