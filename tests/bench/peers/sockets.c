/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's own channels: pipe, Unix socket (blocking, or waiting in epoll), and TCP loopback:
 * blocking, spinning, waiting in epoll, and streams in blocks of the length that suits the socket
 * instead of the message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/peers/pair.h"

static int rd[2], wr[2]; /* of each side */
static int rfd, wfd, epfd;
static size_t block; /* a stream's most bytes in a call */

static void need(int ok, const char *what)
{
	if (!ok)
		pair_die(what, NULL);
}

static void pipe_before(void)
{
	int ab[2], ba[2];

	need(pipe(ab) == 0 && pipe(ba) == 0, "pipe");
	fcntl(ab[1], F_SETPIPE_SZ,
	      1 << 20); /* a larger pipe streams faster; refused above a limit */
	fcntl(ba[1], F_SETPIPE_SZ, 1 << 20);
	wr[0] = ab[1];
	rd[1] = ab[0];
	wr[1] = ba[1];
	rd[0] = ba[0];
}

static void unix_before(void)
{
	int s[2], size = 4 << 20;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
	for (int i = 0; i < 2; i++) {
		setsockopt(s[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		rd[i] = wr[i] = s[i];
	}
}

static void tcp_before(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int one = 1, l = socket(AF_INET, SOCK_STREAM, 0), s[2];

	s[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(bind(l, (struct sockaddr *)&a, sizeof a) == 0 && listen(l, 1) == 0 &&
		     getsockname(l, (struct sockaddr *)&a, &len) == 0 &&
		     connect(s[0], (struct sockaddr *)&a, len) == 0,
	     "tcp");
	s[1] = accept(l, NULL, NULL);
	need(s[1] >= 0, "accept");
	close(l);
	for (int i = 0; i < 2; i++) {
		setsockopt(s[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		rd[i] = wr[i] = s[i];
	}
}

static void open_side(int side)
{
	rfd = rd[side];
	wfd = wr[side];
	close(rd[!side]); /* the other's death then shows as end of file */
	if (wr[!side] != rd[!side])
		close(wr[!side]);
}

static void epoll_open(int side)
{
	struct epoll_event e = {.events = EPOLLIN};

	open_side(side);
	epfd = epoll_create1(0);
	need(epfd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, rfd, &e) == 0, "epoll");
}

static void fd_send(const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t k = write(wfd, p, len);

		need(k > 0 || errno == EINTR, "write");
		p += k > 0 ? k : 0;
		len -= k > 0 ? (size_t)k : 0;
	}
}

static void fd_recv(void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t k = read(rfd, p, len);

		if (k == 0)
			pair_die("read", "end of file");
		need(k > 0 || errno == EINTR, "read");
		p += k > 0 ? k : 0;
		len -= k > 0 ? (size_t)k : 0;
	}
}

static void epoll_recv(void *buf, size_t len)
{
	struct epoll_event e;

	while (epoll_wait(epfd, &e, 1, -1) < 0)
		need(errno == EINTR, "epoll_wait");
	fd_recv(buf, len);
}

/* ---- TCP without ever sleeping ---- */

static void spin_send(const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t k = send(wfd, p, len, MSG_DONTWAIT);

		need(k > 0 || errno == EAGAIN || errno == EINTR, "send");
		p += k > 0 ? k : 0;
		len -= k > 0 ? (size_t)k : 0;
	}
}

static size_t spin_some(void *buf, size_t most)
{
	for (;;) {
		ssize_t k = recv(rfd, buf, most, MSG_DONTWAIT);

		if (k > 0)
			return (size_t)k;
		if (k == 0)
			pair_die("recv", "end of file");
		need(errno == EAGAIN || errno == EINTR, "recv");
	}
}

static void spin_recv(void *buf, size_t len)
{
	for (size_t k; len; len -= k) {
		k = spin_some(buf, len);
		buf = (char *)buf + k;
	}
}

/*
 * ---- streams of bytes ----
 * What goes down in one call fills whole packets of the socket, and the reader takes what there is.
 */

enum { READ_AT_ONCE = 64 << 10 };

static void blocks_open(int side, size_t packets)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	open_side(side);
	/* TCP_MAXSEG begins with half of the window. */
	need(getsockopt(wfd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0, "longest packet");
	block = packets * info.tcpi_advmss;
}

static void one_packet_open(int side)
{
	blocks_open(side, 1);
}

static void four_packets_open(int side)
{
	blocks_open(side, 4);
}

static void blocks_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	for (uint64_t i = 0; i < n; i++)
		for (size_t at = 0; at < len; at += block)
			fd_send((const char *)buf + at, len - at < block ? len - at : block);
}

static void blocks_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	for (uint64_t left = len * n; left;)
		left -= spin_some(buf, left < READ_AT_ONCE ? left : READ_AT_ONCE);
}

/* The same, but each byte to its place in the message. */
static void places_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	for (uint64_t i = 0; i < n; i++)
		for (size_t at = 0; at < len;)
			at += spin_some((char *)buf + at,
					len - at < READ_AT_ONCE ? len - at : READ_AT_ONCE);
}

#define IN_BLOCKS                                                                                  \
	.before = tcp_before, .send = fd_send, .recv = fd_recv, .stream_send = blocks_send,        \
	.stream_recv = blocks_recv

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "pipe",
		 .before = pipe_before,
		 .open = open_side,
		 .send = fd_send,
		 .recv = fd_recv},
		{.name = "unix",
		 .before = unix_before,
		 .open = open_side,
		 .send = fd_send,
		 .recv = fd_recv},
		{.name = "epoll",
		 .before = unix_before,
		 .open = epoll_open,
		 .send = fd_send,
		 .recv = epoll_recv},
		{.name = "tcp",
		 .before = tcp_before,
		 .open = open_side,
		 .send = fd_send,
		 .recv = fd_recv},
		{.name = "tcp-spin",
		 .before = tcp_before,
		 .open = open_side,
		 .send = spin_send,
		 .recv = spin_recv},
		{.name = "tcp-epoll",
		 .before = tcp_before,
		 .open = epoll_open,
		 .send = fd_send,
		 .recv = epoll_recv},
		{.name = "tcp-packet", .open = one_packet_open, IN_BLOCKS},
		{.name = "tcp-packets", .open = four_packets_open, IN_BLOCKS},
		{.name = "tcp-places",
		 .before = tcp_before,
		 .open = four_packets_open,
		 .send = fd_send,
		 .recv = fd_recv,
		 .stream_send = blocks_send,
		 .stream_recv = places_recv},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
