/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation under way: a message, a hold, or one-sided; on a stack or behind a handle. */
#ifndef SLMPM_REQUEST_H
#define SLMPM_REQUEST_H

#include "slmpm/endpoint.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/part.h"

#define REQUEST_IOV 4 /* pieces kept inside; more are allocated */

enum request_kind {
	REQUEST_SEND,
	REQUEST_RECV,
	REQUEST_HOLD,
	REQUEST_COLLECTIVE,
	REQUEST_OVERLAY, /* a message over a network */
	REQUEST_PUT,     /* one-sided, from here on */
	REQUEST_GET,
	REQUEST_ATOMIC
};

#define REQUEST_KINDS (REQUEST_ATOMIC + 1)

struct counter;
struct fifo_entry;
struct queue;
struct remote;
struct rma_slot;
struct transfer;

struct notified { /* whom an operation's end is told: one of both, or nobody */
	struct counter *counter;
	struct queue *queue;
	struct list node; /* counter: of those under way */
	uint64_t ticket;  /* counter: which of those posted */
	uint64_t cookie;
};

struct rma_work {              /* a request's part that is one-sided */
	struct remote *remote; /* NULL: a flush */
	struct list live;      /* of the endpoint's, in the order in which they were asked for */
	uint64_t ticket;       /* 0: not among them; of others the order */
	struct slmpm_span one, *spans;
	int span_count, span;      /* the one that goes next ... */
	uint64_t in_span;          /* ... and what of it is out */
	uint32_t parts;            /* answers to come */
	int status;                /* the first that failed */
	bool answered;             /* wants one to its last packet ... */
	bool remotely;             /* ... and is done only then */
	bool stored;               /* the bytes are there: the notification alone is to go */
	bool is_long;              /* a put of which a span takes several packets */
	bool open;                 /* counts among the Writes of several packets */
	bool parked;               /* waits for a slot, or its turn, outside of the queue */
	uint8_t carrier;           /* enum rma_by; RMA_BY_RING: packets, of whatever form */
	bool for_peer;             /* done here because the peer has asked (ask.c) */
	struct transfer *transfer; /* which has it; or NULL */
	unsigned char *to;         /* a store out of a FIFO: memory of this process; or NULL */
	struct rma_slot *slot;     /* taken for the next request */
	uint8_t atomic, bits;
	uint64_t operand, compare;
	void *old;
};

struct request {
	struct handle handle; /* generation 0 on the stack */
	struct list node;     /* in a transmit queue, announced, or the posted receives */
	struct context *ctx;
	uint64_t home;       /* handle_id(ctx), where it has a handle of its own */
	struct endpoint *ep; /* receives: NULL for any peer */
	enum request_kind kind;
	bool done;
	bool bound;     /* its end is told: it has no handle of the caller's */
	bool leaving;   /* it is being cancelled: no handler that runs meanwhile may conclude it */
	bool numbered;  /* `seq` is given: it has begun, and is not simply taken back */
	bool announced; /* send: First is out, waits for or has its clear */
	bool cleared;
	bool streaming; /* in a transmit queue: it has begun, and waits its turn for more packets */
	bool early;     /* in one, not begun: it may whatever stands before it */
	bool bound_stream; /* send: counts among those of a struct binding */
	bool claims;       /* send: waits in one for its entry in the peer's receive queue */
	bool lends;        /* send: the first part of a loan, which is a message from then on */
	uint8_t flags;     /* SLMPM_MORE */
	uint16_t wire;     /* send: WIRE_FLAG_* of its first packet */
	uint8_t hint;      /* mode_hint() */
	uint16_t by;       /* mode_packet_flags(): as chosen; request_packet_flags */
	struct mode mode;
	uint32_t stream;
	struct {
		/* Of the answer awaited: to a put into a FIFO, to an active message; or 0. */
		uint64_t tag;
		bool put, out;            /* it is such a put; all of it is out */
		struct fifo_entry *entry; /* is stored by this request */
	} fifo;
	uint64_t began;          /* in ticks, where that is measured; or 0 */
	uint64_t seq;            /* send: its envelope, once begun; receive: its turn */
	uint64_t length;         /* bytes of the message (send), room (receive) */
	uint64_t offset;         /* send: bytes posted so far */
	struct fetch_out *fetch; /* send: the peer fetches it */
	struct lent *lent;       /* send: a part of a loan that is copied (loan_copy.c) */
	struct inbound *message; /* receive: what it has been matched with */
	struct held *held;       /* hold: finished in place */
	struct slmpm_done result;
	struct notified notified; /* bound: whom */
	int piece_count;
	struct slmpm_iov *pieces, few[REQUEST_IOV];
	void *owned;                      /* memory of its own: freed with it */
	void (*ended)(struct request *r); /* called last; drops it, if it is the library's own */
	struct rma_work rma;              /* one-sided */
};

extern struct handle_table request_table;

/* What requests of one kind do. The rooms above hand these in (parts.c). */
struct request_ops {
	/* It begins, or waits. 0, or a negative error and nothing has begun. */
	int (*submit)(struct request *r);
	/* Takes an unfinished one out of wherever it is; false when it has gone too far. */
	bool (*take_back)(struct request *r);
	/* Ends one that is not taken back and whose peer stalls: the peer; NULL: it goes on. */
	struct endpoint *(*abandon)(struct request *r);

	/* Of those in a transmit queue: may it begin now? FIRST: all before it have. */
	bool (*ready)(struct endpoint *ep, struct request *r, bool first);
	/* Its turn: packets posted; *STOP when the link takes no more. */
	int (*push)(struct endpoint *ep, struct request *r, bool *stop);

	/* The error of one that has failed, with its detail. */
	int (*explain)(const struct request *r);
	/* For whom it still waits, as late_from says it; NULL: its peer. */
	int (*late)(const struct request *r, int timeout_ms, const char *what);
};

extern const struct request_ops request_ops[REQUEST_KINDS];

/* Of each of its packets. What has begun is carried on by any link. */
static inline uint16_t request_packet_flags(const struct request *r)
{
	return r->numbered ? (uint16_t)(r->by & FABRIC_BY_MASK) : r->by;
}

static inline bool request_is_one_sided(const struct request *r)
{
	return r->kind >= REQUEST_PUT || r->fifo.put;
}

/* One with a handle; NULL with the detail set. It is CTX's from then on: request_init. */
struct request *request_new(struct context *ctx);
/* CTX is closed: what it has kept for more of them is any context's. */
void requests_release(struct context *ctx);
/* Copies IOV's description; -SLMPM_E* for bad pieces or sizes. */
int request_init(struct request *r, enum request_kind kind, struct context *ctx,
		 struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov, int n);
/* Hands it to its queue. 0, or a negative error and it is not there. */
int request_submit(struct request *r);
/* Takes an unfinished one out of wherever it is; false when it has gone too far. */
static inline bool request_take_back(struct request *r)
{
	return request_ops[r->kind].take_back(r);
}
void request_finish(struct request *r, int status);
/* Those who are to know before the result of R stands. */
void request_observed(struct request *r);
/* R, a receive, ends well: r->result describes its message. As request_finish. */
static inline void request_received(struct request *r)
{
	struct context *ctx = r->ctx;

	r->result.status = 0;
	if (UNLIKELY(r->began || ctx->careful))
		request_observed(r);
	r->done = true;
	ctx->finished = true;
	if (r->bound)
		parts.deliver(r);
	context_changed(ctx);
	if (r->ended)
		r->ended(r);
}
/* A finished one's status, with its detail. */
static inline int request_explain(const struct request *r)
{
	return r->result.status ? request_ops[r->kind].explain(r) : 0;
}
/* What KIND is to the selector; and one-sided, to the fabric. */
enum mode_op request_mode_op(enum request_kind kind);
static inline enum fabric_op request_fabric_op(enum request_kind kind)
{
	return kind == REQUEST_PUT ? FABRIC_WRITE :
	       kind == REQUEST_GET ? FABRIC_READ :
				     FABRIC_ATOMIC;
}
/* Forgets the pieces; frees a request with a handle. */
void request_drop(struct request *r);

/* Bytes OFFSET.. of the pieces: out of them and into them (what is past their end is dropped). */
void request_gather(const struct request *r, uint64_t offset, void *to, uint64_t n);
void request_scatter(const struct request *r, uint64_t offset, const void *from, uint64_t n);
/* A way through the pieces of R, begun at OFFSET of the first. */
struct request_walk {
	const struct request *r;
	int piece;
	uint64_t offset;
};

/* The next run of bytes, *N of them and at most MOST; NULL behind the last. */
void *request_walk_on(struct request_walk *w, uint64_t most, uint64_t *n);
/* SUM goes on over N bytes of R from OFFSET on (checksum.h). */
uint32_t request_checksum(uint32_t sum, const struct request *r, uint64_t offset, uint64_t n);
/* The run at OFFSET, *N bytes and at most MOST; NULL, and 0, behind the last. */
void *request_run_on(const struct request *r, uint64_t offset, uint64_t most, uint64_t *n);
/* The piece at OFFSET when N bytes of it lie in one run, else NULL. */
void *request_run(const struct request *r, uint64_t offset, uint64_t n);

#endif
