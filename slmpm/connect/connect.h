/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between unrelated processes, whichever side made them. */
#ifndef SLMPM_CONNECT_H
#define SLMPM_CONNECT_H

#include "slmpm/endpoint.h"
#include "slmpm/net/secret.h"

/* A connected socket, and what its handshake needs. */
struct connection {
	int fd;
	bool stream;                 /* TCP: */
	bool stays;                  /* also where the other end is on this machine ... */
	bool is_near;                /* ... as was found out */
	const struct secret *secret; /* both sides know it */
};

/* Is the other end of this user, or root? */
bool connect_allowed(int fd);
/* Was it USER when it connected, or began to listen? */
bool connect_is_user(int fd, uid_t user);
/* Its process, 0: unknown. */
int connect_pid(int fd);
/* The fabric of such: over a STREAM, or of this machine. */
const char *connect_fabric(bool stream);
/* An endpoint over it, its handshake begun; of listener L, or NULL: this side connected. NULL with
 * *RC and the detail set, the socket is closed then. */
struct endpoint *connect_adopt(struct context *ctx, const struct connection *from,
			       struct listener *l, int *rc);

#endif
