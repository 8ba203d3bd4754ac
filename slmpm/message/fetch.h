/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetched messages: large ones that do not go through the ring. The sender announces where the
 * bytes are (FETCH); the receiver, once it has a receive for them, reads them from the front, and
 * the sender, when it is there, writes from the back: each side copies a share.
 *
 * Who copies what is agreed on by the rules of split/split.h; a short one the receiver reads alone.
 * The same rules decide between
 *
 *     a receiver that is through (DONE) and a sender that takes its message back, or would rather
 *     send it in packets (WITHDRAW, FETCH_SEND): there the receiver waits for the verdict. What it
 *     had read meanwhile is then no message.
 *
 * So a send ends at its deadline whatever the receiver does, and a receive unless the sender has
 * stopped amidst writing. With several links both wait, where this side has used another one than
 * memory is reached by, until the other side says that it has read so far. Who has waited for
 * either for a second gives up, and leaves its memory to the peer. Each side holds back as many
 * segments of the ring as it may come to need.
 */
#ifndef SLMPM_FETCH_H
#define SLMPM_FETCH_H

#include "slmpm/choice/choice.h"
#include "slmpm/endpoint.h"
#include "slmpm/message/inbound.h"
#include "slmpm/split/split.h"

#define FETCH_ALONE     ((uint64_t)32 << 10) /* up to so many words cost more than a share saves */
#define FETCH_SHARE_MIN ((uint64_t)32 << 10) /* less is not worth two packets */
#define FETCH_SHARE_MAX ((uint64_t)4 << 20) /* a copy of so much keeps others waiting long enough */
#define FETCH_BUDGET    ((uint64_t)8 << 20) /* of one message before others have their turn */
#define FETCH_AHEAD     4 /* messages begun, of which the sender still writes some */

/* Segments held back for each: question and verdict of a withdrawal, the end of a share (or the
 * question before packets); the last TAKE and DONE. */
#define FETCH_SENDER_WORDS   3
#define FETCH_RECEIVER_WORDS 2

struct fetch_in {         /* a message that this side fetches */
	struct list node; /* among those with a receive, or alone */
	struct inbound *m;
	uint32_t turn;  /* of the receives that it has had: what the sender says for an earlier
			  one means nothing */
	uint32_t held;  /* segments */
	bool notified;  /* a TAKE of this turn is out */
	bool sure;      /* what the sender said before it could see `upto` has been looked at */
	bool alone;     /* this side reads all of it, and says nothing before DONE */
	bool failed;    /* reading did: packets, once the sender writes no more */
	bool over;      /* DONE is out */
	bool asked;     /* the sender may take it back: it says so in a moment */
	bool stranded;  /* its receive has left while the sender wrote, or might */
	uint64_t limit; /* bytes wanted: all, or what the receive has room for */
	uint64_t at;    /* read so far, from the front */
	uint64_t upto;  /* ours, as the peer knows */
	uint64_t claim,
		done; /* the sender's: it has written from DONE on, and writes from CLAIM on */
	uint32_t count;
	struct wire_range ranges[WIRE_RANGES];
};

struct fetch_out {        /* a send whose message the peer fetches */
	struct list node; /* among those that wait, or have something to write, or alone */
	struct request *r;
	uint64_t patience; /* ns: until then it waits for a receive */
	uint64_t began;    /* announced, in ticks ... */
	uint32_t ahead;    /* ... behind so many that were not over yet */
	struct choice *of;
	enum choice_note note;
	uint32_t held;
	bool waiting;     /* it is not to wait long for a receive ... */
	bool hurried;     /* ... or not at all: its sender only tries */
	bool asked;       /* ... and it has asked whether the receiver is through */
	bool notified;    /* CLAIM is out, and not yet sure */
	bool shared;      /* something was written */
	uint32_t turn;    /* as the peer counts them */
	uint64_t address; /* of the peer's buffer; 0: there is no writing */
	uint64_t limit, upto, claim, done;
};

struct fetch {                     /* of an endpoint */
	struct fabric_memory peer; /* all of the peer's memory; ops 0: not reached */
	bool introduced;           /* the peer knows how ours is reached */
	/* In packets, or fetched: what it costs the sender. Of messages in a row, and of those that
	 * follow one of the peer's: the peer reads the former while more is written. */
	struct choice choices[2][CHOICE_CLASSES];
	uint64_t received;     /* the peer's messages, when the last one of ours began */
	uint64_t timed, began; /* a message that goes in packets: envelope, and when, in ticks */
	struct choice *of;
	enum choice_note note;
	struct choice_last last; /* message sent */
	uint64_t begun;          /* the last one that began, fetched or not: envelope */
	uint64_t over;           /* when the last one that was fetched was, in ticks */
	uint32_t announced;      /* messages, and not over */
	uint64_t renewed;        /* ns: all that wait may do so until then: the peer took one */
	struct list in, out, waiting; /* to read, in their order; to write; not to wait for long */
	struct fetch_in *in_hand;     /* NULL once it has gone */
	struct fetch_out *out_hand;
	struct split_room room_in, room_out; /* for what it fetches, and announces */
};

/* The handshake is through and the peer takes WIRE_FETCH. */
void fetch_open(struct endpoint *ep);
/* The endpoint has ended: nothing is under way any more. */
void fetch_end(struct endpoint *ep);
void fetch_free(struct endpoint *ep);
/* It is about to end: takes the receives of fetched messages back; false: not all of them yet. */
bool fetch_release(struct endpoint *ep);
/* NODE is the last of LIST now. */
void fetch_last(struct list *list, struct list *node);
/* One step of what is under way; how many things happened. */
int fetch_step(struct endpoint *ep);

/* Turns of a message's receives, as the peer counts them, begin with the next. */
static inline uint32_t fetch_no_turn(const struct endpoint *ep)
{
	return (uint32_t)endpoint_start_in(ep);
}

static inline bool fetch_busy(const struct endpoint *ep)
{
	const struct fetch *f = ep->rooms->fetch;

	return f && (!list_empty(&f->in) || !list_empty(&f->out) || !list_empty(&f->waiting));
}
static inline void fetch_block(struct endpoint *ep)
{
	endpoint_block(ep, BLOCK_FETCH, fetch_busy(ep));
}

/* EP has fetched messages: has the peer some yet to fetch? */
bool fetch_is_out(const struct endpoint *ep);

/* ---- whether -------------------------------------------------------------------------------- */

/* How R is to begin: in packets, or announced in place of its first one. */
struct mode fetch_mode(struct endpoint *ep, const struct request *r);
/* Of those, that of a message of LENGTH, which is to begin. */
struct choice *fetch_choice(struct endpoint *ep, uint64_t length);
/* One of LENGTH goes in packets, as MODE: nothing is to be asked. And it has gone, begun at BEGAN,
 * in ticks, as the last that was sent. */
bool fetch_leaves(struct endpoint *ep, uint64_t length, struct mode *mode);
void fetch_left(struct endpoint *ep, uint64_t length, uint64_t began);
/* R began to go in packets at BEGAN, in ticks; and its last one is out. */
void fetch_packets(struct endpoint *ep, const struct request *r, uint64_t began);
void fetch_sent(struct endpoint *ep, const struct request *r);
/* The ranges of R's memory; 0: too many. */
uint32_t fetch_ranges(const struct request *r, struct wire_range *ranges);
/* Is what it takes to be learnt from? */
bool fetch_is_measured(const struct request *r);
/* What fetching has cost until P's sender goes on; or that its receiver has MISSED it. */
void fetch_learn(struct endpoint *ep, const struct fetch_out *p, bool missed);

/* ---- sending (fetch_send.c) ------------------------------------------------------------------ */

/* As outbound.c's begin_message: 1, -EAGAIN, or another negative. */
int fetch_announce(struct endpoint *ep, struct request *r);
/* Others are announced, and have their patience: messages that could be fetched, too, are not to be
 * in their way. */
bool fetch_is_awaited(const struct endpoint *ep);
/* R is not to wait, neither announced nor behind others that are. */
void fetch_hurry(struct request *r);
/* The peer wants R, announced so, in packets: true, that is its end. */
bool fetch_refused(struct request *r);
/* R waits for the peer no longer, or was never announced so. */
void fetch_forget(struct request *r);
/* Takes it back. False: it is done, or nothing can be said for now. */
bool fetch_take_back(struct request *r);
/* A share of it; or whether it has waited long enough. */
int fetch_write_step(struct endpoint *ep, struct fetch_out *p);
int fetch_wait_step(struct endpoint *ep, struct fetch_out *p);
void fetch_taken(struct endpoint *ep, const struct head *h);
void fetch_over(struct endpoint *ep, const struct head *h);

/* ---- receiving (fetch_receive.c) ------------------------------------------------------------- */

void fetch_announced(struct endpoint *ep, const struct head *h);
void fetch_given(struct endpoint *ep, const struct head *h);
/* A WITHDRAW that is only a question, or its end: true. */
bool fetch_is_asked(struct endpoint *ep, const struct head *h, struct inbound *m);
/* The sender would rather send it. */
void fetch_sent_instead(struct endpoint *ep, const struct head *h);
/* M, announced so, has its receive. */
void fetch_begin(struct inbound *m);
/* And loses it: false when the sender may be writing into its memory. */
bool fetch_undo(struct inbound *m);
/* And does so all the same, or while nothing can be said of it: true. False: there is a better
 * end. */
bool fetch_abandon(struct inbound *m);
void fetch_drop(struct inbound *m);
/* The sender is to send it in packets; WHY 1: it cannot be read, nor any other. */
void fetch_refuse(struct inbound *m, uint64_t why);
int fetch_read_step(struct endpoint *ep, struct fetch_in *p);

/* ---- both (fetch.c) ------------------------------------------------------------------------- */

/* NULL: no memory. */
struct fetch *fetch_of(struct endpoint *ep);
/* As split_notify; the first time the payload is followed by how our memory is reached. */
bool fetch_notify(struct endpoint *ep, struct packet *p, struct request *r);
/* How the peer's is reached, in BYTES behind a payload of LENGTH; false: the peer broke a rule. */
bool fetch_introduced(struct endpoint *ep, const struct head *h, uint32_t length);

#endif
