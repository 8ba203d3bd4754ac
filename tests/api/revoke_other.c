/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a thread waits in slmpm_mem_revoke its peer may end and another one take its place, and
 * keys may be given to the same peer: of these the call takes back none, and waits for none.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE  16384
#define SHORT 50    /* ms: a call that shall be late */
#define LONG  10000 /* one that shall not, ... */
#define SOON  5000  /* ... so that it has not waited for its time to end */

enum { KEY = 1, READY, ORDER, DONE };

/* ---- a peer: opens each key that it is sent, and puts by the one that it is told ------------- */

static int peer(slmpm_peer host, char **words)
{
	struct slmpm_done got;
	slmpm_rmem rmem[2];
	unsigned keys = 0;
	struct slmpm_key key;
	uint32_t which;
	int32_t rc;
	(void)words;

	while (slmpm_recv(host, SLMPM_ANY_STREAM, &key, sizeof(key), &got, -1) >= 0) {
		if (got.stream == KEY) {
			OK(slmpm_mem_open(host, &key, &rmem[keys++]));
			OK(slmpm_send(host, READY, NULL, 0, PATIENCE));
			continue;
		}
		memcpy(&which, &key, sizeof(which));
		rc = slmpm_put(rmem[which], 0, "there", 6, NULL, NULL);
		OK(slmpm_flush(host, PATIENCE));
		OK(slmpm_send(host, DONE, &rc, sizeof(rc), PATIENCE));
	}
	return 0;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static slmpm_ctx ctx;
static struct slmpm_spawn_options with = {.size = sizeof(with)};
static slmpm_mem mem;
static char *base;

static slmpm_peer start(void)
{
	return actor_spawn_with(&with, "peer", NULL, NULL);
}

static void send_key(slmpm_peer to)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(to, KEY, &key, sizeof(key), PATIENCE));
}

static void await_opened(slmpm_peer to)
{
	EXPECT(slmpm_recv(to, READY, NULL, 0, NULL, PATIENCE), 0);
}

static void give(slmpm_peer to)
{
	send_key(to);
	await_opened(to);
}

static void expect_put(slmpm_peer by, uint32_t key, bool may)
{
	int32_t rc;

	memset(base, 0, SIZE);
	OK(slmpm_send(by, ORDER, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(by, DONE, &rc, sizeof(rc), NULL, PATIENCE), sizeof(rc));
	CHECK(rc == (may ? 0 : -SLMPM_EACCES), "by key %u: %d", key, (int)rc);
	CHECK(!strcmp(base, may ? "there" : ""), "by key %u: \"%s\"", key, base);
}

static void signal_to(slmpm_peer p, int number)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(p, &info));
	OK(kill(info.pid, number));
	if (number == SIGSTOP)
		actor_await_state(info.pid, "T");
}

static void await_holders(uint64_t n)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;

	do {
		CHECK(actor_now_ms() < until, "%d hold keys", (int)info.acceptors);
		sched_yield();
		OK(slmpm_mem_query(mem, &info));
	} while (info.acceptors != n);
}

static void leave(slmpm_peer p)
{
	OK(slmpm_close(p, PATIENCE));
	actor_join(p, 0);
}

/* ---- calls by a thread ----------------------------------------------------------------------- */

struct call {
	slmpm_peer peer;
	int rc;
	int64_t took;
	pthread_t thread;
};

static void *call_it(void *arg)
{
	struct call *c = arg;
	int64_t began = actor_now_ms();

	c->rc = slmpm_mem_revoke(mem, c->peer, LONG);
	c->took = actor_now_ms() - began;
	return NULL;
}

static void call(struct call *c, slmpm_peer whom)
{
	*c = (struct call){.peer = whom};
	CHECK(pthread_create(&c->thread, NULL, call_it, c) == 0, "no thread");
}

static int result(struct call *c)
{
	CHECK(pthread_join(c->thread, NULL) == 0, "no end");
	CHECK(c->took < SOON, "it took %d ms", (int)c->took);
	return c->rc;
}

/* ---- what happens meanwhile ------------------------------------------------------------------ */

/* A third one, who is stopped, has the pages: for him the call waits. */
static void another_takes_its_place(void)
{
	slmpm_peer first = start(), awaited = start(), second;
	struct call a;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, (void **)&base));
	give(first);
	give(awaited);
	signal_to(awaited, SIGSTOP);
	call(&a, first);
	await_holders(1);
	leave(first);
	second = start();
	CHECK((uint32_t)second.id == (uint32_t)first.id, "it has a place of its own");
	give(second);
	signal_to(awaited, SIGCONT);
	OK(result(&a));
	await_holders(2);
	expect_put(second, 0, true);
	expect_put(awaited, 0, true);
	leave(second);
	leave(awaited);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* It attaches, and is stopped: two calls wait for it to let go by its first key, one of them in
 * vain. */
static void it_gets_another_key(void)
{
	static char memory[SIZE];
	slmpm_peer holder = start();
	struct call a;
	int rc;

	base = memory;
	OK(slmpm_mem_register(ctx, memory, SIZE, SLMPM_READ_WRITE, &mem));
	give(holder);
	signal_to(holder, SIGSTOP);
	call(&a, holder);
	await_holders(0);
	rc = slmpm_mem_revoke(mem, holder, SHORT);
	CHECK(rc == 0 || rc == -SLMPM_ETIMEOUT, "%d", rc);
	await_holders(0);
	send_key(holder);
	signal_to(holder, SIGCONT);
	await_opened(holder);
	OK(result(&a));
	await_holders(1);
	expect_put(holder, 0, false);
	expect_put(holder, 1, true);
	OK(slmpm_mem_revoke(mem, holder, LONG));
	expect_put(holder, 1, false);
	leave(holder);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static int body(void *unused)
{
	const struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};

	(void)unused;
	OK(slmpm_open(&ctx, &options));
	with.ctx = ctx;
	another_takes_its_place();
	it_gets_another_key();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"peer", peer}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	if (!way_maps()) {
		printf("nobody maps anything over this fabric: nobody is waited for\n");
		return 77;
	}
	return child_run(body, NULL, 20 * (unsigned)actor_slow());
}
