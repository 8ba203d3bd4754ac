/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/* native-only */
/*
 * A put that both sides copy, while its origin has no memory for what the target has sent before:
 * it claims a share back once, and waits for what has become of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/lib/memory_limit.h"
#include "tests/lib/settings.h"
#include "tests/lib/share_pair.h"

#define SIZE     (3u << 20)
#define MESSAGES 12
#define LENGTH   60000
#define SPARE    65536
#define WHILE_US 200000 /* without memory */
#define AMID     200000 /* where the target is held up, for longer */
#define FEW      16     /* packets of one put */

enum { ORDER = 1, MESSAGE, DONE };

static unsigned char data[LENGTH];

static void set_up(struct share_side *s, slmpm_peer peer)
{
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	share_side_open(s, ctx, peer, SIZE);
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

static int target(slmpm_peer host, char **words)
{
	struct share_side s;

	(void)words;
	set_up(&s, host);
	OK(slmpm_send(host, DONE, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, ORDER, NULL, 0, NULL, PATIENCE), 0);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		actor_fill(data, i, LENGTH);
		OK(slmpm_send(host, MESSAGE, data, LENGTH, PATIENCE));
	}
	share_gate(s.landed + AMID, never, NULL);
	*(volatile unsigned char *)(s.from + SIZE - 1) = 1; /* the origin has that mapped */
	EXPECT(slmpm_recv(host, DONE, NULL, 0, NULL, PATIENCE), 0);
	CHECK(actor_filled(s.landed, 7, SIZE), "bytes of the put");
	share_side_close(&s);
	return 0;
}

static void on_alarm(int signal)
{
	static const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	(void)signal;
	(void)setrlimit(RLIMIT_AS, &all);
}

static int origin(void *unused)
{
	const struct itimerval once = {.it_value.tv_usec = WHILE_US};
	struct slmpm_stats before, after;
	unsigned char byte = 0;
	int64_t began;
	struct share_side s;

	(void)unused;
	set_up(&s, actor_spawn("target", NULL, NULL));
	CHECK(signal(SIGALRM, on_alarm) != SIG_ERR, "no handler");
	actor_fill(s.from, 7, SIZE);
	share_side_await(&s, DONE); /* with the end of the last share */
	OK(slmpm_send(s.peer, ORDER, NULL, 0, PATIENCE));
	while (!byte) { /* so seldom that no progress is made */
		OK(usleep(1000));
		OK(slmpm_get(s.open, SIZE - 1, &byte, 1, NULL, NULL));
	}
	memory_limit(SPARE);
	OK(setitimer(ITIMER_REAL, &once, NULL));
	OK(slmpm_peer_stats(s.peer, &before, sizeof(before)));
	began = actor_now_ms();
	OK(slmpm_put(s.to, 0, s.from, SIZE, NULL, NULL));
	began = actor_now_ms() - began;
	OK(slmpm_peer_stats(s.peer, &after, sizeof(after)));
	on_alarm(0);
	CHECK(after.sent_packets - before.sent_packets <= FEW, "%llu packets",
	      (unsigned long long)(after.sent_packets - before.sent_packets));
	printf("%lld ms, %llu unexpected, %llu packets, %llu shared\n", (long long)began,
	       (unsigned long long)(after.unexpected - before.unexpected),
	       (unsigned long long)(after.sent_packets - before.sent_packets),
	       (unsigned long long)(after.shared_bytes - before.shared_bytes));
	for (uint64_t i = 0; i < MESSAGES; i++) {
		EXPECT(slmpm_recv(s.peer, MESSAGE, data, LENGTH, NULL, PATIENCE), LENGTH);
		CHECK(actor_filled(data, i, LENGTH), "message %llu", (unsigned long long)i);
	}
	OK(slmpm_send(s.peer, DONE, NULL, 0, PATIENCE));
	actor_join(s.peer, 0);
	share_side_close(&s);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"target", target}, {NULL, NULL}};

	settings_one_link("shm");
	settings_set("SLMPM_SHARE", "always");
	settings_set("SLMPM_SHARE_MIN", "32k");
	settings_set("SLMPM_FETCH", "never");
	settings_set("SLMPM_WAIT", "spin");
	settings_set("SLMPM_EAGER_CREDIT", "1m");
	settings_set("SLMPM_EAGER_MAX", "64k");
	actor_begin(argc, argv, roles);
	settings_run("no memory", origin, NULL);
	return 0;
}
