/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * Over a fabric that maps no memory the engine of the target stores what is put there while its
 * application computes, or sleeps, and calls nothing: puts, gets, atomic operations and
 * notifications complete at their origin, with a context of one thread as with one of several,
 * between processes that were started and that were connected. And what else such a target does
 * meanwhile: makes progress itself, waits in a call or in a loop of its own, forks, opens mirrors
 * and regions, closes, dies.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE   ((size_t)4 << 20)
#define LAST   (SIZE - 1)
#define ROUNDS 300

enum stream { KEYS = 1, WORDS, PINGS };
/* What the target does until its last byte is one; the first two call nothing, the third nothing
 * that makes progress: yet it takes from the socket what was to wake the engine's thread. */
enum work { COMPUTES, SLEEPS, ASKS, PROGRESSES, WAITS, LOOPS, FORKS };

struct cell {
	const char *engine;
	bool connected, threads;
};

struct order {
	uint32_t work;
};

static slmpm_ctx ctx;
static unsigned char bytes[SIZE];

/* While it is written by a put: that is the point. */
__attribute__((no_sanitize("thread"))) static unsigned char inspect(const unsigned char *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

__attribute__((no_sanitize("thread"))) static void clear(unsigned char *at)
{
	__atomic_store_n(at, 0, __ATOMIC_RELAXED);
}

/* ---- the target ------------------------------------------------------------------------------ */

/* The ways in which an application comes by. */
static void echo(slmpm_peer host, int timeout_ms)
{
	uint64_t number;
	int64_t rc = slmpm_recv(host, PINGS, &number, sizeof(number), NULL, timeout_ms);

	if (rc == -SLMPM_EAGAIN || rc == -SLMPM_ETIMEOUT)
		return;
	EXPECT(rc, sizeof(number));
	OK(slmpm_send(host, PINGS, &number, sizeof(number), PATIENCE));
}

static void await_descriptor(void)
{
	struct pollfd ready = {.fd = slmpm_fd(ctx), .events = POLLIN};

	CHECK(ready.fd >= 0, "%s", slmpm_error_detail());
	if (slmpm_arm(ctx) == 0)
		CHECK(poll(&ready, 1, PATIENCE) == 1, "the descriptor says nothing");
}

static void fork_once(void)
{
	pid_t child = fork();

	CHECK(child >= 0, "no child");
	if (!child) {
		char byte;

		_exit(slmpm_recv(slmpm_any(ctx), 9, &byte, 1, NULL, 0) == -SLMPM_EFORKED ? 0 : 1);
	}
	CHECK(waitpid(child, &(int){0}, 0) == child, "the child");
}

static void do_work(slmpm_peer host, enum work work)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	switch (work) {
	case COMPUTES: break;
	case SLEEPS: nanosleep(&nap, NULL); break;
	case ASKS: (void)actor_stats(host); break;
	case PROGRESSES:
		(void)slmpm_progress(ctx);
		echo(host, 0);
		break;
	case WAITS: echo(host, 20); break;
	case LOOPS:
		await_descriptor();
		for (int i = 0; i < 4; i++)
			echo(host, 0);
		break;
	case FORKS: fork_once(); break;
	}
}

/* What came while it called nothing the engine has stored, and says so: the last put at least. */
static void expect_stored(slmpm_peer host, const struct slmpm_stats *before)
{
	struct slmpm_stats s = actor_stats(host);

	CHECK(s.engine_in > before->engine_in && s.engine_in_bytes > before->engine_in_bytes,
	      "the engine has stored nothing");
}

static int serve(slmpm_peer host)
{
	struct slmpm_key key;
	slmpm_ctr landed;
	slmpm_mem mem;
	struct order o;
	void *base;

	OK(slmpm_am_handler(ctx, 1, NULL, NULL)); /* no handler is none */
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_ctr_create(ctx, &landed));
	OK(slmpm_mem_notify(mem, landed, (slmpm_cq){0}));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEYS, &key, sizeof(key), PATIENCE));
	for (;;) {
		int64_t rc = slmpm_recv(host, WORDS, &o, sizeof(o), NULL, PATIENCE);
		int64_t until = actor_now_ms() + PATIENCE;
		struct slmpm_stats before;
		bool worked = false;

		if (rc == -SLMPM_ECLOSED)
			break;
		EXPECT(rc, sizeof(o));
		before = actor_stats(host);
		while (!inspect((unsigned char *)base + LAST)) {
			CHECK(actor_now_ms() < until, "nothing came, %u", o.work);
			do_work(host, (enum work)o.work);
			worked = true;
		}
		clear((unsigned char *)base + LAST);
		if (worked && o.work == COMPUTES)
			expect_stored(host, &before);
		OK(slmpm_send(host, WORDS, &o, sizeof(o), PATIENCE));
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static void open_context(bool threads)
{
	const struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};

	if (threads)
		OK(slmpm_open(&ctx, &o));
	else
		OK(slmpm_default(&ctx));
}

static int serve_spawned(slmpm_peer unused, char **words)
{
	slmpm_peer host;

	(void)unused;
	open_context(words[0][0] == 't');
	OK(slmpm_parent_in(ctx, &host));
	return serve(host);
}

static int urls[2];

static int serve_connected(void *arg)
{
	const struct cell *c = arg;
	slmpm_peer host;
	char url[400];

	setenv("SLMPM_ENGINE", c->engine, 1);
	CHECK(read(urls[0], url, sizeof(url)) == (ssize_t)sizeof(url), "no address");
	open_context(c->threads);
	OK(slmpm_connect(&host, ctx, url, PATIENCE));
	return serve(host);
}

/* Handlers of one who asked for no threads run in his own calls alone, whatever the engine does. */
static pthread_t mine;
static int handled;

static void handle_here(const struct slmpm_am *m, void *arg)
{
	(void)m;
	(void)arg;
	CHECK(pthread_equal(pthread_self(), mine), "in another thread");
	handled++;
}

static int handle(slmpm_peer unused, char **words)
{
	slmpm_peer host;

	(void)unused;
	mine = pthread_self();
	open_context(false);
	if (words[0][0] == 'b')
		OK(slmpm_am_handler(ctx, 1, handle_here, NULL));
	OK(slmpm_parent_in(ctx, &host));
	OK(slmpm_am_handler(ctx, 1, handle_here, NULL));
	OK(slmpm_send(host, WORDS, "x", 1, PATIENCE));
	while (handled < ROUNDS) {
		usleep(3000);
		(void)slmpm_progress(ctx);
	}
	OK(slmpm_send(host, WORDS, "x", 1, PATIENCE));
	OK(slmpm_close(host, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static slmpm_peer peer;
static slmpm_rmem rmem;
static pid_t guest;

static void listen_for_it(void)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	char url[400] = "";

	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	CHECK(write(urls[1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_unlisten(listener));
}

static void meet(const struct cell *c)
{
	char engine[32], *envp[] = {engine, NULL};
	const struct slmpm_spawn_options options = {.size = sizeof(options), .envp = envp};
	struct slmpm_key key;

	snprintf(engine, sizeof(engine), "SLMPM_ENGINE=%s", c->engine);
	setenv("SLMPM_ENGINE", "none", 1);
	if (c->connected) {
		CHECK(pipe(urls) == 0, "no pipe");
		guest = child_start(serve_connected, (void *)(uintptr_t)c, 60);
		OK(slmpm_default(&ctx));
		listen_for_it();
	} else {
		OK(slmpm_default(&ctx));
		peer = actor_spawn_with(&options, "-serve", c->threads ? "t" : "s", NULL);
	}
	EXPECT(slmpm_recv(peer, KEYS, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
}

static void part(const struct cell *c)
{
	OK(slmpm_close(peer, PATIENCE));
	if (c->connected)
		EXPECT(child_wait(guest), 0);
	else
		actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
}

static void begin(enum work work)
{
	const struct order o = {work};

	OK(slmpm_send(peer, WORDS, &o, sizeof(o), PATIENCE));
}

static pid_t pid_of(const struct cell *c)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return c->connected ? guest : info.pid;
}

/* It sees its last byte, and comes back. */
static void end(void)
{
	struct order o;

	OK(slmpm_put(rmem, LAST, "x", 1, NULL, NULL));
	EXPECT(slmpm_recv(peer, WORDS, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
}

/* There when the call returns. */
static int put(size_t n, uint32_t flags, int timeout_ms)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = flags, .timeout_ms = timeout_ms};

	return slmpm_put(rmem, 0, bytes, n, &how, NULL);
}

static void operate(uint32_t seed)
{
	static const size_t sizes[] = {1, 8, 4096, 100000, SIZE / 2};
	static unsigned char back[SIZE];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t old = 0, word = 0;

		actor_fill(bytes, seed + (uint32_t)i, sizes[i]);
		OK(put(sizes[i], SLMPM_REMOTE, PATIENCE));
		OK(put(sizes[i], SLMPM_REMOTE | SLMPM_NOTIFY, PATIENCE));
		OK(slmpm_get(rmem, 0, back, sizes[i], NULL, NULL));
		CHECK(!memcmp(back, bytes, sizes[i]), "%zu bytes", sizes[i]);
		OK(slmpm_put(rmem, 0, &word, sizeof(word), NULL, NULL));
		OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 5, 0, NULL, NULL, NULL));
		OK(slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
		EXPECT(old, 5);
	}
}

static void ping(int times)
{
	for (uint64_t i = 0; i < (uint64_t)times; i++) {
		uint64_t number = i, back;

		OK(slmpm_send(peer, PINGS, &number, sizeof(number), PATIENCE));
		OK(put(64, 0, PATIENCE));
		EXPECT(slmpm_recv(peer, PINGS, &back, sizeof(back), NULL, PATIENCE), sizeof(back));
		EXPECT(back, i);
	}
}

/* It calls nothing, or nothing that makes progress: with an engine all of it is done. */
static int absent(void *arg)
{
	const struct cell *c = arg;

	meet(c);
	for (enum work work = COMPUTES; work <= ASKS; work++) {
		begin(work);
		operate(10 * (uint32_t)work);
		end();
	}
	part(c);
	return 0;
}

/* The same without one: nothing is, for a test that cannot fail shows nothing. */
static int in_vain(void *arg)
{
	const struct cell *c = arg;

	meet(c);
	begin(SLEEPS);
	EXPECT(put(8, SLMPM_REMOTE, 500), -SLMPM_ETIMEOUT);
	CHECK(kill(pid_of(c), SIGKILL) == 0, "it cannot be killed");
	return 0;
}

/* The application comes by at the same time. */
static int both(void *arg)
{
	const struct cell *c = arg;

	meet(c);
	for (enum work work = PROGRESSES; work <= LOOPS; work++) {
		begin(work);
		ping(ROUNDS / actor_slow());
		operate(10 * (uint32_t)work);
		end();
	}
	begin(FORKS);
	operate(90);
	end();
	part(c);
	return 0;
}

/* Nor is what it learns from its loop late where nobody ever sleeps. */
static int restless(void *arg)
{
	const struct cell *c = arg;

	settings_set("SLMPM_WAIT", "spin");
	meet(c);
	begin(LOOPS);
	ping(ROUNDS / 10);
	end();
	part(c);
	return 0;
}

/* It dies, or this side closes, amidst puts. */
static int end_after(const struct cell *c, unsigned us, bool dies)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	struct slmpm_done done = {.status = 1};
	slmpm_req req[4];
	pid_t pid;

	meet(c);
	pid = pid_of(c);
	begin(SLEEPS);
	for (int k = 0; k < 4; k++)
		OK(slmpm_put(rmem, 0, bytes, SIZE / 2, &how, &req[k]));
	usleep(us);
	if (dies)
		CHECK(kill(pid, SIGKILL) == 0, "it cannot be killed");
	else
		OK(slmpm_close(peer, PATIENCE));
	for (int k = 0; k < 4; k++) {
		EXPECT(slmpm_wait(&req[k], 1, &done, PATIENCE), 0);
		CHECK(done.status == 0 || done.status == -SLMPM_ECLOSED ||
			      done.status == -SLMPM_EDEAD,
		      "ended with %d", done.status);
	}
	kill(pid, SIGKILL); /* it would go on sleeping */
	if (c->connected)
		(void)child_wait(guest);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int dies_soon(void *arg)
{
	return end_after(arg, 300, true);
}

static int dies_late(void *arg)
{
	return end_after(arg, 1500, true);
}

static int closed_soon(void *arg)
{
	return end_after(arg, 0, false);
}

static int closed_late(void *arg)
{
	return end_after(arg, 900, false);
}

/* ARG: the handler is there before its peer, or comes later. */
static int handlers(void *arg)
{
	char byte;

	setenv("SLMPM_ENGINE", "thread", 1);
	OK(slmpm_default(&ctx));
	peer = actor_spawn("-handle", arg ? "before" : "later", NULL);
	EXPECT(slmpm_recv(peer, WORDS, &byte, 1, NULL, PATIENCE), 1);
	for (int i = 0; i < ROUNDS; i++) {
		OK(slmpm_am(peer, 1, NULL, 0, NULL, 0, NULL, NULL));
		usleep(200);
	}
	EXPECT(slmpm_recv(peer, WORDS, &byte, 1, NULL, PATIENCE), 1);
	actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"-serve", serve_spawned}, {"-handle", handle}, {NULL, NULL}};
	static const struct cell cells[] = {
		{"thread", false, false},
		{"thread", true, false},
		{"thread", false, true},
		{"thread", true, true},
	};
	static const struct cell without[] = {{"none", false, false}, {"inline", true, false}};
	const unsigned seconds = 30 * (unsigned)actor_slow();

	actor_begin(argc, argv, roles);
	settings_one_link("tcp");
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		void *c = (void *)(uintptr_t)&cells[i];

		printf("%s, %s\n", cells[i].connected ? "connected" : "spawned",
		       cells[i].threads ? "several threads" : "one thread");
		fflush(stdout);
		CHECK(child_run(absent, c, seconds) == 0, "it calls nothing: see above");
		CHECK(child_run(both, c, seconds) == 0, "it comes by: see above");
		CHECK(child_run(restless, c, seconds) == 0, "its calls spin: see above");
		CHECK(child_run(dies_soon, c, seconds) == 0, "it dies: see above");
		CHECK(child_run(dies_late, c, seconds) == 0, "it dies later: see above");
		CHECK(child_run(closed_soon, c, seconds) == 0, "it is closed: see above");
		CHECK(child_run(closed_late, c, seconds) == 0, "it is closed later: see above");
	}
	CHECK(child_run(handlers, NULL, seconds) == 0, "handlers: see above");
	CHECK(child_run(handlers, (void *)(uintptr_t)&seconds, seconds) == 0,
	      "handlers, before: see above");
	for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
		CHECK(child_run(in_vain, (void *)(uintptr_t)&without[i], seconds) == 0,
		      "without one: see above");
	return 0;
}
