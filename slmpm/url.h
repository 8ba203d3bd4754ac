/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: "shm:NAME" (an abstract socket of this user) or "shm:/path". */
#ifndef SLMPM_URL_H
#define SLMPM_URL_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct url {
	struct sockaddr_un sa;
	socklen_t length;
};

/* Takes TEXT apart and makes a socket for it, of type flags FLAGS besides: its descriptor, or a
 * negative SLMPM_E* with the detail set. */
int url_open(struct url *url, const char *text, int flags);
/* The path of a socket in the file system, else empty. */
const char *url_path(const struct url *url);
/* Negative errno. A path that a crash left behind is taken over. */
int url_listen(const struct url *url, int fd, int backlog);
/* Negative errno; -EAGAIN when the listener takes nobody in until DEADLINE. */
int url_connect(const struct url *url, int fd, uint64_t deadline);

#endif
