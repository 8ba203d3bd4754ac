/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations in general: checked, then done at once where memory is within direct reach,
 * else begun as a request; and how their end is told.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/rma/direct.h"
#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/message/message.h"
#include "slmpm/part.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/choice/pick.h"
#include "slmpm/bond/bond.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/stats.h"

/* ---- which route ------------------------------------------------------------------------- */

bool rma_is_settled(const struct endpoint *ep)
{
	return list_empty(&ep->one_sided) && !wire_is_before(ep->rma->settled, ep->rma->wrote);
}

bool rma_overtakes(const struct rma *m, uint32_t flags)
{
	return m->holds & (RMA_FENCED | RMA_BEHIND) ||
	       (flags & (SLMPM_FENCE | SLMPM_BARRIER) && wire_is_before(m->settled, m->wrote));
}

/* The fabric begins it, and tells of its end later. A notification is a packet behind the bytes. */
static bool rma_operate_is_posted(const struct operation *o)
{
	return o->remote->memory.later >> request_fabric_op(o->kind) & 1 &&
	       !(o->full.flags & SLMPM_NOTIFY);
}

static bool is_behind(const struct operation *o)
{
	const struct endpoint *ep = o->remote->ep;

	/* What is posted waits for the end of what is under way (rma_request.c). */
	if (rma_operate_is_posted(o))
		return rma_overtakes(ep->rma, o->full.flags);
	return ep->rma->holds ||
	       (o->full.flags & (SLMPM_FENCE | SLMPM_BARRIER) && !rma_is_settled(ep));
}

/* There is no other way: because a setting wants none, or here. */
static enum slmpm_reason why_request(void)
{
	return mode_reaches((enum mode_rma)config_get()->rma) ? SLMPM_REASON_ONLY :
								SLMPM_REASON_SETTING;
}

/* The link over the default fabric of its kind, which is not that of memory; -1: none. */
static int default_link(const struct operation *o)
{
	const struct endpoint *ep = o->remote->ep;
	const struct config *c = config_get();
	const char *fabric = o->kind == REQUEST_PUT ? c->default_put : c->default_rget;

	if (o->atomic || o->remote->asked || mode_hint(o->full.flags) ||
	    !secondary_is_elsewhere(ep, fabric))
		return -1;
	return secondary_default(ep, fabric);
}

/* What can be decided without asking: no hint or setting says how, and there is one route, or it
 * is the nearest and nobody else could move it. */
static bool rma_operate_is_plain(struct operation *o, bool reached, bool engine)
{
	if (mode_hint(o->full.flags) ||
	    (mode_limits()->chooses && (mode_limits()->force != MODE_AUTO || default_link(o) >= 0)))
		return false;
	o->mode = reached ? (struct mode){.way = MODE_COPY, .reason = SLMPM_REASON_SHORT} :
			    (struct mode){.way = MODE_REQUEST, .reason = (uint8_t)why_request()};
	if (!reached) /* else a link is to be chosen */
		return !bond_is(o->remote->ep->link.port) || o->length < mode_limits()->bulk;
	return !(is_behind(o) || (engine && engine_wants(o->length)) ||
		 o->length >= o->remote->ep->ask_min);
}

/* 0, or a negative error: it cannot go as it must. */
static int rma_operate_choose(struct operation *o)
{
	struct endpoint *ep = o->remote->ep;
	bool posted = rma_operate_is_posted(o);
	bool reached = (posted || o->remote->memory.ops >> request_fabric_op(o->kind) & 1) &&
		       remote_access(o->remote) == FABRIC_ACCESS_DIRECT;
	bool waits = completion_blocks(&o->full, o->req);
	bool engine = reached && !posted && !waits && !(o->full.flags & SLMPM_NOTIFY) && !o->atomic;
	struct mode_ask ask = {.op = request_mode_op(o->kind), .waits = waits, .size = o->length};
	uint32_t ways = 1u << MODE_REQUEST | (reached ? 1u << MODE_COPY : 0);
	int usual, link = mode_hint_link(mode_hint(o->full.flags));

	if (LIKELY(rma_operate_is_plain(o, reached, engine)))
		return 0;
	usual = default_link(o);
	if (engine && config_get()->engine)
		ways |= 1u << MODE_ENGINE;
	else if (reached && !posted &&
		 ep->ask_min != UINT64_MAX) /* the peer's, for want of one here */
		ways |= (uint32_t)rma_carriers[RMA_BY_PEER].reaches(o, &ask.beyond) << MODE_ASKED;
	ask.set = usual >= 0;
	mode_ask_hint(&ask, mode_hint(o->full.flags));
	o->mode = pick_reach(ep, &ask, ways, is_behind(o), usual < 0 ? link : usual);
	o->routed = true;
	if (usual >= 0 && o->mode.reason == SLMPM_REASON_HINT)
		o->mode.reason = SLMPM_REASON_SETTING;
	if (o->mode.reason == SLMPM_REASON_ONLY && !reached)
		o->mode.reason = (uint8_t)why_request();
	if (o->mode.way != MODE_NONE)
		return 0;
	if (o->mode.reason == SLMPM_REASON_ORDER)
		return error_set(SLMPM_EBUSY, "%s: not all that it follows is done at %s", o->call,
				 ep->life->name);
	return rail_impossible(ep, o->call, mode_hint(o->full.flags));
}

/* The fabric cannot, after all. */
static int choose_again(struct operation *o)
{
	if (o->mode.reason == SLMPM_REASON_STRICT)
		return rail_impossible(o->remote->ep, o->call, mode_hint(o->full.flags));
	o->mode = (struct mode){.way = MODE_REQUEST, .reason = SLMPM_REASON_ONLY};
	o->routed = false;
	return 0;
}

/* ---- directly ---------------------------------------------------------------------------- */

static int explain_reach(const struct operation *o, int rc)
{
	const char *name = o->remote->ep->life->name;

	if (rc == -EFAULT)
		return error_set(SLMPM_EINVAL, "%s: no memory there, at %s or here", o->call, name);
	if (rc == -ESRCH)
		return error_set(SLMPM_EDEAD, "%s: %s is gone", o->call, name);
	return error_system(rc, o->call);
}

/* Each run of bytes that is one on both sides. 1, or what the fabric says. */
static int reach_spans(const struct operation *o, enum fabric_op op)
{
	struct remote *remote = o->remote;
	uint64_t in_piece = 0;
	int piece = 0, rc = 1;

	for (int i = 0; i < o->span_count && rc == 1; i++) {
		for (uint64_t at = 0, n; at < o->spans[i].len && rc == 1; at += n) {
			const struct slmpm_iov *p = &o->pieces[piece];
			uint64_t left = o->spans[i].len - at;

			n = p->len - in_piece < left ? p->len - in_piece : left;
			if (n)
				rc = link_reach(remote->ep, op, &remote->memory,
						o->spans[i].offset + at,
						(unsigned char *)p->base + in_piece, n);
			in_piece += n;
			if (in_piece == p->len) {
				piece++;
				in_piece = 0;
			}
		}
	}
	return rc;
}

static void fence_before(const struct operation *o)
{
	if (!(o->full.flags & (SLMPM_FENCE | SLMPM_BARRIER)))
		return;
	if (o->kind == REQUEST_PUT)
		atomic_thread_fence(memory_order_acq_rel);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

static void fence_behind(const struct operation *o)
{
	if (o->full.flags & SLMPM_BARRIER)
		atomic_thread_fence(memory_order_seq_cst);
	else if (o->kind == REQUEST_GET)
		atomic_thread_fence(memory_order_acquire);
}

/* Does it at once: 1; 0: not this way after all; negative with the detail set. */
static int rma_reach(const struct operation *o)
{
	int rc;

	fence_before(o);
	rc = o->atomic ? link_reach(o->remote->ep, FABRIC_ATOMIC, &o->remote->memory,
				    o->spans->offset, o->atomic, o->spans->len) :
			 reach_spans(o, request_fabric_op(o->kind));
	fence_behind(o);
	if (rc == 1 && o->atomic)
		direct_give_old(o->old, (int)o->atomic->bits, o->atomic->old);
	if (rc == 1)
		return 1;
	return rc == -EPERM || rc == -ENOTSUP ? 0 : explain_reach(o, rc);
}

static void rma_operate_describe(const struct operation *o, struct slmpm_done *done)
{
	done->op = o->kind == REQUEST_PUT ? SLMPM_OP_PUT :
		   o->kind == REQUEST_GET ? SLMPM_OP_GET :
					    SLMPM_OP_ATOMIC;
	done->len = o->length;
	done->imm = o->full.imm;
	done->peer.id = handle_id(o->remote->ep);
	done->protocol = (uint16_t)(o->kind == REQUEST_GET ? SLMPM_BY_GET : SLMPM_BY_PUT);
	done->reason = o->mode.reason; /* directly; else the request's end says so */
	if (o->mode.way != MODE_REQUEST && o->mode.reason != SLMPM_REASON_SHORT &&
	    bond_is(o->remote->ep->link.port))
		done->flags |= SLMPM_ON_LINK(o->mode.link);
}

COLD void rma_count(struct endpoint *ep, enum request_kind kind, int64_t more, int64_t bytes)
{
	struct figures *f = ep->rooms->figures;

	if (kind == REQUEST_PUT) {
		f->puts += (uint64_t)more;
		f->put_bytes += (uint64_t)bytes;
	} else if (kind == REQUEST_GET) {
		f->gets += (uint64_t)more;
		f->get_bytes += (uint64_t)bytes;
	}
}

/* DIRECT: it is done; else its request's end tells the selector. */
static void account(const struct operation *o, bool direct)
{
	struct slmpm_stats *stats = o->remote->ep->stats;

	if (o->kind == REQUEST_PUT) {
		stats->puts++;
		stats->put_bytes += o->length;
	} else if (o->kind == REQUEST_GET) {
		stats->gets++;
		stats->get_bytes += o->length;
	} else {
		stats->atomics++;
	}
	if (!direct)
		rma_count(o->remote->ep, o->kind, 1, (int64_t)o->length);
	else if (o->mode.reason != SLMPM_REASON_SHORT)
		mode_count(&o->remote->ep->rooms->figures->modes, request_mode_op(o->kind),
			   o->mode);
}

/* With a request of the caller's, which is done when it gets it. */
static int reach_for_request(const struct operation *o)
{
	struct request *r = request_new(o->remote->ep->ctx);
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = request_init(r, REQUEST_SEND, o->remote->ep->ctx, o->remote->ep, 0, NULL, 0);
	if (rc == 0)
		rc = rma_reach(o);
	if (rc != 1) {
		request_drop(r);
		return rc;
	}
	r->kind = o->kind;
	rma_operate_describe(o, &r->result);
	request_finish(r, 0);
	r->mode = o->mode;
	o->req->id = handle_id(r);
	return 1;
}

/* 1 done and told; 0 not this way; negative. */
static int operate_directly(const struct operation *o)
{
	struct context *ctx = o->remote->ep->ctx;
	struct slmpm_done done = {.status = 0};
	struct notified notified;
	int rc;

	if (o->req && !completion_wanted(&o->full))
		return reach_for_request(o);
	rc = completion_open(&notified, ctx, &o->full, o->req);
	if (rc < 0)
		return rc;
	rc = rma_reach(o);
	if (rc != 1) {
		completion_undo(&notified);
	} else if (completion_notified(&notified)) {
		rma_operate_describe(o, &done);
		completion_done(ctx, &notified, &done);
	}
	return rc;
}

/* The same, measured where it takes long, or once in a while. */
static int operate_measured(const struct operation *o)
{
	struct remote *remote = o->remote;
	struct endpoint *ep = remote->ep;
	bool measured = o->length >= MONITOR_LONG || ep->rma->directs % RMA_INSPECT_EVERY == 0;
	uint64_t took = measured ? clock_ticks() : 0;
	/* Once it is told of, the pieces may be gone. */
	const void *first = o->piece_count ? o->pieces->base : NULL;
	int rc = o->full.flags & SLMPM_NOTIFY ? rma_reach(o) : operate_directly(o);

	direct_measured(remote);
	if (rc != 1 || !measured || o->atomic)
		return rc;
	took = clock_ticks() - took;
	monitor_timed(ep, o->kind == REQUEST_PUT ? SLMPM_BY_PUT : SLMPM_BY_GET, o->length, first,
		      took, took);
	return rc;
}

/* ---- by requests ------------------------------------------------------------------------- */

static int rma_operate_copy_spans(struct request *r, const struct operation *o)
{
	struct rma_work *w = &r->rma;

	w->span_count = o->span_count ? o->span_count : 1; /* one without bytes */
	w->spans = &w->one;
	if (o->span_count > 1) {
		r->owned = malloc((size_t)o->span_count * sizeof(*w->spans));
		if (!r->owned)
			return error_set(SLMPM_ENOMEM, "%s: for %d spans", o->call, o->span_count);
		w->spans = r->owned;
	}
	if (o->span_count)
		memcpy(w->spans, o->spans, (size_t)o->span_count * sizeof(*w->spans));
	return 0;
}

static int rma_operate_prepare(struct request *r, const struct operation *o, bool stored)
{
	struct rma_work *w = &r->rma;
	int rc = request_init(r, o->kind, o->remote->ep->ctx, o->remote->ep, 0, o->pieces,
			      o->piece_count);

	if (rc == 0)
		rc = rma_operate_copy_spans(r, o);
	if (rc < 0)
		return rc;
	r->flags = (uint8_t)o->full.flags;
	rma_operate_describe(o, &r->result);
	list_init(&w->live);
	w->remote = o->remote;
	w->stored = stored;
	w->carrier = o->mode.way == MODE_ASKED           ? RMA_BY_PEER :
		     o->mode.way == MODE_ENGINE          ? RMA_BY_ENGINE :
		     o->mode.way == MODE_COPY && !stored ? RMA_BY_FABRIC :
							   RMA_BY_RING;
	r->hint = mode_hint(o->full.flags);
	if (r->hint || o->routed)
		r->by = rail_flags(o->remote->ep, o->mode, r->hint);
	r->mode = stored ? (struct mode){.way = MODE_NONE} : o->mode;
	/* What is stored already wants no answer: the target can see it. */
	w->remotely = !stored && o->full.flags & SLMPM_REMOTE;
	w->answered = !stored && o->full.flags & (SLMPM_REMOTE | SLMPM_BARRIER);
	if (o->atomic) {
		w->atomic = (uint8_t)o->atomic->op;
		w->bits = (uint8_t)o->atomic->bits;
		w->operand = o->atomic->operand;
		w->compare = o->atomic->compare;
		w->old = o->old;
	}
	return 0;
}

/* STORED: a put's bytes are there, the target is to be told. */
static int operate_by_request(const struct operation *o, bool stored)
{
	struct request stack = {.piece_count = 0};
	struct request *r =
		completion_blocks(&o->full, o->req) ? &stack : request_new(o->remote->ep->ctx);

	if (!r)
		return -SLMPM_ENOMEM;
	return message_begin(r, rma_operate_prepare(r, o, stored), &o->full, o->req);
}

/* What was done at once has brought bytes here. */
static void note_landed(const struct operation *o)
{
	struct context *ctx = o->remote->ctx;

	for (int i = 0; i < o->piece_count && o->kind == REQUEST_GET; i++)
		part_landed(ctx, o->pieces[i].base, o->pieces[i].len);
	if (o->atomic && o->old)
		part_landed(ctx, o->old, o->atomic->bits / 8);
}

int rma_operate(struct operation *o)
{
	struct context *ctx;
	bool inspect_now = false;
	int rc = 0;

	o->remote = remote_lock(o->rmem, &rc);
	if (!o->remote)
		return rc;
	ctx = o->remote->ctx;
	rc = rma_check(o);
	if (rc == 0 && o->full.flags & SLMPM_FIFO) {
		rc = parts.fifo_put(o);
	} else if (rc == 0) {
		bool notify = o->full.flags & SLMPM_NOTIFY;

		rc = rma_operate_choose(o);
		if (rc == 0 && o->mode.way == MODE_COPY && !rma_operate_is_posted(o)) {
			rc = operate_measured(o);
			rc = rc ? rc : choose_again(o);
		}
		if (rc >= 0)
			account(o, rc == 1);
		if (UNLIKELY(rc == 1 && ctx->careful))
			note_landed(o);
		/* Not in a call that progress itself may make: for work queues. */
		if (rc == 1 && !completion_wanted(&o->full))
			inspect_now = !(++o->remote->ep->rma->directs % RMA_INSPECT_EVERY);
		if (rc == 1 && !notify)
			rc = 0;
		else if (rc >= 0) /* when it has waited, another thread may have closed the peer */
			rc = operate_by_request(o, rc == 1);
	}
	if (rc >= 0 && inspect_now)
		progress_opportunistic(ctx);
	else if (!completion_wanted(&o->full))
		monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}
