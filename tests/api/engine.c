/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: transfers that go on while the caller does something else, and ends that wake a
 * sleeper, are counted, queued, or shown by the descriptor; the thread that makes progress for a
 * context while its application is busy; and that nothing of either is left behind.
 */
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define SIZE ((size_t)8 << 20)
#define PART (SIZE / 4)

static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char *there, here[SIZE];
static slmpm_mem mem;
static slmpm_rmem rmem;

static void open_pair(uint32_t flags, uint32_t wait)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = flags, .wait = wait};
	struct slmpm_key key;
	void *base;

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
}

static void close_pair(void)
{
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static int threads(void)
{
	char line[64];
	FILE *f = fopen("/proc/self/status", "re");
	int n = 0;

	CHECK(f, "no status");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %d", &n) == 1)
			break;
	fclose(f);
	return n;
}

/* One that has been joined takes a moment to vanish. */
static void expect_alone(void)
{
	int64_t until = actor_now_ms() + 2000;

	if (actor_slow() > 1)
		return; /* a sanitizer has a thread of its own */
	while (threads() > 1 && actor_now_ms() < until)
		usleep(1000);
	CHECK(threads() == 1, "%d threads are left", threads());
}

/* ---- transfers ------------------------------------------------------------------------------ */

/* The caller sleeps until the end; two at once; a get of what a fenced put behind them wrote. */
static int move(void *unused)
{
	struct slmpm_how fenced = {
		.size = sizeof(fenced), .flags = SLMPM_FENCE | SLMPM_REMOTE, .timeout_ms = -1};
	struct slmpm_done done;
	slmpm_req req[3];

	(void)unused;
	open_pair(0, SLMPM_WAIT_BLOCK);
	for (uint64_t i = 0; i < 8; i++) {
		actor_fill(here, i, SIZE);
		OK(slmpm_put(rmem, 0, here, SIZE / 2, NULL, &req[0]));
		OK(slmpm_put(rmem, SIZE / 2, here + SIZE / 2, SIZE / 2, NULL, &req[1]));
		OK(slmpm_put(rmem, 1, "x", 1, &fenced, &req[2]));
		for (int k = 0; k < 3; k++)
			CHECK(slmpm_wait(req, 3, &done, PATIENCE) >= 0 && done.status == 0 &&
				      done.op == SLMPM_OP_PUT,
			      "%s", slmpm_error_detail());
		CHECK(there[1] == 'x', "the fenced put was overtaken");
		actor_fill(here, i, 2);
		there[1] = here[1];
		CHECK(actor_filled(there, i, SIZE), "round %d", (int)i);
		memset(here, 0, SIZE);
		OK(slmpm_get(rmem, 0, here, SIZE, NULL, &req[0]));
		EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
		CHECK(done.len == SIZE && actor_filled(here, i, SIZE), "the get of round %d",
		      (int)i);
	}
	OK(slmpm_put(rmem, 0, here, SIZE, NULL, &req[0]));
	OK(slmpm_flush(a, PATIENCE));
	CHECK(actor_filled(there, 7, SIZE), "the flush did not wait for the engine");
	EXPECT(slmpm_wait(req, 1, &done, PATIENCE), 0);
	close_pair();
	expect_alone();
	return 0;
}

/* A sanitizer's rounds take longer: a third of them, so much further apart. */
static int apart(void)
{
	return actor_slow() > 1 ? 3 : 1;
}

/* Taken back at any moment: nothing reads the memory afterwards, which is not there any more. */
static int forget(void *unused)
{
	(void)unused;
	open_pair(0, SLMPM_WAIT_ADAPTIVE);
	for (int i = 0; i < 60; i += apart()) {
		unsigned char *gone = malloc(SIZE);
		struct slmpm_done done = {.status = 1};
		slmpm_req req;
		int rc;

		CHECK(gone, "no memory");
		memset(gone, i, SIZE);
		OK(slmpm_put(rmem, 0, gone, SIZE, NULL, &req));
		usleep((useconds_t)i * 20);
		rc = slmpm_cancel(req);
		CHECK(rc == 0 || rc == -SLMPM_EBUSY, "cancel: %d", rc);
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == (rc ? 0 : -SLMPM_ECANCELED), "ended with %d", done.status);
		free(gone);
	}
	close_pair();
	return 0;
}

/* Counted, queued, and shown by the descriptor to who polls it. */
static int tell(void *unused)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	struct slmpm_done done;
	struct pollfd fd;
	slmpm_ctr ctr;
	slmpm_cq cq;

	(void)unused;
	open_pair(0, SLMPM_WAIT_ADAPTIVE);
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
	how.ctr = ctr;
	for (size_t i = 0; i < 4; i++) /* a place each: they have no order */
		OK(slmpm_put(rmem, i * PART, here + i * PART, PART, &how, NULL));
	OK(slmpm_ctr_wait(ctr, SLMPM_ALL, PATIENCE));
	how = (struct slmpm_how){.size = sizeof(how), .timeout_ms = -1, .cq = cq, .cookie = 77};
	OK(slmpm_get(rmem, 0, here, SIZE, &how, NULL));
	while (slmpm_cq_poll(cq, &done, 1) == 0) {
		fd = (struct pollfd){.fd = slmpm_fd(ctx), .events = POLLIN};
		if (slmpm_arm(ctx) == 0)
			CHECK(poll(&fd, 1, PATIENCE) == 1, "the descriptor says nothing");
	}
	CHECK(done.cookie == 77 && done.op == SLMPM_OP_GET && done.len == SIZE && !done.status,
	      "what the queue tells");
	OK(slmpm_ctr_destroy(ctr));
	OK(slmpm_cq_destroy(cq));
	close_pair();
	return 0;
}

/* The pair ends amidst a transfer. */
static int end(void *unused)
{
	struct slmpm_done done;
	slmpm_req req[4];

	(void)unused;
	for (int i = 0; i < 20; i++) {
		open_pair(0, SLMPM_WAIT_ADAPTIVE);
		for (size_t k = 0; k < 4; k++)
			OK(slmpm_put(rmem, k * PART, here + k * PART, PART, NULL, &req[k]));
		usleep((useconds_t)i * 50);
		OK(slmpm_close(i % 2 ? a : b, PATIENCE));
		for (int k = 0; k < 4; k++) {
			EXPECT(slmpm_wait(&req[k], 1, &done, PATIENCE), 0);
			CHECK(done.status == 0 || done.status == -SLMPM_ECLOSED, "ended with %d",
			      done.status);
		}
		OK(slmpm_shut(ctx, PATIENCE));
	}
	expect_alone();
	return 0;
}

/* Threads whose contexts come and go: whoever is the last ends the thread, others begin it
 * again. */
#define COMERS 3

static void *come_and_go(void *arg)
{
	const size_t bytes = (size_t)128 << 10;
	unsigned char *from = calloc(1, bytes);
	struct slmpm_done done;
	slmpm_peer near, far;
	slmpm_listener l;
	struct slmpm_key key;
	slmpm_rmem to;
	slmpm_mem of;
	slmpm_ctx own;
	slmpm_req req;
	void *base;
	char url[64];

	CHECK(from, "memory");
	snprintf(url, sizeof(url), "shm:engine-%d-%td", (int)getpid(), (char *)arg - (char *)here);
	for (int i = 0; i < 40; i += apart()) {
		OK(slmpm_open(&own, NULL));
		OK(slmpm_listen(&l, own, url));
		OK(slmpm_connect(&near, own, url, PATIENCE));
		OK(slmpm_accept(l, &far, PATIENCE));
		OK(slmpm_unlisten(l));
		OK(slmpm_mem_alloc(own, bytes, SLMPM_READ_WRITE, &of, &base));
		OK(slmpm_mem_key(of, far, SLMPM_READ_WRITE, &key));
		OK(slmpm_mem_open(near, &key, &to));
		memset(from, i + 1, bytes);
		OK(slmpm_put(to, 0, from, bytes, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		OK(slmpm_flush(near, PATIENCE)); /* where it is not mapped */
		CHECK(!memcmp(base, from, bytes), "round %d", i);
		OK(slmpm_shut(own, PATIENCE));
	}
	free(from);
	return NULL;
}

static int together(void *unused)
{
	pthread_t thread[COMERS];

	(void)unused;
	for (int i = 0; i < COMERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, come_and_go, here + i), "a thread");
	for (int i = 0; i < COMERS; i++)
		CHECK(!pthread_join(thread[i], NULL), "a thread");
	expect_alone();
	return 0;
}

/* ---- progress for a busy application -------------------------------------------------------- */

/* The owner of a region: computes, and calls nothing, until something has been put there. */
static int be_busy(slmpm_peer unused, char **words)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr landed;
	slmpm_cq nothing = {0};
	struct slmpm_key key;
	slmpm_peer host;
	void *base;

	(void)unused;
	(void)words;
	OK(slmpm_open(&ctx, &o));
	OK(slmpm_parent_in(ctx, &host));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_ctr_create(ctx, &landed));
	OK(slmpm_mem_notify(mem, landed, nothing));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	for (int64_t until = actor_now_ms() + PATIENCE; !info.done;) {
		CHECK(actor_now_ms() < until, "nothing came while we were busy");
		OK(slmpm_ctr_query(landed, &info)); /* which makes no progress */
	}
	CHECK(there[0] == 0x7f && there[SIZE - 1] == 0x7f, "what came is not what was put");
	OK(slmpm_send(host, 1, "seen", 4, PATIENCE));
	EXPECT(slmpm_recv(host, 1, here, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_shut(ctx, PATIENCE));
	expect_alone();
	return 0;
}

/* By requests: it is the other side that stores. */
static int ask_the_busy(void *unused)
{
	struct slmpm_key key;
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_NOTIFY, .timeout_ms = -1};
	slmpm_peer peer;
	char seen[4];

	(void)unused;
	CHECK(setenv("SLMPM_RMA", "ring", 1) == 0, "setenv");
	peer = actor_spawn("-busy", NULL, NULL);
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	memset(here, 0x7f, SIZE);
	OK(slmpm_put(rmem, 0, here, SIZE, &how, NULL));
	EXPECT(slmpm_recv(peer, 1, seen, sizeof(seen), NULL, PATIENCE), 4);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-busy", be_busy}, {NULL, NULL}};
	static const char *const kinds[] = {"none", "inline", "thread"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 3; i++) {
		unsigned seconds = 20 * (unsigned)actor_slow();

		if (TEST_THREADS_ALONE && strcmp(kinds[i], "thread") != 0)
			continue;
		CHECK(setenv("SLMPM_ENGINE", kinds[i], 1) == 0, "setenv");
		printf("%s\n", kinds[i]);
		fflush(stdout);
		CHECK(child_run(move, NULL, seconds) == 0, "see above");
		CHECK(child_run(forget, NULL, seconds) == 0, "see above");
		CHECK(child_run(tell, NULL, seconds) == 0, "see above");
		CHECK(child_run(end, NULL, seconds) == 0, "see above");
		CHECK(child_run(together, NULL, seconds) == 0, "see above");
	}
	CHECK(child_run(ask_the_busy, NULL, 20 * (unsigned)actor_slow()) == 0, "see above");
	return 0;
}
