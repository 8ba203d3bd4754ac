/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of groups: rank 0 founds them, the others join. */
#include "tests/lib/crew.h"

#include <signal.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG 40

static void play(struct crew *own, int rank)
{
	own->body(own, rank);
	for (int i = 0; i < own->groups; i++)
		OK(slmpm_group_destroy(own->group[i]));
}

static void join(slmpm_peer founder, int i, void *arg)
{
	struct crew own = *(const struct crew *)arg;

	own.ctx = circle_own;
	for (int k = 0; k < own.groups; k++)
		OK(slmpm_group_join(&own.group[k], founder, TAG + (uint32_t)k, PATIENCE));
	play(&own, i + 1);
}

static int found(void *arg)
{
	struct crew own = *(const struct crew *)arg;
	slmpm_peer members[CIRCLE_MAX] = {{0}};
	struct circle c = {.flags = own.flags, .apart = own.apart};

	circle_begin(&c, own.members - 1, join, arg, 100);
	own.ctx = c.ctx;
	memcpy(&members[1], c.peers, sizeof(c.peers[0]) * (size_t)(own.members - 1));
	for (int k = 0; k < own.groups; k++)
		OK(slmpm_group_create(&own.group[k], c.ctx, members, own.members, TAG + (uint32_t)k,
				      PATIENCE));
	play(&own, 0);
	if (own.code == -SIGKILL)
		(void)kill(c.pids[own.victim - 1], SIGKILL);
	if (own.code)
		EXPECT(circle_wait(&c, own.victim - 1), own.code);
	circle_end(&c);
	return 0;
}

void crew_run(const struct crew *crew, unsigned seconds)
{
	struct crew copy = *crew;

	EXPECT(child_run(found, &copy, seconds * (unsigned)actor_slow()), 0);
}
