/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream through a PIPE from host to host, and a bare socket's over one cable: "links sink URL",
 * "links relay URL NEXT", "links source URL" prints bytes a second; "links bare-sink ADDRESS" and
 * "links bare-source ADDRESS" likewise. work_links.sh starts them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <slmpm.h>
#include <slmpm_queue.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/plain.h"

enum { PIECE = 65536, PIECES = 1024, BUFFERS = 4, PORT = 7471, PATIENCE_MS = 20000, LIMIT_S = 60 };

#define BYTES ((double)PIECE * PIECES)

static char room[BUFFERS][PIECE];

/* ---- through the library -------------------------------------------------------------------- */

static slmpm_peer connect_to(const char *url)
{
	double until = now() + PATIENCE_MS / 1e3;
	slmpm_peer peer;
	int rc;

	while ((rc = slmpm_connect(&peer, (slmpm_ctx){0}, url, PATIENCE_MS)) < 0 && now() < until)
		nap();
	ok(rc, "slmpm_connect");
	return peer;
}

static slmpm_peer accept_at(const char *url)
{
	slmpm_listener listener;
	slmpm_peer peer;

	ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "slmpm_listen");
	ok(slmpm_accept(listener, &peer, PATIENCE_MS), "slmpm_accept");
	return peer;
}

static void signal_to(slmpm_peer peer)
{
	ok(slmpm_send(peer, 1, "", 1, PATIENCE_MS), "slmpm_send");
}

static void await_signal(slmpm_peer peer)
{
	char byte;

	ok(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE_MS), "slmpm_recv");
}

static void sink(const char *url)
{
	slmpm_peer from = accept_at(url);

	for (int i = 0; i < PIECES; i++)
		ok(slmpm_recv(from, 0, room[0], PIECE, NULL, PATIENCE_MS), "slmpm_recv");
	signal_to(from);
	await_signal(from);
}

static void post_pipe(slmpm_peer from, slmpm_peer to, slmpm_cq *cq)
{
	struct slmpm_wq_options o = {.size = sizeof o};
	struct slmpm_iov buffers[BUFFERS];
	struct slmpm_wr wr = {.size = sizeof wr, .op = SLMPM_OP_PIPE, .value = PIECES};
	slmpm_wq wq;

	for (int i = 0; i < BUFFERS; i++)
		buffers[i] = (struct slmpm_iov){room[i], PIECE};
	wr.from = from;
	wr.peer = to;
	wr.iov = buffers;
	wr.iov_count = BUFFERS;
	ok(slmpm_cq_create((slmpm_ctx){0}, cq), "slmpm_cq_create");
	o.cq = *cq;
	ok(slmpm_wq_create((slmpm_ctx){0}, &o, &wq), "slmpm_wq_create");
	ok(slmpm_post(wq, &wr, 1), "slmpm_post");
}

static void relay(const char *url, const char *next)
{
	slmpm_peer to = connect_to(next), from = accept_at(url);
	struct slmpm_done done;
	slmpm_cq cq;

	post_pipe(from, to, &cq);
	signal_to(from);
	ok(slmpm_cq_wait(cq, &done, 1, PATIENCE_MS), "slmpm_cq_wait");
	ok(done.status, "PIPE");
	await_signal(to);
	signal_to(from);
	signal_to(to); /* it may go */
	await_signal(from);
}

static double source(const char *url)
{
	slmpm_peer to = connect_to(url);
	double begin;

	await_signal(to);
	begin = now();
	for (int i = 0; i < PIECES; i++)
		ok(slmpm_send(to, 0, room[0], PIECE, PATIENCE_MS), "slmpm_send");
	await_signal(to);
	begin = now() - begin;
	signal_to(to);
	return BYTES / begin;
}

/* ---- bare sockets ---------------------------------------------------------------------------- */

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		exit(2);
	return a;
}

static void need(bool well, const char *what)
{
	if (well)
		return;
	perror(what);
	exit(1);
}

static void bare_sink(const char *at)
{
	const struct sockaddr_in a = address_of(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), s;
	double left = BYTES;
	ssize_t n = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	need(!bind(listener, (const struct sockaddr *)&a, sizeof a), "bind");
	need(!listen(listener, 1), "listen");
	need((s = accept(listener, NULL, NULL)) >= 0, "accept");
	for (; left > 0 && n > 0; left -= (double)n)
		n = read(s, room[0], PIECE);
	need(write(s, "", 1) == 1, "write");
	(void)!read(s, room[0], 1); /* until the other side has gone */
}

static double bare_source(const char *to)
{
	const struct sockaddr_in a = address_of(to);
	double left = BYTES, until = now() + PATIENCE_MS / 1e3, begin;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	ssize_t n = 1;

	while (connect(s, (const struct sockaddr *)&a, sizeof a)) {
		need(now() < until, "connect");
		close(s);
		nap();
		s = socket(AF_INET, SOCK_STREAM, 0);
	}
	begin = now();
	for (; left > 0 && n > 0; left -= (double)n)
		n = write(s, room[0], left < PIECE ? (size_t)left : PIECE);
	need(read(s, room[0], 1) == 1, "read");
	return BYTES / (now() - begin);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	alarm(LIMIT_S);
	memset(room, 1, sizeof room);
	if (!strcmp(what, "sink"))
		sink(argv[2]);
	else if (!strcmp(what, "relay") && argc > 3)
		relay(argv[2], argv[3]);
	else if (!strcmp(what, "source"))
		printf("%.0f\n", source(argv[2]));
	else if (!strcmp(what, "bare-sink"))
		bare_sink(argv[2]);
	else if (!strcmp(what, "bare-source"))
		printf("%.0f\n", bare_source(argv[2]));
	else
		return 2;
	return 0;
}
