/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* Several threads in one context: what others do while the one that polls for them sleeps. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"

static slmpm_ctx ctx;

static slmpm_peer ready_child(const char *role)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .ctx = ctx};
	slmpm_peer child = actor_spawn_with(&o, role, NULL, NULL);

	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	return child;
}

static void open_context(void)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};

	OK(slmpm_open(&ctx, &o));
}

/* Sleeps, and polls for all, until the child sends on stream 9 or ends. */
static void *sleeper(void *arg)
{
	slmpm_peer child = *(slmpm_peer *)arg;
	int64_t n = slmpm_recv(child, 9, NULL, 0, NULL, 3 * PATIENCE);

	CHECK(n == 0 || n == -SLMPM_EDEAD || n == -SLMPM_ECLOSED, "the sleeper: %lld, %s",
	      (long long)n, slmpm_error_detail());
	return NULL;
}

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

/* Until a thread of the context sleeps, and nothing that went before wakes it any more. */
static void await_sleep(slmpm_peer child, uint64_t sleeps)
{
	struct slmpm_stats s;
	int64_t until = actor_now_ms() + PATIENCE;

	do {
		CHECK(actor_now_ms() < until, "nobody sleeps");
		pause_ms(1);
		OK(slmpm_peer_stats(child, &s, sizeof(s)));
	} while (s.sleeps <= sleeps);
	pause_ms(100); /* looking has rung bells */
}

static pthread_t start_sleeper(slmpm_peer *child)
{
	struct slmpm_stats s;
	pthread_t t;

	OK(slmpm_peer_stats(*child, &s, sizeof(s)));
	OK(pthread_create(&t, NULL, sleeper, child));
	await_sleep(*child, s.sleeps);
	return t;
}

/* ---- a SIGKILL that falls due ---- */

/* Until killed. */
static int stay(void)
{
	alarm(60);
	while (pause() < 0)
		;
	return 1;
}

static int role_stubborn(slmpm_peer host, char **words)
{
	(void)words;
	(void)signal(SIGTERM, SIG_IGN);
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, 3 * PATIENCE), -SLMPM_ECLOSED);
	return stay();
}

static void kill_while_asleep(void)
{
	slmpm_peer child;
	pthread_t t;
	int64_t begin;

	open_context();
	child = ready_child("stubborn");
	t = start_sleeper(&child);
	begin = actor_now_ms();
	OK(slmpm_kill(child, 100));
	OK(pthread_join(t, NULL));
	CHECK(actor_now_ms() - begin < PATIENCE, "its grace never ended");
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
	OK(slmpm_shut(ctx, 0));
}

/* ---- joining holds up nobody ---- */

static int role_echo(slmpm_peer host, char **words)
{
	int n = 0;

	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	while (slmpm_recv(host, 1, NULL, 0, NULL, PATIENCE) == 0) {
		OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
		n++;
	}
	return n;
}

static void *joiner(void *arg)
{
	EXPECT(slmpm_join(*(slmpm_peer *)arg, NULL, PATIENCE), 128 + SIGKILL);
	return NULL;
}

static void others_while_joining(void)
{
	struct slmpm_stats s;
	slmpm_peer ends, talks;
	pthread_t t;
	int64_t begin;

	open_context();
	ends = ready_child("stubborn");
	talks = ready_child("echo");
	OK(slmpm_peer_stats(talks, &s, sizeof(s)));
	OK(pthread_create(&t, NULL, joiner, &ends));
	await_sleep(talks, s.sleeps);
	begin = actor_now_ms();
	for (int i = 0; i < 20; i++) {
		OK(slmpm_send(talks, 1, NULL, 0, PATIENCE));
		EXPECT(slmpm_recv(talks, 1, NULL, 0, NULL, PATIENCE), 0);
	}
	CHECK(actor_now_ms() - begin < PATIENCE / 2, "joining held the others up");
	OK(slmpm_kill(ends, 0));
	OK(pthread_join(t, NULL));
	actor_join(talks, 20);
	OK(slmpm_shut(ctx, 0));
}

/* ---- closing with a full ring ---- */

static int role_slow(slmpm_peer host, char **words)
{
	static char buf[1 << 15];
	int64_t n;

	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 2, NULL, 0, NULL, PATIENCE), 0);
	raise(SIGSTOP); /* the ring fills */
	do
		n = slmpm_recv(host, 1, buf, sizeof(buf), NULL, PATIENCE);
	while (n >= 0);
	EXPECT(n, -SLMPM_ECLOSED);
	return stay(); /* the closing thread is not to learn of it by our end */
}

struct closing {
	slmpm_peer peer;
	int64_t took;
};

static void *closer(void *arg)
{
	struct closing *c = arg;
	int64_t begin = actor_now_ms();

	OK(slmpm_close(c->peer, PATIENCE));
	c->took = actor_now_ms() - begin;
	return NULL;
}

static void close_while_asleep(void)
{
	static char buf[8192];
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child, other;
	struct closing c;
	pthread_t asleep, t;

	open_context();
	other = ready_child("stubborn");
	child = ready_child("slow");
	OK(slmpm_peer_query(child, &info));
	OK(slmpm_send(child, 2, NULL, 0, PATIENCE));
	actor_await_state(info.pid, "T");
	while (slmpm_send(child, 1, buf, sizeof(buf), 0) == 0)
		;
	while (slmpm_send(child, 1, buf, 8, 0) == 0)
		;
	asleep = start_sleeper(&other);
	c.peer = child;
	OK(pthread_create(&t, NULL, closer, &c));
	/* The end of stream finds no room: the closing thread has come to wait. */
	pause_ms(300);
	OK(kill(info.pid, SIGCONT));
	OK(pthread_join(t, NULL));
	CHECK(c.took < PATIENCE / 2, "closing took %d ms", (int)c.took);
	OK(slmpm_kill(child, 0));
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
	OK(slmpm_kill(other, 0));
	OK(pthread_join(asleep, NULL));
	EXPECT(slmpm_join(other, NULL, PATIENCE), 128 + SIGKILL);
	OK(slmpm_shut(ctx, 0));
}

/* ---- a peer closed under the sleeper ---- */

static void close_under_sleeper(void)
{
	open_context();
	for (int i = 0; i < 6; i++) {
		slmpm_peer stays = ready_child("stubborn"), goes = ready_child("echo");
		pthread_t t = start_sleeper(&stays);

		actor_join(goes, 0); /* its socket and process become readable meanwhile */
		OK(slmpm_kill(stays, 0));
		OK(pthread_join(t, NULL));
		EXPECT(slmpm_join(stays, NULL, PATIENCE), 128 + SIGKILL);
	}
	OK(slmpm_shut(ctx, 0));
}

/* ---- a burst that its thread has ended by waiting ---- */

static void burst_while_asleep(void)
{
	const struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE};
	struct slmpm_iov iov = {"burst", 5};
	struct slmpm_done done;
	slmpm_peer child;
	pthread_t t;
	int64_t begin;
	char buf[8];

	open_context();
	child = ready_child("repeat");
	t = start_sleeper(&child);
	begin = actor_now_ms();
	OK(slmpm_sendv(child, 1, &iov, 1, &more, NULL));
	EXPECT(slmpm_recv(child, 1, buf, sizeof(buf), &done, PATIENCE), 5);
	CHECK(actor_now_ms() - begin < PATIENCE / 2, "the burst waited for somebody else");
	OK(slmpm_send(child, 9, NULL, 0, PATIENCE));
	OK(pthread_join(t, NULL));
	actor_join(child, 0);
	OK(slmpm_shut(ctx, 0));
}

/* Sends back what comes, on its stream, until that is 9. */
static int role_repeat(slmpm_peer host, char **words)
{
	struct slmpm_done done = {.stream = 0};
	char buf[8];

	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	while (done.stream != 9) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, buf, sizeof(buf), &done, PATIENCE);

		CHECK(n >= 0, "%s", slmpm_error_detail());
		OK(slmpm_send(host, done.stream, buf, (size_t)n, PATIENCE));
	}
	return 0;
}

/* ---- a peer closed before the thread that holds its message has come to ---- */

static void *holder(void *arg)
{
	slmpm_peer peer = *(slmpm_peer *)arg;
	const void *at;
	int64_t n = slmpm_hold(peer, 1, &at, NULL, 3 * PATIENCE);

	if (n < 0)
		CHECK(n == -SLMPM_ECLOSED, "the holder: %lld, %s", (long long)n,
		      slmpm_error_detail());
	else
		(void)slmpm_release(peer, at);
	return NULL;
}

static void close_under_holder(void)
{
	static char data[30000];

	open_context();
	for (int i = 0; i < 8; i++) {
		size_t n = i % 2 ? sizeof(data) : 5;
		struct slmpm_stats s;
		slmpm_peer a, b;
		pthread_t t;

		actor_pair(ctx, &a, &b);
		OK(slmpm_peer_stats(b, &s, sizeof(s)));
		OK(pthread_create(&t, NULL, holder, &b));
		await_sleep(b, s.sleeps);
		OK(slmpm_send(a, 1, data, n, PATIENCE));
		(void)slmpm_progress(ctx);
		OK(slmpm_close(b, 0));
		OK(pthread_join(t, NULL));
		(void)slmpm_close(a, 0);
	}
	OK(slmpm_shut(ctx, 0));
}

static const struct actor roles[] = {{"repeat", role_repeat},
				     {"stubborn", role_stubborn},
				     {"echo", role_echo},
				     {"slow", role_slow},
				     {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	kill_while_asleep();
	others_while_joining();
	close_while_asleep();
	close_under_sleeper();
	burst_while_asleep();
	close_under_holder();
	return 0;
}
