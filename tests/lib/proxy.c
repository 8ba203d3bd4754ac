/* SPDX-License-Identifier: BSD-3-Clause */
/* The test's side of the relay: start, commands, and connect(). */
#include "tests/lib/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/proxy_relay.h"
#include "tests/lib/test.h"

static struct {
	struct relay_plan *plan; /* NULL: none runs */
	int commands;
	pid_t pid;
} proxy;

static int run(void *arg)
{
	relay_run(arg);
	return 0;
}

static int listener(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 64) == 0 &&
		      getsockname(fd, (struct sockaddr *)&a, &len) == 0,
	      "no listening socket: %s", strerror(errno));
	*port = ntohs(a.sin_port);
	return fd;
}

void proxy_start(void)
{
	struct relay_plan *plan = child_common(sizeof(*plan));
	int pair[2];

	CHECK(!proxy.plan, "a second relay");
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	plan->listener = listener(&plan->port);
	plan->commands = pair[1];
	proxy.pid = child_start(run, plan, 600);
	close(pair[1]);
	close(plan->listener);
	proxy.commands = pair[0];
	proxy.plan = plan;
}

void proxy_stop(void)
{
	CHECK(proxy.plan, "no relay");
	kill(proxy.pid, SIGKILL);
	(void)child_wait(proxy.pid);
	close(proxy.commands);
	munmap(proxy.plan, sizeof(*proxy.plan));
	proxy.plan = NULL;
}

static struct relay_answer command(struct relay_command c)
{
	struct relay_answer answer;

	CHECK(proxy.plan && send(proxy.commands, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c) &&
		      recv(proxy.commands, &answer, sizeof(answer), 0) == sizeof(answer),
	      "the relay is gone");
	return answer;
}

void proxy_rule(unsigned n, enum proxy_way way, struct proxy_rule rule)
{
	CHECK(n < PROXY_CONNECTIONS, "connection %u", n);
	command((struct relay_command){.what = RELAY_RULE, .n = n, .way = way, .rule = rule});
}

unsigned proxy_connections(void)
{
	return command((struct relay_command){.what = RELAY_ASK}).connections;
}

uint64_t proxy_passed(unsigned n, enum proxy_way way)
{
	CHECK(n < PROXY_CONNECTIONS, "connection %u", n);
	return command((struct relay_command){.what = RELAY_ASK, .n = n, .way = way}).passed;
}

void proxy_forget(void)
{
	command((struct relay_command){.what = RELAY_FORGET});
}

/* ---- on the way there ---- */

/* The relay knows a connection by the port it comes from, which the socket therefore gets here. */
static void divert(int fd, struct sockaddr_in *to)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(from);

	if (bind(fd, (struct sockaddr *)&from, len) && errno != EINVAL) /* it has one */
		return;
	if (getsockname(fd, (struct sockaddr *)&from, &len) || from.sin_family != AF_INET)
		return;
	proxy.plan->target[ntohs(from.sin_port)] = ntohs(to->sin_port);
	to->sin_port = htons(proxy.plan->port);
}

/* In the place of the C library's, for this program. */
int connect(int fd, __CONST_SOCKADDR_ARG where, socklen_t len)
{
	const struct sockaddr *address = where.__sockaddr__;
	struct sockaddr_in to;

	if (!proxy.plan || address->sa_family != AF_INET || len < sizeof(to))
		return (int)syscall(SYS_connect, fd, address, len);
	memcpy(&to, address, sizeof(to));
	if (to.sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		divert(fd, &to);
	return (int)syscall(SYS_connect, fd, &to, sizeof(to));
}
