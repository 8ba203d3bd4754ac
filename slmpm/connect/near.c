/* SPDX-License-Identifier: BSD-3-Clause */
/* A door beside the network: sockets in the abstract space, which is that of a network namespace. */
#include "slmpm/connect/near.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/connect/connect.h"
#include "slmpm/mode/mode.h"

#define QUEUE 64
#define NAME  "slmpm-near/%016llx"

static bool near_is_wanted(void)
{
	const struct config *config = config_get();

	return config && mode_comes_near(config->fabric);
}

/* Of the door, or of the GUEST before it. */
static socklen_t near_name(struct sockaddr_un *sa, uint64_t door, uint64_t guest)
{
	int n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, guest ? NAME "/%016llx" : NAME,
			 (unsigned long long)door, (unsigned long long)guest);

	sa->sun_family = AF_UNIX;
	sa->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int near_new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool draw(uint64_t *number)
{
	return getrandom(number, sizeof(*number), 0) == sizeof(*number) && *number;
}

void near_open(struct near *n, struct context *ctx, watch_ready *ready, void *owner)
{
	struct sockaddr_un sa;
	int fd = -1;

	if (near_is_wanted() && draw(&n->door))
		fd = near_new_socket();
	n->user = geteuid();
	n->watch = (struct watch){.ready = ready, .fd = fd, .owner = owner};
	if (fd < 0)
		return;
	if (bind(fd, (struct sockaddr *)&sa, near_name(&sa, n->door, 0)) != 0 ||
	    listen(fd, QUEUE) != 0 || watch_add(ctx, &n->watch) < 0) {
		close(fd);
		n->watch.fd = -1;
	}
}

void near_close(struct near *n, struct context *ctx)
{
	watch_close(ctx, &n->watch);
}

void near_invite(const struct near *n, struct wire_near *token, uint64_t *guest)
{
	if (n->watch.fd < 0 || !draw(guest))
		return;
	token->door = LITTLE_64(n->door);
	token->guest = LITTLE_64(*guest);
}

int near_go(const struct wire_near *token)
{
	uint64_t door = LITTLE_64(token->door), guest = LITTLE_64(token->guest);
	struct sockaddr_un sa;
	int fd;

	if (!door || !guest || !near_is_wanted())
		return -1;
	fd = near_new_socket();
	if (fd < 0)
		return -1;
	/* It is known there by the name that it has here. */
	if (bind(fd, (struct sockaddr *)&sa, near_name(&sa, door, guest)) == 0 &&
	    connect(fd, (struct sockaddr *)&sa, near_name(&sa, door, 0)) == 0 &&
	    connect_is_user(fd, geteuid()))
		return fd;
	close(fd);
	return -1;
}

int near_accept(struct near *n, uint64_t *guest)
{
	struct sockaddr_un sa, right;
	socklen_t size = sizeof(sa);
	char digits[17] = "";
	int fd = accept4(n->watch.fd, (struct sockaddr *)&sa, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	*guest = 0;
	if (size == near_name(&right, n->door, 1) && connect_is_user(fd, n->user)) {
		memcpy(digits, sa.sun_path + size - offsetof(struct sockaddr_un, sun_path) - 16,
		       16);
		*guest = strtoull(digits, NULL, 16);
	}
	if (*guest && size == near_name(&right, n->door, *guest) && !memcmp(&sa, &right, size))
		return fd;
	close(fd);
	return -1;
}
