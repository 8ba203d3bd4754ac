/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint's control socket, one packet at a time, with descriptors. */
#ifndef SLMPM_CONTROL_H
#define SLMPM_CONTROL_H

#include "slmpm/endpoint.h"
#include "slmpm/watch.h"

enum control_step { WAIT_HELLO, WAIT_NONCE, WAIT_ROUND, CONNECTED, HUNG_UP };

struct control {
	struct list node; /* ctx->deadlines while there is one */
	struct endpoint *ep;
	struct watch socket, process;
	enum control_step step;
	int round;
	uint64_t nonce;
	uint64_t features;        /* of both sides */
	uint64_t deadline;        /* UINT64_MAX: none, until a spawned process has spoken */
	struct fabric_blob offer; /* for the first round, made ahead ... */
	int offered;              /* ... with this result; 0: not yet */
	bool pending;             /* the fabric does not know yet whether this round connects */
	bool link_lost;           /* the link is: what there was to read has been read */
	bool said_bye;            /* read ahead of its turn: */
	struct wire_bye bye;
};

union control_packet {
	struct wire_control_head head;
	struct wire_hello hello;
	struct wire_nonce nonce;
	struct wire_round round;
	struct wire_area area;
	struct wire_grant grant;
	struct wire_bye bye;
};

#define CONTROL_FDS 4 /* more than any packet has */

struct received {
	union control_packet packet;
	size_t length;
	int fds[CONTROL_FDS], fd_count;
};

/* Sends PACKET, whose head is filled in, with descriptor FD unless negative. Never blocks. */
int control_send(struct control *c, void *packet, size_t length, uint32_t type, int fd);
/* Says BYE on a socket, with no endpoint behind it perhaps. */
void control_refuse(int fd, int error, const char *why);
/* 1 a packet, 0 none there, 2 look again, -EPIPE the end, -EMFILE descriptors were lost. */
int control_receive(struct control *c, struct received *r);
/* The peer's text as one of ours: cut to SIZE, printable. */
void control_text(char *to, size_t size, const char *from, size_t length);
/* Closes what nobody took (set to -1). */
void control_drop(struct received *r);

#endif
