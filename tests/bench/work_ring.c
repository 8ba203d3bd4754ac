/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A token in a ring of four processes on two processors: each waits for a message from the one
 * before, and that enables its next one to the one behind; or it receives and sends by hand.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <slmpm.h>
#include <slmpm_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/work.h"

/* SETTLED: while one sets up, those that share its processor learn that yielding costs a turn, and
 * sleep for some milliseconds instead (slmpm/link/idle.c). */
enum { LAPS = 5000, PATIENCE_MS = 20000, SETTLED_US = 20000 };
enum { MAIN, RECEIVES, CHANNELS };

static enum ring ring;
static slmpm_peer before, behind;
static char token;

static const char *wait_of(enum ring how)
{
	return how == RING_ASLEEP ? "block" : "adaptive";
}

static void url_of(char url[48], int number)
{
	snprintf(url, 48, "shm:ring-%d-%d", (int)getppid(), number);
}

static void join(int number)
{
	slmpm_listener listener;
	char url[48];

	url_of(url, number);
	ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "slmpm_listen");
	meet(RING);
	url_of(url, (number + 1) % RING);
	ok(slmpm_connect(&behind, (slmpm_ctx){0}, url, PATIENCE_MS), "slmpm_connect");
	ok(slmpm_accept(listener, &before, PATIENCE_MS), "slmpm_accept");
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void receive(void)
{
	int64_t rc;

	if (ring == RING_ASLEEP) {
		ok(slmpm_recv(before, 0, &token, 1, NULL, PATIENCE_MS), "slmpm_recv");
		return;
	}
	while ((rc = slmpm_recv(before, 0, &token, 1, NULL, 0)) == -SLMPM_EAGAIN)
		sched_yield();
	ok(rc, "slmpm_recv");
}

static void send_on(void)
{
	ok(slmpm_send(behind, 0, &token, 1, PATIENCE_MS), "slmpm_send");
}

static void go_by_hand(int number)
{
	for (int i = 0; i < LAPS; i++) {
		if (number == 0)
			send_on();
		receive();
		if (number)
			send_on();
	}
}

/* ---- by queues ------------------------------------------------------------------------------- */

struct queues {
	slmpm_wq waits, sends;
	slmpm_ctr came;
};

static void post(slmpm_wq wq, struct slmpm_wr wr)
{
	wr.size = sizeof wr;
	wr.flags |= SLMPM_SILENT;
	ok(slmpm_post(wq, &wr, 1), "slmpm_post");
}

static slmpm_wq queue_of(uint32_t entries, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof o, .flags = flags, .depth = entries};
	slmpm_wq wq;

	o.channels = CHANNELS;
	ok(slmpm_cq_create((slmpm_ctx){0}, &o.cq), "slmpm_cq_create");
	ok(slmpm_wq_create((slmpm_ctx){0}, &o, &wq), "slmpm_wq_create");
	return wq;
}

static void post_message(slmpm_wq wq, uint32_t op, slmpm_ctr ctr)
{
	const struct slmpm_iov iov = {&token, 1};
	bool comes = op == SLMPM_OP_RECV;

	post(wq, (struct slmpm_wr){.op = op,
				   .channel = comes ? RECEIVES : MAIN,
				   .peer = comes ? before : behind,
				   .iov = &iov,
				   .iov_count = 1,
				   .ctr = ctr});
}

static void post_laps(struct queues *q)
{
	ok(slmpm_ctr_create((slmpm_ctx){0}, &q->came), "slmpm_ctr_create");
	q->waits = queue_of(3 * LAPS, 0);
	q->sends = queue_of(LAPS, SLMPM_WQ_MANAGED);
	for (int i = 0; i < LAPS; i++) {
		post_message(q->waits, SLMPM_OP_RECV, q->came);
		post_message(q->sends, SLMPM_OP_SEND, (slmpm_ctr){0});
	}
	for (int i = 0; i < LAPS; i++) {
		post(q->waits, (struct slmpm_wr){.op = SLMPM_OP_WAIT,
						 .flags = SLMPM_RELATIVE,
						 .ctr = q->came,
						 .value = 1});
		post(q->waits, (struct slmpm_wr){.op = SLMPM_OP_ENABLE,
						 .flags = SLMPM_RELATIVE,
						 .wq = q->sends,
						 .value = 1});
	}
}

/* ---- both ------------------------------------------------------------------------------------ */

static void go_round(int number)
{
	struct queues q;
	double begin;

	setenv("SLMPM_WAIT", wait_of(ring), 1);
	bind_to(cpus[number % 2]);
	join(number);
	if (ring == RING_BY_QUEUES)
		post_laps(&q);
	meet(2 * RING);
	usleep(SETTLED_US);
	meet(3 * RING);
	begin = now_ns();
	if (ring == RING_BY_QUEUES && number == 0)
		send_on();
	if (ring == RING_BY_QUEUES)
		ok(slmpm_wq_drain(number ? q.sends : q.waits, PATIENCE_MS), "slmpm_wq_drain");
	else
		go_by_hand(number);
	if (number == 0)
		common->result[0] = (now_ns() - begin) / LAPS / RING;
	meet(4 * RING);
}

bool ring_hop(enum ring how, double *ns)
{
	bool well;

	ring = how;
	well = run_processes(RING, go_round);
	*ns = common->result[0];
	return well;
}
