/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means over jobs that are joined by slmpm_connect: three of them in a circle, one with a process
 * that it has started itself. Each comes to know of all four processes, and never of more; when one
 * has gone, of the others.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define JOBS    3
#define SECONDS 60

static struct shared {
	_Atomic int listens[JOBS], over, leave;
	struct {
		_Atomic uint32_t instances, jobs, most, leaf;
	} sees[JOBS];
	char urls[JOBS][64];
} * shared;

static const slmpm_ctx none;

/* ---- one of them ----------------------------------------------------------------------------- */

static struct {
	int number, peers;
	slmpm_peer peer[JOBS];
	slmpm_peer leaf; /* or {0} */
} me;

/* Words to and from everybody, and what is known by now. */
static void turn(void)
{
	uint32_t word = 0, most;
	struct slmpm_aggregate m;
	int64_t n;

	for (int i = 0; i < me.peers; i++) {
		(void)slmpm_send(me.peer[i], 1, &word, sizeof(word), 0);
		do {
			n = slmpm_recv(me.peer[i], 1, &word, sizeof(word), NULL, 0);
		} while (n == sizeof(word));
	}
	if (me.leaf.id) {
		OK(slmpm_send(me.leaf, 1, &word, sizeof(word), PATIENCE));
		EXPECT(slmpm_recv(me.leaf, 1, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		shared->sees[me.number].leaf = word;
	}
	OK(slmpm_aggregate(&m, sizeof(m)));
	most = shared->sees[me.number].most;
	shared->sees[me.number].instances = m.instances;
	shared->sees[me.number].jobs = m.jobs;
	shared->sees[me.number].most = most > m.instances ? most : m.instances;
	(void)usleep(100); /* others may run */
}

static void await(const _Atomic int *what)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!*what) {
		CHECK(actor_now_ms() < until, "%d: nothing comes", me.number);
		turn();
	}
}

/* Those before it are there already; it listens for those behind. */
static int job(void *number)
{
	slmpm_listener listener;

	me.number = *(const int *)number;
	OK(slmpm_listen(&listener, none, shared->urls[me.number]));
	for (int i = 0; i < me.number; i++) {
		await(&shared->listens[i]);
		OK(slmpm_connect(&me.peer[me.peers], none, shared->urls[i], PATIENCE));
		me.peers++;
	}
	shared->listens[me.number] = 1;
	for (int i = me.number + 1; i < JOBS; i++) {
		slmpm_peer peer;

		OK(slmpm_accept(listener, &peer, PATIENCE));
		me.peer[me.peers++] = peer;
	}
	if (me.number == 0)
		me.leaf = actor_spawn("leaf", NULL, NULL);
	await(me.number == JOBS - 1 ? &shared->leave : &shared->over);
	if (me.number == 0) {
		OK(slmpm_close(me.leaf, PATIENCE));
		actor_join(me.leaf, 0);
	}
	for (int i = 0; i < me.peers; i++)
		(void)slmpm_close(me.peer[i], 0);
	OK(slmpm_unlisten(listener));
	return 0;
}

/* Answers with how many it knows. */
static int leaf(slmpm_peer host, char **words)
{
	struct slmpm_aggregate m;
	uint32_t n;

	(void)words;
	while (slmpm_recv(host, 1, &n, sizeof(n), NULL, PATIENCE) == sizeof(n)) {
		OK(slmpm_aggregate(&m, sizeof(m)));
		if (slmpm_send(host, 1, &m.instances, sizeof(m.instances), PATIENCE) < 0)
			break;
	}
	return 0;
}

/* ---- who looks on ---------------------------------------------------------------------------- */

static bool all_see(int count, uint32_t instances, uint32_t jobs)
{
	bool all = shared->sees[0].leaf == instances;

	for (int i = 0; i < count; i++)
		all &= shared->sees[i].instances == instances && shared->sees[i].jobs == jobs;
	return all;
}

static void await_all(int count, uint32_t instances, uint32_t jobs)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	while (!all_see(count, instances, jobs)) {
		CHECK(actor_now_ms() < until, "of %u: %u %u %u, the leaf %u", instances,
		      shared->sees[0].instances, shared->sees[1].instances,
		      shared->sees[2].instances, shared->sees[0].leaf);
		(void)usleep(1000);
	}
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"leaf", leaf}, {NULL, NULL}};
	static const int numbers[JOBS] = {0, 1, 2};
	pid_t pids[JOBS];

	CHECK(!setenv("SLMPM_MONITOR_MS", "50", 1), "environment");
	actor_begin(argc, argv, roles);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "no memory");
	for (int i = 0; i < JOBS; i++)
		snprintf(shared->urls[i], sizeof(shared->urls[i]), "shm:means-jobs-%d-%d",
			 (int)getpid(), i);
	for (int i = 0; i < JOBS; i++)
		pids[i] = child_start(job, (void *)(uintptr_t)&numbers[i], SECONDS);
	await_all(JOBS, 4, 3);
	shared->leave = 1;
	EXPECT(child_wait(pids[JOBS - 1]), 0);
	await_all(JOBS - 1, 3, 2);
	shared->over = 1;
	for (int i = 0; i < JOBS - 1; i++)
		EXPECT(child_wait(pids[i]), 0);
	for (int i = 0; i < JOBS; i++)
		EXPECT(shared->sees[i].most, 4);
	return 0;
}
