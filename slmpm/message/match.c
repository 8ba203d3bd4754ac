/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: posted receives on one side, unexpected messages on the other. */
#include "slmpm/message/match.h"

#include "slmpm/message/fetch.h"
#include "slmpm/link/landing.h"
#include "slmpm/link/wait.h"

/* slmpm_accept has not handed it out: a receive from any peer takes nothing of it. */
static bool is_withheld(const struct endpoint *ep)
{
	return ep->rooms->listener;
}

/* Of those that its peer has sent. */
static bool wants(const struct request *r, uint32_t stream)
{
	return r->stream == SLMPM_ANY_STREAM || r->stream == stream;
}

static struct request *first_in(const struct list *list, uint32_t stream)
{
	LIST_EACH_ENTRY(struct request, r, list, node)
		if (wants(r, stream))
			return r;
	return NULL;
}

/* Those for other peers are not looked at, however many there are. */
static struct request *next_posted(const struct endpoint *ep, uint32_t stream)
{
	struct request *own = first_in(&ep->messages->posted, stream);
	struct request *any = first_in(&ep->ctx->posted, stream);

	if (any && is_withheld(ep))
		any = NULL;
	if (!own || !any)
		return own ? own : any;
	return wire_is_before(own->seq, any->seq) ? own : any;
}

/* What is sent behind an active message comes when its handler has run (match_accepted). */
struct request *match_next(const struct endpoint *ep, uint32_t stream)
{
	return LIKELY(list_empty(&ep->kept)) ? next_posted(ep, stream) : NULL;
}

/* Where R waits; COUNT: of those there. */
static struct list *posted_place(const struct request *r, uint32_t **count)
{
	*count = r->ep ? &r->ep->before : &r->ctx->posted_count;
	return r->ep ? &r->ep->messages->posted : &r->ctx->posted;
}

static struct request *unpost(struct request *r)
{
	if (r)
		match_unpost(r);
	return r;
}

struct request *match_posted(struct endpoint *ep, uint32_t stream)
{
	struct request *r = match_next(ep, stream);

	if (r) /* the next message is often the next one's, and follows soon */
		fetch_ahead(LIST_ENTRY(r->node.next, struct request, node),
			    offsetof(struct request, rma));
	return unpost(r);
}

static struct inbound *find_unexpected(const struct request *r, struct endpoint *ep)
{
	if (!r->ep && is_withheld(ep))
		return NULL;
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->unexpected, node)
		if (wants(r, m->stream))
			return m;
	return NULL;
}

struct inbound *match_find(const struct request *r)
{
	struct context *ctx = r->ctx;

	if (!ctx->unexpected)
		return NULL;
	if (r->ep)
		return find_unexpected(r, r->ep);
	/* Any peer: each in turn, so that none starves. */
	for (uint32_t i = 0; i < ctx->count; i++) {
		uint32_t at = (ctx->turn + i) % ctx->count;
		struct inbound *m = find_unexpected(r, ctx->endpoints[at]);

		if (m) {
			ctx->turn = at + 1;
			return m;
		}
	}
	return NULL;
}

void match_discount(struct endpoint *ep, uint64_t bytes)
{
	ep->stats->received_messages--;
	ep->stats->received_bytes -= bytes;
}

static void start_rest(struct inbound *m)
{
	if (m->fetch) {
		fetch_begin(m);
		return;
	}
	if (!m->announced || m->cleared)
		return;
	m->cleared = true;
	link_control(m->ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
}

static bool room_for_hold(struct inbound *m)
{
	return m->area || inbound_room(m, m->total ? m->total : 1);
}

/* A hold of M had no memory for it: the rest is dropped as it comes, for it may be on its way, and
 * its sender is not to wait for a receive that none can be any more. */
static void match_drop(struct inbound *m)
{
	m->receive = NULL;
	m->cut = true;
	inbound_drop_data(m);
	if (m->fetch)
		fetch_refuse(m, 0);
	else
		start_rest(m);
}

static void give_what_came(struct inbound *m, struct request *r)
{
	if (m->area)
		inbound_copy_area(m, 0);
	else if (m->got)
		request_scatter(r, 0, m->data, m->got);
	if (m->total <= r->length)
		inbound_drop_data(m); /* else it may be wanted again whole */
}

void match_give(struct inbound *m, struct request *r)
{
	struct endpoint *ep = m->ep;

	match_forget(m);
	m->receive = r;
	r->message = m;
	landing_moved(ep);
	match_account(ep, m->total);
	if (m->charge)
		link_discharge(ep, m->charge);
	m->charge = 0;
	if (r->kind == REQUEST_RECV) {
		give_what_came(m, r);
	} else if (!room_for_hold(m)) {
		r->message = NULL;
		match_drop(m);
		request_finish(r, -SLMPM_ENOMEM);
		return;
	}
	if (inbound_complete(m) || (m->area && r->kind == REQUEST_HOLD)) {
		inbound_finish(m);
		return;
	}
	start_rest(m);
}

void match_post(struct request *r)
{
	uint32_t *count;

	list_append(posted_place(r, &count), &r->node);
	++*count;
}

void match_unpost(struct request *r)
{
	uint32_t *count;

	(void)posted_place(r, &count);
	list_remove(&r->node);
	--*count;
	landing_moved_all(r->ctx); /* of any peer whose message it was to have */
}

void match_keep(struct inbound *m)
{
	struct endpoint *ep = m->ep;

	list_append(&ep->messages->unexpected, &m->node);
	ep->before++;
	ep->ctx->unexpected++;
	ep->stats->unexpected++;
	context_changed(ep->ctx);
}

void match_arrived(struct inbound *m)
{
	struct request *r = match_posted(m->ep, m->stream);

	if (r)
		match_give(m, r);
	else
		match_keep(m);
}

void match_accepted(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->unexpected, node) {
		struct request *r;

		if (!list_empty(&ep->kept) && wire_is_before(inbound_first_kept(ep)->seq, m->seq))
			return;
		r = unpost(next_posted(ep, m->stream));
		if (r)
			match_give(m, r);
	}
}

/* Among the unexpected, in front of what came after it. */
static void put_in_order(struct inbound *m)
{
	struct list *at = m->ep->messages->unexpected.next;

	while (at != &m->ep->messages->unexpected &&
	       wire_is_before(LIST_ENTRY(at, struct inbound, node)->seq, m->seq))
		at = at->next;
	list_insert(at, &m->node);
	m->ep->before++;
	m->ep->ctx->unexpected++;
}

void match_forget(struct inbound *m)
{
	if (list_empty(&m->node))
		return;
	list_remove(&m->node);
	m->ep->before--;
	m->ep->ctx->unexpected--;
}

void match_put_back(struct inbound *m)
{
	struct request *next = unpost(next_posted(m->ep, m->stream));

	if (next)
		match_give(m, next);
	else
		put_in_order(m);
}

int match_undo(struct request *r)
{
	struct inbound *m = r->message;

	if (!m)
		return 0;
	if (m->fetch && !fetch_undo(m))
		return -SLMPM_EBUSY;
	if (r->kind == REQUEST_RECV && !m->area && m->room < m->got) {
		/* What lies past the buffer's end is gone already. */
		if (r->length < m->got || !inbound_room(m, m->total))
			return -SLMPM_EBUSY;
		request_gather(r, 0, m->data, m->got);
	}
	r->message = NULL;
	m->receive = NULL;
	landing_moved(m->ep);
	match_discount(m->ep, m->total);
	match_put_back(m);
	return 0;
}

bool match_cut(struct request *r)
{
	struct inbound *m = r->message;

	if (r->kind != REQUEST_RECV || !m || m->fetch || m->area || m->room >= m->got ||
	    r->length >= m->got)
		return false;
	inbound_describe(m, &r->result);
	r->message = NULL;
	m->receive = NULL;
	m->cut = true;
	landing_moved(m->ep);
	request_finish(r, inbound_verdict(m->damaged, r));
	return true;
}

struct endpoint *match_abandon(struct request *r)
{
	struct inbound *m = r->message;

	if (!m || !m->fetch || !fetch_abandon(m))
		return NULL;
	r->message = NULL;
	m->receive = NULL;
	match_discount(m->ep, m->total);
	return m->ep;
}

void match_again(struct request *r)
{
	struct inbound *next = match_find(r);
	uint32_t *count;
	struct list *list = posted_place(r, &count), *at = list->next;

	r->message = NULL;
	if (next) {
		match_give(next, r);
		return;
	}
	while (at != list && wire_is_before(LIST_ENTRY(at, struct request, node)->seq, r->seq))
		at = at->next;
	list_insert(at, &r->node);
	++*count;
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool anybody_left(const struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->live; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP ||
		    ctx->endpoints[i]->state == SLMPM_PEER_CONNECTING)
			return true;
	return !list_empty(&ctx->listeners);
}

static void fail_posted(struct list *posted, int error)
{
	while (!list_empty(posted)) {
		struct request *r = LIST_ENTRY(posted->next, struct request, node);

		match_unpost(r);
		request_finish(r, -error);
	}
}

static void fail_of_any(struct context *ctx, int error)
{
	if (!anybody_left(ctx))
		fail_posted(&ctx->posted, error);
}

void match_end(struct endpoint *ep)
{
	fail_posted(&ep->messages->posted, ep->life->error);
	fail_of_any(ep->ctx, ep->life->error);
}

void match_nobody(struct context *ctx)
{
	fail_of_any(ctx, SLMPM_ECLOSED);
}
