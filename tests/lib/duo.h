/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a connection in one thread, and a model that knows which receive each message between
 * them belongs to.
 */
#ifndef TESTS_LIB_DUO_H
#define TESTS_LIB_DUO_H

#include "tests/lib/message.h"
#include "tests/lib/random.h"

#define LIVE 24 /* messages under way, a direction */
#define POST 6
#define HOLD 12
#define ANY  SLMPM_ANY_STREAM

struct duo_sent {
	uint64_t seed;
	size_t length;
	uint32_t stream;
	bool burst; /* in one call with others: without an immediate */
};

struct duo_posted {
	slmpm_req req;
	unsigned char *data;
	size_t room;
	uint32_t stream;
};

struct duo_held {
	const void *data;
	struct duo_sent message;
};

struct duo_side {
	slmpm_peer peer;
	struct duo_sent sent[LIVE]; /* to the other side, not yet received */
	int sents;
	struct message outgoing[LIVE]; /* sends not yet reported */
	uint64_t seeds[LIVE];
	int outgoings;
	struct duo_posted posted[POST];
	int posteds;
	struct duo_held held[HOLD];
	int helds;
	unsigned char *loan;
	struct duo_sent lent;
	size_t ready;
	bool part;
};

struct duo {
	struct duo_side sides[2];
	struct rng chance;
	slmpm_ctx ctx;
	size_t packet, eager;
	uint64_t seed; /* of the last message */
	bool aloud;
};

extern struct duo duo;

#define SAY(s, ...)                                                                                \
	(duo.aloud ?                                                                               \
		 (printf("%c ", (s) == duo.sides ? 'a' : 'b'), printf(__VA_ARGS__), puts("")) :    \
		 0)
#define NUMBER(m) (unsigned long long)(m)->seed

uint32_t duo_below(size_t n);
size_t duo_length(void);

struct duo_side *duo_other(struct duo_side *s);
/* For each message to S the posted receive it belongs to, or -1: the first that wants it. */
void duo_match(const struct duo_side *s, int of[LIVE]);
/* The first message to S on STREAM that no posted receive gets, or -1. */
int duo_first_free(struct duo_side *s, uint32_t stream);
/* A message from S begins; message M from FROM is over. */
struct duo_sent *duo_record(struct duo_side *s, uint32_t stream, size_t n);
struct duo_sent duo_forget(struct duo_side *from, int m);
uint32_t duo_imm(const struct duo_sent *m);
/* Bytes on their way from S. */
uint64_t duo_unread(const struct duo_side *s);
bool duo_lending(void);

/* ---- duo_send.c ---- */

void duo_send_later(struct duo_side *s);
void duo_send_together(struct duo_side *s);
void duo_send_burst(struct duo_side *s);
void duo_look_at_send(struct duo_side *s);
/* One that no receive has taken: it goes as if it had never been, or has gone already. */
void duo_take_send_back(struct duo_side *s);
/* Send I ends so. */
void duo_report(struct duo_side *s, int i, int status);
void duo_borrow(struct duo_side *s);
/* More of it, all of it, or nothing. */
void duo_give_back(struct duo_side *s);

/* ---- duo_receive.c ---- */

void duo_receive_later(struct duo_side *s);
void duo_look_at_receive(struct duo_side *s);
void duo_take_receive_back(struct duo_side *s);
void duo_receive_now(struct duo_side *s, uint32_t stream);
/* Several at once: each is the first then, and fits; only the first may have been too long. */
void duo_receive_together(struct duo_side *s, uint32_t stream);
void duo_look(struct duo_side *s, uint32_t stream);
void duo_hold(struct duo_side *s, uint32_t stream);
void duo_let_go(struct duo_side *s);

#endif
