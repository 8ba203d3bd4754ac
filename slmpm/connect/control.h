/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint's control connection, one packet at a time: a packet socket, which carries
 * descriptors, or a stream (TCP), which does not. And what goes by it first: the handshake. */
#ifndef SLMPM_CONTROL_H
#define SLMPM_CONTROL_H

#include "slmpm/bond/secondary_state.h"
#include "slmpm/endpoint.h"
#include "slmpm/net/secret.h"
#include "slmpm/watch.h"

enum control_step { WAIT_HELLO, WAIT_NONCE, WAIT_PROOF, WAIT_ROUND, CONNECTED, HUNG_UP };

/* How long each link's machine has been silent (silence.c). */
struct silence {
	struct list node; /* ctx->remote_peers */
	uint64_t inspected;
	struct silence_link {
		uint32_t asked; /* in vain, since its last sign of life */
		uint64_t grace; /* ns that are added to the limit after this side was in no call */
	} link[BOND_PATHS];
};

struct control {
	struct list node; /* ctx->deadlines while there is one */
	struct endpoint *ep;
	struct watch socket, process;
	struct control_stream *stream; /* NULL: a packet socket */
	int left; /* the stream before it, until the other side has left it, too */
	enum control_step step;
	struct rounds rounds;
	uint64_t nonce;
	uint64_t features;        /* of both sides */
	bool engine;              /* the peer has one that can be asked (WIRE_FEATURE_ENGINE) */
	uint64_t deadline;        /* UINT64_MAX: none, until a spawned process has spoken */
	uint64_t latest;          /* of a deadline that is put off while something comes */
	struct wire_round packet; /* this side's next one, made ahead, ... */
	int fd, made;             /* ... with it, and the result; 0: not yet */
	bool pair;                /* the socket does not say who has the other end */
	bool patient;             /* no deadline until the peer has spoken */
	bool link_lost;           /* the link is: what there was to read has been read */
	struct silence silence;
	bool sent_bye; /* read ahead of its turn: */
	struct wire_bye bye;
};

union control_packet {
	struct wire_control_head head;
	struct wire_hello hello;
	struct wire_nonce nonce;
	struct wire_proof proof;
	struct wire_round round;
	struct wire_area area;
	struct wire_grant grant;
	struct wire_group group;
	struct wire_bye bye;
};

#define CONTROL_FDS 16 /* more than any packet has */
_Static_assert(CONTROL_FDS > WIRE_GROUP_MEMBERS * WIRE_GROUP_FDS, "more than any packet has");
#define CONTROL_STREAM_OUT 2048 /* more than a handshake says */

/* What a stream needs besides. */
struct control_stream {
	struct secret secret;
	bool active;                    /* this side connected ... */
	bool stays;                     /* ... and is not to find out whether the other is near */
	uint64_t guest;                 /* as which it may come by a nearer way; 0: no way */
	struct wire_hello ours, theirs; /* what both prove to have received, and from whom */
	int error;                      /* how it ended: errno; 0 in order */
	uint32_t have;                  /* bytes of the packet that is coming in */
	uint32_t waiting;               /* bytes that the socket did not take at once */
	union control_packet in;
	unsigned char out[CONTROL_STREAM_OUT];
};

struct received {
	union control_packet packet;
	size_t length;
	int fds[CONTROL_FDS], fd_count;
	pid_t sender; /* of those, as foreign_close wants it */
};

/* Sends PACKET, whose head is filled in, with descriptor FD unless negative. Never blocks. */
int control_send(struct control *c, void *packet, size_t length, uint32_t type, int fd);
/* The same with COUNT descriptors; -ENOTSUP on a stream. */
int control_pass(struct control *c, void *packet, size_t length, uint32_t type, const int *fds,
		 size_t count);
/* Says BYE on a socket with no endpoint behind it; then it is to be closed, after control_leave. */
void control_refuse(int fd, int error, const char *why);
/* Says BYE, best effort. */
void control_bye(struct control *c, int error, const char *why);
/* Before a socket is closed: what was said last is not to be lost for what was not read. */
void control_leave(int fd);
/* 1 a packet, 0 none there, 2 inspect again, -EPIPE the end, -EMFILE descriptors were lost. Nobody
 * sends a packet of length 0. */
int control_receive(struct control *c, struct received *r);
/* The peer's text as one of ours: cut to SIZE, printable. */
void control_text(char *to, size_t size, const char *from, size_t length);
/* Closes what nobody took (set to -1). */
void control_drop(struct received *r);

/* On a stream, what waits goes out as far as the socket takes it. */
void control_stream_flush(struct control *c);

/* This side's packet of the round, but for head and name, and *FD or -1: 0, or the fabric's
 * error. */
int rounds_write(const struct rounds *t, struct wire_round *packet, int *fd);
/* Is it a round's packet, of whichever? */
bool rounds_is_sound(const struct received *r);
/* Takes a sound one of the round that is due: 0 connected, 1 the next round is due, 2 the fabric
 * does not know yet, or negative. */
int rounds_take(struct endpoint *ep, struct rounds *t, struct received *r);
/* The same of one that was not known yet; 2 where that is none. */
int rounds_ask(struct endpoint *ep, struct rounds *t);

/* ---- handshake.c: from a connected socket to an endpoint that is UP ---- */

/* The first step. A spawned process has no deadline until it speaks; all others do. */
int handshake_begin(struct control *c);
/* A packet of the handshake; what is out of turn poisons the endpoint. */
int handshake_packet(struct control *c, struct received *r);
/* Ends what does not become a connection; -EPROTO, for whoever goes back with it. */
int handshake_refuse(struct endpoint *ep, int error, const char *why);
/* RC, where negative, ends it; of one that has left the socket tells. */
void handshake_ends(struct endpoint *ep, int rc);
/* Fabrics that could not say yet whether they are connected may know now. */
void handshake_ask(struct control *c);
void handshake_ask_again(struct context *ctx);

/* ---- hello.c: what each side says of itself, and the terms that come of both ---- */

#define HELLO_PACKET_LEAST                                                                         \
	256 /* the head of an active message, a key, an announcement go into one */

/* As control_send. */
int hello_send(struct control *c);
/* Does it speak our language? 0, or refused. */
int hello_inspect(struct endpoint *ep, const struct wire_hello *hello);
/* What a peer, now known as one, wants: the smaller of each pair. 0, or refused. */
int hello_agree(struct control *c, const struct wire_hello *hello);

/* ---- silence.c: a silent machine is found in bounded time, and a short outage outlived ---- */

/* C's endpoint is UP: from now on it is watched, where its connection leaves this machine. */
void silence_watch(struct control *c);
/* Ends peers whose machine has been silent for too long: when to call again, 0: one has ended. */
uint64_t silence_deadlines(struct context *ctx, uint64_t now_ns);

#endif
