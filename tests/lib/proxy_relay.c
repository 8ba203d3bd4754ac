/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay itself: one process that passes bytes on, as its rules say. */
#include "tests/lib/proxy_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test.h"

struct stream { /* one way of a connection */
	struct proxy_rule rule;
	uint64_t passed;
	int64_t ready; /* us: not before */
	size_t have, sent;
	bool ended;  /* nothing more comes from there */
	bool closed; /* and that was passed on */
	unsigned char data[32768];
};

struct connection {
	int fd[PROXY_WAYS]; /* who connected, and who was meant; -1: closed */
	struct stream stream[PROXY_WAYS];
};

static struct connection all[PROXY_CONNECTIONS];
static unsigned connections;

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- ends ---- */

static void hang_up(struct connection *c, bool reset)
{
	struct linger at_once = {.l_onoff = 1};

	for (int i = 0; i < PROXY_WAYS; i++) {
		if (c->fd[i] < 0)
			continue;
		if (reset)
			(void)setsockopt(c->fd[i], SOL_SOCKET, SO_LINGER, &at_once,
					 sizeof(at_once));
		close(c->fd[i]);
		c->fd[i] = -1;
	}
}

static int onward(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons(port)};
	int fd = port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void welcome(struct relay_plan *plan)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd = accept4(plan->listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC), one = 1;
	struct connection *c;

	if (fd < 0)
		return;
	CHECK(connections < PROXY_CONNECTIONS, "more connections than the relay has places for");
	c = &all[connections++];
	c->fd[0] = fd;
	c->fd[1] = onward(plan->target[ntohs(from.sin_port)]);
	if (c->fd[1] < 0) {
		hang_up(c, true);
		return;
	}
	for (int i = 0; i < PROXY_WAYS; i++)
		(void)setsockopt(c->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* ---- bytes ---- */

/* The rule holds from here on. */
static bool is_due(const struct stream *s)
{
	return s->rule.fate != PROXY_PASS && s->passed >= s->rule.at;
}

static bool takes(const struct stream *s)
{
	return !s->ended && s->have == 0 && !(is_due(s) && s->rule.fate == PROXY_SILENCE);
}

/* False: the connection is broken. */
static bool take(struct stream *s, int from)
{
	ssize_t n = recv(from, s->data, sizeof(s->data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	s->ended = n == 0;
	s->have = (size_t)n;
	s->sent = 0;
	if (n && is_due(s) && s->rule.fate == PROXY_DELAY)
		s->ready = now_us() + s->rule.arg;
	return true;
}

/* How much of what is here may go on at once. */
static size_t may_pass(struct stream *s)
{
	size_t n = s->have - s->sent;
	uint64_t before = s->passed < s->rule.at ? s->rule.at - s->passed : 0;

	if (s->rule.fate == PROXY_CORRUPT) {
		if (before < n && s->passed <= s->rule.at) {
			s->data[s->sent + before] ^= (unsigned char)s->rule.arg;
			s->rule.fate = PROXY_PASS; /* done */
		}
		return n;
	}
	if (s->rule.fate == PROXY_PASS || s->rule.fate == PROXY_DELAY)
		return s->ready > now_us() ? 0 : n;
	if (before)
		return n < before ? n : (size_t)before;
	if (s->rule.fate == PROXY_TRICKLE)
		return n && s->ready <= now_us();
	if (s->rule.fate == PROXY_HALF_CLOSE)
		s->have = s->sent = 0;
	return 0;
}

static bool pass(struct stream *s, int to)
{
	size_t n = may_pass(s);
	ssize_t sent;

	if (n == 0)
		return true;
	sent = send(to, s->data + s->sent, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	s->sent += (size_t)sent;
	s->passed += (uint64_t)sent;
	if (s->sent == s->have)
		s->have = s->sent = 0;
	if (is_due(s) && s->rule.fate == PROXY_TRICKLE)
		s->ready = now_us() + s->rule.arg;
	return true;
}

static bool is_silent(const struct stream *s)
{
	return is_due(s) && s->rule.fate == PROXY_SILENCE;
}

static void pass_end_on(struct stream *s, int to)
{
	bool cut = is_due(s) && s->rule.fate == PROXY_HALF_CLOSE;

	if (s->closed || is_silent(s) || !(cut || (s->ended && s->have == 0)))
		return;
	(void)shutdown(to, SHUT_WR);
	s->closed = true;
}

static void attend(struct connection *c)
{
	for (int way = 0; way < PROXY_WAYS && c->fd[0] >= 0; way++) {
		struct stream *s = &c->stream[way];
		int from = c->fd[way], to = c->fd[!way];
		bool well = (!takes(s) || take(s, from)) && pass(s, to);

		if (is_silent(s))
			continue;
		if (!well || (is_due(s) && s->rule.fate == PROXY_RESET))
			hang_up(c, true);
		else
			pass_end_on(s, to);
	}
	if (c->fd[0] >= 0 && c->stream[0].closed && c->stream[1].closed && c->stream[0].ended &&
	    c->stream[1].ended)
		hang_up(c, false);
}

/* ---- commands ---- */

static void forget(void)
{
	for (unsigned i = 0; i < PROXY_CONNECTIONS; i++) {
		hang_up(&all[i], true);
		memset(all[i].stream, 0, sizeof(all[i].stream));
	}
	connections = 0;
}

/* False: there is nobody who gives any. */
static bool obey(struct relay_plan *plan)
{
	struct relay_answer answer = {0};
	struct relay_command c;
	struct stream *s;

	if (recv(plan->commands, &c, sizeof(c), 0) != sizeof(c))
		return false;
	s = &all[c.n].stream[c.way];
	if (c.what == RELAY_FORGET) {
		forget();
	} else if (c.what == RELAY_RULE) {
		s->rule = c.rule;
		if (c.rule.at == PROXY_NOW)
			s->rule.at = s->passed;
	}
	answer.connections = connections;
	answer.passed = s->passed;
	return send(plan->commands, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer);
}

/* What to wait for with a connection; how long at most goes into *WAIT. */
static void watch(const struct connection *c, struct pollfd p[PROXY_WAYS], int64_t *wait)
{
	for (int way = 0; way < PROXY_WAYS; way++)
		p[way] = (struct pollfd){.fd = c->fd[way]};
	for (int way = 0; way < PROXY_WAYS; way++) {
		const struct stream *s = &c->stream[way];
		int64_t left = s->ready - now_us();

		if (takes(s))
			p[way].events |= POLLIN;
		if (s->have && !is_silent(s) && left <= 0)
			p[!way].events |= POLLOUT;
		if (s->have && left > 0 && left < *wait)
			*wait = left;
	}
	for (int way = 0; way < PROXY_WAYS; way++)
		if (!p[way].events)
			p[way].fd = -1; /* its end would be told again and again */
}

void relay_run(struct relay_plan *plan)
{
	struct pollfd p[2 + PROXY_WAYS * PROXY_CONNECTIONS] = {
		{.fd = plan->commands, .events = POLLIN}, {.fd = plan->listener, .events = POLLIN}};
	struct timespec t;
	int64_t wait;

	for (unsigned i = 0; i < PROXY_CONNECTIONS; i++)
		all[i].fd[0] = all[i].fd[1] = -1;
	for (;;) {
		wait = 1000000;
		for (unsigned i = 0; i < connections; i++)
			watch(&all[i], &p[2 + PROXY_WAYS * i], &wait);
		t = (struct timespec){wait / 1000000, wait % 1000000 * 1000};
		(void)ppoll(p, 2 + PROXY_WAYS * connections, &t, NULL);
		if (p[0].revents && !obey(plan))
			return;
		if (p[1].revents)
			welcome(plan);
		for (unsigned i = 0; i < connections; i++)
			attend(&all[i]);
	}
}
