/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/* Groups that do not form, whose members have no memory together, for some are connected by TCP:
 * who has not come, or is stopped, is named. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/apart.h"
#include "tests/lib/child.h"

static void join_but_one(slmpm_peer founder, int i, void *dies)
{
	slmpm_group group;

	if (i == 1 && dies) {
		usleep(APART_SHORT * 1000);
		raise(SIGKILL);
	}
	if (i != 1)
		REFUSED(slmpm_group_join(&group, founder, APART_TAG, PATIENCE),
			dies ? SLMPM_EDEAD : SLMPM_ETIMEOUT, "rank 1 (");
	actor_hear(founder, APART_DONE);
}

static int not_formed(void *dies)
{
	struct circle c = {.apart = APART_ALL};
	slmpm_group group;

	circle_begin(&c, APART_MEMBERS, join_but_one, dies, 40);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, APART_MEMBERS, APART_TAG,
				   dies ? PATIENCE : APART_SHORT * actor_slow()),
		dies ? SLMPM_EDEAD : SLMPM_ETIMEOUT, "rank 1 (");
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != 1 || !dies)
			actor_tell(c.peers[i], APART_DONE);
	if (dies)
		EXPECT(circle_wait(&c, 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* All but rank 1, which stops once it has joined, have the same timeout; that of rank 0 has begun
 * first. None of those that are there is named. */
static void stop_joined(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	if (i == 1) {
		OK(slmpm_group_join_start(&group, founder, APART_TAG));
		for (int k = 0; k < 20; k++)
			(void)slmpm_progress(circle_own);
		actor_tell(founder, APART_GO);
		pause();
	}
	actor_hear(founder, APART_GO);
	REFUSED(slmpm_group_join(&group, founder, APART_TAG, APART_SHORT * actor_slow()),
		SLMPM_ETIMEOUT, "");
	actor_hear(founder, APART_DONE);
}

static int stopped_joined(void *unused)
{
	struct circle c = {.apart = APART_ALL};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, APART_MEMBERS, stop_joined, NULL, 40);
	actor_hear(c.peers[1], APART_GO);
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != 1)
			actor_tell(c.peers[i], APART_GO);
	usleep(5000);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, APART_MEMBERS, APART_TAG,
				   APART_SHORT * actor_slow()),
		SLMPM_ETIMEOUT, "rank 1 (");
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != 1)
			actor_tell(c.peers[i], APART_DONE);
	(void)kill(c.pids[1], SIGKILL);
	EXPECT(circle_wait(&c, 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

int main(void)
{
	bool yes = true;

	EXPECT(child_run(not_formed, NULL, 60), 0);
	EXPECT(child_run(not_formed, &yes, 60), 0);
	EXPECT(child_run(stopped_joined, NULL, 60), 0);
	return 0;
}
