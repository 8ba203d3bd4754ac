/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * No process ever loads from its peer's ring: two processes exchange messages of every kind, each
 * with its view of the other's ring trapped. Asleep and awake, with
 * checksums and without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"
#include "tests/lib/trap.h"

#define ROUNDS       300
#define LONG_MESSAGE ((size_t)3000)

static unsigned char buffer[LONG_MESSAGE];

/* ---- the peer's ring, as this process sees it ---- */

static volatile unsigned char *trapped, sink;

/* Own rings are mapped for reading only, so the writable ones are the peers'. */
static int trap_peer_rings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from[8], to[8];
	char line[512], access[8];
	int n = 0;

	CHECK(f, "no maps");
	while (fgets(line, sizeof(line), f) && n < 8)
		if (strstr(line, "memfd:slmpm-ring") &&
		    sscanf(line, "%lx-%lx %7s", &from[n], &to[n], access) == 3 && access[1] == 'w')
			n++;
	fclose(f);
	for (int i = 0; i < n; i++)
		trap_loads((void *)from[i], to[i] - from[i]);
	trapped = n ? (volatile unsigned char *)from[0] : NULL;
	return n;
}

static void no_loads(const char *who)
{
	struct trap_counts counts = trap_seen();

	CHECK(counts.loads == 0,
	      "%s: %llu loads from its peer's memory, the first at %#llx by %#llx", who,
	      (unsigned long long)counts.loads, (unsigned long long)counts.address,
	      (unsigned long long)counts.first_load);
	CHECK(counts.stores > 1000, "%s: only %llu stores, that cannot be", who,
	      (unsigned long long)counts.stores);
	sink = trapped[5000]; /* planted: it would have been noticed */
	CHECK(trap_end().loads == 1, "%s: a load is not seen", who);
	printf("%s: %llu stores, no load\n", who, (unsigned long long)counts.stores);
	fflush(stdout);
}

/* ---- every way to send and to receive ---- */

static void send_plain(slmpm_peer peer, size_t n)
{
	actor_fill(buffer, n, n);
	OK(slmpm_send(peer, 1, buffer, n, PATIENCE));
}

static void send_gathered(slmpm_peer peer, size_t n)
{
	struct slmpm_iov iov[2] = {{buffer, n / 3}, {buffer + n / 3, n - n / 3}};

	actor_fill(buffer, n, n);
	OK(slmpm_sendv(peer, 1, iov, 2, NULL, NULL));
}

static void send_later(slmpm_peer peer, size_t n)
{
	struct slmpm_iov iov = {buffer, n};
	slmpm_req request;

	actor_fill(buffer, n, n);
	OK(slmpm_sendv(peer, 1, &iov, 1, NULL, &request));
	EXPECT(slmpm_wait(&request, 1, NULL, PATIENCE), 0);
}

static void send_burst(slmpm_peer peer, size_t n)
{
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE};
	struct slmpm_iov iov = {buffer, n};

	actor_fill(buffer, n, n);
	for (int i = 0; i < 5; i++)
		OK(slmpm_sendv(peer, 1, &iov, 1, &more, NULL));
	OK(slmpm_send(peer, 1, buffer, n, PATIENCE));
}

static void send_loan(slmpm_peer peer, size_t n)
{
	void *at;

	OK(slmpm_loan(peer, 1, n + 100, &at, PATIENCE));
	memset(at, 0x55, n + 100);
	OK(slmpm_abort(peer, at));
	OK(slmpm_loan(peer, 1, n, &at, PATIENCE));
	actor_fill(at, n, n); /* whole words: N is a multiple of 8 */
	OK(slmpm_commit(peer, at, n, NULL));
}

static void receive_plain(slmpm_peer peer, size_t n)
{
	EXPECT(slmpm_recv(peer, 1, buffer, sizeof(buffer), NULL, PATIENCE), n);
	CHECK(actor_filled(buffer, n, n), "%zu bytes are damaged", n);
}

static void receive_in_place(slmpm_peer peer, size_t n)
{
	const void *at;

	EXPECT(slmpm_hold(peer, 1, &at, NULL, PATIENCE), n);
	CHECK(actor_filled(at, n, n), "%zu bytes are damaged", n);
	OK(slmpm_release(peer, at));
}

static void receive_late(slmpm_peer peer, size_t n)
{
	struct slmpm_done done;

	EXPECT(slmpm_probe(peer, 1, &done, PATIENCE), 1);
	receive_plain(peer, n);
}

static const struct {
	void (*send)(slmpm_peer, size_t);
	void (*receive)(slmpm_peer, size_t);
	int messages;
	size_t longest;
} ways[] = {
	{send_plain, receive_plain, 1, LONG_MESSAGE},
	{send_gathered, receive_in_place, 1, LONG_MESSAGE},
	{send_later, receive_late, 1, 1000},
	{send_burst, receive_plain, 6, 40},
	{send_loan, receive_in_place, 1, 400},
	{send_plain, receive_in_place, 1, 400},
};
#define WAYS (sizeof(ways) / sizeof(*ways))

static size_t length_of(int round, size_t longest)
{
	size_t n = round % 4 ? (size_t)round * 8 % (longest > 100 ? 100 : longest) :
			       (size_t)round * 7919 % (longest - 8);

	return n / 8 * 8 + 8;
}

static void speak(slmpm_peer peer, int round)
{
	ways[(size_t)round % WAYS].send(peer, length_of(round, ways[(size_t)round % WAYS].longest));
}

static void listen_to(slmpm_peer peer, int round)
{
	size_t way = (size_t)round % WAYS;

	for (int i = 0; i < ways[way].messages; i++)
		ways[way].receive(peer, length_of(round, ways[way].longest));
}

#define LAST 2 /* the stream of a message behind all others */

static int talk(slmpm_peer host, char **words)
{
	const void *held;

	(void)words;
	alarm(100);
	EXPECT(trap_peer_rings(), 1);
	for (int round = 0; round < ROUNDS; round++) {
		listen_to(host, round);
		speak(host, round);
	}
	EXPECT(slmpm_hold(host, LAST, &held, NULL, PATIENCE), 8); /* the rings stay with it */
	EXPECT(slmpm_recv(host, 1, buffer, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	no_loads("accelerator");
	OK(slmpm_release(host, held));
	return 0;
}

static void run(const char *wait, const char *check)
{
	struct slmpm_event up = {.size = sizeof(up)};
	struct slmpm_stats stats;
	slmpm_ctx ctx;
	slmpm_peer peer;
	struct slmpm_spawn_options options = {.size = sizeof(options)};

	setenv("SLMPM_WAIT", wait, 1);
	setenv("SLMPM_CHECK", check, 1);
	/* Each store costs two signals: small figures, so that little is much. */
	setenv("SLMPM_RING_SEGMENTS", "128", 1);
	setenv("SLMPM_PACKET_MAX", "512", 1);
	setenv("SLMPM_EAGER_MAX", "1k", 1);
	OK(slmpm_open(&ctx, NULL));
	options.ctx = ctx;
	peer = actor_spawn_with(&options, "talk", NULL, NULL);
	EXPECT(slmpm_next_event(ctx, &up, PATIENCE), 1);
	EXPECT(trap_peer_rings(), 1);
	for (int round = 0; round < ROUNDS; round++) {
		speak(peer, round);
		listen_to(peer, round);
	}
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	/* With their sums loans are too long for a packet, and lie in areas. */
	CHECK(stats.remote_reads == (*check == '1' ? ROUNDS / WAYS : 0) &&
		      stats.remote_writes > ROUNDS,
	      "it counts %llu reads", (unsigned long long)stats.remote_reads);
	OK(slmpm_send(peer, LAST, buffer, 8, PATIENCE));
	no_loads("host");
	OK(slmpm_close(peer, PATIENCE));
	EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	OK(slmpm_shut(ctx, PATIENCE));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"talk", talk}, {NULL, NULL}};
	static const struct {
		const char *wait, *check;
	} kinds[] = {{"adaptive", "0"}, {"block", "0"}, {"adaptive", "1"}};

	if (!trap_possible())
		test_skip("no trap that tells loads from stores on this machine");
	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		pid_t pid;

		/* The settings of a process are read once. */
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			run(kinds[i].wait, kinds[i].check);
			fflush(stdout);
			_exit(0);
		}
		CHECK(pid > 0 && child_wait(pid) == 0, "waiting %s, checksums %s", kinds[i].wait,
		      kinds[i].check);
	}
	return 0;
}
