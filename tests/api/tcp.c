/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes meet over TCP: addresses, secrets, what is said of each failure, and ends. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define SECONDS 30
#define SECRET  "00112233445566778899aabbccddeeff"
#define LARGE   (3 << 20)

static slmpm_ctx ctx;

/* A listener, and what others write to get there. */
struct door {
	slmpm_listener listener;
	struct slmpm_listener_info info;
	char url[400]; /* with the secret */
};

static void open_door(struct door *d, const char *url)
{
	d->info.size = sizeof(d->info);
	OK(slmpm_listen(&d->listener, ctx, url));
	OK(slmpm_listener_query(d->listener, &d->info));
	snprintf(d->url, sizeof(d->url), "%s#%s", d->info.url, d->info.secret);
}

/* ---- meeting -------------------------------------------------------------------------------- */

static void exchange(slmpm_peer a, slmpm_peer b)
{
	static unsigned char out[LARGE], in[LARGE];
	struct slmpm_iov room = {in, LARGE};
	slmpm_req r;

	OK(slmpm_send(a, 1, "to b", 4, PATIENCE));
	EXPECT(slmpm_recv(b, 1, in, 8, NULL, PATIENCE), 4);
	CHECK(!memcmp(in, "to b", 4), "other bytes");
	actor_fill(out, 5, LARGE);
	OK(slmpm_recvv(b, 2, &room, 1, NULL, &r));
	OK(slmpm_send(a, 2, out, LARGE, PATIENCE));
	OK(slmpm_wait(&r, 1, NULL, PATIENCE));
	CHECK(actor_filled(in, 5, LARGE), "other bytes");
	OK(slmpm_send(b, 3, "to a", 4, PATIENCE));
	EXPECT(slmpm_recv(a, 3, in, 8, NULL, PATIENCE), 4);
	CHECK(!memcmp(in, "to a", 4), "other bytes");
}

/* NAME: how both ends are called, up to the port. */
static void meet_at(const char *at, const char *name)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer a, b;
	struct door d;
	char byte;

	open_door(&d, at);
	OK(slmpm_connect(&a, ctx, d.url, PATIENCE));
	OK(slmpm_accept(d.listener, &b, PATIENCE));
	exchange(a, b);
	exchange(b, a);
	for (int i = 0; i < 2; i++) {
		OK(slmpm_peer_query(i ? a : b, &info));
		CHECK(info.state == SLMPM_PEER_UP && info.pid == 0, "state %u, pid %d", info.state,
		      info.pid);
		CHECK(!strncmp(info.name, name, strlen(name)), "\"%s\"", info.name);
	}
	OK(slmpm_close(a, PATIENCE));
	EXPECT(slmpm_recv(b, 1, &byte, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_close(b, PATIENCE));
	OK(slmpm_unlisten(d.listener));
}

#define SILENCE_MS (432100 + 3000)

/* Of the two ends of the control connection; the link's ends only with it. */
static void check_silence(void)
{
	int connections = 0, bounded = 0, value;

	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_storage there;
		socklen_t size = sizeof(there), length = sizeof(value);

		if (getpeername(fd, (struct sockaddr *)&there, &size) != 0 ||
		    there.ss_family != AF_INET)
			continue;
		connections++;
		CHECK(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length) == 0 &&
			      (value == SILENCE_MS || !value),
		      "%d ms", value);
		bounded += value == SILENCE_MS;
	}
	CHECK(connections == 4 && bounded == 2, "%d connections, %d bounded", connections, bounded);
}

static int bear_silence(void *arg)
{
	slmpm_peer a, b;
	struct door d;

	(void)arg;
	setenv("SLMPM_DEAD_MS", "432100", 1);
	OK(slmpm_open(&ctx, NULL));
	open_door(&d, "tcp://127.0.0.1:0");
	OK(slmpm_connect(&a, ctx, d.url, PATIENCE));
	OK(slmpm_accept(d.listener, &b, PATIENCE));
	check_silence();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

static int meet(void *arg)
{
	struct door d, e;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	meet_at("tcp://127.0.0.1:0", "peer (127.0.0.1:");
	meet_at("tcp://localhost:0", "peer (127.0.0.1:");
	meet_at("tcp://127.0.0.1:0#" SECRET, "peer (127.0.0.1:");
	if (has_ipv6())
		meet_at("tcp://[::1]:0", "peer ([::1]:");
	open_door(&d, "tcp://127.0.0.1:0");
	open_door(&e, "tcp://127.0.0.1:0");
	CHECK(d.info.port && e.info.port && d.info.port != e.info.port, "ports");
	CHECK(strlen(d.info.secret) == 32 && strcmp(d.info.secret, e.info.secret) != 0,
	      "secrets \"%s\", \"%s\"", d.info.secret, e.info.secret);
	CHECK(!strstr(d.info.url, d.info.secret), "the address has the secret");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* By the one in the environment, in both processes. */
static int come_by_environment(void *url)
{
	slmpm_peer peer;
	char byte;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&peer, ctx, url, PATIENCE));
	OK(slmpm_send(peer, 0, "x", 1, PATIENCE));
	EXPECT(slmpm_recv(peer, 0, &byte, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static int meet_by_environment(void *arg)
{
	slmpm_peer peer;
	struct door d;
	char byte;
	pid_t pid;

	(void)arg;
	setenv("SLMPM_SECRET", SECRET, 1);
	OK(slmpm_open(&ctx, NULL));
	open_door(&d, "tcp://127.0.0.1:0");
	CHECK(!strcmp(d.info.secret, SECRET), "\"%s\"", d.info.secret);
	pid = child_start(come_by_environment, d.info.url, SECONDS);
	OK(slmpm_accept(d.listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 0, &byte, 1, NULL, PATIENCE), 1);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(pid) == 0, "see above");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- threads of one context ----------------------------------------------------------------- */

#define MEETINGS 20

static void *connect_often(void *url)
{
	for (int i = 0; i < MEETINGS; i++) {
		slmpm_peer peer;
		int back = -1;

		OK(slmpm_connect(&peer, ctx, url, PATIENCE));
		OK(slmpm_send(peer, 0, &i, sizeof(i), PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &back, sizeof(back), NULL, PATIENCE), sizeof(back));
		CHECK(back == i, "%d came back as %d", i, back);
		OK(slmpm_close(peer, PATIENCE));
	}
	return NULL;
}

static int meet_in_threads(void *arg)
{
	struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	pthread_t thread;
	struct door d;

	(void)arg;
	OK(slmpm_open(&ctx, &options));
	open_door(&d, "tcp://127.0.0.1:0");
	CHECK(pthread_create(&thread, NULL, connect_often, d.url) == 0, "no thread");
	for (int i = 0; i < MEETINGS; i++) {
		slmpm_peer peer;
		int number;

		OK(slmpm_accept(d.listener, &peer, PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &number, sizeof(number), NULL, PATIENCE),
		       sizeof(number));
		OK(slmpm_send(peer, 0, &number, sizeof(number), PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &number, sizeof(number), NULL, PATIENCE),
		       -SLMPM_ECLOSED);
		OK(slmpm_close(peer, PATIENCE));
	}
	CHECK(pthread_join(thread, NULL) == 0, "join");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- failures ------------------------------------------------------------------------------- */

static int plain_listener(char url[64])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 8) == 0 &&
		      getsockname(fd, (struct sockaddr *)&sa, &size) == 0,
	      "no socket");
	snprintf(url, 64, "tcp://127.0.0.1:%d#" SECRET, ntohs(sa.sin_port));
	return fd;
}

/* Says what no peer says, or nothing, and leaves. */
static int answer_oddly(void *arg)
{
	const char *text = "220 here speaks something else, and at length, for whoever likes to "
			   "listen; one hundred and more bytes of it\r\n";
	int fd = *(int *)arg;

	for (int i = 0; i < 2; i++) {
		int peer = accept(fd, NULL, NULL);

		CHECK(peer >= 0, "nobody came");
		CHECK(i || send(peer, text, strlen(text), MSG_NOSIGNAL) > 0, "gone");
		(void)shutdown(peer, SHUT_WR);
		while (recv(peer, (char[256]){0}, 256, 0) > 0)
			;
		close(peer);
	}
	return 0;
}

static void answered_oddly(void)
{
	slmpm_peer peer;
	char url[64];
	int fd = plain_listener(url);
	pid_t pid = child_start(answer_oddly, &fd, SECONDS);

	REFUSED(slmpm_connect(&peer, ctx, url, PATIENCE), SLMPM_EPROTO, "control packet");
	REFUSED(slmpm_connect(&peer, ctx, url, PATIENCE), SLMPM_ECLOSED, "before it connected");
	CHECK(child_wait(pid) == 0, "see above");
	/* It lets everybody in and does not say a word. */
	REFUSED(slmpm_connect(&peer, ctx, url, 200), SLMPM_ETIMEOUT, "handshake");
	close(fd);
	REFUSED(slmpm_connect(&peer, ctx, url, PATIENCE), SLMPM_ENOENT, "nobody listens");
}

/* SECRET is not that of the listener. */
static int come_without_secret(void *arg)
{
	const struct door *d = arg;
	slmpm_peer peer;
	char url[400];

	OK(slmpm_open(&ctx, NULL));
	REFUSED(slmpm_connect(&peer, ctx, d->info.url, PATIENCE), SLMPM_EACCES, "no secret");
	snprintf(url, sizeof(url), "%s#" SECRET, d->info.url);
	REFUSED(slmpm_connect(&peer, ctx, url, PATIENCE), SLMPM_EACCES, "secrets");
	CHECK(!strstr(slmpm_error_detail(), SECRET), "it is shown: %s", slmpm_error_detail());
	return 0;
}

static int fail(void *arg)
{
	slmpm_listener again;
	slmpm_peer peer;
	struct door d;
	pid_t pid;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	open_door(&d, "tcp://127.0.0.1:0");
	REFUSED(slmpm_listen(&again, ctx, d.info.url), SLMPM_EBUSY, "somebody listens");
	REFUSED(slmpm_listen(&again, ctx, "tcp://*:0"), SLMPM_EACCES, "SLMPM_INSECURE=y");
	REFUSED(slmpm_connect(&peer, ctx, "tcp://192.0.2.1:9#" SECRET, PATIENCE), SLMPM_EACCES,
		"SLMPM_INSECURE=y");
	answered_oddly();
	pid = child_start(come_without_secret, &d, SECONDS);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		EXPECT(slmpm_accept(d.listener, &peer, 5), -SLMPM_ETIMEOUT);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int bad_setting(void *arg)
{
	slmpm_listener l;

	(void)arg;
	setenv("SLMPM_SECRET", "sesame", 1);
	OK(slmpm_open(&ctx, NULL)); /* of no concern there */
	REFUSED(slmpm_listen(&l, ctx, "tcp://127.0.0.1:0"), SLMPM_EINVAL, "32 hex digits");
	OK(slmpm_listen(&l, ctx, "tcp://127.0.0.1:0#" SECRET));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- ends ----------------------------------------------------------------------------------- */

#define WORDS 1000

/* Says a thousand words, and ends as ARG says. */
static int speak_and_end(void *arg)
{
	slmpm_peer peer;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&peer, ctx, arg, PATIENCE));
	for (uint32_t i = 0; i < WORDS; i++)
		OK(slmpm_send(peer, 0, &i, sizeof(i), PATIENCE));
	(void)raise(SIGKILL);
	return 1;
}

static int end(void *arg)
{
	int64_t begin;
	slmpm_peer peer;
	struct door d;
	uint32_t word;
	pid_t pid;

	(void)arg;
	OK(slmpm_open(&ctx, NULL));
	open_door(&d, "tcp://127.0.0.1:0");
	pid = child_start(speak_and_end, d.url, SECONDS);
	OK(slmpm_accept(d.listener, &peer, PATIENCE));
	CHECK(child_wait(pid) == -SIGKILL, "it lives");
	begin = actor_now_ms();
	for (uint32_t i = 0; i < WORDS; i++) {
		EXPECT(slmpm_recv(peer, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		CHECK(word == i, "%u for %u", word, i);
	}
	EXPECT(slmpm_recv(peer, 0, &word, sizeof(word), NULL, PATIENCE), -SLMPM_EDEAD);
	CHECK(actor_now_ms() - begin < 1000 * actor_slow(), "%d ms", (int)(actor_now_ms() - begin));
	OK(slmpm_close(peer, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static bool has_fabric(void)
{
	struct slmpm_fabric_info info = {.size = sizeof(info)};

	for (int i = 0; slmpm_fabric_at(i, &info) == 0; i++)
		if (!strcmp(info.name, "tcp"))
			return info.available;
	return false;
}

static int look_for_fabric(void *arg)
{
	(void)arg;
	return has_fabric() ? 0 : TEST_SKIPPED;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};

	actor_begin(argc, argv, roles);
	unsetenv("SLMPM_SECRET");
	setenv("SLMPM_FABRIC", "tcp", 1); /* else both ends, on one machine, leave the network */
	unsetenv("SLMPM_INSECURE");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	if (child_run(look_for_fabric, NULL, SECONDS) == TEST_SKIPPED)
		test_skip("the fabric \"tcp\" cannot be used here");
	/* The settings are read once a process. */
	CHECK(child_run(meet, NULL, SECONDS) == 0, "meeting: see above");
	CHECK(child_run(meet_by_environment, NULL, SECONDS) == 0, "by environment: see above");
	CHECK(child_run(bear_silence, NULL, SECONDS) == 0, "silence: see above");
	CHECK(child_run(meet_in_threads, NULL, SECONDS) == 0, "threads: see above");
	CHECK(child_run(fail, NULL, SECONDS) == 0, "failures: see above");
	CHECK(child_run(bad_setting, NULL, SECONDS) == 0, "a bad setting: see above");
	CHECK(child_run(end, NULL, SECONDS) == 0, "an end: see above");
	return 0;
}
