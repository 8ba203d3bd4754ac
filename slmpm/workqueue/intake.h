/* SPDX-License-Identifier: BSD-3-Clause */
/* What a CALC or a PIPE takes of a managed receive queue (intake.c). */
#ifndef SLMPM_INTAKE_H
#define SLMPM_INTAKE_H

#include "slmpm/message/inbound.h"
#include "slmpm/workqueue/workqueue.h"

struct intake {             /* an entry of the queue's, one after the other */
	struct list node;   /* of the queue's `takers`, once it has begun of `taking`, or alone */
	slmpm_wq queue;     /* {0}: none, messages are taken as they come */
	struct channel *ch; /* of the CALC or PIPE */
	uint64_t number;    /* as of the queue; 0: none is under way */
	bool begun;
	struct request *request; /* of one that has begun, or NULL */
	struct await await;
};

/* WQ can be the source of WHAT, of a CALC or PIPE: 1 if it is managed, 0 if its peer and stream are
 * all that is to be known of it. Negative with the detail set: it cannot be. */
int intake_check(struct workqueue *wq, const char *what);
/* Messages of PEER's STREAM, each of which may be any, are no managed receive queue's: WHAT may
 * take them. Negative with the detail set: it may not. */
int intake_check_stream(const struct workqueue *wq, slmpm_peer peer, uint32_t stream,
			const char *what);
void intake_init(struct intake *s, slmpm_wq queue);
/* S's next entry begins: 1; 0: not yet, and CH is ready once it may; or why it never will. */
int intake_begin(struct intake *s, struct channel *ch);
/* It has ended with STATUS, by a message of PEER's if it has one; if there is one at all. */
void intake_end(struct intake *s, int status, slmpm_peer peer);

/* Of WQ's entries NUMBER, or with 0 all: how many are taken so, and have not ended. */
uint64_t intake_count(const struct workqueue *wq, uint64_t number);

/* One that has not begun is before NUMBER. */
static inline bool intake_is_before(const struct workqueue *wq, uint64_t number)
{
	const struct list *first = wq->receive.takers.next;

	return first != &wq->receive.takers &&
	       LIST_ENTRY(first, const struct intake, node)->number < number;
}

/* Those that have not begun look again: WQ's channel has stopped, so that they fail, or one of them
 * has ended. */
static inline void intake_strand(const struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct intake, s, &wq->receive.takers, node) {
		list_remove(&s->await.node);
		channel_ready(s->ch);
	}
}

/* Of those that have begun, which have a message of EP's. */
static inline uint64_t intake_count_coming(const struct workqueue *wq, const struct endpoint *ep)
{
	uint64_t n = 0;

	LIST_EACH_ENTRY(struct intake, s, &wq->receive.taking, node)
		n += s->request && s->request->message && s->request->message->ep == ep;
	return n;
}

#endif
