/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host: starts the accelerators, makes them a group, and has nothing more to do until they put
 * their tiles into its plate. If one is lost it ends the others and says which it was.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/jacobi/jacobi.h"

#define MOST     64
#define GRACE_MS 1000

struct crew {
	unsigned count;
	slmpm_peer peer[MOST];
	slmpm_req req[MOST];
	char name[MOST][64];
	struct result result[MOST];
	char lost[160]; /* whose message did not come, and why, if there is no better reason */
	bool shown;     /* a line of progress */
};

static const slmpm_ctx ctx;

static void wipe(struct crew *c)
{
	if (c->shown)
		fprintf(stderr, "\r\033[K");
	c->shown = false;
}

/* ---- the beginning -------------------------------------------------------------------------- */

static int start(struct crew *c, unsigned i, const struct task *task)
{
	const struct slmpm_spawn_options how = {.size = sizeof(how),
						.flags = SLMPM_SPAWN_DIE_WITH_HOST};
	char *const argv[] = {"--accelerator", NULL};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct task own = *task;
	int rc = slmpm_spawn(&c->peer[i], "/proc/self/exe", argv, &how);

	if (rc < 0)
		return rc;
	c->count = i + 1;
	slmpm_peer_query(c->peer[i], &info);
	snprintf(c->name[i], sizeof(c->name[i]), "accelerator %u (pid %d)", i + 1, info.pid);
	own.number = i + 1;
	return slmpm_send(c->peer[i], STREAM_TASK, &own, sizeof(own), START_MS);
}

static int share(struct crew *c, struct run *run)
{
	const size_t cells = (size_t)run->task.side * run->task.side;
	slmpm_mem plate;
	void *base;
	int rc = slmpm_mem_alloc(ctx, cells * sizeof(double), SLMPM_WRITE, &plate, &base);

	if (rc < 0)
		return rc;
	run->plate = base;
	for (unsigned i = 0; i < c->count && rc >= 0; i++)
		rc = slmpm_mem_share(plate, c->peer[i], SLMPM_WRITE, START_MS);
	return rc;
}

static int begin(struct crew *c, struct run *run)
{
	slmpm_group group;
	int rc = 0;

	for (unsigned i = 0; i < run->accelerators && rc >= 0; i++)
		rc = start(c, i, &run->task);
	if (rc >= 0)
		rc = share(c, run);
	if (rc >= 0)
		rc = slmpm_group_create(&group, ctx, c->peer, (int)c->count, GROUP_TAG, START_MS);
	if (rc < 0)
		snprintf(c->lost, sizeof(c->lost), "%s", slmpm_error_detail());
	return rc;
}

/* ---- meanwhile ------------------------------------------------------------------------------ */

/* The next message of I: how far it is, or its result, which begins with that. */
static int expect(struct crew *c, unsigned i)
{
	const struct slmpm_iov piece = {&c->result[i], sizeof(c->result[i])};

	return (int)slmpm_recvv(c->peer[i], SLMPM_ANY_STREAM, &piece, 1, NULL, &c->req[i]);
}

static void show(struct crew *c, const struct progress *p, const struct task *task)
{
	fprintf(stderr, "\rjacobi: iteration %llu of at most %llu, residual %.3g\033[K",
		(unsigned long long)p->iteration, (unsigned long long)task->iterations,
		p->residual);
	fflush(stderr);
	c->shown = true;
}

/* 1: that was I's result. */
static int take(struct crew *c, unsigned i, const struct slmpm_done *done, const struct task *task)
{
	if (done->status < 0)
		return done->status;
	if (done->stream == STREAM_RESULT && done->len == sizeof(c->result[i]))
		return 1;
	if (done->stream != STREAM_PROGRESS)
		return -SLMPM_EPROTO;
	show(c, &c->result[i].end, task);
	return expect(c, i);
}

/* Until all have put their tiles here. */
static int attend(struct crew *c, const struct task *task)
{
	struct slmpm_done done;
	unsigned left = c->count;
	int rc = 0, i = -1;

	for (unsigned k = 0; k < c->count && rc >= 0; k++)
		rc = expect(c, k);
	while (left && rc >= 0) {
		i = slmpm_wait(c->req, (int)c->count, &done, -1);
		rc = i < 0 ? i : take(c, (unsigned)i, &done, task);
		left -= rc == 1;
	}
	wipe(c);
	if (rc < 0 && i >= 0)
		snprintf(c->lost, sizeof(c->lost), "%s: %s", c->name[i], slmpm_strerror(rc));
	return rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Of one that has ended before its time; what it has said itself is not repeated. */
static void tell(struct crew *c, unsigned i, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_OTHERS)
		return;
	*c->lost = 0;
	if (WIFSIGNALED(status))
		fprintf(stderr, "jacobi: %s was killed by signal %d (%s)\n", c->name[i],
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != STATUS_SAID)
		fprintf(stderr, "jacobi: %s ended with status %d\n", c->name[i],
			WEXITSTATUS(status));
}

/* 0 if it has ended well. */
static int join(struct crew *c, unsigned i, int timeout_ms)
{
	int status = 0, rc = slmpm_join(c->peer[i], &status, timeout_ms);

	if (rc == -SLMPM_ETIMEOUT) { /* it is ended with the others */
		slmpm_kill(c->peer[i], 0);
		slmpm_join(c->peer[i], NULL, GRACE_MS);
	} else if (rc < 0) {
		fprintf(stderr, "jacobi: %s: %s\n", c->name[i], slmpm_error_detail());
	} else if (status) {
		tell(c, i, status);
	}
	return rc < 0 || status;
}

/* When one is lost the others need not go on; those that are through have their time to end. */
static int end(struct crew *c, bool failed)
{
	double until = seconds_now() + (failed ? GRACE_MS : START_MS) / 1000.0, left;

	for (unsigned i = 0; i < c->count; i++) {
		left = until - seconds_now();
		failed |= join(c, i, left > 0 ? (int)(left * 1000) + 1 : 1);
	}
	if (*c->lost)
		fprintf(stderr, "jacobi: %s\n", c->lost);
	return failed;
}

/* The times are sums, but for the longest of the runs. */
static void sum_up(const struct crew *c, struct result *all)
{
	*all = c->result[0];
	for (unsigned i = 1; i < c->count; i++) {
		const struct result *r = &c->result[i];

		all->seconds = r->seconds > all->seconds ? r->seconds : all->seconds;
		all->halo.under_way += r->halo.under_way;
		all->halo.hidden += r->halo.hidden;
		all->residual.under_way += r->residual.under_way;
		all->residual.hidden += r->residual.hidden;
	}
}

int host(struct run *run)
{
	static struct crew c;
	int rc = begin(&c, run);

	if (rc >= 0)
		rc = attend(&c, &run->task);
	if (end(&c, rc < 0))
		return 1;
	sum_up(&c, &run->result);
	return 0;
}
