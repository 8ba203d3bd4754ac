/* SPDX-License-Identifier: BSD-3-Clause */
/* Members without memory together, and who founds their group. */
#include "tests/lib/apart.h"

#include <signal.h>
#include <string.h>

#include "tests/lib/child.h"

slmpm_group apart_join(slmpm_peer founder)
{
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	return group;
}

int apart_play(circle_part *part, void *arg, int dies)
{
	struct circle c = {.apart = APART_ALL};
	slmpm_group group;

	circle_begin(&c, APART_MEMBERS, part, arg, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, APART_MEMBERS, APART_TAG, PATIENCE));
	if (dies >= 0)
		EXPECT(circle_wait(&c, dies), -SIGKILL);
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != dies)
			actor_hear(c.peers[i], APART_GO);
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != dies)
			actor_tell(c.peers[i], APART_DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

void apart_stays_broken(slmpm_peer founder, slmpm_group group, int error)
{
	struct slmpm_group_info info;

	REFUSED(slmpm_barrier(group, PATIENCE), error, "rank ");
	info = circle_query(group);
	CHECK(info.status == -error && info.begun == info.done, "status %d", info.status);
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}
