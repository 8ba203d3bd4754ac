/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: entries (work.c) of a queue's channels, which begin in order and end in order
 * (channel.c), or once a total has come so far (wait.c). Only when is decided here. PIPE entries
 * (pipe.c) begin receives and sends of their own.
 *
 * A queue's operations are told to a completion queue of its own, where nobody polls: what is put
 * there comes back to it (`entry_ended`), and goes to the application's when its turn has come.
 */
#ifndef SLMPM_WORKQUEUE_H
#define SLMPM_WORKQUEUE_H

#include "slmpm/calc/calc.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/queue.h"
#include "slmpm/endpoint.h"
#include "slmpm/engine/engine.h"
#include "slmpm/workqueue/named.h"

/* Work of one kind, with one peer, may be under way together, for it keeps its order on the way;
 * what follows of another kind waits for its end. */
enum work_kind {
	WORK_MESSAGE,
	WORK_GET,
	WORK_PUT,
	WORK_REMOTE_PUT,
	WORK_ATOMIC,
	WORK_COUNTED, /* a message with a counter of the peer's, or the count alone */
	WORK_ALONE
};

/* ARRIVED, COUNTS: what has a counter of the peer's is done there, and is to be counted; it is. */
enum work_state { WORK_IDLE, WORK_WAITS, WORK_BEGUN, WORK_ARRIVED, WORK_COUNTS, WORK_ENDED };

struct spread_part { /* of a queue that is spread over links, while it is under way */
	uint64_t bytes;
	uint32_t by; /* one more than its link's number; or 0 */
};

struct work { /* an entry: a work request that was taken; what its turn reads lies together */
	struct list node;        /* of its channel's `begun`, of its queue's `receives` or `idle` */
	struct work *next;       /* behind it in its channel */
	uint64_t number;         /* of a kept one: in the first run, ... */
	uint64_t over;           /* ... and wq->run + 1 of the last that it has ended in; or 0 */
	const uint64_t *total;   /* WAIT: this, and ... */
	struct list *awaits;     /* ... those that wait for it; others: of what is named */
	uint64_t value;          /* theirs; of a relative WAIT its base is to be added ... */
	struct subject *subject; /* ... from here */
	uint64_t before;         /* what those in front of it take */
	enum work_state state;
	bool cancelled; /* it fails in its turn, */
	bool refused;   /* so does a send whose receive entry has not been enabled in time */
	bool waited;    /* a send: for its receive entry to be enabled */
	bool usual;     /* a send that goes as a call's does, if it is its turn: work_is_usual */
	struct spread_part part;
	struct slmpm_done done; /* ended, but not those in front of it */
	struct slmpm_wr wr;
	struct endpoint *ep;     /* found when its turn came last: see work_endpoint; or NULL */
	struct request *request; /* of one that has begun and not ended; or NULL */
	uint32_t *users;         /* of what is named; or NULL */
	/* Its pieces and its head, where it had to wait; PIPE: struct pipe; CALC, if it is not a
	 * plain one: its job, or struct exchange. */
	void *owned;
	struct calc_plain plain; /* CALC ... */
	bool exchanges; /* ... of operands that are not all here: `owned` is a struct exchange */
};

#define WORK_TURN offsetof(struct work, plain) /* bytes of it that its turn reads, at most */

struct channel {
	struct list node; /* of the context's `ready`, or alone */
	struct workqueue *wq;
	/* The next to begin, or NULL; the first of a kept program; the newest. */
	struct work *at, *first, *last;
	struct work *passed; /* during its turn: a WAIT that is over, not yet completed; or NULL */
	struct list begun;   /* and not yet completed */
	/* Of them, that whose steps go on at the channel's turns: a PIPE, a CALC, one to be counted. */
	struct work *amidst;
	enum work_kind kind;
	uint64_t peer; /* of those that have begun */
	/* The WAIT at which it stands: */
	struct await await;
	struct list timed; /* of the context's, or alone */
	uint64_t deadline;
	/* It has stopped: the status of the entry that failed, its number, and whose it was. */
	int status;
	uint64_t failed;
	slmpm_peer culprit;
	uint32_t lane; /* of a program that is gone through: one more than its number; or 0 */
};

struct subject {          /* a total that relative WAITs of a queue wait for */
	struct list node; /* of the queue's */
	const uint64_t *total;
	uint64_t owner;   /* the handle of what has it */
	uint32_t entries; /* of the queue, that wait for it */
	uint64_t posted;  /* that have waited for it, or do */
	uint64_t base;    /* where it was, beyond its start, when this run began ... */
	uint64_t taken;   /* ... and how much its WAITs take in a run */
};

struct workqueue {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's */
	struct queue *queue; /* the application's */
	struct queue inner;  /* its pass_on is `entry_ended` */
	uint32_t flags, depth, used;
	uint32_t users; /* entries, of this queue or others, that name it */
	uint32_t channel_count, channels_used;
	uint32_t stopped; /* channels */
	bool cancelling;  /* handlers that run meanwhile may not end it */
	/* While a program is posted: its entries that this queue is to have, and the node by which the
	 * queue is one of those that are gone through. */
	uint32_t held;
	struct list involved;
	/* Totals; `enabled` of a managed one alone; those behind one that failed, which never
	 * began. */
	uint64_t posted, enabled, begun, done, failed, flushed, by_engine;
	uint64_t run;            /* a kept entry's number is so much greater by now */
	struct list awaits;      /* struct await: of these totals */
	slmpm_ctr ctr;           /* of entries that name none, or {0} */
	struct counter *counter; /* the same */
	struct {                 /* a receive queue */
		slmpm_peer peer;
		uint32_t stream;
		uint64_t which; /* of the peer's, if it is managed: as of binding_begin; or 0 */
		uint64_t early; /* messages that it had sent by then */
		uint64_t empty; /* entries that have ended without a message, ... */
		uint64_t ahead; /* ... of these, those that were to be enabled first */
		uint64_t told;  /* messages allowed, as last told */
		/* Of any peer: struct reservation, all, and those that wait for entries; how many
		 * entries are reserved or taken. */
		struct list reservations, claims;
		uint64_t reserved;
		/* Entries of CALCs and PIPEs: struct intake, in the order of their numbers; those
		 * that have begun. */
		struct list takers, taking;
		bool is_source; /* there are such, or were */
	} receive;
	struct list subjects, idle, receives;
	struct list leavers; /* struct leaver: peers that entries name, closed by now */
	struct {             /* over links, by number, if it is spread */
		uint64_t load[MODE_LINKS];  /* of what is under way; packets count, too */
		uint64_t bytes[MODE_LINKS]; /* that have gone */
		uint64_t run;               /* given since another was looked for */
		uint32_t link;              /* the one that was taken last */
	} spread;
	uint32_t place; /* in the statistics of the context, from 1, or 0; and what it shows */
	struct slmpm_stats_queue shown;
	struct work *work; /* `depth` of them, ... */
	uint32_t fresh;    /* ... of which so many have been taken once: others are untouched */
	struct channel *channels;
};

extern struct handle_table workqueue_table;

/* WAIT, ENABLE and COUNT name what they act on; of all others `ctr` counts the end. */
static inline bool work_names(uint32_t op)
{
	return op >= SLMPM_OP_WAIT && op <= SLMPM_OP_COUNT;
}

/* All but those, and CALC. */
static inline bool work_has_peer(uint32_t op)
{
	return op < SLMPM_OP_WAIT || op == SLMPM_OP_PIPE;
}

/* A receive's: any of a context. */
static inline bool work_is_any(slmpm_peer peer)
{
	return peer.id & ENDPOINT_ANY;
}

static inline uint64_t work_number(const struct workqueue *wq, const struct work *w)
{
	return wq->run + w->number;
}

/* What the completion of WR says that has no peer, but for its cookie. */
static inline void work_describe(struct slmpm_done *done, const struct slmpm_wr *wr, int status,
				 uint64_t len)
{
	done->len = len;
	done->status = status;
	done->stream = wr->stream;
	done->imm = done->flags = 0;
	done->peer = (slmpm_peer){0};
	done->op = wr->op;
	done->protocol = done->reason = 0;
}

/* The queue of a handle, its context locked; NULL with *RC and the detail set. */
static inline struct workqueue *workqueue_lock(slmpm_wq handle, int *rc)
{
	return CONTEXT_LOCK_OBJECT(&workqueue_table, struct workqueue, handle.id, rc);
}
/* All that was posted to it has ended. */
static inline bool workqueue_has_ended(const struct workqueue *wq)
{
	return wq->posted == wq->done + wq->failed;
}
/* As of parts. */
bool workqueue_pending(const struct context *ctx);
/* A call has begun all that could: what WQ has left is the engine's from now on. */
static inline void workqueue_leave(const struct workqueue *wq)
{
	if (UNLIKELY(wq->ctx->parked) && !workqueue_has_ended(wq))
		engine_come_in(wq->ctx);
}
/* The context's, when it ends. */
void workqueue_shut(struct context *ctx);
/* One of the library's own is not shown in the statistics. */
int workqueue_hide(slmpm_wq handle);
/* W, which has ended and is not kept, is no more. */
void workqueue_drop(struct workqueue *wq, struct work *w);
/* Entries up to number INDEX may begin. */
void workqueue_enable(struct workqueue *wq, uint64_t index);
/* An idle one, where fewer than `depth` are taken or held: the one that has ended last, whose
 * memory is still in the caches. */
static inline struct work *workqueue_idle(struct workqueue *wq)
{
	if (UNLIKELY(list_empty(&wq->idle)))
		list_append(&wq->idle, &wq->work[wq->fresh++].node);
	return LIST_ENTRY(wq->idle.next, struct work, node);
}
/* W, an idle one, is filled from GIVEN and holds what it names; or why not, with the detail set. */
int workqueue_fill(struct workqueue *wq, struct work *w, const struct slmpm_wr *given,
		   uint32_t size);
/* W, filled, its completion's room taken, is the newest entry. */
void workqueue_number(struct workqueue *wq, struct work *w);

/* ---- channel.c: order within a channel ---- */

/* Its next entry may begin: workqueue_advance looks at it. */
void channel_ready(struct channel *ch);
/* All that have one. */
void channels_ready(struct workqueue *wq);
/* Of those that have stopped, that whose failed entry is the first; or NULL. */
static inline const struct channel *channel_first_stopped(const struct workqueue *wq)
{
	const struct channel *first = NULL;

	for (uint32_t i = 0; wq->stopped && i < wq->channels_used; i++) {
		const struct channel *ch = &wq->channels[i];

		if (ch->status && (!first || ch->failed < first->failed))
			first = ch;
	}
	return first;
}
/* 0, or why nothing can be posted to it, with the detail set for CALL. */
int channel_error(const struct channel *ch, const char *call);
/* A new entry, numbered, behind the others: the channel is ready if its turn is now. */
void channel_append(struct channel *ch, struct work *w);
/* May W, the next one, for EP or no peer, begin now? */
bool channel_may_begin(struct channel *ch, struct work *w, struct endpoint *ep);
/* It does: 0, or why not; then it is as it was before. */
int channel_begin(struct channel *ch, struct work *w, struct endpoint *ep);
/* Begins what may, and flushes it once it has stopped: how many steps. */
int channel_advance(struct channel *ch);
/* Some channels of CTX may go on: what has begun, or ended. */
int workqueue_advance(struct context *ctx);
/* W, which has begun or could not, has ended with STATUS and LEN as of its completion. */
void channel_end(struct channel *ch, struct work *w, int status, uint64_t len);
/* The same with its completion in w->done. */
void channel_finish(struct channel *ch, struct work *w);
/* Its own completion queue's, as of struct queue. */
void entry_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done);
void entry_bound(struct queue *inner, uint64_t cookie, struct request *r);
/* As of parts.deadlines: those of WAITs. */
uint64_t channel_deadlines(struct context *ctx, uint64_t now);

/* ---- wait.c: WAIT entries, and what entries name ---- */

/* What W, a WAIT, ENABLE or COUNT, names, or the counter of its end: it is W's until work_drop.
 * Negative with the detail set: there is none, or no memory. */
int work_hold_named(struct workqueue *wq, struct work *w);
static inline int work_hold(struct workqueue *wq, struct work *w)
{
	w->users = NULL;
	w->subject = NULL;
	w->value = w->wr.value;
	return work_names(w->wr.op) || w->wr.ctr.id ? work_hold_named(wq, w) : 0;
}
static inline void work_drop(struct work *w)
{
	if (w->users)
		--*w->users;
	if (w->subject)
		w->subject->entries--;
	w->users = NULL;
	w->subject = NULL;
}
/* W was never posted, nor what was held behind it: nothing has been taken from its total. */
void work_take_back(struct work *w);
/* Relative WAITs of a new run go on where those of the last one have come to. */
void wait_rearm(struct workqueue *wq);
/* Without entries WAITs begin anew. */
void wait_forget(struct workqueue *wq);
/* The turn of W, a WAIT, has come: CH stands at it. */
void wait_reach(struct channel *ch, struct work *w);
/* That is not over: 0; or why it never will be. *LEN: the total, or the number of the entry that is
 * to blame. */
int wait_on(struct channel *ch, struct work *w, uint64_t *len);
/* CH stands at W, which has a timeout. True: it is a send to a disabled receive entry of EP's, and
 * ready when that is enabled, or the time is over (w->refused). */
bool wait_entry(struct channel *ch, struct work *w, struct endpoint *ep);
/* A channel of WQ has stopped: who waits for entries that will not come is ready to fail. */
void wait_strand(struct workqueue *wq);

/* What the total of W, a WAIT, began with, and how far beyond that it has to be. */
static inline uint64_t wait_start(const struct workqueue *wq, const struct work *w)
{
	return w->wr.cq.id ? wq->ctx->shape.start : 0;
}
static inline uint64_t wait_target(const struct work *w)
{
	return total_plus(w->value, w->subject ? w->subject->base : 0);
}

/* ---- receive.c: receive queues ---- */

/* WQ is one, as O says. Negative with the detail set: it cannot be. */
int receive_bind(struct workqueue *wq, const struct slmpm_wq_options *o);
void receive_release(struct workqueue *wq);
/* A managed one of CTX whose messages are some of PEER's STREAM, each of which may be any; or
 * NULL. */
const struct workqueue *receive_managed(const struct context *ctx, slmpm_peer peer,
					uint32_t stream);
/* Which of its entries are enabled, or have ended without message, has changed. */
void receive_tell(struct workqueue *wq);
/* Entry NUMBER has ended with STATUS; by a message of PEER's, if it has one. */
void receive_ended(struct workqueue *wq, uint64_t number, int status, slmpm_peer peer);
/* So many more are enabled. */
void receive_enabled(struct workqueue *wq, uint64_t more);
/* As of parts: EP is up; it knows of that queue (binding_begin). */
void receive_up(struct endpoint *ep);
void receive_known(struct endpoint *ep, uint64_t which, uint64_t waiting);
/* Messages of EP's that have come for WQ, and have not ended an entry yet. */
uint64_t receive_count_coming(const struct workqueue *wq, const struct endpoint *ep);
/* How many messages WQ's entries allow, beside those that are one peer's. */
static inline uint64_t receive_allowed(const struct workqueue *wq)
{
	/* What is told is compared with a sign: no peer sends as many as that. */
	const uint64_t most = UINT64_C(1) << 62;

	return (wq->enabled < most ? wq->enabled : most) - (wq->receive.empty - wq->receive.ahead);
}

/* ---- reservation.c: managed receive queues of any peer ---- */

static inline bool reservation_is_for(const struct workqueue *wq)
{
	const uint32_t both = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED;

	return (wq->flags & both) == both && work_is_any(wq->receive.peer);
}
/* WQ's peers are told of it. Negative with the detail set: there is no memory. */
int reservation_bind(struct workqueue *wq);
void reservation_release(struct workqueue *wq);
/* EP, which is up, is told of WQ; of one that has ended messages may be here. */
int reservation_begin(struct workqueue *wq, struct endpoint *ep);
/* WQ's enabled entries go to those that have claimed them. */
void reservation_give(struct workqueue *wq);
/* A message of PEER's has ended an entry. */
void reservation_taken(struct workqueue *wq, slmpm_peer peer);
/* EP knows of WHICH, and has so many messages WAITING for it: true, it is one of these. */
bool reservation_known(struct endpoint *ep, uint64_t which, uint64_t waiting);
/* As of parts. */
void reservation_claimed(struct endpoint *ep, uint32_t stream, uint64_t total, uint64_t how);
void reservation_end(struct endpoint *ep);
void reservation_leave(struct endpoint *ep);

/* ---- spread.c: a queue's traffic over several links ---- */

/* WR, an entry of WQ or a message of BYTES of one, begins, for EP or no peer: PART is what it
 * counts for until it has ended with STATUS and, of its completion, FLAGS; or has not begun. */
void spread_begin(struct workqueue *wq, struct spread_part *part, const struct slmpm_wr *wr,
		  const struct endpoint *ep, uint64_t bytes);
void spread_end(struct workqueue *wq, struct spread_part *part, int status, uint32_t flags);
/* The link that it is to go by, as a flag of slmpm_how; or 0. */
static inline uint32_t spread_hint(struct spread_part part)
{
	return part.by * SLMPM_ON_LINK(0);
}

/* ---- queue_page.c: what other processes see ---- */

/* WQ comes to be, and ends. */
void workqueue_show_begin(struct workqueue *wq);
void workqueue_show_end(struct workqueue *wq);
/* As of parts.publish. */
void workqueue_publish(struct context *ctx);

/* ---- calculate.c: CALC entries ---- */

/* WR, a CALC of this size whose turn would be now, is a plain one of one turn: it is an entry that
 * has begun and ended by now. False: nothing has been done. */
bool calculation_at_once(struct workqueue *wq, const struct slmpm_wr *wr);
/* W's calculation can be done. Negative with the detail set: it cannot. */
int calculation_take(const struct workqueue *wq, struct work *w);
/* Prepares it, however long it has to wait. False: no memory. */
bool calculation_keep(struct work *w);
/* It is done in one step. */
static inline bool calculation_is_short(const struct work *w)
{
	return w->plain.kernel && w->plain.total <= calc_plain_most(&w->plain);
}
/* It begins; and a piece more of it, or its end. */
void calculation_begin(struct channel *ch, struct work *w);
int calculation_advance(struct channel *ch);
/* What W, a CALC, does: C, its lists in OPERANDS. */
void calculation_given(const struct work *w, struct slmpm_calc *c,
		       struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX]);

/* ---- remote_count.c: counters of peers ---- */

/* WR's can be counted: of a queue of CTX, the peer of all but COUNT being EP. Negative with the
 * detail set: it cannot be. */
int remote_count_check(const struct context *ctx, const struct slmpm_wr *wr,
		       const struct endpoint *ep);
/* It may still be, as far as is known here; likewise. */
int remote_count_allowed(const struct slmpm_wr *wr);
/* W, a COUNT, begins. */
void remote_count_begin(struct channel *ch, struct work *w);
/* W's operation is done, as w->done says but for the status. */
void remote_count_arrived(struct channel *ch, struct work *w);
/* It has ended as DONE says, or the counting of it. */
void remote_count_ended(struct channel *ch, struct work *w, const struct slmpm_done *done);
/* What has arrived is counted: steps. */
int remote_count_advance(struct channel *ch);
/* The counts of all that has begun are on their way, so that a message comes behind them. */
bool remote_counts_are_out(const struct channel *ch);

/* ---- exchange.c: CALC entries with targets at peers, or arguments that are messages ---- */

/* W's, whose calculation has been checked, can have them, if there are any: w->exchanges. Negative
 * with the detail set: one cannot be. */
int exchange_take(const struct workqueue *wq, struct work *w);
/* As calculation_keep; C is W's calculation. */
bool exchange_keep(struct work *w, const struct slmpm_calc *c);
void exchange_begin(struct channel *ch, struct work *w);
int exchange_advance(struct channel *ch);
/* As piping_cancel. */
bool exchange_cancel(struct work *w);
/* An operand of W is a message of PEER's, or lies there. */
bool exchange_names(const struct work *w, uint64_t peer);
/* As calculation_given. */
void exchange_given(const struct work *w, struct slmpm_calc *c,
		    struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX]);

/* ---- pipe.c: PIPE entries ---- */

/* WR names a receive queue: it is to take the messages of that. Negative with the detail set. */
int piping_source(const struct workqueue *wq, struct slmpm_wr *wr);
/* What W's buffers need from now to its end; false: no memory. */
bool piping_keep(struct work *w);
/* All before it in CH are done. */
void piping_begin(struct channel *ch, struct work *w);
/* It goes on for a bounded turn, or ends: how many steps. */
int piping_advance(struct channel *ch);
/* W, which has begun, fails as SLMPM_ECANCELED; false: once what has gone too far has ended. */
bool piping_cancel(struct work *w);
/* As of parts.end: to whom it sends. */
void piping_peer_ended(struct endpoint *ep);

/* ---- work.c: a work request by itself ---- */

/* -SLMPM_E*, the detail set, when it cannot be posted to WQ. */
int work_check(const struct workqueue *wq, const struct slmpm_wr *wr);
/* FROM is a peer, or any, of WQ's context. Negative with the detail set: it is not. */
int work_check_source(const struct workqueue *wq, slmpm_peer from);
/* The peer that it is for; or NULL. */
struct endpoint *work_peer(const struct slmpm_wr *wr);
/* The same of W in its turn. A handle is looked up once, for its object stays where it is. */
static inline struct endpoint *work_endpoint(struct work *w)
{
	if (UNLIKELY(!w->ep || handle_id(w->ep) != w->wr.peer.id))
		w->ep = work_peer(&w->wr);
	return w->ep;
}
/* WR asks for no more than slmpm_send does, and WQ for no more than the order of its channel. */
bool work_is_usual(const struct workqueue *wq, const struct slmpm_wr *wr);
/* Begins W's operation; its completion goes to CTX's `begins` with COOKIE, perhaps before this
 * returns. EP: as of work_peer; SENT_IN_PART: as message_send_at_once has said. */
int work_begin(struct context *ctx, struct endpoint *ep, struct work *w, uint64_t cookie,
	       enum sent sent);
/* WR, whose turn it is, has no peer or region any more: why, negative with the detail set. */
COLD int work_stale(const struct slmpm_wr *wr);
/* It waits: what the caller's array and head say is kept. False: no memory. */
bool work_keep(struct work *w);

/* ---- kind.c ---- */

enum work_kind work_kind_of(const struct slmpm_wr *wr);
uint64_t work_bytes_of(const struct slmpm_wr *wr);
/* Does WR go as packets, in their order; or directly, at once or by the engine? */
bool work_by_request(const struct slmpm_wr *wr, enum fabric_op op);

#endif
