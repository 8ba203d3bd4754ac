/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay does to plain sockets what its rules say. */
#include "tests/lib/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/actor.h"

static int listening, left, right; /* left connects */
static char text[] = "what is written on one side is read on the other";

static void join(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	proxy_forget();
	listening = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(listening, (struct sockaddr *)&a, len) == 0 && listen(listening, 1) == 0 &&
		      getsockname(listening, (struct sockaddr *)&a, &len) == 0,
	      "no socket");
	left = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(left, (struct sockaddr *)&a, len) == 0, "connect: %s", strerror(errno));
	right = accept(listening, NULL, NULL);
	CHECK(right >= 0 && proxy_connections() == 1, "it did not come by way of the relay");
	CHECK(getpeername(left, (struct sockaddr *)&a, &len) == 0 &&
		      a.sin_addr.s_addr == htonl(INADDR_LOOPBACK),
	      "another address");
}

static void part(void)
{
	close(left);
	close(right);
	close(listening);
}

static void rule(enum proxy_way way, enum proxy_fate fate, uint64_t at, uint32_t arg)
{
	proxy_rule(0, way, (struct proxy_rule){.fate = fate, .at = at, .arg = arg});
}

/* What comes on FD within MS until WANT bytes are there: their number; *END is 0 or errno then. */
static size_t hear(int fd, char *to, size_t want, int ms, int *end)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t have = 0;
	ssize_t n;

	*end = EAGAIN;
	while (have < want && poll(&p, 1, ms) > 0) {
		n = recv(fd, to + have, want - have, 0);
		*end = n < 0 ? errno : 0;
		if (n <= 0)
			break;
		*end = EAGAIN;
		have += (size_t)n;
	}
	return have;
}

static void say(int fd)
{
	CHECK(send(fd, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text), "send");
}

static void passes(void)
{
	char got[sizeof(text)];
	int end;

	join();
	say(left);
	CHECK(hear(right, got, sizeof(got), PATIENCE, &end) == sizeof(got), "not all came");
	say(right);
	CHECK(hear(left, got, sizeof(got), PATIENCE, &end) == sizeof(got), "nor back");
	CHECK(proxy_passed(0, PROXY_FORTH) == sizeof(text), "it counts otherwise");
	close(left);
	CHECK(hear(right, got, 1, PATIENCE, &end) == 0 && end == 0, "no end");
	left = -1;
	part();
}

static void cuts(enum proxy_fate fate, size_t at, int want)
{
	char got[sizeof(text)];
	int end;

	join();
	rule(PROXY_FORTH, fate, at, 0);
	if (at) /* else its end may be here already */
		say(left);
	CHECK(hear(right, got, sizeof(got), want == EAGAIN ? 50 : PATIENCE, &end) == at,
	      "fate %d: not %zu bytes", (int)fate, at);
	CHECK(end == want && memcmp(got, text, at) == 0, "fate %d at %zu: %d", (int)fate, at, end);
	if (fate == PROXY_HALF_CLOSE) {
		say(right);
		CHECK(hear(left, got, sizeof(got), PATIENCE, &end) == sizeof(got), "not back");
	}
	part();
}

static void changes(enum proxy_fate fate, size_t at, uint32_t arg)
{
	char got[sizeof(text)], want[sizeof(text)];
	int64_t begin;
	int end;

	memcpy(want, text, sizeof(text));
	if (fate == PROXY_CORRUPT)
		want[at] ^= (char)arg;
	join();
	rule(PROXY_FORTH, fate, at, arg);
	begin = actor_now_ms();
	say(left);
	CHECK(hear(right, got, sizeof(got), PATIENCE, &end) == sizeof(got), "not all came");
	CHECK(memcmp(got, want, sizeof(want)) == 0, "fate %d: other bytes", (int)fate);
	if (fate != PROXY_CORRUPT)
		CHECK(actor_now_ms() - begin >= 10, "fate %d: at once", (int)fate);
	part();
}

int main(void)
{
	proxy_start();
	passes();
	for (size_t at = 0; at <= 20; at += 10) {
		cuts(PROXY_RESET, at, ECONNRESET);
		cuts(PROXY_HALF_CLOSE, at, 0);
		cuts(PROXY_SILENCE, at, EAGAIN);
		changes(PROXY_CORRUPT, at, 0x11);
	}
	changes(PROXY_TRICKLE, 0, 500);
	changes(PROXY_DELAY, 0, 20000);
	proxy_stop();
	return 0;
}
