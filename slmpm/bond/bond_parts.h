/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside a bond. Each direction is one sequence of packets, counted from 0, of which a part goes by
 * each path:
 *
 *     SWITCH   last of a part: the next packets come by another path
 *     RESTART  first of a part, but for the very first: from which packet on, which part of which
 *              round
 *     RESUME   of the receiver, whose path is lost: the next round, so many packets have come
 *
 * What comes by a path whose part has not begun in the present round is of a former one, and is
 * dropped: RESTART sends it again. So each packet is delivered exactly once and in order.
 *
 * A path that is lost may come again, as its next incarnation: what is said of earlier ones is old.
 */
#ifndef SLMPM_BOND_PARTS_H
#define SLMPM_BOND_PARTS_H

#include "fabrics/fabric.h"
#include "shm/compiler.h"
#include "slmpm/base/wire.h"
#include "slmpm/bond/bond.h"
#include "slmpm/bond/bond_log.h"

#define BOND_INBOX 32   /* arrivals that a path keeps while another one's come before them, */
#define BOND_BATCH 8    /* and that it is asked for at once else */
#define BOND_ASIDE 8    /* polls between inspections of paths that carry no packets at present; */
#define BOND_CALLS 1024 /* where the one in use stores: others may need calls of the kernel */
#define BOND_TURN  64   /* the bond's own packets, or dropped ones, of a path in one poll */

/* What a path still has to answer, and the other side by it; at each inspection (bond_watch.c). */
struct bond_watch {
	bool received; /* something has come by it */
	bool answered; /* an answer has */
	bool said;     /* what must not be lost went by it, without a question behind */
	bool held;     /* the peer keeps what came by it, as it said by another */
	bool quiet;    /* at the last inspection, too, it had deferred work and nothing had come */
	uint8_t silences;     /* inspections since: another one had answered, and not it */
	uint64_t asked, last; /* questions; of them answered */
	bool questioned;      /* the peer's question is to be answered: */
	uint64_t question;    /* its number */
};

/* How far a path is that can tell, and what it carries (bond_spread.c). */
struct bond_flow {
	uint64_t inspected; /* ns; at that time, in bytes: */
	uint64_t carried, in_flight;
	uint64_t bytes, ns;   /* of the measurement under way */
	uint64_t least;       /* bytes in a millisecond that it has carried at least */
	uint64_t rate, rated; /* bytes in a millisecond, 0 not known; ns: since when */
};

struct bond_path {
	const struct fabric *fabric;
	struct fabric_link *port;
	enum bond_state state;
	uint32_t life; /* as bond_expect has said */
	bool notified; /* the peer has said that it is lost, or its silence: the port may never */
	bool begun;    /* its part of the present round */
	bool gone;     /* disconnected already */
	bool tells;    /* what it has under way */
	bool stores;   /* into the peer's memory: nothing of it is lost without the peer */
	bool lands;    /* it has an arrival that waits for its place, or comes */
	uint64_t from, part; /* that begins with this packet; parts of a round count from 0 */
	uint64_t unreleased; /* segments of arrivals that the core has */
	const char *reason;
	struct bond_watch watch;
	struct bond_flow flow;
	int next, count; /* arrivals not inspected yet */
	struct fabric_arrival inbox[BOND_INBOX];
};

/* What is to be said to the peer by any path that takes it. */
enum { DEFER_ACK = 1, DEFER_ASK = 2, DEFER_RESUME = 4, DEFER_LOST = 8, DEFER_ANSWER = 16 };

struct bond_out {
	struct bond_log log;
	uint64_t sent;           /* packets taken from the core: in the log, or acknowledged */
	uint64_t forwarded;      /* of them on their path in the present round */
	uint64_t reached;        /* and at most, in any */
	uint64_t acked;          /* acknowledged */
	uint64_t stored;         /* packets up to the last that is not kept, as it was stored */
	uint64_t next;           /* where the log has the first that is not forwarded */
	uint64_t bytes;          /* taken from the core, as they would lie in the log */
	uint64_t asked;          /* of these, when an acknowledgement was last asked for */
	uint32_t round;          /* the peer has asked for so many */
	uint64_t part;           /* of the round, that goes out now */
	uint64_t read_part;      /* the latest that the peer has acknowledged to read: bond_part */
	uint32_t path;           /* that they go by */
	uint32_t home;           /* that packets without a hint go by */
	int32_t wanted;          /* and shall; -1: no other */
	bool stopped;            /* the path is lost: the peer will say where to go on */
	bool restart;            /* RESTART goes first */
	bool full;               /* the path has refused the last packet */
	bool more;               /* and may wait for another one */
	bool spreads;            /* paths may be changed for what they have to do */
	bool spread;             /* and were, at the last inspection */
	uint64_t patience;       /* us */
	uint64_t inspect;        /* bytes at the next inspection */
	uint32_t held, promised; /* FABRIC_HOLD_BACK; packets that must be taken for it */
	/* A path was lost with a part of a packet in it, when so many had been sent; and the peer
	 * has said since where to go on: they are in the backlog, if at all. */
	bool in_part;
	uint64_t again;
	bool resumed;
};

struct bond_in {
	uint64_t received; /* packets handed out */
	uint64_t notified; /* of which the peer knows */
	uint32_t path;     /* that they come by */
	uint32_t round;
	uint64_t part;
	bool waiting; /* for RESTART */
	struct {      /* handed out without data; not in `received` yet */
		bool open, placed;
		struct fabric_arrival first;
		void *into; /* where the core wants it */
	} land;
};

struct bond {
	struct fabric_link base;
	struct bond *next; /* in the domain */
	bool busy;         /* something is deferred, or does not go its ordinary way */
	bool armed;
	uint16_t turn;
	uint8_t has_deferred;
	uint64_t inspect;              /* ns: of the next inspection for silence */
	uint64_t before;               /* packets acknowledged at the last one */
	uint8_t lost;                  /* paths that have been lost, a bit each */
	bool may_reconnect;            /* and when all are, others may come */
	uint32_t links;                /* that may have joined, or may join yet, or were refused */
	uint32_t expected[BOND_PATHS]; /* the latest life of each that counts there */
	struct bond_path paths[BOND_PATHS];
	struct bond_out out;
	struct bond_in in;
	struct bond_path *memory;   /* whose fabric has memory operations; never another */
	_Atomic bool memory_lost;   /* read beside, by an engine */
	uint64_t ring_out, ring_in; /* the least ones, as of the last count */
	struct fabric_counts past;  /* of links that have made room for others */
	char reasons[256];
};

#define PATH_EACH(p, b)                                                                            \
	for (__typeof__(&(b)->paths[0]) p = (b)->paths; p != (b)->paths + BOND_PATHS; p++)

struct bond_domain {
	struct fabric_domain base;
	struct bond *bonds;
	struct fabric_domain *memory;
	bool news; /* a path has joined, or is lost */
};

static inline struct bond *bond_of(const struct fabric_link *link)
{
	return (struct bond *)(uintptr_t)link;
}

/* A part of a round in one word; later ones are greater. */
static inline uint64_t bond_part(uint32_t round, uint64_t part)
{
	return (uint64_t)round << 40 | part;
}

static inline bool bond_is_live(const struct bond_path *p)
{
	return p->state == PATH_UP || p->state == PATH_SHUT;
}

static inline uint32_t bond_index(const struct bond *b, const struct bond_path *p)
{
	return (uint32_t)(p - b->paths);
}

/* Is it a kind of the bond's own packets? */
static inline bool bond_is_own(uint8_t kind)
{
	return kind - (unsigned)WIRE_BOND_ACK <= WIRE_BOND_PROBE - WIRE_BOND_ACK;
}

/* ---- bond.c ---- */

/* Counts of ONE path join those of all; of a path that is not live nothing is under way any more,
 * nor has it a ring. */
void bond_add_counts(struct fabric_counts *all, const struct fabric_counts *one, bool live);

/* ---- bond_path.c ---- */

/* 1, -EAGAIN (also when this has shown the path to be lost), or -EPROTO. */
int bond_path_post(struct bond *b, struct bond_path *p, const struct fabric_wr *wr);
/* A packet of the bond's own. */
int bond_path_send(struct bond *b, struct bond_path *p, uint8_t kind, uint64_t a, uint64_t c,
		   uint64_t d);
/* The same by any path. */
int bond_send_control(struct bond *b, uint8_t kind, uint64_t a, uint64_t c, uint64_t d);
/* It takes nothing more; DRAINED: nor is there anything left to read. */
void bond_path_lost(struct bond *b, struct bond_path *p, bool drained, const char *why);
/* Disconnects one that is lost, once the core has no arrival of it any more. */
void bond_path_leave(struct bond *b, struct bond_path *p);
/* None takes anything, nor will: -EPIPE, with the reasons; else 0. */
int bond_check_paths(struct bond *b);
/* Nor has any something to read. */
int bond_is_lost(struct bond *b);
/* -EPROTO, for good. */
int bond_poison(struct bond *b, const char *violation);

/* Which are lost, in which life: for the peer. 4 bits, then 15 for each. */
uint64_t bond_losses(const struct bond *b);
/* The peer says so: false, nobody says that. */
bool bond_notified(struct bond *b, uint64_t losses);
static inline void bond_tell(struct bond *b)
{
	((struct bond_domain *)b->base.domain)->news = true;
}

/* ---- bond_watch.c ---- */

/* PROBE has come by it: false, nobody says that. */
bool bond_probed(struct bond *b, struct bond_path *p, const uint64_t *head);
/* Answers what is asked: -EPROTO, or not. */
int bond_answer(struct bond *b);

/* ---- bond_send.c ---- */

int bond_send(struct bond *b, const struct fabric_wr *wr);
void *bond_reserve(struct fabric_link *link, uint32_t length);
/* PATH; or one that stores, where there is one, while room is held back for words that the peer is
 * to see at once. */
uint32_t bond_send_path(const struct bond *b, uint32_t path);
/* Says what is deferred, sends again what is to be: 0 or -EPROTO. */
int bond_settle(struct bond *b);
/* Packets that are in the log and on no path yet. */
bool bond_has_backlog(const struct bond *b);
/* What was in part in a lost path goes again by another: has it not yet? */
bool bond_goes_again(struct bond *b);
/* The peer has N of them: false, that cannot be. */
bool bond_acknowledged(struct bond *b, uint64_t n);
/* And wants the others in round ROUND. */
bool bond_resumed(struct bond *b, uint64_t n, uint64_t round);
/* The peer reads PART (bond_part): false, that cannot be. */
bool bond_part_is_read(struct bond *b, uint64_t part);

/* ---- bond_spread.c ---- */

/* Where the next packet asks for its path: at once, or never while nothing is spread. */
void bond_spread_rescan(struct bond *b);

/* In front of a packet of LENGTH with which out.bytes comes to out.inspect: may begin a change
 * of paths. 0 or -EPROTO. */
int bond_spread_out(struct bond *b, uint32_t length);
/* One more path. */
void bond_spread_joined(struct bond *b, struct bond_path *p);

/* ---- bond_receive.c ---- */

int bond_receive(struct bond *b, struct fabric_arrival *arrivals, int n);
/* What is the bond's at the heads of all paths: 0 or -EPROTO. */
int bond_inspect(struct bond *b);
/* The peer begins again with what has not come. */
void bond_await_restart(struct bond *b);
void bond_release(struct fabric_link *link, const struct fabric_arrival *arrival);
/* The arrival without data goes there. */
int bond_land(struct bond *b, const struct fabric_wr *wr);

#endif
