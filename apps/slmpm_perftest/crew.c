/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The group of a measurement: both sides, and as many further processes as --members says, which
 * side 0 starts and which need no more than the lines of jobs. It stays for as long as the pair.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

#define TAG      1
#define GROUP_MS 60000 /* in which all processes have started and come */

/* Where -c says, all of them in turns; else on processors of their own, if there are enough. */
static int processor_of(const struct pair *p, unsigned member, unsigned members)
{
	const struct setup *setup = p->setup;

	if (!setup || !setup->cpus)
		return -1;
	if (setup->chosen)
		return setup->cpu[member % setup->cpus];
	return members <= setup->cpus ? setup->cpu[member] : -1;
}

static int start_member(struct pair *p, unsigned members)
{
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	struct crew *crew = &p->crew;
	char mode[16], cpu[16];
	char *const argv[] = {"--crew", "--wait", mode, "--on-cpu", cpu, NULL};
	int rc;

	how.ctx = p->ctx;
	snprintf(mode, sizeof(mode), "%s", wait_name(p->wait));
	snprintf(cpu, sizeof(cpu), "%d", processor_of(p, 2 + crew->more, members));
	rc = slmpm_spawn(&crew->peer[crew->more], "/proc/self/exe", argv, &how);
	crew->more += rc >= 0;
	return rc;
}

static int form(struct pair *p, unsigned members)
{
	slmpm_peer all[MEMBERS_MAX] = {{0}, p->peer}; /* {0}: this process */
	struct crew *crew = &p->crew;
	int rc = 0;

	while (rc >= 0 && crew->more < members - 2)
		rc = start_member(p, members);
	memcpy(all + 2, crew->peer, crew->more * sizeof(*all));
	if (rc >= 0)
		rc = slmpm_group_create(&crew->group, p->ctx, all, (int)members, TAG, GROUP_MS);
	return rc;
}

int crew_join(struct pair *p)
{
	struct slmpm_group_info info = {.size = sizeof(info)};
	int rc = slmpm_group_join(&p->crew.group, p->peer, TAG, GROUP_MS);

	if (rc >= 0)
		rc = slmpm_group_query(p->crew.group, &info);
	p->side = info.rank;
	p->crew.members = info.members;
	return rc;
}

int crew_ready(struct pair *p, unsigned members)
{
	int rc;

	if (p->crew.members == members)
		return 0;
	crew_end(p);
	if (p->side)
		return crew_join(p);
	rc = form(p, members);
	if (rc >= 0)
		p->crew.members = members;
	else if (rc == -SLMPM_ENOTSUP) /* of which the caller says nothing */
		slmpm_perror("slmpm_perftest: group");
	return rc;
}

int crew_say(struct pair *p, const struct job *j)
{
	char text[256];
	int rc = 0;

	job_print(j, text, sizeof(text));
	for (unsigned i = 0; i < p->crew.more && rc >= 0; i++)
		rc = slmpm_send(p->crew.peer[i], STREAM_CONTROL, text, strlen(text), ANSWER_MS);
	return rc;
}

int crew_hear(struct pair *p)
{
	int64_t rc = 0;
	char text[16];

	for (unsigned i = 0; i < p->crew.more && rc >= 0; i++)
		rc = slmpm_recv(p->crew.peer[i], STREAM_CONTROL, text, sizeof(text), NULL, -1);
	return rc < 0 ? (int)rc : 0;
}

void crew_kill(struct pair *p)
{
	for (unsigned i = 0; i < p->crew.more; i++)
		slmpm_kill(p->crew.peer[i], 0);
}

void crew_end(struct pair *p)
{
	struct crew *crew = &p->crew;

	if (crew->group.id)
		slmpm_group_destroy(crew->group);
	for (unsigned i = 0; i < crew->more; i++)
		slmpm_close(crew->peer[i], 1000);
	for (unsigned i = 0; i < crew->more; i++)
		slmpm_join(crew->peer[i], NULL, 5000);
	memset(crew, 0, sizeof(*crew));
}
