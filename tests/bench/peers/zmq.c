/* SPDX-License-Identifier: BSD-3-Clause */
/* ZeroMQ PAIR sockets over ipc and over TCP; an I/O thread a process, its default. */
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/bench/peers/pair.h"

static void *context, *sock;

static void need(int ok, const char *what)
{
	if (!ok)
		pair_die(what, zmq_strerror(zmq_errno()));
}

static void open_at(int side, const char *at)
{
	char address[64] = "", other[64];
	size_t len = sizeof address;
	int linger = 0;

	context = zmq_ctx_new();
	sock = zmq_socket(context, ZMQ_PAIR);
	zmq_setsockopt(sock, ZMQ_LINGER, &linger, sizeof linger);
	if (side == 0) {
		need(zmq_bind(sock, at) == 0, "bind");
		need(zmq_getsockopt(sock, ZMQ_LAST_ENDPOINT, address, &len) == 0, "address");
	}
	pair_exchange(side, address, other, sizeof address);
	if (side == 1)
		need(zmq_connect(sock, other) == 0, "connect");
}

static void ipc_open(int side)
{
	char at[64];

	snprintf(at, sizeof at, "ipc://@bench-zmq-%d", (int)getpid());
	open_at(side, at);
}

static void tcp_open(int side)
{
	open_at(side, "tcp://127.0.0.1:*");
}

static void z_send(const void *buf, size_t len)
{
	need(zmq_send(sock, buf, len, 0) == (int)len, "send");
}

static void z_recv(void *buf, size_t len)
{
	need(zmq_recv(sock, buf, len, 0) == (int)len, "recv");
}

static void close_side(int side)
{
	(void)side;
	zmq_close(sock);
	zmq_ctx_term(context);
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "pair",
		 .open = ipc_open,
		 .send = z_send,
		 .recv = z_recv,
		 .close = close_side},
		{.name = "tcp",
		 .open = tcp_open,
		 .send = z_send,
		 .recv = z_recv,
		 .close = close_side},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
