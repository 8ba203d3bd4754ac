/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selector: which way an operation takes, by what is asked, what there is, and what the monitor
 * sees. It knows no endpoint and changes nothing; choice/pick.h asks it on an endpoint's behalf.
 *
 * What can be chosen at set-up is chosen there: which ways there are. A small operation with
 * nothing queued before it takes the fast path of its call, and nobody asks.
 */
#ifndef SLMPM_MODE_H
#define SLMPM_MODE_H

#include <slmpm_mode.h>
#include <stdbool.h>
#include <stdint.h>

enum mode_op { MODE_SEND, MODE_PUT, MODE_GET, MODE_ATOMIC };

/* How bytes go; protocols in their varieties. */
enum mode_route {
	MODE_NONE,    /* no way: of a strict hint */
	MODE_PACKETS, /* SMT: a message through the ring */
	MODE_FETCHED, /* RGET: announced, and the peer fetches it */
	MODE_COPY,    /* PUT, GET: by the call itself */
	MODE_SHARED,  /* PUT: by the call and the target, each a part */
	MODE_ENGINE,  /* PUT, GET: by the engine */
	MODE_ASKED,   /* PUT, GET: by the peer's engine */
	MODE_REQUEST, /* REQUEST: asked for through the ring (in which form, SLMPM_RMA says) */
	MODE_ROUTES
};

struct mode_ask {
	enum mode_op op;
	uint32_t hint; /* enum slmpm_protocol + 1; 0: what the call asks for */
	bool strict;   /* never another */
	bool waits;    /* the call blocks until it is done */
	bool eager;    /* a message that is sent without its receive being there */
	bool beyond;   /* the peer has an engine, which does not reach the memory here */
	bool always;   /* a setting wants the longer way (FETCHED, SHARED) wherever there is one */
	bool set;      /* the link that is wanted is the user's default */
	uint64_t size; /* bytes */
};

/* All other links over a fabric, of all instances: of those that have much to do, on the mean. */
struct mode_others {
	bool known;
	bool overloaded; /* they had too much to do, and some still have much */
	uint64_t queue;
	uint32_t permille; /* of their rings */
	uint32_t echo;     /* 0: not known */
	uint32_t cost[2];
};

struct mode_view {                 /* of a link, now */
	uint64_t queue;            /* requests in its transmit queue, before this one */
	uint64_t unread, segments; /* of the ring, as its writer sees it */
	uint64_t dma;              /* transfers in the engine */
	bool sleeps;               /* who waits here sleeps at once, and looks around too late */
	bool behind;               /* a fenced one, and not all before it is done */
	/* Of the plain way and the longer one (PACKETS and FETCHED; COPY and SHARED) for this size;
	 * 0: not known. And whether this turn is for the one that seems longer (choice.h). */
	uint32_t cost[2];
	bool trial;
	uint32_t echo;   /* the least that a packet both ways has taken by it; 0: not known */
	bool overloaded; /* others load its fabric, and that counts here */
	struct mode_others all; /* over this fabric */
};

struct mode_link { /* what an operation could go by */
	bool up;
	bool wire;     /* over a network, which may be what is late, and not the reader */
	uint32_t ways; /* of this operation: 1 << enum mode_route */
	struct mode_view view;
};

enum mode_force { MODE_AUTO, MODE_SMT, MODE_DMA };          /* SLMPM_MODE */
enum mode_leave { MODE_LEAVE_WIRE, MODE_LEAVE, MODE_STAY }; /* SLMPM_MODE_LINK */

struct mode_limits { /* thresholds: settings */
	enum mode_force force;
	bool chooses;          /* a setting asks for other than the nearest way */
	bool defaults;         /* a default fabric is set */
	enum mode_leave leave; /* an overloaded link */
	/* The user's thresholds: with both of queue and ring any overloaded link may be left. */
	bool own_ring, own_queue, own_dma;
	uint32_t ring, light; /* percent of the ring: full from, light up to; of queue, too */
	uint32_t unpublished; /* percent of the ring that may seem unread and is not */
	uint64_t queue, dma;  /* long: more than so many */
	uint64_t bulk;        /* no shorter message leaves the ring because of a queue */
	uint64_t small;       /* no longer put or get comes to the ring because of one */
	uint64_t fetch, share, engine, ask; /* shortest that these may be used for, else */
};

struct mode {
	uint8_t link; /* of those that were given */
	uint8_t way;  /* enum mode_route; MODE_NONE: strict, and impossible */
	uint8_t reason;
};

#define MODE_LINKS 4 /* at most */

struct mode_tally { /* of an endpoint: decisions by what became of them */
	uint64_t by[SLMPM_PROTOCOLS][SLMPM_REASONS];
	struct mode last;
	uint8_t last_op;    /* enum mode_op */
	uint8_t left;       /* number of the link that was left for having too much to do, plus 1 */
	uint8_t overloaded; /* a bit for each link whose fabric others load */
};

/* MODE was taken for OP. */
void mode_count(struct mode_tally *tally, enum mode_op op, struct mode mode);
/* The thresholds of the settings. */
const struct mode_limits *mode_limits(void);
/* Does a setting of a fabric leave the choice to the library? */
bool mode_is_auto(const char *fabric);

/* Among N links (1 at least), of which WANTED is the one that is asked for or the default. */
struct mode mode_select(const struct mode_ask *ask, const struct mode_link *links, int n,
			int wanted, const struct mode_limits *limits);

/* Is a queue of so many requests well below what is long? */
static inline bool mode_is_short(uint64_t queue, const struct mode_limits *l)
{
	return queue <= 1 || queue * 100 <= l->light * l->queue;
}

/* Have the others over that fabric too much to do? */
bool mode_is_overloaded(const struct mode_view *v, const struct mode_limits *limits);

/* By which link goes what is still to arrive, once one was lost or another is WANTED (-1: none is):
 * UP has a bit for each that can. -1: by none, for now. */
int mode_path(uint32_t up, int wanted);

/* Bytes of a packet at the most where there are several links: while one goes by a slow link, what
 * comes behind it by the others waits for it, in their rings and in the credit. */
#define MODE_SPREAD_PACKET 131072

struct mode_load {          /* of a link that packets may be spread over */
	bool able;          /* up, over a network, and it tells how far it is: */
	uint64_t in_flight; /* bytes that were given to it and have not arrived */
	uint64_t rate;      /* that it carries in a millisecond; 0: not known */
};

/* Does it need longer than PATIENCE_US for what it has? */
bool mode_is_loaded(const struct mode_load *load, uint64_t patience_us);
/* By which of N links the next LENGTH bytes go that anyone may carry: by PRESENT, unless that is
 * loaded, and another would have them there so much sooner. */
int mode_spread(const struct mode_load *loads, int n, int present, uint64_t length,
		uint64_t patience_us);

/* What forces the form of requests, and that there are such: SLMPM_RMA, in its order. */
enum mode_rma { MODE_RMA_AUTO, MODE_RMA_RING, MODE_RMA_AM, MODE_RMA_TAG };

/* May memory be reached directly where that works? */
static inline bool mode_reaches(enum mode_rma setting)
{
	return setting == MODE_RMA_AUTO;
}
/* The form of requests to a peer that is, or is not, ACTIVE: takes active messages; over a fabric
 * with NATIVE one-sided operations or without. */
enum mode_rma mode_form(enum mode_rma setting, bool active, bool native);

enum mode_place { MODE_HERE, MODE_THERE }; /* the peer: on this machine, beyond the network */

/* The fabric of a first link, by its name: TOLD by a topology, or NULL; SETTING: SLMPM_FABRIC. */
const char *mode_fabric(enum mode_place place, const char *notified, const char *setting);
/* Is there a better one for a peer that was found by the network, and is here after all? */
bool mode_comes_near(const char *setting);

/* The protocol of an operation that takes WAY; -1 for MODE_NONE. */
int mode_protocol(enum mode_op op, enum mode_route way);

/* ---- of the rules on one link (mode.c), for the choice among them (mode_links.c) ------------- */

#define MODE_BIT(way) (1u << (way))
#define MODE_IN_RING  (MODE_BIT(MODE_PACKETS) | MODE_BIT(MODE_REQUEST))

/* On LINK, the I-th, whatever the others are. */
struct mode mode_select_on(const struct mode_ask *asked, const struct mode_link *link, int i,
			   const struct mode_limits *l);
/* Is the ring as full as a threshold says? */
bool mode_is_full(const struct mode_view *v, const struct mode_limits *l);
/* The shortest put or get that is the engine's. */
uint64_t mode_shortest_engine(const struct mode_ask *a, const struct mode_limits *l);

#endif
