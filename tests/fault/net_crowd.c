/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/*
 * A thousand strangers connect to a listener and stay: silent, in the middle of a hello, behind
 * one, or with nonsense. Who is connected goes on undisturbed, who comes is let in soon, and
 * nothing is left of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_stream.h"

#define CROWD  1000u
#define BESIDE 50u   /* strangers between two looks at the others */
#define SOON   10000 /* ms */

static slmpm_ctx ctx;
static slmpm_listener listener;
static struct slmpm_listener_info info = {.size = sizeof(info)};
static int crowd[CROWD];

static void allow_descriptors(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	if (limit.rlim_cur < 3 * CROWD)
		test_skip("fewer than 3000 descriptors are allowed here");
}

/* Says WORDS bytes of something; 0: nothing. */
static int caller(const void *words, size_t n)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons((uint16_t)info.port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0, "socket: %s", strerror(errno));
	/* Without waiting: the listener is in this thread, and may be slow to let them in. */
	CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EINPROGRESS,
	      "connect: %s", strerror(errno));
	if (n) /* it may not be in yet, or thrown out */
		(void)!send(fd, words, n, MSG_NOSIGNAL);
	return fd;
}

static void talk(slmpm_peer from, slmpm_peer to)
{
	int64_t begun = actor_now_ms();
	uint64_t word = 5, got;

	OK(slmpm_send(from, 1, &word, sizeof(word), PATIENCE));
	EXPECT(slmpm_recv(to, 1, &got, sizeof(got), NULL, PATIENCE), sizeof(got));
	CHECK(actor_now_ms() - begun < 1500 * actor_slow(), "a message took %lld ms",
	      (long long)(actor_now_ms() - begun));
}

static void join(slmpm_peer end[2], int patience)
{
	char url[400];

	snprintf(url, sizeof(url), "%s#%s", info.url, info.secret);
	/* Refused for want of places, it tries again by itself. */
	OK(slmpm_connect(&end[0], ctx, url, patience));
	OK(slmpm_accept(listener, &end[1], patience));
	talk(end[0], end[1]);
	talk(end[1], end[0]);
}

static void part(slmpm_peer end[2])
{
	OK(slmpm_close(end[0], 1000));
	OK(slmpm_close(end[1], 1000));
}

static void come(const void *words, size_t n, slmpm_peer friends[2])
{
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = caller(words, n);
		if (i % BESIDE == 0)
			talk(friends[0], friends[1]);
	}
}

static void go(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd[i]);
}

static void besieged(const char *how, const void *words, size_t n)
{
	slmpm_peer friends[2], late[2];
	int64_t begun;

	join(friends, PATIENCE);
	come(words, n, friends);
	begun = actor_now_ms();
	join(late, SOON * actor_slow());
	printf("%s: let in after %lld ms\n", how, (long long)(actor_now_ms() - begun));
	talk(friends[0], friends[1]);
	go();
	talk(friends[1], friends[0]);
	part(late);
	part(friends);
}

/* Until nothing of them is held any more. */
static void await_descriptors(int want)
{
	int64_t until = actor_now_ms() + PATIENCE;
	unsigned times = 0;

	while (actor_descriptors() > want) {
		CHECK(actor_now_ms() < until, "%d descriptors more than before",
		      actor_descriptors() - want);
		if (slmpm_progress(ctx) == 0)
			actor_idle(ctx, &times);
	}
}

static int lines, notified; /* of the log, and refusals that they speak of */

static void count_line(int level, const char *text, void *arg)
{
	const char *more = strstr(text, "(and ");

	(void)level, (void)arg;
	lines++;
	notified += 1 + (more ? atoi(more + strlen("(and ")) : 0);
}

static int run(void *arg)
{
	int64_t begun = actor_now_ms();
	static const unsigned char hello[] = {1, 0, 0, 0, 120, 0, 0, 0, 'S', 'L', 'M', 'P', 'M'};
	static const unsigned char endless[] = {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
	struct raw_stream honest;
	slmpm_peer pair[2];
	int before;

	(void)arg;
	slmpm_log(SLMPM_LOG_WARN, count_line, NULL);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &info));
	join(pair, PATIENCE);
	part(pair);
	before = actor_descriptors();
	besieged("silent", NULL, 0);
	besieged("half a hello", hello, sizeof(hello));
	raw_stream_prepare(&honest, 0, info.secret);
	honest.hello.head =
		(struct wire_control_head){LITTLE_32(WIRE_HELLO), LITTLE_32(sizeof(honest.hello))};
	besieged("a hello and no proof", &honest.hello, sizeof(honest.hello));
	besieged("nonsense", endless, sizeof(endless));
	await_descriptors(before);
	CHECK(lines > 0 && lines <= 2 + (actor_now_ms() - begun) / 1000, "%d lines", lines);
	printf("%d lines told of %d refusals\n", lines, notified);
	OK(slmpm_unlisten(listener));
	OK(slmpm_shut(ctx, 1000));
	return 0;
}

int main(void)
{
	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_HANDSHAKE_MS", "60000", 1); /* longer than anybody waits */
	allow_descriptors();
	CHECK(child_run(run, NULL, 50u * (unsigned)actor_slow()) == 0, "besieged");
	return 0;
}
