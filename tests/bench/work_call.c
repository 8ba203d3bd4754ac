/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One way of 8 bytes between two processes, by messages and by puts, while nothing else is there,
 * an engine's thread is, and a WAIT for a message that does not come, of a third process or of the
 * other one. Both sides have the same.
 */
#include <slmpm.h>
#include <slmpm_memory.h>
#include <slmpm_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/work.h"

enum { TRIPS = 20000, WARM = 4000, REGION = 4096, THIRD = 2, PATIENCE_MS = 20000 };
enum { DATA, KEYS, NEVER }; /* streams */

static enum beside beside;
static slmpm_peer other, third;
static slmpm_rmem remote;
static uint64_t *mine; /* where the other side's puts come */

/* ---- three processes ------------------------------------------------------------------------- */

static void url_of(char url[48], int number)
{
	snprintf(url, 48, "shm:call-%d-%d", (int)getppid(), number);
}

static slmpm_listener listen_as(int number)
{
	slmpm_listener listener;
	char url[48];

	url_of(url, number);
	ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "slmpm_listen");
	return listener;
}

static slmpm_peer connect_to(int number)
{
	slmpm_peer peer;
	char url[48];

	url_of(url, number);
	ok(slmpm_connect(&peer, (slmpm_ctx){0}, url, PATIENCE_MS), "slmpm_connect");
	return peer;
}

/* It sleeps until the first has ended. */
static void be_third(slmpm_listener listener)
{
	slmpm_peer peer[2];
	char byte;

	for (int i = 0; i < 2; i++)
		ok(slmpm_accept(listener, &peer[i], PATIENCE_MS), "slmpm_accept");
	ok(slmpm_recv(slmpm_any((slmpm_ctx){0}), DATA, &byte, 1, NULL, PATIENCE_MS), "slmpm_recv");
	_exit(0);
}

static void open_regions(void)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	ok(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ_WRITE, &mem, &base), "region");
	mine = base;
	memset(base, 0, REGION);
	ok(slmpm_mem_key(mem, other, SLMPM_READ_WRITE, &key), "key");
	ok(slmpm_send(other, KEYS, &key, sizeof key, PATIENCE_MS), "slmpm_send");
	ok(slmpm_recv(other, KEYS, &key, sizeof key, NULL, PATIENCE_MS), "slmpm_recv");
	ok(slmpm_mem_open(other, &key, &remote), "slmpm_mem_open");
}

static void join(int number)
{
	slmpm_listener listener = {0};

	setenv("SLMPM_ENGINE", number < THIRD && beside != BESIDE_NOTHING ? "thread" : "none", 1);
	setenv("SLMPM_WAIT", number < THIRD ? "adaptive" : "block", 1);
	if (number)
		listener = listen_as(number);
	meet(THIRD + 1);
	if (number == THIRD)
		be_third(listener);
	third = connect_to(THIRD);
	if (number)
		ok(slmpm_accept(listener, &other, PATIENCE_MS), "slmpm_accept");
	else
		other = connect_to(1);
	open_regions();
}

/* ---- what is beside -------------------------------------------------------------------------- */

static void post_wait(slmpm_wq wq, slmpm_peer peer)
{
	static uint64_t never;
	struct slmpm_iov iov = {&never, sizeof never};
	struct slmpm_wr wr[2] = {{.size = sizeof *wr, .op = SLMPM_OP_RECV, .channel = 1},
				 {.size = sizeof *wr, .op = SLMPM_OP_WAIT, .value = 1}};

	wr[0].peer = peer;
	wr[0].stream = NEVER;
	wr[0].iov = &iov;
	wr[0].iov_count = 1;
	ok(slmpm_ctr_create((slmpm_ctx){0}, &wr[0].ctr), "slmpm_ctr_create");
	wr[1].ctr = wr[0].ctr;
	ok(slmpm_post(wq, wr, 2), "slmpm_post");
}

/* The first queue starts the thread. */
static void put_beside(void)
{
	struct slmpm_wq_options o = {.size = sizeof o};
	slmpm_wq wq;

	if (beside == BESIDE_NOTHING)
		return;
	ok(slmpm_cq_create((slmpm_ctx){0}, &o.cq), "slmpm_cq_create");
	ok(slmpm_wq_create((slmpm_ctx){0}, &o, &wq), "slmpm_wq_create");
	if (beside != BESIDE_ENGINE)
		post_wait(wq, beside == BESIDE_SAME ? other : third);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void trip_of_messages(int number, uint64_t mark)
{
	if (number == 0)
		ok(slmpm_send(other, DATA, &mark, sizeof mark, PATIENCE_MS), "slmpm_send");
	ok(slmpm_recv(other, DATA, &mark, sizeof mark, NULL, PATIENCE_MS), "slmpm_recv");
	if (number)
		ok(slmpm_send(other, DATA, &mark, sizeof mark, PATIENCE_MS), "slmpm_send");
}

static void trip_of_puts(int number, uint64_t mark)
{
	if (number == 0)
		ok(slmpm_put(remote, 0, &mark, sizeof mark, NULL, NULL), "slmpm_put");
	while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != mark)
		relax();
	if (number)
		ok(slmpm_put(remote, 0, &mark, sizeof mark, NULL, NULL), "slmpm_put");
}

static double time_trips(int number, void (*trip)(int number, uint64_t mark))
{
	double begin = 0;

	for (uint64_t i = 1; i <= WARM + TRIPS; i++) {
		if (i == WARM + 1)
			begin = now_ns();
		trip(number, i);
	}
	return (now_ns() - begin) / TRIPS / 2;
}

static void make_calls(int number)
{
	double ns[CALLS];

	bind_to_both();
	join(number);
	put_beside();
	bind_to(cpus[number]);
	ns[CALL_SEND] = time_trips(number, trip_of_messages);
	ns[CALL_PUT] = time_trips(number, trip_of_puts);
	if (number == 0) {
		memcpy(common->result, ns, sizeof ns);
		ok(slmpm_send(third, DATA, "", 1, PATIENCE_MS), "slmpm_send");
	}
	meet(2 * THIRD + 1);
}

bool call_beside(enum beside what, double ns[CALLS])
{
	bool well;

	beside = what;
	well = run_processes(THIRD + 1, make_calls);
	memcpy(ns, common->result, sizeof *ns * CALLS);
	return well;
}
