/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's own channels: pipe, Unix socket (blocking, or waiting in epoll), TCP loopback. */
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
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
