/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: "shm:NAME" (an abstract socket of this user), "shm:/path", "tcp://host:port". */
#ifndef SLMPM_NET_URL_H
#define SLMPM_NET_URL_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "slmpm/net/secret.h"

enum url_kind { URL_LOCAL, URL_TCP };

struct url {
	enum url_kind kind;
	struct sockaddr_un local;
	socklen_t length;
	char host[256], port[6];
	struct secret secret; /* of tcp://host:port#secret, where it says one */
	char text[320];       /* as written, without the secret: for messages */
};

/* Negative SLMPM_E* with the detail set, here and below. */
int url_parse(struct url *url, const char *text);
/* The path of a socket in the file system, else empty. */
const char *url_path(const struct url *url);
/* A listening socket that does not block. A path that a crash left behind is taken over. */
int url_listen(const struct url *url, int backlog);
/* A connected socket. ETIMEOUT: nobody took us in until DEADLINE. */
int url_connect(const struct url *url, uint64_t deadline);

/* The same of one kind, in url_tcp.c. */
int url_listen_tcp(const struct url *url, int backlog);
int url_connect_tcp(const struct url *url, uint64_t deadline);
/* What their callers are told of a negative errno. */
int url_not_listening(const struct url *url, int rc);
int url_not_connected(const struct url *url, int rc);

#endif
