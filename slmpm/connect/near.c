/* SPDX-License-Identifier: BSD-3-Clause */
/* A door beside the network: sockets in the abstract space, which is that of a network
 * namespace. */
#include "slmpm/connect/listener.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/mode/mode.h"

#define QUEUE 64
#define NAME  "slmpm-near/%016llx"
#define KIND  (SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK)

/* Of the door, or of the GUEST before it. */
static socklen_t near_name(struct sockaddr_un *sa, uint64_t door, uint64_t guest)
{
	int n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, guest ? NAME "/%016llx" : NAME,
			 (unsigned long long)door, (unsigned long long)guest);

	sa->sun_family = AF_UNIX;
	sa->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool draw(uint64_t *number)
{
	return getrandom(number, sizeof(*number), 0) == sizeof(*number) && *number;
}

/* Who came, and its name; -1: nobody, or somebody who may not. */
static int near_accept(const struct near *n, uint64_t *guest)
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

/* Who has proved itself over TCP, and turns out to be on this machine. */
static void near_ready(struct context *ctx, struct watch *w)
{
	struct listener *l = w->owner;
	uint64_t guest;
	int fd = near_accept(&l->near, &guest);

	if (fd < 0)
		return;
	LIST_EACH_ENTRY(struct control, c, &ctx->deadlines, node) {
		if (c->ep->rooms->listener != l || c->step != WAIT_ROUND || !c->stream ||
		    c->stream->guest != guest)
			continue;
		if (bootstrap_move(c->ep, fd) < 0)
			endpoint_refused(c->ep, SLMPM_ENOMEM, "no memory for a nearer way");
		return;
	}
	close(fd);
}

void near_open(struct listener *l)
{
	struct near *n = &l->near;
	struct sockaddr_un sa;
	int fd = -1;

	if (mode_comes_near(config_get()->fabric) && draw(&n->door))
		fd = socket(AF_UNIX, KIND, 0);
	n->user = geteuid();
	n->watch = (struct watch){.ready = near_ready, .fd = fd, .owner = l};
	if (fd >= 0 && (bind(fd, (struct sockaddr *)&sa, near_name(&sa, n->door, 0)) != 0 ||
			listen(fd, QUEUE) != 0 || watch_add(l->ctx, &n->watch) < 0))
		watch_close(l->ctx, &n->watch);
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

	if (!door || !guest || !mode_comes_near(config_get()->fabric))
		return -1;
	fd = socket(AF_UNIX, KIND, 0);
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
