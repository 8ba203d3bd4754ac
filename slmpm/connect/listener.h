/* SPDX-License-Identifier: BSD-3-Clause */
/* Where unrelated processes connect: "shm:NAME" (abstract), "shm:/path", "tcp://host:port". */
#ifndef SLMPM_LISTENER_H
#define SLMPM_LISTENER_H

#include "slmpm/base/handle.h"
#include "slmpm/base/log.h"
#include "slmpm/base/wire.h"
#include "slmpm/net/secret.h"
#include "slmpm/net/url.h"
#include "slmpm/watch.h"

/*
 * Where both ends of a TCP connection are on one machine after all: a second door, a socket without
 * a file, whose name is told to who has proved the secret. Who can go through it is here, and of
 * the user that its listener was when it was opened: both sides ask the kernel for these, and so
 * agree.
 */
struct near {
	struct watch watch; /* fd -1: no door */
	uint64_t door;      /* its name, by chance */
	uid_t user;         /* whose it is: guests see that, whoever this process is by now */
};

struct listener {
	struct handle handle;
	struct list node; /* ctx->listeners */
	struct context *ctx;
	struct watch watch;
	int spare;      /* a descriptor that makes room to refuse a connection; -1: none */
	bool paused;    /* connections wait that cannot even be refused ... */
	uint64_t again; /* ... until this */
	bool tcp;
	struct listener **home; /* of a group's: where it is held; NULL: of the application's */
	struct near near;       /* of one over TCP: for those of this machine */
	struct secret secret;   /* that who connects over TCP must know */
	struct log_limit refusals;
	uint32_t waiting; /* peers that stand, or stood, and nobody has accepted */
	uint32_t turns;   /* given to them, in the order of their coming */
	char path[108];   /* of a path socket, to be removed; else empty */
	char url[320];    /* without the secret; with the port that it really has */
};

#define LISTENER_HALF_OPEN 64 /* that have not finished their handshake */

watch_ready listener_ready;
/* A paused one goes on, if descriptors may be had again. */
void listener_resume(struct listener *l);
/* Paused listeners whose time has come are tried again: the next time, UINT64_MAX for none. */
uint64_t listener_deadlines(struct context *ctx, uint64_t now_ns);
/* Frees who failed before anybody knew of them: while nobody holds an endpoint or a watch. */
void listener_forget_refused(struct context *ctx);
void listener_free_all(struct context *ctx);
/* A listener of a group's, held at HOME: those that come are members, or refused (parts.admit), and
 * nothing accepts them but listener_take. 0, or negative with the detail set. */
int listener_open(struct context *ctx, const char *url, struct listener **home);
void listener_free(struct listener *l);
/* EP, which is UP, is accepted. */
void listener_take(struct endpoint *ep);
/* EP is connected: one more for slmpm_accept, if it came by a listener. */
void listener_up(struct endpoint *ep);
/* EP goes, perhaps without having been accepted. */
void listener_left(struct endpoint *ep);
/* In the child after fork: closes its copies of the descriptors, nothing else. */
void listener_forked_all(struct context *ctx);

/* ---- near.c ---- */

/* Opens the second door, where shared memory is wanted and there can be one. */
void near_open(struct listener *l);
/* What a guest who is to come through it is told; its name is *GUEST. */
void near_invite(const struct near *n, struct wire_near *token, uint64_t *guest);
/* Through it, as told: a connected socket, or -1 (it is another machine's, or another user's). */
int near_go(const struct wire_near *token);

/* ---- connect.c: connections between unrelated processes, whichever side made them ---- */

/* A connected socket, and what its handshake needs. */
struct connection {
	int fd;
	bool stream;                 /* TCP: */
	bool stays;                  /* also where the other end is on this machine ... */
	bool is_near;                /* ... as was found out */
	const struct secret *secret; /* both sides know it */
	bool pair, active;           /* one of two ends that were made together, by this side: */
	int process, pid;            /* of the other; the descriptor becomes the endpoint's */
};

/* Is the other end of this user, or root? */
bool connect_allowed(int fd);
/* Was it USER when it connected, or began to listen? */
bool connect_is_user(int fd, uid_t user);
/* Its process, 0: unknown. */
int connect_pid(int fd);
/* Of an address: what it says, or else SLMPM_SECRET. Negative with the detail set. */
int connect_find_secret(const struct url *url, struct secret *secret);
/* A socket to URL, whose listener is of this user; negative with the detail set. Takes its time. */
int connect_socket(const struct url *url, uint64_t deadline);
/* Is it still over a stream? Else it has been near. */
bool connect_is_stream(const struct endpoint *ep);
/* Why EP, begun here, has not come to be UP, and whether its listener is this user's. */
int connect_verdict(struct endpoint *ep, const struct url *url, bool same_user);
/* A listener that has its hands full is asked again in so long, and at last this is said. */
#define CONNECT_AGAIN_MS 5
int connect_was_full(const struct url *url);
/* The fabric of such: over a STREAM, or of this machine. */
const char *connect_fabric(bool stream);
/* An endpoint over it, its handshake begun; of listener L, or NULL: this side connected. NULL with
 * *RC and the detail set, the socket is closed then. */
struct endpoint *connect_adopt(struct context *ctx, const struct connection *from,
			       struct listener *l, int *rc);

#endif
