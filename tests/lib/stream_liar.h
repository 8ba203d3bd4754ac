/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who lies in the handshake over TCP, at a listener: refused with the reason in bounded time,
 * nothing kept, and an honest peer works on.
 */
#ifndef TESTS_LIB_STREAM_LIAR_H
#define TESTS_LIB_STREAM_LIAR_H

#include "tests/lib/actor.h"
#include "tests/lib/raw_stream.h"

struct stream_lie {
	const char *name;
	void (*tell)(struct raw_stream *s);
	const char *word; /* of the answer; NULL: none, or it may be lost with the connection */
};

struct stream_lies {
	const struct stream_lie *lies;
	size_t count;
	bool silent;      /* they meet the deadline, and an early one is set */
	unsigned secrets; /* so many do not know the secret, and are counted */
};

/* The listener lied to; its secret in hex digits. */
extern uint16_t stream_lie_port;
extern char stream_lie_secret[33];

/* What main does first: a fabric "tcp" there is, and both ends stay on it. */
void stream_liar_begin(void);
/* A process of its own listens, and each lie is told. */
void stream_liar_tell(const struct stream_lies *all);

/* For a process that listens: "tcp://127.0.0.1:..." with its secret. */
void stream_liar_listen(slmpm_ctx ctx, slmpm_listener *listener, char url[80]);

#endif
