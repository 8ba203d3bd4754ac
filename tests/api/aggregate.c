/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * SLMPM_AGGREGATE: two instances of an application, each with an accelerator over two fabrics,
 * joined by slmpm_connect. One loads a fabric; the other, which is idle, avoids it with nearly all
 * it sends as long as that lasts, for the reason aggregate, and comes back when it is free again;
 * without the setting it stays. The second in a network namespace of its own, where that is
 * allowed: it shares no network with the first.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define LONGEST (64 << 10)
#define BALLAST 63 /* of 16 KiB: nearly a ring */
#define SERIES  100

enum { READY, MESSAGES, STOP, WORDS }; /* streams */

static struct shared {
	_Atomic int listens, calm, loaded, resume, avoided, over,
		away; /* AWAY: in another namespace */
	int ballast;
	size_t length; /* of what the idle one sends */
	char url[96];
} * shared;

static unsigned char bytes[LONGEST];

static void await(const _Atomic int *what, slmpm_peer other)
{
	int64_t until = actor_now_ms() + PATIENCE;
	unsigned idle = 0;

	while (!*what) {
		CHECK(actor_now_ms() < until, "the other instance does not come");
		if (other.id)
			(void)slmpm_recv(other, WORDS, NULL, 0, NULL, 5);
		else
			actor_idle((slmpm_ctx){0}, &idle);
	}
}

/* Takes what comes; stops when it is told to. */
static int taker(slmpm_peer host, char **words)
{
	static unsigned char got[LONGEST];
	struct slmpm_done done;

	(void)words;
	OK(slmpm_send(host, READY, NULL, 0, PATIENCE));
	while (slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE) >= 0)
		if (done.stream == STOP)
			CHECK(raise(SIGSTOP) == 0, "not stopped");
	return 0;
}

static slmpm_peer start(void)
{
	slmpm_peer accelerator = actor_spawn_ready("taker");

	links_await();
	return accelerator;
}

/* ---- who loads a fabric --------------------------------------------------------------------- */

static int loads(void *unused)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	const struct slmpm_iov piece = {bytes, 16 << 10};
	static slmpm_req sent[BALLAST];
	slmpm_peer accelerator, other;
	slmpm_listener listener;

	(void)unused;
	settings_set("SLMPM_MODE_LINK", "never"); /* it loads the one, and that alone */
	accelerator = start();
	OK(slmpm_listen(&listener, (slmpm_ctx){0}, shared->url));
	shared->listens = 1;
	OK(slmpm_accept(listener, &other, PATIENCE));
	await(&shared->calm, other);
	OK(slmpm_peer_query(accelerator, &info));
	OK(slmpm_send(accelerator, STOP, NULL, 0, PATIENCE));
	actor_await_state(info.pid, "T");
	for (int i = 0; i < shared->ballast; i++)
		OK(slmpm_sendv(accelerator, MESSAGES, &piece, 1, NULL, &sent[i]));
	shared->loaded = 1;
	await(&shared->avoided, other);
	CHECK(kill(info.pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < shared->ballast; i++)
		EXPECT(slmpm_wait(&sent[i], 1, NULL, PATIENCE), 0);
	shared->resume = 1;
	await(&shared->over, other);
	OK(slmpm_close(accelerator, PATIENCE));
	actor_join(accelerator, 0);
	(void)slmpm_close(other, PATIENCE);
	OK(slmpm_unlisten(listener));
	return 0;
}

/* ---- who is idle ---------------------------------------------------------------------------- */

static struct slmpm_mode send_one(slmpm_peer accelerator)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_send(accelerator, MESSAGES, bytes, shared->length, PATIENCE));
	OK(slmpm_peer_mode(accelerator, &mode));
	return mode;
}

/* Now and then a message, until one goes over FABRIC. */
static struct slmpm_mode await_fabric(slmpm_peer accelerator, slmpm_peer other, const char *fabric)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_mode mode = send_one(accelerator);

	while (strcmp(mode.fabric, fabric) != 0) {
		CHECK(actor_now_ms() < until, "still over %s, because: %s", mode.fabric,
		      slmpm_reason_name((int)mode.reason));
		(void)slmpm_recv(other, WORDS, NULL, 0, NULL, 5);
		mode = send_one(accelerator);
	}
	return mode;
}

static void expect_calm(slmpm_peer accelerator, slmpm_peer other, const char *fabric)
{
	for (int i = 0; i < SERIES; i++) {
		struct slmpm_mode mode = send_one(accelerator);

		CHECK(!strcmp(mode.fabric, fabric), "it goes over %s, because: %s", mode.fabric,
		      slmpm_reason_name((int)mode.reason));
		(void)slmpm_recv(other, WORDS, NULL, 0, NULL, 2);
	}
}

/* By one who looks at nothing in between. Who gets no processor may be forgotten for a while, and
 * heard of again. */
static void expect_away(slmpm_peer accelerator, const char *fabric)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int away = 0;

	for (int tries = 0; tries < 3 && away < SERIES * 9 / 10; tries++) {
		away = 0;
		for (int i = 0; i < SERIES; i++) {
			away += !strcmp(send_one(accelerator).fabric, fabric);
			nanosleep(&pause, NULL);
		}
	}
	CHECK(away >= SERIES * 9 / 10, "only %d of %d over %s", away, SERIES, fabric);
}

static int idles(void *asked)
{
	const char *first = getenv("SLMPM_FABRIC");
	const char *second = strcmp(first, "shm") ? "shm" : "tcp";
	slmpm_peer accelerator, other;
	struct slmpm_mode mode;

	if (shared->away && (unshare(CLONE_NEWNET) != 0 || system("ip link set lo up") != 0))
		printf("  in the same network namespace: no other one may be made\n");
	accelerator = start();
	await(&shared->listens, (slmpm_peer){0});
	OK(slmpm_connect(&other, (slmpm_ctx){0}, shared->url, PATIENCE));
	(void)await_fabric(accelerator, other, first);
	expect_calm(accelerator, other, first);
	shared->calm = 1;
	await(&shared->loaded, other);
	if (!asked) {
		expect_calm(accelerator, other, first);
	} else {
		mode = await_fabric(accelerator, other, second);
		CHECK(mode.reason == SLMPM_REASON_AGGREGATE, "because: %s",
		      slmpm_reason_name((int)mode.reason));
		expect_away(accelerator, second);
		shared->avoided = 1;
		await(&shared->resume, other);
		(void)await_fabric(accelerator, other, first);
	}
	shared->avoided = shared->over = 1;
	OK(slmpm_close(accelerator, PATIENCE));
	actor_join(accelerator, 0);
	(void)slmpm_close(other, PATIENCE);
	return 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

static void run(const char *what, const char *aggregate, int ballast, size_t length, bool away)
{
	pid_t pids[2];

	printf("%s\n", what);
	fflush(stdout);
	memset(shared, 0, sizeof(*shared));
	shared->away = away;
	shared->ballast = ballast;
	shared->length = length;
	snprintf(shared->url, sizeof(shared->url), "shm:/tmp/aggregate-%d", (int)getpid());
	settings_set("SLMPM_AGGREGATE", aggregate);
	pids[0] = child_start(loads, NULL, 40 * (unsigned)actor_slow());
	pids[1] =
		child_start(idles, *aggregate == 'y' ? shared : NULL, 40 * (unsigned)actor_slow());
	for (int i = 0; i < 2; i++)
		CHECK(child_wait(pids[i]) == 0, "%s: see above", i ? "idle" : "busy");
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"taker", taker}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	shared = child_common(sizeof(*shared));
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,tcp");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_MONITOR_MS", "20");
	settings_set("SLMPM_FETCH", "never");
	run("a ring that is nearly full", "y", BALLAST, 64 << 10, false);
	run("not asked for", "n", BALLAST, 64 << 10, false);
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_PACKET_MAX", "16k");
	settings_set("SLMPM_EAGER_MAX", "32k");
	settings_set("SLMPM_MODE_RING", "45");
	run("thresholds of one's own", "y", 40, 24 << 10, false);
	run("in two network namespaces", "y", 40, 24 << 10, true);
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,shm");
	settings_set("SLMPM_EAGER_CREDIT", "64k"); /* what is beyond waits in the queue */
	run("a queue over TCP", "y", 40, 24 << 10, false);
	run("a queue over TCP, not asked for", "n", 40, 24 << 10, false);
	return 0;
}
