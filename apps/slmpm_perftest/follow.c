/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Side 1 of a pair: greeted, then told a job after the other. Between them it sleeps on the
 * context's descriptor whatever its wait mode, so that idle pairs disturb nobody.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <poll.h>

/* The next line from side 0; asleep until then. */
static int next_line(struct pair *p, char *text, size_t size)
{
	struct pollfd ready = {.fd = slmpm_fd(p->ctx), .events = POLLIN};
	int rc;

	while ((rc = pair_hear(p, text, size, 0)) == -SLMPM_EAGAIN)
		if (slmpm_arm(p->ctx) == 0)
			poll(&ready, 1, -1);
	return rc;
}

static int be_greeted(struct pair *p, int cpu)
{
	char text[256], board[128];
	int hint, mine;

	if (pair_hear(p, text, sizeof(text), ANSWER_MS) < 0)
		return slmpm_perror("slmpm_perftest: no greeting");
	if (sscanf(text, GREETING " %127s %d", board, &hint) != 2) {
		pair_say(p, "unknown greeting");
		fprintf(stderr,
			"slmpm_perftest: strange greeting \"%s\"; are both of one version?\n",
			text);
		return 1;
	}
	p->board = board_open(board);
	mine = pin(p->spawned ? hint : cpu);
	snprintf(text, sizeof(text), "ready %s %d", p->board ? "board" : "alone", mine);
	return pair_say(p, text) < 0 || pair_limits(p) ? 1 : 0;
}

static int follow(struct pair *p, int cpu)
{
	static struct hist stamps;
	char text[256], why[256];
	struct figures f;
	struct job job;
	int rc;

	p->side = 1;
	if (be_greeted(p, cpu))
		return 1;
	while ((rc = next_line(p, text, sizeof(text))) >= 0) {
		if (!*text) /* which link it takes is all that was asked */
			continue;
		if (job_parse(&job, text, why, sizeof(why)) || !job.test->loop) {
			fprintf(stderr, "slmpm_perftest: from the other side: %s\n", why);
			return 1;
		}
		hist_clear(&stamps);
		rc = pair_buffers(p, burst_room(&job));
		if (rc < 0 || (rc = pair_run_side(p, &job, &f, &stamps)) < 0)
			break;
	}
	/* However side 0 ended: it has said so itself. */
	return rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD ? 0 : slmpm_perror("slmpm_perftest");
}

int follow_parent(unsigned wait)
{
	struct pair p;

	if (pair_open(&p, wait))
		return 1;
	p.spawned = true;
	if (slmpm_parent_in(p.ctx, &p.peer) < 0)
		return slmpm_perror("slmpm_perftest: second side");
	return follow(&p, 0);
}

/* Between jobs it is asleep, as side 1 is. */
static int follow_jobs(struct pair *p)
{
	char text[256], why[256];
	struct job job;
	int rc;

	while ((rc = next_line(p, text, sizeof(text))) >= 0) {
		if (job_parse(&job, text, why, sizeof(why)) || job.test->by != BY_GROUP)
			return -SLMPM_EPROTO;
		rc = pair_buffers(p, burst_room(&job));
		if (rc >= 0)
			rc = job.test->loop(p, &job, NULL);
		if (rc >= 0)
			rc = pair_say(p, "done");
		if (rc < 0)
			return rc;
	}
	return rc;
}

int follow_group(unsigned wait, int cpu)
{
	struct pair p;
	int rc;

	if (pair_open(&p, wait))
		return 1;
	rc = slmpm_parent_in(p.ctx, &p.peer);
	if (cpu >= 0)
		(void)pin(cpu);
	if (rc >= 0)
		rc = crew_join(&p);
	if (rc >= 0)
		rc = follow_jobs(&p);
	return rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD ? 0 : slmpm_perror("slmpm_perftest");
}

/* What the other one needs; over TCP also the port and the secret. */
static void announce(slmpm_listener listener)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	const char *set = "SLMPM_SECRET=";

	if (slmpm_listener_query(listener, &info) < 0)
		return;
	fprintf(stderr, "listening; now: %s%s%sslmpm_perftest --connect %s -t TEST\n",
		*info.secret ? set : "", info.secret, *info.secret ? " " : "", info.url);
}

static int follow_next(struct pair *p, slmpm_listener listener, int cpu, bool last)
{
	int rc = slmpm_accept(listener, &p->peer, -1);

	if (last)
		slmpm_unlisten(listener);
	if (rc < 0)
		return slmpm_perror("slmpm_perftest: accept");
	rc = follow(p, cpu);
	pair_leave(p);
	return rc;
}

int follow_listen(const char *url, unsigned wait, int cpu, bool again)
{
	slmpm_listener listener;
	struct pair p;
	int rc;

	if (pair_open(&p, wait))
		return 1;
	if (slmpm_listen(&listener, p.ctx, url) < 0)
		return slmpm_perror("slmpm_perftest: listen");
	announce(listener);
	do
		rc = follow_next(&p, listener, cpu, !again);
	while (again);
	slmpm_shut(p.ctx, 1000);
	return rc;
}
