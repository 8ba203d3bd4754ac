/* SPDX-License-Identifier: BSD-3-Clause */
/* What all TCP sockets of the module have in common. */
#include "slmpm/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/base/config.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* IPv4 carried by IPv6 (a socket that listens for both) as what it is. */
static void normalize(union address *a, const struct sockaddr *sa)
{
	memset(a, 0, sizeof(*a));
	if (sa->sa_family == AF_INET)
		memcpy(&a->v4, sa, sizeof(a->v4));
	else if (sa->sa_family == AF_INET6)
		memcpy(&a->v6, sa, sizeof(a->v6));
	if (sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = a->v6.sin6_port};

		memcpy(&v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
		memset(a, 0, sizeof(*a));
		a->v4 = v4;
	}
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

bool net_allowed(const struct sockaddr *sa)
{
	const struct config *config = config_get();
	union address a;

	normalize(&a, sa);
	return is_loopback(&a) || (config && config->insecure);
}

void net_name(const struct sockaddr *sa, char name[NET_NAME])
{
	char host[INET6_ADDRSTRLEN] = "?";
	union address a;

	normalize(&a, sa);
	if (a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		snprintf(name, NET_NAME, "%s:%u", host, (unsigned)ntohs(a.v4.sin_port));
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		snprintf(name, NET_NAME, "[%s]:%u", host, (unsigned)ntohs(a.v6.sin6_port));
	} else {
		snprintf(name, NET_NAME, "?");
	}
}

void net_host(const struct sockaddr *sa, char name[NET_NAME])
{
	union address a;

	normalize(&a, sa);
	snprintf(name, NET_NAME, "?");
	if (a.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &a.v4.sin_addr, name, NET_NAME);
	else if (a.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a.v6.sin6_addr, name, NET_NAME);
}

bool net_end(int fd, bool other, struct sockaddr_storage *address)
{
	union address a = {.any = {.sa_family = AF_UNSPEC}}, plain;
	socklen_t size = sizeof(a);

	if ((other ? getpeername(fd, &a.any, &size) : getsockname(fd, &a.any, &size)) != 0 ||
	    (a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6))
		return false;
	normalize(&plain, &a.any);
	if (plain.any.sa_family == AF_INET)
		plain.v4.sin_port = 0;
	else
		plain.v6.sin6_port = 0;
	*address = plain.room;
	return true;
}

bool net_is_here(int fd)
{
	struct sockaddr_storage own, other;

	if (!net_end(fd, false, &own) || !net_end(fd, true, &other))
		return false;
	return is_loopback((const union address *)&other) || !memcmp(&own, &other, sizeof(own));
}

void net_peer(int fd, char name[NET_NAME])
{
	union address a = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t size = sizeof(a);

	if (getpeername(fd, &a.any, &size) != 0)
		a.any.sa_family = AF_UNSPEC;
	net_name(&a.any, name);
}

uint16_t net_port(int fd)
{
	union address a;
	socklen_t size = sizeof(a);

	if (getsockname(fd, &a.any, &size) != 0)
		return 0;
	if (a.any.sa_family == AF_INET)
		return ntohs(a.v4.sin_port);
	return a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port) : 0;
}

static int net_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : -errno;
}

#define PATIENCE_MS 3000 /* more than this library has, in its calls (silence.c) */

/* A connection with nothing under way is asked for a sign of life each second. */
int net_prepare(int fd)
{
	const struct config *config = config_get();
	int dead_ms = config ? (int)config->dead_ms : 5000;
	int rc = net_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);

	if (rc == 0)
		rc = net_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (rc == 0)
		rc = net_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	if (rc == 0)
		rc = net_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	if (rc == 0)
		rc = net_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, dead_ms + PATIENCE_MS);
	return rc;
}

int net_send(int socket, const void *packet, size_t length, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(NET_FDS * sizeof(int))];
	} space = {.room = {0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)packet, .iov_len = length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = space.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
