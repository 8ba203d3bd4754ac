/* SPDX-License-Identifier: BSD-3-Clause */
/* What all TCP sockets of the module have in common. */
#include "slmpm/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/base/checksum.h"
#include "slmpm/base/config.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "v4.sin_port is the port of both");

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
	union address a;

	normalize(&a, sa);
	return is_loopback(&a) || config_get()->insecure;
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

void net_name(const struct sockaddr *sa, char name[NET_NAME])
{
	char host[INET6_ADDRSTRLEN];
	union address a;

	net_host(sa, name);
	normalize(&a, sa);
	if (!a.any.sa_family)
		return;
	memcpy(host, name, sizeof(host));
	snprintf(name, NET_NAME, a.any.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 (unsigned)ntohs(a.v4.sin_port));
}

/* False: FD has no address of TCP at this end, or the OTHER. */
static bool address_at(int fd, bool other, union address *a)
{
	union address raw = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t size = sizeof(raw);

	if ((other ? getpeername(fd, &raw.any, &size) : getsockname(fd, &raw.any, &size)) != 0)
		raw.any.sa_family = AF_UNSPEC;
	normalize(a, &raw.any);
	return a->any.sa_family;
}

bool net_end(int fd, bool other, struct sockaddr_storage *address)
{
	union address a;

	if (!address_at(fd, other, &a))
		return false;
	a.v4.sin_port = 0;
	*address = a.room;
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
	union address a;

	(void)address_at(fd, true, &a);
	net_name(&a.any, name);
}

uint32_t net_machine(void)
{
	char text[128];
	uint32_t kernel;
	ssize_t n = 0, m;
	long cpus;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) / 2);
		close(fd);
	}
	if (n <= 0)
		return 0;
	kernel = checksum(0, text, (size_t)n);
	m = readlink("/proc/self/ns/net", text, sizeof(text) / 2);
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	return kernel << 20 | (uint32_t)(cpus > 0 && cpus < 15 ? cpus : 15) << 16 |
	       (checksum(kernel, text, (size_t)(m > 0 ? m : 0)) & 0xffff) | 1;
}

uint16_t net_port(int fd)
{
	union address a;

	return address_at(fd, false, &a) ? ntohs(a.v4.sin_port) : 0;
}

#define PATIENCE_MS 3000 /* more than this library has, in its calls (silence.c) */

/* A connection with nothing under way is asked for a sign of life each second. */
int net_prepare(int fd)
{
	const struct {
		int level, option, value;
	} all[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 1},
		{IPPROTO_TCP, TCP_KEEPINTVL, 1},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, (int)config_get()->dead_ms + PATIENCE_MS},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (setsockopt(fd, all[i].level, all[i].option, &all[i].value, sizeof(int)) != 0)
			return -errno;
	return 0;
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
