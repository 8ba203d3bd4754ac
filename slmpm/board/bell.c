/* SPDX-License-Identifier: BSD-3-Clause */
/* Bells: by which members that sleep are woken (bell.h). */
#include "slmpm/board/bell.h"

#include <errno.h>
#include <sys/socket.h>

#define RINGS 64 /* taken at once: more than wait in such a socket as a rule */

int bell_make(int *own, int *other)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	*own = ends[0];
	*other = ends[1];
	return 0;
}

bool bell_is(int other)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(other, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(other, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM;
}

bool bell_ring(int other)
{
	/* Full: it rings. The flags are the call's own: those of the descriptor are not ours alone. */
	return send(other, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN ||
	       errno == ENOBUFS || errno == EINTR;
}

void bell_quiet(int own)
{
	char ring;

	for (int i = 0; i < RINGS && recv(own, &ring, sizeof(ring), MSG_DONTWAIT) >= 0; i++)
		;
}
