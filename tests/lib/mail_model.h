/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must arrive where: the messages sent on one channel (a peer in one direction) and the
 * receives posted for it, and which of them belong together. A receive takes the first message it
 * wants that no receive posted before it wants.
 */
#ifndef TESTS_LIB_MAIL_MODEL_H
#define TESTS_LIB_MAIL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAIL_ANY UINT32_C(0xffffffff) /* any stream */

enum mail_state { MAIL_LIVE, MAIL_TAKEN, MAIL_GONE };

struct mail { /* a message */
	uint64_t seed;
	size_t len;
	uint32_t stream, imm;
	bool growing; /* a part of it is out, of LEN bytes at most */
	enum mail_state state;
	uint64_t taker; /* the order of the receive that took it */
};

enum mail_order {
	MAIL_ANYHOW,   /* something was taken back from the middle: only what arrives is checked */
	MAIL_MONOTONE, /* receives of any peer: per stream, earlier receives have earlier messages */
	MAIL_EXACT
};

struct mail_channel {
	struct mail *mails;
	size_t count, room, first; /* before FIRST none is live */
	enum mail_order order;
};

struct mail_want { /* a receive under way; they stand in the order of their posting */
	uint64_t order;
	uint32_t stream;
	bool used;                          /* false: none */
	const struct mail_channel *channel; /* NULL: any */
};

/* Notes a message sent; its number on the channel. */
size_t mail_send(struct mail_channel *c, uint32_t stream, uint32_t imm, uint64_t seed, size_t len);
/* The message for the receive WANTS[AT], -1 while there is none. */
long mail_predict(const struct mail_channel *c, const struct mail_want *wants, size_t n, size_t at);
/* What a receive was given: what it says of itself, and the first N bytes. */
struct mail_got {
	uint32_t stream, imm;
	size_t len, n;
	const void *data;
	bool part; /* more may follow */
};
/* Finds the message that the receive ORDER took, which has to be number PREDICTED unless that is
 * -1, and checks it. Returns its number. */
size_t mail_take(struct mail_channel *c, long predicted, uint64_t order,
		 const struct mail_got *got);
/* Are these N bytes those that message NUMBER begins with? */
bool mail_same(const struct mail_channel *c, size_t number, const void *data, size_t n);
void mail_fill(uint64_t seed, void *to, size_t n);
/* Is there a message on STREAM that nobody has taken? */
bool mail_wanted(const struct mail_channel *c, uint32_t stream);
/* Messages that nobody has taken. */
size_t mail_left(const struct mail_channel *c);
/* At the end: the order of all that was taken. Where only what arrives says which message it was,
 * of those that are the same earlier receives are taken to have earlier ones. */
void mail_check_order(struct mail_channel *c);
void mail_reset(struct mail_channel *c, enum mail_order order);

#endif
