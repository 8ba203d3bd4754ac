/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint: a peer process as seen from one context, with its link, its messages, its fate. */
#ifndef SLMPM_ENDPOINT_H
#define SLMPM_ENDPOINT_H

#include "fabrics/fabric.h"
#include "slmpm/context.h"
#include "slmpm/event.h"
#include "slmpm/base/handle.h"
#include "slmpm/base/list.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/base/wire.h"

/* Packets taken from a link at once: more only puts off the first one's copy. */
#define LINK_BATCH     2
#define BUNDLE_BYTES   8192 /* payload of a bundle, at most: as of BUNDLE_BURST ... */
#define BUNDLE_FEW     2048 /* ... messages, or this where more of them fit */
#define BUNDLE_BURST   32
#define CHECKSUM_SPARE 4      /* bytes of each packet that a checksum may need */
#define ONLY_FROM      131072 /* packets from this length on */

struct addressee;
struct bindings;
struct am;
struct control;
struct dial;
struct figures;
struct groups;
struct landing;
struct listener;
struct loans;
struct messages;
struct monitor;
struct overlays;
struct pair;
struct process;
struct reaction;
struct regions;
struct secondary;
struct watermark;

/* All that decides which request of a queue may begin, besides the first: a walk that found none
 * finds none again while it stays as it is. */
struct link_walk {
	uint64_t changes; /* of the queue, and of what its requests wait for */
	uint64_t credit;
	const void *active;
};

/* The connection over one fabric: what it has accepted, what arrived, what waits. */
struct link {
	const struct fabric *fabric;
	struct fabric_link *port; /* the fabric's part; NULL until connecting */
	struct fabric_arrival arrivals[LINK_BATCH];
	struct fabric_arrival *next, *end; /* of them: not yet dispatched */
	uint32_t run;                      /* packets taken since a send, for progress_back_off */
	bool away;                         /* and whether it did last time */
	struct fabric_arrival due;   /* read and still to be released: a run of packets as one */
	uint32_t due_max;            /* segments that may be so */
	struct list queue;           /* transmit queue: requests the link has not accepted yet */
	uint64_t depth;              /* of them */
	uint64_t streaming;          /* of those, begun: they need neither order nor credit */
	uint64_t early;              /* of those, not begun: they may whatever stands before them */
	uint32_t turn;               /* counts the rounds of push_all: it decides who begins */
	struct request *active;      /* an active message, begun: nothing else begins meanwhile */
	uint32_t held;               /* segments of the peer's ring held back: link_hold_back */
	bool kept;                   /* the packet in hand is not released behind packet_take */
	bool enomem;                 /* that packet stays in the ring, deferred on ENOMEM ... */
	bool full;                   /* ... or because its receive is to come (inbound_full) */
	bool check;                  /* checksums on what is sent */
	uint64_t changes;            /* as of struct link_walk */
	struct link_walk vain;       /* as the queue was when all of it was looked at in vain */
	struct list announced;       /* requests that wait for WIRE_CLEAR */
	struct list deferred;        /* control packets that found no room (link_deferred.c) */
	bool ended;                  /* WIRE_CLOSE has come: nothing comes behind it */
	const char *broken;          /* why: progress ends the endpoint for it */
	struct addressee *addressee; /* of packets that say whom they are for; or NULL */
	struct landing *landing;
	struct watermark *watermark;
};

/* Short messages sent with SLMPM_MORE, staged until the burst ends (bundle.c). */
struct bundle {
	uint32_t left;          /* messages that may still join, by room and credit */
	uint32_t count, length; /* those that have, bytes of each */
	uint32_t most;          /* bytes: BUNDLE_BYTES, or what the ring's longest packet holds */
	uint64_t route;
	unsigned char *at;   /* where the next goes */
	unsigned char *data; /* BUNDLE_BYTES; NULL: nothing has been staged yet */
};

/* A bundle that arrived, as far as it has been read. */
struct unpack {
	const unsigned char *at;
	uint32_t left, length; /* messages, bytes of each */
	uint32_t unaccounted;  /* of the messages: left, or taken and not yet in the accounts */
	uint64_t route;
	struct fabric_arrival arrival;
};

enum loan_place { LENT_NONE, LENT_PACKET, LENT_AREA };

/* Who the peer is, what was agreed with it, how it ended. */
struct life {
	int32_t pid;
	uint32_t element;
	bool big_endian, is_parent;
	bool related; /* started by this process, or its parent: over the inherited socket */
	bool native;  /* the link's fabric has one-sided operations of its own (domain_is_native) */
	bool beside;  /* over TCP, likely of this machine: HEADER.process is perhaps one here */
	bool attach;  /* cross-memory attach is allowed between the two processes (hello_agree) */
	bool mirrored;    /* the peer knows mirrors */
	bool sent_end;    /* WIRE_CLOSE has been sent: who leaves now leaves in order */
	bool was_up;      /* what it sent can be read, also when it has ended since */
	bool lacks;       /* it has ended, or not come to be, for what this process does not have */
	uint32_t turn;    /* among those that its listener has yet to hand out */
	int error;        /* of calls on it once it is not UP */
	char reason[184]; /* of its end, for the detail */
	char remote[56];  /* of a peer over TCP: "host:port"; its pid is 0 */
	char name[64];
	struct {
		uint64_t features; /* WIRE_FEATURE_IDS, WIRE_FEATURE_PLACES; 0: of no packet */
		uint32_t element, process;
	} header;           /* of packets that say whom they are for, as the handshake has told */
	uint64_t loan_max;  /* bytes of areas, each way */
	uint64_t eager_max; /* longest message sent without asking ... */
	uint64_t eager_max_in; /* ... and that comes so: the peer's ring may differ */
	uint32_t whole_max;    /* payload of the Only of one in a stream of long ones; 0: as else */
	uint64_t answered;     /* `received` as the last long message began */
	bool unasked;          /* as much of a longer one does so, too */
	struct list events;    /* struct event: not asked for yet */
	struct event ending;   /* the event of its end: among these */
};

/*
 * What keeps messages from going straight to the link, a bit each: what they would overtake, or a
 * rule that only the long way knows. The room that is named sets the bit, and clears it.
 */
enum endpoint_block {
	BLOCK_STATE = 1 << 0,      /* not up, or closing (core) */
	BLOCK_BROKEN = 1 << 1,     /* the link is lost, or to end for a violation (core) */
	BLOCK_CHECK = 1 << 2,      /* checksums (core) */
	BLOCK_MOVING = 1 << 3,     /* operations moved by an engine, or by the fabric (core) */
	BLOCK_QUEUE = 1 << 4,      /* requests the link has not accepted (link) */
	BLOCK_DEFERRED = 1 << 5,   /* control packets that found no room (link) */
	BLOCK_LAGS = 1 << 6,       /* what link_lags() said last (link) */
	BLOCK_LANDING = 1 << 7,    /* a receive is to post itself first (link) */
	BLOCK_TURN = 1 << 8,       /* other peers have theirs (link) */
	BLOCK_DRAIN = 1 << 9,      /* the last look at the ring (link) */
	BLOCK_SAMPLE = 1 << 10,    /* the next message is timed (monitor) */
	BLOCK_ACTIVE = 1 << 11,    /* an active message, begun (message) */
	BLOCK_FETCH = 1 << 12,     /* fetched messages under way (message) */
	BLOCK_LOAN = 1 << 13,      /* one that lies open in the ring (loan) */
	BLOCK_KEPT = 1 << 14,      /* active messages that wait for a handler (am) */
	BLOCK_ACCEPT = 1 << 15,    /* slmpm_accept has not taken it (connect) */
	BLOCK_ANSWERS = 1 << 16,   /* of one-sided operations, for room (rma) */
	BLOCK_SHARE = 1 << 17,     /* a peer's offer, to be looked at (share) */
	BLOCK_ASK = 1 << 18,       /* an offer that is to be made (share) */
	BLOCK_EMULATION = 1 << 19, /* one-sided operations as messages (emulation) */
	BLOCK_MIRRORS = 1 << 20,   /* changes to be sent (mirror) */
	BLOCK_BOUND = 1 << 21,     /* streams that end in its receive queues (link) */
	BLOCK_OVERLAY = 1 << 22,   /* packets of networks, for room (overlay) */
	BLOCK_DEPOSIT = 1 << 23,   /* of puts to many, to be sent (deposit) */
};

/*
 * What rooms keep of a peer that the 8-byte paths to its messages and memory do not read. Of those
 * before the blank line there is always one (parts.c), of the others NULL for none.
 */
struct rooms {
	struct figures *figures;
	struct reaction *reaction; /* how it has answered of late */
	struct loans *loans;
	struct am *am;
	struct regions *regions;
	struct bindings *bindings;

	struct listener *listener; /* not yet taken by slmpm_accept */
	struct control *control;   /* handshake and control socket */
	struct secondary *secondary;
	struct process *process; /* of a spawned accelerator */
	struct monitor *monitor;
	struct fetch *fetch;
	struct emulation *emulation;
	struct share *share;
	struct mirrors *mirrors;
	struct dial *dial; /* of a named peer's connection */
	struct groups *groups;
	struct pair *pair; /* of two members of a group */
	struct overlays *overlays;
};

struct endpoint {
	struct handle handle;
	struct context *ctx; /* never NULL again: another thread may look just as it is freed */
	struct slmpm_stats *stats;
	struct rooms *rooms; /* as long as the handle's slot, for the same reason */
	struct unpack unpack;
	struct link link;
	uint32_t state;   /* enum slmpm_peer_state */
	uint32_t blocked; /* of enum endpoint_block: 0, a send may go straight to the link */
	bool active;      /* the peer takes active messages, as far as known */
	struct life *life;

	/* messages out */
	uint64_t sent;       /* envelopes */
	uint64_t charged;    /* eager bytes sent, each with its envelope */
	uint64_t credited;   /* eager bytes that were matched over there, as last told */
	uint64_t credit;     /* the most that may be charged beyond those credited */
	uint32_t packet_max; /* payload of First and Middle, exactly */
	uint32_t only_max;   /* payload of a plain message's Only, at most */
	uint64_t fetch_min;  /* shortest message that the peer may fetch; or UINT64_MAX */
	uint64_t ask_min;    /* shortest operation for the peer's engine; or UINT64_MAX */
	struct bundle bundle;
	bool closing;
	uint8_t lent; /* enum loan_place: where the loan that is open lies */

	/* messages in */
	uint64_t received;                   /* envelopes */
	uint32_t packet_max_in, only_max_in; /* the peer's limits for what it sends */
	/* Not side by side, or compilers read both at once, right behind the write of the first. */
	uint64_t unmatched_charge; /* eager bytes that wait here for their receive */
	uint64_t returned_charge;  /* matched bytes that the peer was told of */
	uint64_t matched_charge;   /* eager bytes that had one */
	uint32_t before; /* messages and receives that wait: the fast path may not pass them */
	/* struct inbound, whole: active messages of a peer that is not accepted yet, or from the
	 * first on that has no handler so far */
	struct list kept;
	uint64_t answers; /* bytes of answers that wait for room */

	/* operations that wait */
	struct list one_sided; /* struct rma_work: not ended, in the order of the calls */
	uint32_t moving;       /* operations that the engine moves */

	/* what each room keeps of the peer */
	struct messages *messages;
	struct rma *rma;
};

/* The fast paths find it by a shift: a product costs each up to two instructions more. */
union endpoint_slot {
	struct endpoint endpoint;
	unsigned char bytes[1024];
};
_Static_assert(sizeof(union endpoint_slot) == 1024, "a power of two");

extern struct handle_table endpoint_table;

/* Over FABRIC, or with NULL that of SLMPM_FABRIC; NULL with the detail set. */
struct endpoint *endpoint_new(struct context *ctx, const struct fabric *fabric);
/* Its link is over FABRIC from now on: before anything has gone over it. Negative errno. */
int endpoint_over(struct endpoint *ep, const struct fabric *fabric);
/* What calls FABRIC for an endpoint's link: FABRIC, or tables before it (trace.h, landing.h). */
const struct fabric *endpoint_fabric(const struct fabric *fabric);
void endpoint_fabric_forked(void);
/* Takes everything apart and frees the handle. */
void endpoint_free(struct endpoint *ep);
/* The endpoint of a handle, or NULL: endpoint_bad_handle says why. */
static inline struct endpoint *endpoint_get(slmpm_peer peer)
{
	return handle_get_sized(&endpoint_table, peer.id, sizeof(union endpoint_slot));
}
/* What its totals begin with; its numbers with the next. */
static inline uint64_t endpoint_start(const struct endpoint *ep)
{
	return ep->ctx->shape.start;
}
/* And what the peer's do, once connected. */
static inline uint64_t endpoint_start_in(const struct endpoint *ep)
{
	return ep->link.port->start_in;
}
/* Bits of a handle that was found by address (slmpm_peer_find): the number of the link that it asks
 * for, plus 1. endpoint_get does not know such a one, so that the fast paths ask nothing. */
#define ENDPOINT_LINK_SHIFT 24
#define ENDPOINT_LINK_BITS  (UINT64_C(7) << ENDPOINT_LINK_SHIFT)

/* Of any peer of a context (slmpm_any), and of one named by its address (slmpm_peer_at): neither is
 * an endpoint's. */
#define ENDPOINT_ANY   (UINT64_C(1) << 31)
#define ENDPOINT_NAMED (UINT64_C(1) << 30)

/* The same, of such a handle, too. No peer has more links: with other bits it is none. */
static inline struct endpoint *endpoint_of(slmpm_peer peer)
{
	uint64_t link = peer.id & ENDPOINT_LINK_BITS;

	if (link > (uint64_t)MODE_LINKS << ENDPOINT_LINK_SHIFT)
		return NULL;
	return endpoint_get((slmpm_peer){peer.id - link});
}
/* What it asks for: flags of slmpm_how, or 0. */
static inline uint32_t endpoint_hint(slmpm_peer peer)
{
	return (uint32_t)(peer.id >> ENDPOINT_LINK_SHIFT & 7) << 12;
}
/* FLAGS of a call with such a handle: those that name a link prevail. */
static inline uint32_t endpoint_hints(slmpm_peer peer, uint32_t flags)
{
	return flags & SLMPM_ON_LINK_MASK ? flags : flags | endpoint_hint(peer);
}
/* The handle without them: by it peers are told apart. */
static inline slmpm_peer endpoint_plain(slmpm_peer peer)
{
	return (slmpm_peer){peer.id & ~ENDPOINT_LINK_BITS};
}
COLD int endpoint_bad_handle(slmpm_peer peer);
/* Of a context with threads. */
static inline bool endpoint_lock_shared(struct endpoint *ep, slmpm_peer peer)
{
	struct context *ctx = ep->ctx;

	context_lock_shared(ctx);
	if (LIKELY(handle_id(ep) == endpoint_plain(peer).id && ep->ctx == ctx))
		return true;
	lock_leave(&ctx->lock);
	return false;
}
/* Locks the context of EP, which PEER is; false, and not locked, when another thread has just freed
 * it. */
static inline bool endpoint_lock(struct endpoint *ep, slmpm_peer peer)
{
	return LIKELY(!ep->ctx->multiple) || endpoint_lock_shared(ep, peer);
}

/* Composes its name, which every message about it uses. */
void endpoint_name(struct endpoint *ep);
/* The handshake is through. */
void endpoint_up(struct endpoint *ep);
/* And the peer takes a message of WIRE_WHOLE bytes in one packet. */
void endpoint_whole(struct endpoint *ep);
/* Ends: each idempotent; the first cause stays. The peer broke RULE: false, for the check. */
bool endpoint_poison(struct endpoint *ep, const char *rule);
/* FAULT: the peer broke RULE, and has ended. */
static inline bool endpoint_broke(struct endpoint *ep, const char *rule, bool fault)
{
	return PEER_FAULT(fault) && !endpoint_poison(ep, rule);
}
void endpoint_lost(struct endpoint *ep, const char *why);
void endpoint_refused(struct endpoint *ep, int error, const char *why);
/* What has come cannot be kept, for WHY, and the peer learns that; a message. */
void endpoint_lacks_memory(struct endpoint *ep, const char *why);
/* The same of the area of a loan, for which no descriptor is left. */
void endpoint_no_descriptor(struct endpoint *ep);
void endpoint_no_memory(struct endpoint *ep);
/* Fails what waits for it; unread messages stay. */
void endpoint_end(struct endpoint *ep, uint32_t state, int error, const char *why);
/* Takes back what ended peers of CTX hold and nobody uses: while nobody holds a watch. */
void endpoint_reclaim(struct context *ctx);
static inline bool endpoint_has_ended(const struct endpoint *ep)
{
	return ep->state != SLMPM_PEER_CONNECTING && ep->state != SLMPM_PEER_UP;
}
/* The error of a call on an endpoint that is not UP: detail set, negative. */
COLD int endpoint_error(struct endpoint *ep);
/* 0, or why nothing can come any more: from EP, or with NULL from any peer of the context. */
int context_source_ended(struct context *ctx, struct endpoint *ep);
/* Bytes of each packet that say whom it is for (link/addressee.h). */
static inline uint32_t endpoint_lead(const struct endpoint *ep)
{
	return ep->link.addressee ? (uint32_t)sizeof(struct wire_addressee) : 0;
}
/* What was agreed, as SLMPM_HEADER_*. */
static inline uint32_t endpoint_header(const struct endpoint *ep)
{
	if (!(ep->life->header.features & WIRE_FEATURE_IDS))
		return 0;
	return ep->life->header.features & WIRE_FEATURE_PLACES ?
		       SLMPM_HEADER_IDS | SLMPM_HEADER_ADDRESS :
		       SLMPM_HEADER_IDS;
}
static inline void endpoint_block(struct endpoint *ep, enum endpoint_block bit, bool blocks)
{
	ep->blocked = blocks ? ep->blocked | (uint32_t)bit : ep->blocked & ~(uint32_t)bit;
}
/* A pass over it would do nothing unless something has come: no bit is set that says more than how
 * the next message goes. */
#define BLOCKS_AT_REST (BLOCK_CHECK | BLOCK_SAMPLE | BLOCK_BOUND)
static inline bool endpoint_has_work(const struct endpoint *ep)
{
	return ep->blocked & ~(uint32_t)BLOCKS_AT_REST || ep->bundle.count;
}
static inline bool endpoint_is_at_rest(const struct endpoint *ep)
{
	return !endpoint_has_work(ep) && !ep->unpack.left && ep->link.next == ep->link.end;
}
static inline bool endpoint_is_blocked(const struct endpoint *ep, enum endpoint_block bit)
{
	return ep->blocked & (uint32_t)bit;
}
/* So many operations more, or fewer, are moved by an engine or by the fabric. */
static inline void endpoint_move(struct endpoint *ep, int more)
{
	ep->moving += (uint32_t)more;
	endpoint_block(ep, BLOCK_MOVING, ep->moving);
}
/* Poisons it for RULE at the top of progress: what is in hand must not vanish under the caller. */
static inline void endpoint_break(struct endpoint *ep, const char *rule)
{
	ep->link.broken = rule;
	endpoint_block(ep, BLOCK_BROKEN, true);
}
/* The same, for want of memory, or of a descriptor for the area of a loan, which is no fault of the
 * peer's. */
void endpoint_break_no_memory(struct endpoint *ep);
void endpoint_break_no_descriptor(struct endpoint *ep);
/* Ends it for what has broken it. */
void endpoint_end_broken(struct endpoint *ep);
/* Current figures into ep->stats. */
void endpoint_stats(struct endpoint *ep);

#endif
