/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 180 */
/* waits */
/*
 * Active messages that come before their handlers are there: the program sets these right after the
 * call that gives the peer, or later, without any other call since they came, and none is lost, nor
 * comes anything that was sent behind one before its handler has run. With an engine whose thread
 * makes progress as without one, in contexts of one thread and of several, between processes that
 * were started and that were connected, whichever side is asked.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define LONG    ((size_t)3 << 20) /* announced */
#define REPLIES 300
#define REPLY   4096
#define MS      1000

enum { FIRST = 1, SECOND, ASK, ANSWER }; /* handlers */
enum stream { WORDS = 1, BEGINS, ENDS };

struct cell {
	const char *fabric, *engine;
	bool connected, threads;
	bool posts;  /* a receive first */
	bool caller; /* who connects, or is started, is asked; else who accepts, or starts */
};

static slmpm_ctx ctx;
static const struct cell *cell;

/* ---- who is asked ---------------------------------------------------------------------------- */

static pthread_t mine;
static uint32_t handled;

static uint32_t handled_so_far(void)
{
	return __atomic_load_n(&handled, __ATOMIC_ACQUIRE);
}

static void handle(const struct slmpm_am *am, void *arg)
{
	uint32_t number;

	CHECK(am->id == *(const uint16_t *)arg, "handler %u", am->id);
	CHECK(cell->threads || pthread_equal(pthread_self(), mine), "in another thread");
	EXPECT(am->head_len, sizeof(number));
	memcpy(&number, am->head, sizeof(number));
	EXPECT(number, handled_so_far());
	CHECK(actor_filled(am->data, number, am->data_len), "%u is damaged", number);
	__atomic_store_n(&handled, number + 1, __ATOMIC_RELEASE);
}

/* The application calls nothing: only an engine makes progress, where there is one. */
static void compute(unsigned ms)
{
	usleep(ms * MS);
}

static void be_asked(slmpm_peer peer)
{
	static const uint16_t ids[] = {FIRST, SECOND};
	const struct slmpm_iov iov = {&(uint32_t){9}, sizeof(uint32_t)};
	struct slmpm_done done;
	uint32_t word = 9;
	slmpm_req posted;

	mine = pthread_self();
	if (cell->posts) {
		EXPECT(slmpm_recvv(peer, WORDS, &iov, 1, NULL, &posted), 0);
		OK(slmpm_send(peer, BEGINS, NULL, 0, PATIENCE));
	}
	compute(40);
	for (int i = 0; i < 2; i++) {
		OK(slmpm_am_handler(ctx, ids[i], handle, (void *)(uintptr_t)&ids[i]));
		compute(5);
	}
	if (cell->threads && !strcmp(cell->engine, "thread"))
		for (int64_t until = actor_now_ms() + PATIENCE; handled_so_far() < 2;)
			CHECK(actor_now_ms() < until, "the engine's thread does not go on");
	if (!cell->posts)
		EXPECT(slmpm_recvv(peer, WORDS, &iov, 1, NULL, &posted), 0);
	EXPECT(slmpm_wait(&posted, 1, &done, PATIENCE), 0);
	CHECK(handled_so_far() >= 1, "a message before the handler of what was sent before");
	EXPECT(slmpm_recv(peer, WORDS, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	CHECK(word == 1 && handled_so_far() == 5, "word %u behind %u handlers", word,
	      handled_so_far());
	EXPECT(actor_stats(peer).am_unhandled, 0);
	OK(slmpm_send(peer, ENDS, NULL, 0, PATIENCE));
}

/* ---- who asks -------------------------------------------------------------------------------- */

static void ask_for(slmpm_peer peer, uint16_t id, uint32_t number, size_t size, slmpm_req *req)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = PATIENCE};
	static unsigned char bytes[LONG];

	actor_fill(bytes, number, size);
	OK(slmpm_am(peer, id, &number, sizeof(number), bytes, size, req ? &how : NULL, req));
	if (req) /* its bytes are taken again for the next */
		EXPECT(slmpm_wait(req, 1, NULL, PATIENCE), 0);
}

static void ask(slmpm_peer peer)
{
	slmpm_req req;

	if (cell->posts)
		EXPECT(slmpm_recv(peer, BEGINS, NULL, 0, NULL, PATIENCE), 0);
	ask_for(peer, FIRST, 0, 8, NULL);
	OK(slmpm_send(peer, WORDS, &(uint32_t){0}, 4, PATIENCE));
	ask_for(peer, SECOND, 1, 100000, NULL);
	ask_for(peer, FIRST, 2, LONG, NULL);
	ask_for(peer, SECOND, 3, LONG, &req);
	ask_for(peer, FIRST, 4, 0, &req);
	OK(slmpm_send(peer, WORDS, &(uint32_t){1}, 4, PATIENCE));
	EXPECT(slmpm_recv(peer, ENDS, NULL, 0, NULL, PATIENCE), 0);
}

/* ---- the two --------------------------------------------------------------------------------- */

static void open_context(bool threads)
{
	const struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};

	if (threads)
		OK(slmpm_open(&ctx, &o));
	else
		OK(slmpm_default(&ctx));
}

static void play(slmpm_peer peer, bool caller)
{
	if (caller == cell->caller)
		be_asked(peer);
	else
		ask(peer);
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static int play_spawned(slmpm_peer unused, char **words)
{
	struct cell c = {
		.engine = getenv("SLMPM_ENGINE"),
		.threads = words[0][0] == 't',
		.posts = words[1][0] == 'p',
		.caller = strstr(words[1], "asked") != NULL,
	};
	slmpm_peer host;

	(void)unused;
	cell = &c;
	open_context(c.threads);
	OK(slmpm_parent_in(ctx, &host));
	play(host, true);
	return 0;
}

static int urls[2];

static int play_connected(void *arg)
{
	slmpm_peer peer;
	char url[400];

	(void)arg;
	CHECK(read(urls[0], url, sizeof(url)) == (ssize_t)sizeof(url), "no address");
	open_context(cell->threads);
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	play(peer, true);
	return 0;
}

static slmpm_peer accept_it(void)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	char url[400] = "";
	slmpm_peer peer;

	snprintf(url, sizeof(url), "shm:am-early-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, strcmp(cell->fabric, "tcp") ? url : "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s%s%s", info.url, info.secret[0] ? "#" : "", info.secret);
	CHECK(write(urls[1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &peer, PATIENCE));
	return peer;
}

static slmpm_peer start(const char *role, const char *a, const char *b)
{
	const struct slmpm_spawn_options options = {.size = sizeof(options), .ctx = ctx};

	return actor_spawn_with(&options, role, a, b);
}

static int run_cell(void *arg)
{
	pid_t guest = 0;
	slmpm_peer peer;

	cell = arg;
	settings_one_link(cell->fabric);
	setenv("SLMPM_ENGINE", cell->engine, 1);
	CHECK(pipe(urls) == 0, "no pipe");
	if (cell->connected)
		guest = child_start(play_connected, NULL, 60);
	open_context(cell->threads);
	if (cell->connected)
		peer = accept_it();
	else
		peer = start("-play", cell->threads ? "threads" : "one",
			     cell->posts  ? cell->caller ? "post, asked" : "post" :
			     cell->caller ? "asked" :
					    "other");
	play(peer, false);
	if (cell->connected)
		EXPECT(child_wait(guest), 0);
	return 0;
}

/* ---- what costs its sender nothing is not kept without end ----------------------------------- */

static void reply(const struct slmpm_am *am, void *arg)
{
	static unsigned char bytes[REPLY];

	(void)arg;
	for (int i = 0; i < REPLIES; i++) /* more than it may let wait, perhaps */
		(void)slmpm_am_reply(am, ANSWER, NULL, 0, bytes, sizeof(bytes));
}

static int reply_without_end(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_am_handler((slmpm_ctx){0}, ASK, reply, NULL));
	EXPECT(slmpm_recv(host, ENDS, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

static int bounded(void *arg)
{
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_peer peer;

	settings_one_link(arg);
	setenv("SLMPM_AM_ANSWERS", "64k", 1);
	setenv("SLMPM_ENGINE", "thread", 1);
	open_context(true);
	peer = start("reply", NULL, NULL);
	OK(slmpm_am(peer, ASK, NULL, 0, NULL, 0, NULL, NULL));
	while (!actor_stats(peer).am_unhandled)
		CHECK(actor_now_ms() < until, "all of it is kept");
	OK(slmpm_send(peer, ENDS, NULL, 0, PATIENCE));
	actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"-play", play_spawned}, {"reply", reply_without_end}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"}, *const engines[] = {"none", "inline",
										 "thread"};

	struct rng rng;

	actor_begin(argc, argv, roles);
	rng.state = rng_run_seed((uint64_t)time(NULL));
	for (int i = 0; i < 2 * 3 * 16; i++) {
		const struct cell c = {
			.fabric = fabrics[i % 2],
			.engine = engines[i / 2 % 3],
			.connected = i / 6 & 1,
			.threads = i / 12 & 1,
			.caller = i / 24 & 1,
			.posts = i / 48 & 1,
		};
		char name[120];

		if (actor_slow() > 1 && !rng_one_in(&rng, 3))
			continue; /* others each time */
		snprintf(name, sizeof(name), "%s, %s, %s, %s thread, the %s is asked%s", c.fabric,
			 c.engine, c.connected ? "connected" : "spawned",
			 c.threads ? "more than one" : "one", c.caller ? "caller" : "called",
			 c.posts ? ", has posted" : "");
		settings_run(name, run_cell, &c);
	}
	for (int i = 0; i < 2; i++)
		settings_run("replies", bounded, fabrics[i]);
	return 0;
}
