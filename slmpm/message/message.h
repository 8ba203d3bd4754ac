/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as requests: queued, pushed, waited for, taken back. */
#ifndef SLMPM_MESSAGE_H
#define SLMPM_MESSAGE_H

#include "slmpm/completion/completion.h"
#include "slmpm/request.h"

struct head;

/* Posts or matches R and waits; the request is finished or taken back when it returns. */
int message_await(struct request *r, int timeout_ms);
/* The slow path: R, prepared with RC, is waited for or begun, as HOW and REQ say. It is from
 * request_new unless completion_blocks(HOW, REQ), and dropped unless the caller gets its handle. */
int message_begin(struct request *r, int rc, const struct slmpm_how *how, slmpm_req *req);

/* One of a stream of long messages, whole and without a request; NOT_SENT: not this way. */
enum sent message_send_whole(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
			     uint32_t imm);

/* Sets the detail of ETRUNC: the message of DONE did not fit CAP bytes. */
COLD int message_truncated(const struct slmpm_done *done, uint64_t cap);

/* ---- requests (request_ops) and their packets ----------------------------------------------- */

/* A message to its peer's transmit queue. */
int message_queue(struct request *r);
/* Out of there, and a receive out of those posted; false when it has gone too far. */
bool message_withdraw(struct request *r);
/* One that is fetched, while nothing that the peer must see at once can go: the peer may still
 * read it, or have it. NULL: it can be taken back in time. */
struct endpoint *message_abandon(struct request *r);
bool message_unpost(struct request *r);
/* The error of one that has failed, with its detail. */
int message_failed(const struct request *r);
bool message_ready(struct endpoint *ep, struct request *r, bool first);
int message_push(struct endpoint *ep, struct request *r, bool *stop);
/* All of R's packets are posted, and it awaits no answer: it ends when the link lags no more. */
bool message_is_out(const struct request *r);
/* R is out: ends it. */
void message_sent(struct endpoint *ep, struct request *r);
/* The active message that has begun, before whose end nothing else begins; or NULL. */
static inline void message_set_active(struct endpoint *ep, struct request *r)
{
	ep->link.active = r;
	endpoint_block(ep, BLOCK_ACTIVE, r);
}
/* The message with that envelope that is not cleared yet, or NULL. */
struct request *message_announced(struct endpoint *ep, uint64_t seq);
/* R, announced, may go on. */
void message_clear(struct request *r);
/* An announced message has its receive: the rest may go. */
void message_cleared(struct endpoint *ep, const struct head *h);

#endif
