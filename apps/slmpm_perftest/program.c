/* SPDX-License-Identifier: BSD-3-Clause */
/* A work queue with a kept program, and the rounds in which it runs (program.h). */
#include "apps/slmpm_perftest/program.h"

#include <endian.h>
#include <string.h>

#define STREAM_ROUND 2u      /* what the sides say to each other between rounds */
#define REST_NS      3000000 /* the engine's thread comes back sooner */
#define LOOK_NS      200000  /* between two looks at a program that it runs */
#define STALLED      2500    /* looks that found no change: it does not run it */
#define SHARES       1000000.0

static void nap(long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	nanosleep(&time, NULL);
}

void program_rest(void)
{
	nap(REST_NS);
}

static bool has_thread(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};

	for (int i = 0; slmpm_setting_at(i, &s) >= 0; i++)
		if (strstr(s.name, "ENGINE") && strlen(strstr(s.name, "ENGINE")) == 6)
			return strcmp(s.value, "thread") == 0;
	return false;
}

/* Asked once: settings stay, and looking through them takes as long as many a hop. */
bool program_has_thread(const struct pair *p)
{
	static enum { UNKNOWN, NO, YES } known;

	if (known == UNKNOWN)
		known = has_thread() ? YES : NO;
	return known == YES && !p->no_thread;
}

int program_make(struct program *g, struct pair *p, uint64_t size, uint64_t depth, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	int rc;

	*g = (struct program){.pair = p, .out = {p->tx, size}, .in = {p->rx, size}};
	o.flags = flags;
	o.depth = (uint32_t)depth;
	o.channels = CHANNEL_OTHER + 1;
	rc = slmpm_cq_create(p->ctx, &g->cq);
	o.cq = g->cq;
	if (rc >= 0)
		rc = slmpm_ctr_create(p->ctx, &g->came);
	if (rc >= 0)
		rc = slmpm_ctr_create(p->ctx, &g->there);
	if (rc >= 0)
		rc = slmpm_ctr_create(p->ctx, &g->back);
	if (rc >= 0)
		rc = slmpm_wq_create(p->ctx, &o, &g->wq);
	return rc;
}

void program_end(struct program *g)
{
	if (g->wq.id)
		(void)slmpm_wq_destroy(g->wq);
	if (g->came.id)
		(void)slmpm_ctr_destroy(g->came);
	if (g->there.id)
		(void)slmpm_ctr_destroy(g->there);
	if (g->back.id)
		(void)slmpm_ctr_destroy(g->back);
	if (g->cq.id)
		(void)slmpm_cq_destroy(g->cq);
}

/* ---- entries ---- */

static void post(struct program *g, struct slmpm_wr *wr)
{
	wr->size = sizeof(*wr);
	wr->flags |= SLMPM_SILENT;
	if (g->rc >= 0)
		g->rc = slmpm_post(g->wq, wr, 1);
}

static void send_counted(struct program *g, slmpm_ctr ctr)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_SEND, .peer = g->pair->peer, .stream = STREAM_DATA};

	wr.iov = &g->out;
	wr.iov_count = 1;
	wr.ctr = ctr;
	post(g, &wr);
}

void program_send(struct program *g)
{
	send_counted(g, (slmpm_ctr){0});
}

void program_send_counted(struct program *g)
{
	send_counted(g, g->there);
}

void program_mark(struct program *g, uint32_t stream)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_SEND, .peer = g->pair->peer, .stream = stream};

	post(g, &wr);
}

void program_receive(struct program *g)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_RECV, .peer = g->pair->peer, .stream = STREAM_DATA};

	wr.channel = CHANNEL_RECEIVES;
	wr.iov = &g->in;
	wr.iov_count = 1;
	wr.ctr = g->came;
	post(g, &wr);
}

void program_wait(struct program *g, uint32_t channel, slmpm_ctr ctr)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_WAIT, .flags = SLMPM_RELATIVE, .value = 1};

	wr.channel = channel;
	wr.ctr = ctr;
	post(g, &wr);
}

void program_count(struct program *g, uint32_t channel, slmpm_ctr ctr)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_COUNT, .flags = SLMPM_RELATIVE, .value = 1};

	wr.channel = channel;
	wr.ctr = ctr;
	post(g, &wr);
}

/* ---- running ---- */

/* Until all have ended: 1; 0: the engine's thread does nothing about it. */
static int finish_outside(const struct program *g)
{
	struct slmpm_wq_info now = {.size = sizeof(now)}, before = now;
	int rc = 0, same = 0;

	for (; rc >= 0 && same < STALLED; before = now) {
		nap(LOOK_NS);
		rc = slmpm_wq_query(g->wq, &now);
		if (rc >= 0 && now.posted == now.done + now.failed)
			return 1;
		same = now.begun == before.begun && now.done == before.done ? same + 1 : 0;
	}
	return rc;
}

int program_finish(struct program *g)
{
	int rc = g->rc < 0 ? g->rc : 0;

	if (rc >= 0 && program_has_thread(g->pair)) {
		rc = finish_outside(g);
		g->pair->no_thread = rc == 0;
	}
	return rc < 0 ? rc : slmpm_wq_drain(g->wq, -1);
}

double program_by_engine(const struct program *g)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	if (slmpm_wq_query(g->wq, &info) < 0 || !info.begun)
		return 0;
	return (double)info.by_engine / (double)info.begun;
}

/* ---- rounds ---- */

int round_say(struct pair *p, const struct round *r)
{
	uint32_t wire[2] = {htole32(r->thread), htole32((uint32_t)(r->by_engine * SHARES))};

	return slmpm_send(p->peer, STREAM_ROUND, wire, sizeof(wire), -1);
}

int round_hear(struct pair *p, struct round *r)
{
	uint32_t wire[2];
	int64_t len = slmpm_recv(p->peer, STREAM_ROUND, wire, sizeof(wire), NULL, -1);

	if (len != (int64_t)sizeof(wire))
		return len < 0 ? (int)len : -SLMPM_EPROTO;
	r->thread = le32toh(wire[0]);
	r->by_engine = le32toh(wire[1]) / SHARES;
	if (r->thread)
		program_rest();
	return 0;
}

int round_trips(struct pair *p, const struct job *j, uint64_t n, double *ns)
{
	uint64_t begin = now_ns();
	int64_t rc = 0;

	for (uint64_t i = 0; i < n && rc >= 0; i++) {
		rc = slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
		if (rc >= 0)
			rc = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
	}
	*ns = (double)(now_ns() - begin);
	return rc < 0 ? (int)rc : 0;
}

int round_relay(struct pair *p, const struct job *j, uint64_t n)
{
	int64_t rc = 0;

	for (uint64_t i = 0; i < n && rc >= 0; i++) {
		rc = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
		if (rc >= 0)
			rc = slmpm_send(p->peer, STREAM_DATA, p->rx, j->size, -1);
	}
	return rc < 0 ? (int)rc : 0;
}
