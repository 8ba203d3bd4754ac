/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets to and from this machine itself. */
#include "tests/lib/loopback.h"

#include <stdlib.h>
#include <string.h>

bool loopback_is_v6(void)
{
	const char *version = getenv("SLMPM_TEST_IP");

	return version && !strcmp(version, "6");
}

union loopback loopback_at(uint16_t port)
{
	if (loopback_is_v6())
		return (union loopback){.v6 = {.sin6_family = AF_INET6,
					       .sin6_addr = IN6ADDR_LOOPBACK_INIT,
					       .sin6_port = htons(port)}};
	return (union loopback){.v4 = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port)}};
}

static socklen_t size_of(const union loopback *at)
{
	return at->any.sa_family == AF_INET6 ? sizeof(at->v6) : sizeof(at->v4);
}

int loopback_socket(void)
{
	return socket(loopback_is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int loopback_listen(uint16_t *port)
{
	union loopback at = loopback_at(0);
	socklen_t size = size_of(&at);
	int s = loopback_socket();

	if (s < 0 || bind(s, &at.any, size) != 0 || listen(s, 1) != 0 ||
	    getsockname(s, &at.any, &size) != 0)
		return -1;
	*port = ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
	return s;
}

int loopback_connect(int socket, uint16_t port)
{
	union loopback at = loopback_at(port);

	return connect(socket, &at.any, size_of(&at));
}

uint64_t loopback_connected(void)
{
	struct sockaddr_storage to;
	uint64_t set = 0;

	for (int fd = 0; fd < 64; fd++) {
		socklen_t size = sizeof(to);

		if (getpeername(fd, (struct sockaddr *)&to, &size) == 0 && to.ss_family == AF_INET)
			set |= UINT64_C(1) << fd;
	}
	return set;
}
