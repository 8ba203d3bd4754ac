/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of messages through side 1, which passes them on by a PIPE of four buffers, to a third
 * process; and as many in the same run that go straight to side 1.
 */
#define _GNU_SOURCE
#include "apps/slmpm_perftest/perftest.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 4
#define PAGE    UINT64_C(4096)

struct order {
	uint64_t size, count, touch;
	int64_t relay_cpu; /* where side 1 runs */
};

/* ---- the third process ---------------------------------------------------------------------- */

/* Not where side 1 runs, if there is another processor. */
static void leave_processor(int64_t cpu)
{
	cpu_set_t others;

	memset(&others, 0xff, sizeof(others));
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_CLR((size_t)cpu, &others);
	(void)sched_setaffinity(0, sizeof(others), &others);
}

static int take_all(slmpm_peer relay, const struct order *o, char *buf)
{
	for (uint64_t i = 0; i < o->count; i++) {
		int64_t len = slmpm_recv(relay, STREAM_DATA, buf, o->size, NULL, -1);

		if (len < 0)
			return (int)len;
		if (o->touch)
			consume(buf, (uint64_t)len);
	}
	return slmpm_send(relay, STREAM_CONTROL, NULL, 0, -1);
}

int pipe_sink(void)
{
	struct order o;
	slmpm_peer relay;
	char *buf = NULL;

	if (slmpm_parent(&relay) < 0)
		return slmpm_perror("slmpm_perftest: third process");
	while (slmpm_recv(relay, STREAM_CONTROL, &o, sizeof(o), NULL, -1) == sizeof(o)) {
		char *more;

		leave_processor(o.relay_cpu);
		more = realloc(buf, o.size ? o.size : 1);

		if (!more || take_all(relay, &o, more) < 0)
			return 1;
		buf = more;
	}
	free(buf);
	return 0;
}

/* ---- side 1 ---------------------------------------------------------------------------------- */

struct relay {
	slmpm_ctx ctx; /* its peers' */
	slmpm_peer sink;
	slmpm_cq cq;
	slmpm_wq wq;
};

/* The third process stays for as long as the pair. */
static int relay_open(struct relay *r, slmpm_ctx ctx)
{
	char *const argv[] = {"--sink", NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	struct slmpm_wq_options o = {.size = sizeof(o)};
	int rc;

	if (r->ctx.id == ctx.id)
		return 0;
	how.ctx = ctx;
	rc = slmpm_spawn(&r->sink, "/proc/self/exe", argv, &how);
	if (rc >= 0)
		rc = slmpm_cq_create(ctx, &r->cq);
	o.cq = r->cq;
	if (rc >= 0)
		rc = slmpm_wq_create(ctx, &o, &r->wq);
	if (rc >= 0)
		r->ctx = ctx;
	return rc;
}

static int relay_post(const struct relay *r, struct pair *p, const struct job *j, char *room)
{
	const struct order o = {j->size, j->count, j->touch, sched_getcpu()};
	struct slmpm_iov buffers[BUFFERS];
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_PIPE};
	int rc = slmpm_send(r->sink, STREAM_CONTROL, &o, sizeof(o), -1);

	for (uint64_t i = 0; i < BUFFERS; i++)
		buffers[i] = (struct slmpm_iov){room + i * (j->size + PAGE), j->size};
	wr.from = p->peer;
	wr.from_stream = wr.stream = STREAM_DATA;
	wr.peer = r->sink;
	wr.iov = buffers;
	wr.iov_count = BUFFERS;
	wr.value = j->count;
	if (rc < 0)
		return rc;
	rc = slmpm_post(r->wq, &wr, 1);
	return rc < 0 ? rc : pair_signal(p);
}

/* All of it is there: the entry has ended, and the third process has said so. */
static int relay_await(const struct relay *r)
{
	struct slmpm_done done;
	int64_t rc = slmpm_cq_wait(r->cq, &done, 1, -1);

	if (rc >= 0)
		rc = done.status;
	if (rc >= 0)
		rc = slmpm_recv(r->sink, STREAM_CONTROL, &done, sizeof(done), NULL, -1);
	return rc < 0 ? (int)rc : 0;
}

static int take_straight(struct pair *p, const struct job *j)
{
	int64_t rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
		if (rc >= 0 && j->touch)
			consume(p->rx, (uint64_t)rc);
	}
	return rc < 0 ? (int)rc : pair_signal(p);
}

static int follow(struct pair *p, const struct job *j)
{
	static struct relay relay;
	char *room = calloc(BUFFERS, j->size + PAGE);
	int rc = room ? relay_open(&relay, p->ctx) : -SLMPM_ENOMEM;

	if (rc >= 0)
		rc = relay_post(&relay, p, j, room);
	if (rc >= 0)
		rc = relay_await(&relay);
	if (rc >= 0)
		rc = pair_signal(p);
	free(room);
	return rc < 0 ? rc : take_straight(p, j);
}

/* ---- side 0 ---------------------------------------------------------------------------------- */

/* Until the other side says that all has come: ns of each. */
static int send_all(struct pair *p, const struct job *j, double *ns)
{
	uint64_t begin = now_ns();
	int rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		if (j->touch)
			fill(p->tx, j->size, i);
		rc = slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
	}
	if (rc >= 0)
		rc = pair_signaled(p);
	*ns = (double)(now_ns() - begin) / (double)j->count;
	return rc;
}

int loop_wq_pipe(struct pair *p, const struct job *j, struct hist *stamps)
{
	int rc;

	(void)stamps;
	if (p->side)
		return follow(p, j);
	rc = pair_signaled(p); /* the buffers are there */
	if (rc >= 0)
		rc = send_all(p, j, &p->extra.each_ns);
	return rc < 0 ? rc : send_all(p, j, &p->extra.bare_ns);
}
