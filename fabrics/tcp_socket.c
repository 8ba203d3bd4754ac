/* SPDX-License-Identifier: BSD-3-Clause */
/* What the TCP fabric does with sockets: addresses, options, the epoll set, lingering, signs of
 * life. */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fabrics/tcp.h"

#ifndef TCP_RTO_MAX_MS /* Linux 6.15 */
#define TCP_RTO_MAX_MS 44
#endif

#define MS        UINT64_C(1000000)
#define LINGER_NS (2000 * MS)
#define LAST_NS   (1000 * MS) /* for all of them, when a domain closes */
#define BACKLOG   16
/* The kernel asks after a second without a packet, at once where that is longer; by the other
 * figure its question waits, while the other connection's turn is. */
#define NOW_S     1
#define LATER_S   2

uint64_t tcp_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const char *tcp_reason(int error)
{
	switch (error) {
	case 0: return "the peer ended it";
	case ECONNRESET:
	case EPIPE: return "the peer reset it";
	case ETIMEDOUT: return "the peer is silent";
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN: return "the peer cannot be reached";
	case EFAULT: return "no memory for what the peer sends";
	default: return "the socket failed";
	}
}

/* ---- addresses ------------------------------------------------------------------------------ */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage space;
};

static socklen_t tcp_socket_length_of(const union address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static void set_port(union address *a, uint16_t port)
{
	if (a->any.sa_family == AF_INET6)
		a->v6.sin6_port = htons(port);
	else
		a->v4.sin_port = htons(port);
}

static void loopback(union address *a, uint8_t family)
{
	if (family == 6)
		a->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
					      .sin6_addr = in6addr_loopback};
	else
		a->v4 = (struct sockaddr_in){.sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* SAID, or one end of the bell's address, where it has one on a network. */
static bool end_of(const struct sockaddr *said, int bell,
		   int (*which)(int, struct sockaddr *restrict, socklen_t *restrict),
		   union address *a)
{
	socklen_t size = sizeof(*a);

	if (said) {
		memset(a, 0, sizeof(*a));
		memcpy(a, said, said->sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4));
		return true;
	}
	return bell >= 0 && which(bell, &a->any, &size) == 0 &&
	       (a->any.sa_family == AF_INET || a->any.sa_family == AF_INET6);
}

static int stream_socket(const union address *a)
{
	int s = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return s < 0 ? -errno : s;
}

/* S is given up for what went wrong last. */
static int socket_give_up(int s)
{
	int rc = -errno;

	close(s);
	return rc;
}

static int listen_on(union address *a, uint16_t *port)
{
	socklen_t size = sizeof(*a);
	int s = stream_socket(a);

	if (s < 0)
		return s;
	set_port(a, 0);
	if (bind(s, &a->any, tcp_socket_length_of(a)) != 0 || listen(s, BACKLOG) != 0 ||
	    getsockname(s, &a->any, &size) != 0)
		return socket_give_up(s);
	*port = ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
	return s;
}

int tcp_listen(const struct fabric_link *link, uint16_t *port, uint8_t *family)
{
	union address a;
	int s;

	if (link && end_of(link->local, link->bell, getsockname, &a)) {
		*family = a.any.sa_family == AF_INET6 ? 6 : 4;
		return listen_on(&a, port);
	}
	*family = 4;
	loopback(&a, 4);
	s = listen_on(&a, port);
	if (s < 0) {
		*family = 6;
		loopback(&a, 6);
		s = listen_on(&a, port);
	}
	return s;
}

int tcp_call(const struct fabric_link *link, uint16_t port, uint8_t family)
{
	union address a, from;
	int s;

	if (!link || !end_of(link->remote, link->bell, getpeername, &a))
		loopback(&a, family);
	set_port(&a, port);
	s = stream_socket(&a);
	if (s < 0)
		return s;
	if (link && link->local && end_of(link->local, -1, NULL, &from) &&
	    bind(s, &from.any, tcp_socket_length_of(&from)) != 0)
		return socket_give_up(s);
	if (connect(s, &a.any, tcp_socket_length_of(&a)) != 0 && errno != EINPROGRESS &&
	    errno != EINTR)
		return socket_give_up(s);
	return s;
}

/* ---- options -------------------------------------------------------------------------------- */

int tcp_set(int s, int level, int name, int value)
{
	return setsockopt(s, level, name, &value, sizeof(value)) == 0 ? 0 : -errno;
}

/* Does what it says stay on this machine? */
static bool stays_here(int s)
{
	union address a;
	socklen_t size = sizeof(a);

	if (getpeername(s, &a.any, &size) != 0)
		return false;
	if (a.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
	return a.any.sa_family == AF_INET &&
	       ntohl(a.v4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

int tcp_read(int s, void *to, size_t n)
{
	ssize_t got = recv(s, to, n, 0);

	if (got > 0)
		return (int)got;
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}

/* ---- the epoll set -------------------------------------------------------------------------- */

int tcp_watch(struct tcp_domain *d, int s, struct tcp_link *l, uint32_t before, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = l};
	int op = !events ? EPOLL_CTL_DEL : !before ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (before == events)
		return 0;
	return epoll_ctl(d->base.fd, op, s, &e) != 0 ? -errno : 0;
}

int tcp_watch_link(struct tcp_link *l, uint32_t events)
{
	int rc = tcp_watch(tcp_domain(l), l->socket, l, l->interest, events);

	if (rc == 0)
		l->interest = events;
	return rc;
}

/* ---- lingering ------------------------------------------------------------------------------ */

/* Reads away what comes: has the peer ended, too? A bounded part of it at a time. */
static bool drained(int s)
{
	char away[4096];

	for (int i = 0; i < 256; i++) {
		ssize_t n = recv(s, away, sizeof(away), 0);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return true;
		if (n < 0 && errno == EAGAIN)
			return false;
	}
	return false;
}

static void drop_lingerer(struct tcp_domain *d, uint32_t i)
{
	close(d->lingering[i].socket);
	d->lingerers--;
	memmove(&d->lingering[i], &d->lingering[i + 1],
		(d->lingerers - i) * sizeof(d->lingering[0]));
}

void tcp_linger(struct tcp_domain *d, int s)
{
	/* Closed with bytes unread, it would take back what it has said. */
	if (shutdown(s, SHUT_WR) != 0 || drained(s)) {
		close(s);
		return;
	}
	tcp_linger_inspect(d, false);
	if (d->lingerers == TCP_LINGER)
		drop_lingerer(d, 0);
	d->lingering[d->lingerers].socket = s;
	d->lingering[d->lingerers++].since = tcp_ns();
}

int tcp_unconfirmed(int s)
{
	int left;

	return ioctl(s, SIOCOUTQ, &left) == 0 ? left : -errno;
}

void tcp_linger_inspect(struct tcp_domain *d, bool last)
{
	uint64_t now = d->lingerers ? tcp_ns() : 0, until = now + LAST_NS;

	for (uint32_t i = d->lingerers; i-- > 0;) {
		int s = d->lingering[i].socket;
		struct pollfd p = {.fd = s, .events = POLLIN};
		bool done = drained(s) || now - d->lingering[i].since > LINGER_NS;

		while (last && !done && tcp_unconfirmed(s) > 0 && tcp_ns() < until) {
			(void)poll(&p, 1, 10);
			done = drained(s);
		}
		if (done || last)
			drop_lingerer(d, i);
	}
}

/* ---- signs of life --------------------------------------------------------------------------- */

/*
 * The other machine's kernel confirms what it gets, and answers keep-alive questions, whatever the
 * process there does. When to ask, and how long silence may last, the core knows
 * (slmpm/connect/silence.c). This one asks by an idle connection, and sends again so often that a
 * network that comes back is found in time.
 */
static int tcp_ask_when_idle(struct tcp_link *l)
{
	int rc, s = l->socket;

	/* Without it what was sent into an outage is sent again as long after it as that was long. */
	l->prompt = tcp_set(s, IPPROTO_TCP, TCP_RTO_MAX_MS, 1000) == 0;
	rc = tcp_set(s, SOL_SOCKET, SO_KEEPALIVE, 1);
	rc = rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPIDLE, NOW_S);
	rc = rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	/* As many as it counts: it counts the core's questions, too, and knows none of its reasons. */
	return rc < 0 ? rc : tcp_set(s, IPPROTO_TCP, TCP_KEEPCNT, 127);
}

int tcp_tune(struct tcp_link *l)
{
	int rc = 0;

	l->far = !stays_here(l->socket);
	/* On loopback there is nobody to share with: estimates and timers for that are in vain. */
	if (!l->far)
		(void)setsockopt(l->socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	else if (l->base.domain->config.dead_ms)
		rc = tcp_ask_when_idle(l);
	return rc < 0 ? rc : tcp_set(l->socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

/* When the last sign came; 0: there is none to be had by it now. IDLE: the kernel would ask. */
static uint64_t sign(int s, bool prompt, uint64_t now, bool *idle)
{
	struct tcp_info info = {.tcpi_state = 0};
	socklen_t length = sizeof(info);
	uint64_t age;

	*idle = false;
	if (s < 0 || getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return 0;
	*idle = !info.tcpi_unacked && !info.tcpi_notsent_bytes;
	/* A peer that does not read is asked for room, more and more seldom unless the kernel is
	 * prompt. */
	if (!prompt && !info.tcpi_unacked && info.tcpi_notsent_bytes)
		return 0;
	age = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv :
								   info.tcpi_last_data_recv;
	return age * MS < now ? now - age * MS : 1;
}

void tcp_keepalive(struct tcp_link *l, uint32_t flags)
{
	int bell = flags & FABRIC_WITH_BELL ? l->base.bell : -1;
	uint64_t now = tcp_ns(), last_sign, by_bell;
	bool idle, bell_idle;

	last_sign = sign(l->socket, l->prompt, now, &idle);
	by_bell = sign(bell, false, now, &bell_idle);
	if (by_bell > last_sign)
		last_sign = by_bell;
	l->base.last_sign = last_sign ? last_sign : now; /* no socket has a sign */
	if (!(flags & FABRIC_ASK))
		return;
	/* By one, then by the other: each gets no question within a second of a sign, both together
	 * one in half of that. It goes out now, or, where a sign is younger than a second, a second
	 * after it. */
	l->by_bell = bell_idle && (!l->by_bell || !idle);
	(void)tcp_set(l->by_bell ? bell : l->socket, IPPROTO_TCP, TCP_KEEPIDLE, NOW_S);
	if (idle && bell_idle)
		(void)tcp_set(l->by_bell ? l->socket : bell, IPPROTO_TCP, TCP_KEEPIDLE, LATER_S);
}
