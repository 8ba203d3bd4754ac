/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Two threads take one region back at once: from two peers, from the same one, beside its end,
 * beside a call whose time runs out, beside an offer. Each call ends, old keys are refused, and
 * what those who lost them still write does not show in the pages.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define SIZE   16384
#define PEERS  3
#define ROUNDS 10
#define SHORT  50    /* ms: a call that shall be late */
#define LONG   10000 /* one that shall not, ... */
#define SOON   5000  /* ... so that it has not waited for its time to end */

enum { KEY = 1, READY, ORDER, DONE };

/* ---- a peer ---------------------------------------------------------------------------------- */

/* Writes all the time, until it is refused. */
static int32_t hammer(slmpm_rmem rmem)
{
	static unsigned char bytes[SIZE];
	int rc = 0;

	memset(bytes, 0xaa, sizeof(bytes));
	while (rc == 0) {
		for (int i = 0; i < 16 && rc == 0; i++)
			rc = slmpm_put(rmem, 0, bytes, sizeof(bytes), NULL, NULL);
		(void)slmpm_progress((slmpm_ctx){0});
	}
	return rc;
}

/* Once for each key: tells how it is reached; obeys; tells how that ended. Ends with its host. */
static int peer(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	(void)words;
	while (slmpm_recv(host, KEY, &key, sizeof(key), NULL, -1) == (int64_t)sizeof(key)) {
		struct slmpm_mem_info info = {.size = sizeof(info)};
		char order = 0;
		slmpm_rmem rmem;
		int32_t rc;

		OK(slmpm_mem_open(host, &key, &rmem));
		OK(slmpm_rmem_query(rmem, &info));
		OK(slmpm_send(host, READY, info.path, strlen(info.path) + 1, PATIENCE));
		EXPECT(slmpm_recv(host, ORDER, &order, 1, NULL, -1), 1);
		rc = order == 'h' ? hammer(rmem) : slmpm_put(rmem, SIZE - 1, &order, 1, NULL, NULL);
		OK(slmpm_mem_release(rmem));
		OK(slmpm_send(host, DONE, &rc, sizeof(rc), PATIENCE));
	}
	return 0;
}

/* ---- the region and its holders -------------------------------------------------------------- */

static slmpm_ctx ctx;
static slmpm_peer peers[PEERS];
static slmpm_mem mem;
static unsigned char *base;
static bool attached;

static void give(int n)
{
	for (int i = 0; i < n; i++) {
		struct slmpm_key key;
		char path[16];

		OK(slmpm_mem_key(mem, peers[i], SLMPM_READ_WRITE, &key));
		OK(slmpm_send(peers[i], KEY, &key, sizeof(key), PATIENCE));
		CHECK(slmpm_recv(peers[i], READY, path, sizeof(path), NULL, PATIENCE) > 0,
		      "no path: %s", slmpm_error_detail());
		attached = !strcmp(path, "attach");
	}
}

static void begin(int n)
{
	void *at;

	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &at));
	base = at;
	give(n);
}

static void order(int i, char what)
{
	OK(slmpm_send(peers[i], ORDER, &what, 1, PATIENCE));
}

static void done(int i, int want)
{
	int32_t rc;

	EXPECT(slmpm_recv(peers[i], DONE, &rc, sizeof(rc), NULL, PATIENCE), sizeof(rc));
	CHECK(rc == want, "peer %d: %d, expected %d", i, (int)rc, want);
}

static void stop(int i)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peers[i], &info));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
}

static void resume(int i)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peers[i], &info));
	OK(kill(info.pid, SIGCONT));
}

/* Until a call of another thread has begun: so many hold keys. */
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

/* ---- calls by a thread ----------------------------------------------------------------------- */

enum what { REVOKE, DESTROY, SHARE };

struct call {
	enum what what;
	int peer, timeout_ms, rc;
	int64_t took;
	atomic_bool over;
	pthread_t thread;
};

static void *call_it(void *arg)
{
	struct call *c = arg;
	int64_t began = actor_now_ms();

	if (c->what == REVOKE)
		c->rc = slmpm_mem_revoke(mem, peers[c->peer], c->timeout_ms);
	else if (c->what == DESTROY)
		c->rc = slmpm_mem_destroy(mem, c->timeout_ms);
	else
		c->rc = slmpm_mem_share(mem, peers[c->peer], SLMPM_READ_WRITE, c->timeout_ms);
	c->took = actor_now_ms() - began;
	atomic_store(&c->over, true);
	return NULL;
}

static void call(struct call *c, enum what what, int whom, int timeout_ms)
{
	*c = (struct call){.what = what, .peer = whom, .timeout_ms = timeout_ms};
	CHECK(pthread_create(&c->thread, NULL, call_it, c) == 0, "no thread");
}

static int result(struct call *c)
{
	CHECK(pthread_join(c->thread, NULL) == 0, "no end");
	CHECK(c->took < SOON, "call %d for peer %d took %d ms", c->what, c->peer, (int)c->took);
	return c->rc;
}

/* ---- what happens at once -------------------------------------------------------------------- */

/* The first N of PEERS write until they are refused; the last one's word arrives. */
static void from_peers(int first, int second)
{
	int n = first == second ? 1 : 2;
	static unsigned char kept[SIZE];
	struct call a, b;

	begin(PEERS);
	for (int i = 0; i < n; i++)
		order(i, 'h');
	call(&a, REVOKE, first, LONG);
	call(&b, REVOKE, second, LONG);
	OK(result(&a));
	OK(result(&b));
	memset(base, 0x55, SIZE);
	memset(kept, 0x55, SIZE);
	for (int i = 0; i < n; i++)
		done(i, -SLMPM_EACCES);
	CHECK(!memcmp(base, kept, SIZE), "who was revoked reaches the pages");
	for (int i = n; i < PEERS; i++) {
		order(i, 'w');
		done(i, 0);
		CHECK(base[SIZE - 1] == 'w', "what peer %d wrote is lost", i);
	}
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void beside_end(void)
{
	struct call a, b;

	begin(1);
	order(0, 'h');
	call(&a, DESTROY, 0, LONG);
	call(&b, REVOKE, 0, LONG);
	OK(result(&a));
	CHECK(result(&b) == 0 || b.rc == -SLMPM_EHANDLE, "revoke: %d", b.rc);
	done(0, -SLMPM_EACCES);
	EXPECT(slmpm_mem_revoke(mem, peers[0], 0), -SLMPM_EHANDLE);
}

/* The last peer, stopped, does not let go. The shorter time counts for both calls, and whoever has
 * not let go by then is revoked. */
static void beside_late(void)
{
	struct call a, b;

	begin(PEERS);
	stop(2);
	call(&a, REVOKE, 0, LONG);
	await_holders(2);
	call(&b, REVOKE, 1, SHORT);
	OK(result(&b));
	CHECK(b.took >= SHORT - 1, "nobody was waited for");
	OK(result(&a));
	resume(2);
	for (int i = 0; i < PEERS; i++) {
		order(i, 'h');
		done(i, -SLMPM_EACCES);
	}
	CHECK(base[0] == 0 && base[SIZE - 1] == 0, "who was revoked reaches the pages");
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* Who is waited for is revoked itself: nothing is to be waited for any more. */
static void of_awaited(void)
{
	struct call a, b;

	begin(2);
	stop(1);
	call(&a, REVOKE, 0, LONG);
	await_holders(1);
	call(&b, REVOKE, 1, LONG);
	OK(result(&b));
	OK(result(&a));
	resume(1);
	for (int i = 0; i < 2; i++) {
		order(i, 'h');
		done(i, -SLMPM_EACCES);
	}
	CHECK(base[0] == 0, "who was revoked reaches the pages");
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void of_offer(void)
{
	struct call a;
	slmpm_rmem none;

	begin(0);
	stop(0);
	call(&a, SHARE, 0, LONG);
	while (!atomic_load(&a.over)) {
		OK(slmpm_mem_revoke(mem, peers[0], SHORT));
		sched_yield();
	}
	EXPECT(result(&a), -SLMPM_ECANCELED);
	resume(0);
	EXPECT(slmpm_mem_accept(peers[0], &none, 0), -SLMPM_EAGAIN);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* Own memory: a peer that attaches to it has to let go, whoever asks; each call has its own
 * time. */
static void of_own_memory(void)
{
	static unsigned char memory[SIZE];
	struct call a, b;

	memset(memory, 0, sizeof(memory));
	OK(slmpm_mem_register(ctx, memory, SIZE, SLMPM_READ_WRITE, &mem));
	give(1);
	stop(0);
	call(&a, REVOKE, 0, LONG);
	await_holders(0);
	call(&b, REVOKE, 0, SHORT);
	EXPECT(result(&b), attached ? -SLMPM_ETIMEOUT : 0);
	resume(0);
	OK(result(&a));
	order(0, 'h');
	done(0, -SLMPM_EACCES);
	CHECK(memory[0] == 0, "who was revoked reaches the memory");
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static int body(void *wait)
{
	const struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	struct slmpm_spawn_options with = {.size = sizeof(with)};

	setenv("SLMPM_WAIT", wait, 1);
	OK(slmpm_open(&ctx, &options));
	with.ctx = ctx;
	for (int i = 0; i < PEERS; i++)
		peers[i] = actor_spawn_with(&with, "peer", NULL, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		from_peers(0, 1);
		from_peers(0, 0);
		beside_end();
	}
	beside_late();
	of_awaited();
	of_offer();
	of_own_memory();
	for (int i = 0; i < PEERS; i++) {
		OK(slmpm_close(peers[i], PATIENCE));
		actor_join(peers[i], 0);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"peer", peer}, {NULL, NULL}};
	static const char *const waits[] = {"block", "adaptive"};
	int failed = 0;

	actor_begin(argc, argv, roles);
	if (!way_maps()) {
		printf("nobody maps anything over this fabric: nobody is waited for\n");
		return 77;
	}
	for (int i = 0; i < 2; i++) {
		int status =
			child_run(body, (void *)(uintptr_t)waits[i], 20 * (unsigned)actor_slow());

		printf("%-8s %s\n", waits[i], status ? "FAILED" : "ok");
		failed |= status;
	}
	return failed ? 1 : 0;
}
