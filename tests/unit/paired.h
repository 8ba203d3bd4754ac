/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of two members, for tests that say on it what no member says. */
#ifndef TESTS_UNIT_PAIRED_H
#define TESTS_UNIT_PAIRED_H

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/endpoint.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"

static inline struct endpoint *link_with(const struct crew *c, int rank)
{
	struct endpoint *ep;
	slmpm_peer peer;

	OK(slmpm_group_peer(c->group[0], rank, &peer, PATIENCE));
	ep = endpoint_get(peer);
	CHECK(ep && ep->state == SLMPM_PEER_UP, "no connection");
	return ep;
}

/* Members know their connections by it. */
static inline bool sockets_have_cookies(void)
{
	uint64_t cookie;
	socklen_t size = sizeof(cookie);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	rc = getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size);
	close(fd);
	return rc == 0;
}

#endif
