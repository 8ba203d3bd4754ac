/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mixed loads, about which a choice of modes is: small messages beside bulk puts, a reader that has
 * other things to do, streams both ways at once; and programs that compute beside them.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <pthread.h>
#include <stdatomic.h>

#define SMALL     8 /* bytes of the messages beside puts, ... */
#define SMALLS    8 /* of which so many follow each put; the last is answered */
#define WORK_US   20
#define TIDES     4 /* a reader's pace goes up and down in so many steps: */
#define TIDE_WORK 3 /* how many times the work in the slowest */

/* ---- requests under way ---- */

struct window {
	slmpm_req req[BURST_MAX];
	uint64_t most;
	bool blocks; /* each call blocks; there are no requests */
	struct slmpm_how how;
};

static void window_open(struct window *w, uint64_t most)
{
	*w = (struct window){.most = most,
			     .blocks = most == 1,
			     .how = {.size = sizeof(w->how), .timeout_ms = -1}};
}

static int settle(struct pair *p, slmpm_req *req)
{
	struct slmpm_done done = {0};
	int rc = slmpm_wait(req, 1, &done, -1);

	if (p->trace)
		trace_note(p->trace, p->peer, &done);
	return rc < 0 ? rc : done.status;
}

/* For the Ith operation: a place for its request, which is free then; NULL: it is to block. */
static int window_place(struct pair *p, struct window *w, uint64_t i, slmpm_req **req)
{
	*req = w->blocks ? NULL : &w->req[i % w->most];
	return *req && (*req)->id ? settle(p, *req) : 0;
}

static int window_close(struct pair *p, struct window *w)
{
	int rc = 0;

	for (uint64_t i = 0; i < w->most && rc >= 0; i++)
		if (w->req[i].id)
			rc = settle(p, &w->req[i]);
	return rc;
}

static void noted(struct pair *p, const slmpm_req *req)
{
	if (p->trace && !req)
		trace_note(p->trace, p->peer, NULL);
}

static int send_next(struct pair *p, const struct job *j, struct window *w, uint64_t i)
{
	struct slmpm_iov piece = {p->tx + i % w->most * burst_stride(j), j->size};
	slmpm_req *req;
	int rc = window_place(p, w, i, &req);

	if (rc < 0)
		return rc;
	if (j->touch)
		fill(piece.base, j->size, i);
	rc = req ? slmpm_sendv(p->peer, STREAM_DATA, &piece, 1, &w->how, req) :
		   slmpm_send(p->peer, STREAM_DATA, piece.base, j->size, -1);
	noted(p, req);
	return rc;
}

static int take_next(struct pair *p, const struct job *j)
{
	int64_t len = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);

	if (len >= 0 && j->touch)
		consume(p->rx, (uint64_t)len);
	return len < 0 ? (int)len : 0;
}

/* ---- small messages beside bulk puts ---- */

static int put_next(struct pair *p, const struct job *j, struct window *w, uint64_t i)
{
	slmpm_req *req;
	int rc = window_place(p, w, i, &req);

	if (rc < 0)
		return rc;
	if (j->touch)
		fill(p->region.source, j->size, i);
	rc = slmpm_put(p->region.remote, 0, p->region.source, j->size, req ? &w->how : NULL, req);
	noted(p, req);
	return rc;
}

static int small_messages(struct pair *p, uint32_t stream, int n)
{
	uint64_t word = 0;
	int rc = 0;

	for (int i = 0; i < n && rc >= 0; i++)
		rc = slmpm_send(p->peer, stream, &word, SMALL, -1);
	return rc;
}

static int take_small(struct pair *p, uint32_t stream, int n)
{
	uint64_t word;
	int64_t rc = 0;

	for (int i = 0; i < n && rc >= 0; i++)
		rc = slmpm_recv(p->peer, stream, &word, SMALL, NULL, -1);
	return rc < 0 ? (int)rc : 0;
}

static int answer_all(struct pair *p, const struct job *j)
{
	int rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = take_small(p, STREAM_DATA, SMALLS);
		if (rc >= 0)
			rc = small_messages(p, STREAM_DATA, 1);
	}
	return rc < 0 ? rc : pair_signaled(p);
}

int loop_mixed(struct pair *p, const struct job *j, struct hist *stamps)
{
	struct window w;
	int rc = 0;

	(void)stamps;
	if (p->side)
		return answer_all(p, j);
	window_open(&w, burst_of(j));
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = put_next(p, j, &w, i);
		if (rc >= 0)
			rc = small_messages(p, STREAM_DATA, SMALLS);
		if (rc >= 0)
			rc = take_small(p, STREAM_DATA, 1);
	}
	if (rc >= 0)
		rc = window_close(p, &w);
	if (rc >= 0)
		rc = slmpm_flush(p->peer, -1);
	return rc < 0 ? rc : pair_signal(p);
}

/* ---- a reader with other things to do ---- */

static void compute_us(uint64_t us)
{
	uint64_t until = now_ns() + us * 1000;

	while (now_ns() < until)
		relax();
}

/* Of the reader behind message I of N: rising and falling again, where that is wanted. */
static uint64_t work_at(const struct job *j, uint64_t i, bool tide)
{
	uint64_t work = j->work_us ? j->work_us : WORK_US, step = i * TIDES / j->count;

	return !tide ? work : step % 2 ? TIDE_WORK * work : 0;
}

static int read_slowly(struct pair *p, const struct job *j, bool tide)
{
	int rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = take_next(p, j);
		compute_us(work_at(j, i, tide));
	}
	return rc;
}

static int send_all(struct pair *p, const struct job *j)
{
	struct window w;
	int rc = 0;

	window_open(&w, burst_of(j));
	for (uint64_t i = 0; i < j->count && rc >= 0; i++)
		rc = send_next(p, j, &w, i);
	return rc < 0 ? rc : window_close(p, &w);
}

int loop_slow_reader(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return p->side ? read_slowly(p, j, false) : send_all(p, j);
}

int loop_tide(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return p->side ? read_slowly(p, j, true) : send_all(p, j);
}

/* ---- both ways at once ---- */

int loop_duplex(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t most = burst_of(j);
	struct window w;
	int rc = 0;

	(void)stamps;
	window_open(&w, most);
	w.blocks &= j->size <= p->fifo_max; /* longer ones would wait for each other's receives */
	for (uint64_t done = 0; done < j->count && rc >= 0; done += most) {
		uint64_t n = j->count - done < most ? j->count - done : most;

		for (uint64_t i = 0; i < n && rc >= 0; i++)
			rc = send_next(p, j, &w, done + i);
		for (uint64_t i = 0; i < n && rc >= 0; i++)
			rc = take_next(p, j);
	}
	return rc < 0 ? rc : window_close(p, &w);
}

/* ---- somebody else's work on the same processors ---- */

struct neighbour {
	pthread_t thread;
	atomic_bool stop;
};

static void *keep_busy(void *arg)
{
	struct neighbour *n = arg;

	while (!atomic_load_explicit(&n->stop, memory_order_relaxed))
		relax();
	return NULL;
}

struct neighbour *neighbour_begin(void)
{
	static struct neighbour one; /* on this side's processor */

	atomic_store(&one.stop, false);
	return pthread_create(&one.thread, NULL, keep_busy, &one) ? NULL : &one;
}

void neighbour_end(struct neighbour *n)
{
	if (!n)
		return;
	atomic_store(&n->stop, true);
	pthread_join(n->thread, NULL);
}
