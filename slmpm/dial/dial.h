/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to named peers (workqueue/named.h), made in the background when an entry's turn has
 * come, and closed when they are idle and another is wanted beyond SLMPM_CONNECTIONS. What may
 * block, the look-up of a name and the connect, is a thread's (attempt.c); all else is a step of
 * the context's progress. Decision 0037 has the reasons.
 */
#ifndef SLMPM_DIAL_H
#define SLMPM_DIAL_H

#include "slmpm/watch.h"
#include "slmpm/workqueue/named.h"

enum dial_state {
	DIAL_SOCKET,    /* an attempt is under way */
	DIAL_ANSWERED,  /* and has ended */
	DIAL_LATER,     /* the listener has its hands full: once more at `when` */
	DIAL_HANDSHAKE, /* an endpoint connects */
	DIAL_FAILED,    /* and has not */
	DIAL_UP,
	DIAL_CLOSING, /* all is said: until the peer has left, too; at `when` it is inspected */
	DIAL_OVER     /* no connection any more: its handle stays until all is read */
};

struct dial {
	struct list node; /* of the context's */
	struct context *ctx;
	struct named *named; /* NULL: OVER */
	struct endpoint *ep; /* from HANDSHAKE on */
	enum dial_state state;
	bool stays, full, same_user;
	uint64_t until; /* attempts end */
	uint64_t when;
	struct attempt *attempt; /* SOCKET, ANSWERED */
	struct watch answered;
};

/* As of parts. */
uint64_t dial_deadlines(struct context *ctx, uint64_t now);
void dial_up(struct endpoint *ep);
void dial_ended(struct endpoint *ep);
void dial_left(struct endpoint *ep);
void dial_stop(struct context *ctx);
void dial_shut(struct context *ctx);
void dial_forked(struct context *ctx);

/* N is not to be connected any more: what has no endpoint yet is gone. That of its connection, to
 * be closed; or NULL. */
struct endpoint *dial_cancel(struct named *n);
/* It has none: its handle goes. */
void dial_forget(struct named *n);

/* ---- dial_close.c ---- */

/* Is nothing under way with EP, nothing unread, and none of its memory open? */
bool dial_is_idle(const struct endpoint *ep);
/* Something of it is read in place, or written. */
bool dial_has_lent(const struct endpoint *ep);
/* Of one that has ended: nothing of it is unread, or read in place. */
bool dial_is_read(const struct endpoint *ep);
/* Messages of N streams from STREAM on lie here that no receive has taken. */
bool dial_has_unread(const struct endpoint *ep, uint32_t stream, uint32_t n);
/* The first of those of STREAM, its *IMM; false: there is none. */
bool dial_first_unread(const struct endpoint *ep, uint32_t stream, uint32_t *imm);
/* The end of stream goes behind what was sent. */
void dial_say_close(struct endpoint *ep);
/* The link has taken that, and has none of it in its own buffers. */
bool dial_has_left(struct endpoint *ep);
/* The same, of D's. */
void dial_close_begin(struct dial *d, uint64_t now);
/* D is CLOSING: the end is said, but who calls waits for it himself. */
void dial_close_undo(struct dial *d);
/* D is CLOSING: its peer had its time. */
void dial_close_step(struct dial *d, uint64_t now);

/* ---- attempt.c: a socket, by a thread of its own ---- */

struct attempt_result {
	int rc; /* the socket, or negative, with what the error says: */
	char detail[ERROR_DETAIL];
};

/* To URL, until DEADLINE: its bell, a descriptor that stays the attempt's and is readable once it
 * has ended; or a negative errno, and *OUT is NULL. */
int attempt_begin(struct attempt **out, const char *url, uint64_t deadline);
/* It has ended: the result, whose socket is the caller's, and it is gone. */
void attempt_take(struct attempt *a, struct attempt_result *result);
/* It is not wanted any more, ended or not. */
void attempt_drop(struct attempt *a);

#endif
