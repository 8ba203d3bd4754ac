/* SPDX-License-Identifier: BSD-3-Clause */
/* nng pair0 sockets over its IPC transport, an abstract Unix-domain address, and over TCP. */
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/bench/peers/pair.h"

static nng_socket sock;

static void need(int rv, const char *what)
{
	if (rv)
		pair_die(what, nng_strerror(rv));
}

static void open_at(int side, const char *at)
{
	char address[128] = "", other[128], *url;
	nng_listener listener;

	need(nng_pair0_open(&sock), "open");
	nng_socket_set_int(sock, NNG_OPT_SENDBUF, 128);
	nng_socket_set_int(sock, NNG_OPT_RECVBUF, 128);
	nng_socket_set_size(sock, NNG_OPT_RECVMAXSZ, PAIR_MAX);
	if (side == 0) {
		need(nng_listen(sock, at, &listener, 0), "listen");
		need(nng_listener_get_string(listener, NNG_OPT_URL, &url), "address");
		snprintf(address, sizeof address, "%s", url);
		nng_strfree(url);
	}
	pair_exchange(side, address, other, sizeof address);
	if (side == 1)
		need(nng_dial(sock, other, NULL, 0), "dial");
}

static void ipc_open(int side)
{
	char at[64];

	snprintf(at, sizeof at, "abstract://bench-nng-%d", (int)getpid());
	open_at(side, at);
}

static void tcp_open(int side)
{
	open_at(side, "tcp://127.0.0.1:0");
}

static void n_send(const void *buf, size_t len)
{
	need(nng_send(sock, (void *)(uintptr_t)buf, len, 0), "send");
}

static void n_recv(void *buf, size_t len)
{
	size_t got = len;

	need(nng_recv(sock, buf, &got, 0), "recv");
	need(got == len ? 0 : NNG_EMSGSIZE, "recv");
}

static void close_side(int side)
{
	(void)side;
	nng_close(sock);
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "pair",
		 .open = ipc_open,
		 .send = n_send,
		 .recv = n_recv,
		 .close = close_side},
		{.name = "tcp",
		 .open = tcp_open,
		 .send = n_send,
		 .recv = n_recv,
		 .close = close_side},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
