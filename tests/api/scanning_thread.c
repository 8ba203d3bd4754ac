/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who polls for others scans the rings without the lock: the engine's thread, or one that waits in
 * a call. Meanwhile peers come, send, and go, their rings with them: closed, or dead.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define ROUNDS 150
#define KILLS  8
#define MANY   6 /* pairs: more rings than are scanned */

enum { WORD = 1, LAST };

static slmpm_ctx ctx;
static struct rng rng;

static void pause_us(uint64_t us)
{
	struct timespec t = {0, (long)us * 1000};

	nanosleep(&t, NULL);
}

/* Without a call: who polls is not sent aside. */
static void let_scan(uint64_t us)
{
	pause_us(us + rng_below(&rng, 300));
}

static void say(slmpm_peer from, slmpm_peer to)
{
	char word = 0;

	OK(slmpm_send(from, WORD, "w", 1, PATIENCE));
	EXPECT(slmpm_recv(to, WORD, &word, 1, NULL, PATIENCE), 1);
	EXPECT(word, 'w');
}

/* ---- beside the poller ---------------------------------------------------------------------- */

static void come_and_go(uint64_t us)
{
	slmpm_peer a, b;

	actor_pair(ctx, &a, &b);
	say(a, b);
	let_scan(us);
	say(b, a);
	let_scan(us);
	if (rng_one_in(&rng, 2)) {
		OK(slmpm_close(a, 0));
		let_scan(us);
		(void)slmpm_close(b, 0);
	} else {
		OK(slmpm_close(b, PATIENCE));
		OK(slmpm_close(a, PATIENCE));
	}
}

/* With all of them the rings are too many, and then few again. */
static void come_in_numbers(uint64_t us)
{
	slmpm_peer a[MANY], b[MANY];

	for (int i = 0; i < MANY; i++) {
		actor_pair(ctx, &a[i], &b[i]);
		let_scan(us);
	}
	for (int i = MANY; i--; let_scan(us)) {
		say(a[i], b[i]);
		(void)slmpm_close(a[i], 0);
		(void)slmpm_close(b[i], 0);
	}
}

static void die(uint64_t us)
{
	slmpm_peer child = actor_spawn_ready("stays");
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(child, &info));
	let_scan(us);
	OK(kill(info.pid, SIGKILL));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

static void beside(uint64_t us)
{
	for (int i = 0; i < ROUNDS / actor_slow(); i++)
		come_and_go(us);
	come_in_numbers(us);
}

/* ---- who polls ------------------------------------------------------------------------------ */

/* A context that was opened for one thread: the engine's waits for what does not come. */
static int by_engine(void *unused)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_WAIT, .value = 1};
	slmpm_wq wq;

	(void)unused;
	OK(slmpm_default(&ctx));
	OK(slmpm_ctr_create(ctx, &wr.ctr));
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq));
	EXPECT(slmpm_post(wq, &wr, 1), 1);
	beside(1500); /* it comes back after a millisecond */
	for (int i = 0; i < KILLS; i++)
		die(1500);
	OK(slmpm_shut(ctx, 0));
	return 0;
}

static void *wait_for_last(void *peer)
{
	EXPECT(slmpm_recv(*(slmpm_peer *)peer, LAST, NULL, 0, NULL, 4 * PATIENCE), 0);
	return NULL;
}

static int by_thread(void *unused)
{
	struct slmpm_options o = {
		.size = sizeof(o), .flags = SLMPM_THREADS, .wait = SLMPM_WAIT_SPIN};
	slmpm_peer a, b;
	pthread_t t;

	(void)unused;
	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(pthread_create(&t, NULL, wait_for_last, &b));
	beside(0);
	OK(slmpm_send(a, LAST, NULL, 0, PATIENCE));
	OK(pthread_join(t, NULL));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int role_stays(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	(void)slmpm_recv(host, LAST, NULL, 0, NULL, PATIENCE);
	return 0;
}

static const struct actor roles[] = {{"stays", role_stays}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	settings_set("SLMPM_WAIT", "spin");
	settings_set("SLMPM_ENGINE", "none");
	settings_run("a thread in a call", by_thread, NULL);
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("the engine's thread", by_engine, NULL);
	return 0;
}
