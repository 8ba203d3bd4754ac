/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: which receive gets which message, in posting order and in order of arrival. */
#ifndef SLMPM_MATCH_H
#define SLMPM_MATCH_H

#include "slmpm/link/landing.h"
#include "slmpm/message/inbound.h"

/* The first receive posted that wants a message on STREAM, taken out of the queue; or NULL. */
struct request *match_posted(struct endpoint *ep, uint32_t stream);
/* And the same, left in the queue. */
struct request *match_next(const struct endpoint *ep, uint32_t stream);
/* The first unexpected message that R may take, or NULL. */
struct inbound *match_find(const struct request *r);
/* The same, if it is the first of EP's own, and no other but those comes into question: else NULL,
 * which says nothing. */
static inline struct request *match_first(const struct endpoint *ep, uint32_t stream)
{
	const struct list *first = ep->messages->posted.next;
	struct request *r = LIST_ENTRY(first, struct request, node);

	if (first == &ep->messages->posted || !list_empty(&ep->ctx->posted) ||
	    !list_empty(&ep->kept))
		return NULL;
	return r->stream == stream || r->stream == SLMPM_ANY_STREAM ? r : NULL;
}
/* Gives a message to a receive or hold: copies what is there, asks for the rest. */
void match_give(struct inbound *m, struct request *r);
/* The receive leaves: what arrived goes to the next that wants it, nothing is lost. -SLMPM_EBUSY
 * where that cannot be: one whose buffer has overflowed waits for the end of the message, which its
 * sender may yet take back. */
int match_undo(struct request *r);
/* Such a one is to wait no longer: it is done, as truncated, and the rest of the message dropped,
 * whatever becomes of that. False: it is not so. */
bool match_cut(struct request *r);
/* The receive leaves although the sender may be writing into its memory; the message is put back at
 * that one's end. The sender, or NULL: it is not so. */
struct endpoint *match_abandon(struct request *r);
/* The message has no receive any more: it goes to the next that wants it, or back in line. */
void match_put_back(struct inbound *m);
/* The message that R had is gone: R gets another, or its old place among the posted. */
void match_again(struct request *r);
/* Queues a receive that no message waits for, and takes it out. */
void match_post(struct request *r);
void match_unpost(struct request *r);
/* R is that of match_first. */
static inline void match_unpost_first(struct endpoint *ep, struct request *r)
{
	/* The next message is often the next one's, and follows soon. */
	fetch_ahead(LIST_ENTRY(r->node.next, struct request, node), offsetof(struct request, rma));
	list_remove(&r->node);
	ep->before--;
	landing_moved_all(ep->ctx);
}
/* Receives fail: EP's, which has ended, and those from any peer where none is left. */
void match_end(struct endpoint *ep);
/* A listener has gone: those from any peer fail where none is left and no other can come. */
void match_nobody(struct context *ctx);
/* The peer is accepted: waiting receives from any get what it has sent, up to an active message
 * that has still to run; called again when that has. */
void match_accepted(struct endpoint *ep);
/* A new message goes to the receive that waits for it, or is kept. */
void match_arrived(struct inbound *m);
/* Keeps a message that no receive waits for; and takes it out of those. */
void match_keep(struct inbound *m);
void match_forget(struct inbound *m);
/* Counts a message as received when it has its receive; and not, when they part again. */
static inline void match_account(struct endpoint *ep, uint64_t bytes)
{
	ep->stats->received_messages++;
	ep->stats->received_bytes += bytes;
}
void match_discount(struct endpoint *ep, uint64_t bytes);

#endif
