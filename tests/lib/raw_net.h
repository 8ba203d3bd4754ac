/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over TCP made by hand, with a bond's links: what it says of them by the control connection
 * or by its first link, and how it calls the others. Written from doc/wire.md.
 */
#ifndef TESTS_LIB_RAW_NET_H
#define TESTS_LIB_RAW_NET_H

#include "tests/lib/raw_stream.h"

#define RAW_NET_SEGMENTS 1024
#define RAW_NET_SEGMENT  64

struct raw_net_offer { /* a round's blob */
	uint32_t version, segments, segment_size;
	uint16_t port;
	uint8_t family, active;
	uint64_t start;
	unsigned char token[16];
};

struct raw_net {
	struct raw_stream control;
	int data; /* the first link's socket */
	struct raw_net_offer own, heard;
	uint64_t envelopes;
};

/* Connected to a listener's ADDRESS, tcp://127.0.0.1:PORT#SECRET, and wants LINKS; nothing is
 * said. */
void raw_net_begin(struct raw_net *n, const char *address, unsigned links);
/* The same over CONTROL, of who is called (raw_net_called.h). */
void raw_net_prepare(struct raw_net *n, int control, const char *secret, unsigned links);
/* What either offers for the first link, to the other. */
void raw_net_trade(struct raw_net *n);
/* Both have greeted (raw_proof.h): the first link. */
void raw_net_first(struct raw_net *n);
void raw_net_end(struct raw_net *n);
/* The control connection is reset: no end in order. */
void raw_net_cut(struct raw_net *n);

/* Round 0, by the control connection or, once it is cut, by the first link. */
struct wire_round raw_net_round(const struct raw_net *n, unsigned link, unsigned life);
void raw_net_say(struct raw_net *n, struct wire_round *w);
/* The next about a link. */
struct wire_round raw_net_hear(struct raw_net *n);
/* Begins that link: what the other side offers. */
struct raw_net_offer raw_net_ask(struct raw_net *n, unsigned link, unsigned life);
/* A refusal comes that says WHY. */
void raw_net_refused(struct raw_net *n, unsigned link, unsigned life, const char *why);

/* The peer NAME, whose offer lies: LIE spoils *o or *w, which the test's offer() then says. */
#define RAW_NET_OFFER(name, lie)                                                                   \
	static void spoil_##name(struct raw_net_offer *o, struct wire_round *w)                    \
	{                                                                                          \
		(void)o;                                                                           \
		(void)w;                                                                           \
		lie;                                                                               \
	}                                                                                          \
	static void name(struct raw_peer *p)                                                       \
	{                                                                                          \
		(void)p;                                                                           \
		offer(spoil_##name);                                                               \
	}

/* Calls there and says both tokens. */
int raw_net_call(const struct raw_net_offer *to, const unsigned char token[16],
		 const unsigned char own[16]);
/* Whether the answer is the right one; false: it has been ended without a word. */
bool raw_net_answered(const struct raw_net *n, int call);
/* Both: the link stands. */
int raw_net_join(struct raw_net *n, const struct raw_net_offer *to);

/* A packet by the first link. */
void raw_net_post(struct raw_net *n, uint8_t kind, const uint64_t head[3], const void *data,
		  uint32_t length);
/* A message on stream 1, likewise. */
void raw_net_send(struct raw_net *n, const void *data, uint32_t length);
/* What is refused leaves the channel as it was: a message "still" goes. It ends here, by another lie. */
void raw_net_go_on(struct raw_net *n);
/* The first link has ended; what comes before is dropped. */
void raw_net_hear_end(struct raw_net *n);

#endif
