/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Groups form: of one member and of many, by a member or by a process that is none; before and
 * after the others have joined; and what each learns of them.
 */
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG 7

enum { FOUNDED = 1, DONE };

static void is_rank(slmpm_group group, int rank, uint32_t size)
{
	struct slmpm_group_info info = circle_query(group);

	CHECK(info.rank == rank && info.members == size && info.tag == TAG && !info.status &&
		      info.culprit == -1 && !info.begun && !info.done,
	      "rank %d of %u, tag %u, status %d by %d", info.rank, info.members, info.tag,
	      info.status, info.culprit);
}

struct scene {
	int others;
	bool member; /* who founds is one, amid the others */
};

static int own_rank(const struct scene *s)
{
	return s->member ? s->others / 2 : -1;
}

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	int own = own_rank(s), rank = i + (own >= 0 && i >= own);
	slmpm_group group;

	if (i % 3 == 1 && s->others < 10)
		usleep(20000);
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	is_rank(group, rank, (uint32_t)(s->others + s->member));
	actor_tell(founder, FOUNDED);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
	REFUSED(slmpm_group_destroy(group), SLMPM_EHANDLE, "no such group");
}

static int found(void *arg)
{
	struct scene *s = arg;
	slmpm_peer members[CIRCLE_MAX + 1] = {{0}};
	slmpm_group group;
	struct circle c = {0};
	int n = 0, own = own_rank(s), descriptors;
	int64_t before;
	size_t heap;

	circle_begin(&c, s->others, join, s, 30);
	for (int i = 0; i < s->others; i++) {
		n += i == own;
		members[n++] = c.peers[i];
	}
	n += own == s->others;
	descriptors = actor_descriptors();
	before = actor_now_ms();
	heap = mallinfo2().uordblks;
	OK(slmpm_group_create(&group, c.ctx, members, n, TAG, PATIENCE));
	heap = mallinfo2().uordblks - heap;
	CHECK(n < 16 || (int64_t)heap <= 4096 * (int64_t)n, "%zu bytes for %d", heap, n);
	printf("%d others%s: %lld ms\n", s->others, s->member ? " and this one" : "",
	       (long long)(actor_now_ms() - before));
	is_rank(group, own, (uint32_t)n);
	for (int i = 0; i < s->others; i++)
		actor_hear(c.peers[i], FOUNDED);
	is_rank(group, own, (uint32_t)n);
	for (int i = 0; i < s->others; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	CHECK(actor_descriptors() <= descriptors, "%d descriptors, %d before", actor_descriptors(),
	      descriptors);
	circle_end(&c);
	return 0;
}

static void alone(void)
{
	slmpm_peer self = {0};
	slmpm_group group;

	OK(slmpm_group_create(&group, (slmpm_ctx){0}, &self, 1, TAG, 0));
	is_rank(group, 0, 1);
	OK(slmpm_group_destroy(group));
}

/* Of accelerators that are still starting. */
static int role_member(slmpm_peer host, char **unused)
{
	slmpm_group group;

	(void)unused;
	OK(slmpm_group_join(&group, host, TAG, PATIENCE));
	actor_hear(host, circle_query(group).rank + DONE);
	return 0;
}

static int spawned(void *unused)
{
	slmpm_peer members[3] = {{0}};
	slmpm_group group;

	(void)unused;
	for (int i = 0; i < 3; i += 2)
		members[i] = actor_spawn("member", NULL, NULL);
	OK(slmpm_group_create(&group, (slmpm_ctx){0}, members, 3, TAG, PATIENCE));
	is_rank(group, 1, 3);
	for (int i = 0; i < 3; i += 2)
		actor_tell(members[i], i + DONE);
	for (int i = 0; i < 3; i += 2)
		actor_join(members[i], 0);
	circle_breaks(group, -SLMPM_EDEAD, circle_query(group).culprit);
	OK(slmpm_group_destroy(group));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"member", role_member}, {NULL, NULL}};

	static struct scene scenes[] = {{1, false}, {1, true}, {2, false}, {5, false},
					{5, true},  {4, true}, {63, true}, {64, false}};

	actor_begin(argc, argv, roles);
	settings_one_link("shm");
	EXPECT(child_run(spawned, NULL, 30), 0);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		EXPECT(child_run(found, &scenes[i], 60), 0);
	alone();
	return 0;
}
