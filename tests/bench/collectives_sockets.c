/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks share two processors in turn, poll and yield. By pairs of ranks on one processor, of which
 * the lower ones exchange; by way of rank 0; by doubling, where there are 2, 4 or 8.
 */
#define _GNU_SOURCE
#include "tests/bench/collectives_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { RANKS = 16, CENTRES = 2, PORT = 7777, TRIES = 1000, MOST = 1024 };

static int rank, ranks, sockets[RANKS];

/* ---- messages -------------------------------------------------------------------------------- */

/* Of a peer that has gone nothing comes, and this process ends. */
static void move(int to, unsigned char *at, uint64_t bytes, int sends)
{
	while (bytes) {
		ssize_t n = sends ? send(sockets[to], at, bytes, MSG_NOSIGNAL) :
				    recv(sockets[to], at, bytes, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			exit(0);
		if (n < 0)
			sched_yield();
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (uint64_t)n : 0;
	}
}

static void give(int other, double *sum, uint64_t bytes)
{
	move(other, (unsigned char *)sum, bytes ? bytes : 1, 1);
}

static void take(int other, double *to, uint64_t bytes)
{
	move(other, (unsigned char *)to, bytes ? bytes : 1, 0);
}

static void add(int other, double *sum, uint64_t bytes)
{
	double theirs[MOST / sizeof(double)];

	take(other, theirs, bytes);
	for (uint64_t i = 0; i < bytes / sizeof(double); i++)
		sum[i] += theirs[i];
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* By so many centres, which give each other what they have of their ranks. */
static void by_centres(int centres, double *sum, uint64_t bytes)
{
	double own[MOST / sizeof(double)];

	if (rank >= centres) {
		give(rank % centres, sum, bytes);
		take(rank % centres, sum, bytes);
		return;
	}
	for (int r = rank + centres; r < ranks; r += centres)
		add(r, sum, bytes);
	memcpy(own, sum, bytes);
	for (int c = 0; c < centres; c++)
		if (c != rank)
			give(c, own, bytes);
	for (int c = 0; c < centres; c++)
		if (c != rank)
			add(c, sum, bytes);
	for (int r = rank + centres; r < ranks; r += centres)
		give(r, sum, bytes);
}

static void by_doubling(double *sum, uint64_t bytes)
{
	for (int d = 1; d < ranks; d *= 2) {
		give(rank ^ d, sum, bytes);
		add(rank ^ d, sum, bytes);
	}
}

void sockets_all(int way, const double *from, double *to, uint64_t bytes)
{
	memcpy(to, from, bytes);
	if (way == 2)
		by_doubling(to, bytes);
	else
		by_centres(way ? 1 : CENTRES, to, bytes);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct sockaddr_in address_of(int r)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(0x0a4e0001u + (unsigned)r)};
}

static int enter(const char *networks)
{
	char path[256];
	int fd, rc;

	snprintf(path, sizeof path, "%s/host%d", networks, rank);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int call(int r)
{
	const struct sockaddr_in to = address_of(r);
	int fd = -1;

	for (int i = 0; fd < 0 && i < TRIES; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
			break;
		close(fd);
		fd = -1;
		usleep(10000);
	}
	if (fd >= 0 && write(fd, &rank, sizeof rank) != sizeof rank)
		return -1;
	return fd;
}

/* Of the ranks behind this one, as they come. */
static int answer(int listener)
{
	int fd = accept(listener, NULL, NULL), who = -1;

	if (fd < 0 || recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who || who <= rank ||
	    who >= ranks)
		return -1;
	sockets[who] = fd;
	return 0;
}

int sockets_open(const char *networks, int own, int size)
{
	const struct sockaddr_in here = address_of(own);
	const struct timeval most = {.tv_sec = 10}; /* an earlier rank may have failed */
	int on = 1, listener;

	rank = own;
	ranks = size;
	if (enter(networks) < 0)
		return 0;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most); /* of accept, too */
	if (bind(listener, (const struct sockaddr *)&here, sizeof here) || listen(listener, RANKS))
		return 0;
	for (int r = 0; r < rank; r++)
		if ((sockets[r] = call(r)) < 0)
			return 0;
	for (int r = rank + 1; r < ranks; r++)
		if (answer(listener) < 0)
			return 0;
	close(listener);
	for (int r = 0; r < ranks; r++)
		if (r != rank &&
		    (setsockopt(sockets[r], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
		     fcntl(sockets[r], F_SETFL, O_NONBLOCK)))
			return 0;
	return ranks & (ranks - 1) ? 2 : 3;
}
