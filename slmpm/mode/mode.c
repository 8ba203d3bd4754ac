/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector's table (mode.h): conditions, and rules in the order in which they count. */
#include "slmpm/mode/mode.h"

#include <stddef.h>
#include <string.h>

/* ---- conditions ----------------------------------------------------------------------------- */

enum condition {
	RINGWARD = 1 << 0, /* through the ring is asked for; ... */
	AROUND = 1 << 1,   /* ... or past it */
	HINTED = 1 << 2,   /* by flags */
	WAITS = 1 << 3,    /* the caller */
	ASLEEP = 1 << 4,   /* nobody would see in time that a message is not fetched */
	ALWAYS = 1 << 5,   /* a setting wants the longer way */
	LONG = 1 << 6,     /* there is a longer way, and it is long enough for that */
	BULK = 1 << 7,     /* long enough to leave the ring */
	SMALL = 1 << 8,    /* short enough to come to it */
	ENGINED = 1 << 9,  /* there is an engine, and it is long enough for that, or meant for it */
	FULL = 1 << 10,    /* ring */
	LIGHT = 1 << 11,
	QUEUED = 1 << 12, /* transmit queue */
	BUSY = 1 << 13,   /* engine */
	BEHIND = 1 << 14, /* something else must be done before */
	KNOWN = 1 << 15,  /* what both ways cost */
	LESS = 1 << 16,   /* the longer one costs less; ... */
	MORE = 1 << 17,   /* ... more */
	TRIAL = 1 << 18,  /* the one that does is to be tried */
	ASKING = 1 << 19, /* the peer has an engine, and it is long enough for that */
	BEYOND = 1 << 20, /* likewise, but the peer's does not reach the memory here */
};

#define BY_ENGINE  (MODE_BIT(MODE_ENGINE) | MODE_BIT(MODE_ASKED))
#define DIRECT     (MODE_BIT(MODE_COPY) | MODE_BIT(MODE_SHARED) | BY_ENGINE)
#define PAST_RING  (MODE_BIT(MODE_FETCHED) | DIRECT)
#define HINT(name) (SLMPM_BY_##name + 1)

static uint32_t when(bool holds, enum condition c)
{
	return holds ? (uint32_t)c : 0;
}

/* A hint past the ring without waiting means the engine, which takes any length. */
uint64_t mode_shortest_engine(const struct mode_ask *a, const struct mode_limits *l)
{
	bool around =
		a->hint ? a->hint != HINT(SMT) && a->hint != HINT(REQUEST) : l->force == MODE_DMA;

	return around ? 1 : l->engine;
}

/* With a hint past the ring the cost of asking does not count. */
static uint64_t shortest_ask(const struct mode_ask *a, const struct mode_limits *l)
{
	bool hinted = a->hint || l->force == MODE_DMA;

	return hinted && l->engine < l->ask ? l->engine : l->ask;
}

static uint32_t of_request(const struct mode_ask *a, uint32_t ways, const struct mode_limits *l)
{
	uint64_t longer = a->op == MODE_SEND ? l->fetch : l->share;
	uint32_t way = MODE_BIT(a->op == MODE_SEND ? MODE_FETCHED : MODE_SHARED);

	return when(a->hint, HINTED) | when(a->waits, WAITS) | when(a->always, ALWAYS) |
	       when(ways & way && a->size >= longer, LONG) | when(a->size >= l->bulk, BULK) |
	       when(a->size <= l->small, SMALL) |
	       when(ways & MODE_BIT(MODE_ENGINE) && a->size >= mode_shortest_engine(a, l),
		    ENGINED) |
	       when(ways & MODE_BIT(MODE_ASKED) && a->size >= shortest_ask(a, l), ASKING) |
	       when(a->beyond && a->size >= shortest_ask(a, l), BEYOND);
}

bool mode_is_full(const struct mode_view *v, const struct mode_limits *l)
{
	return v->segments && v->unread * 100 >= l->ring * v->segments;
}

static uint32_t of_link(const struct mode_ask *a, const struct mode_view *v,
			const struct mode_limits *l)
{
	bool known = v->cost[0] && v->cost[1];

	return when(mode_is_full(v, l), FULL) |
	       when(v->unread * 100 <= l->light * v->segments, LIGHT) |
	       when(v->queue > l->queue, QUEUED) | when(v->dma > l->dma, BUSY) |
	       when(a->eager && v->sleeps, ASLEEP) | when(v->behind, BEHIND) | when(known, KNOWN) |
	       when(known && v->cost[1] <= v->cost[0], LESS) |
	       when(known && v->cost[1] > v->cost[0], MORE) | when(v->trial, TRIAL);
}

/* A message may be fetched that is shorter than usual, where the ring has enough to do. */
static uint32_t of_both(const struct mode_ask *a, uint32_t ways, uint32_t holds)
{
	return when(a->op == MODE_SEND && ways & MODE_BIT(MODE_FETCHED) && holds & BULK &&
			    holds & (FULL | QUEUED),
		    LONG);
}

/* ---- rules ---------------------------------------------------------------------------------- */

enum { SENDS = 1 << MODE_SEND, PUTS = 1 << MODE_PUT, GETS = 1 << MODE_GET };
#define MOVES     (PUTS | GETS)
#define ONE_SIDED (MOVES | 1 << MODE_ATOMIC)
#define ASKED     SLMPM_REASON_NONE /* what was asked for: by the call or by a hint */

/* The first of which all `when` hold, none of `unless`, and whose way there is. */
struct rule {
	uint8_t ops;
	uint32_t when, unless;
	uint8_t way, reason;
};

/* clang-format off */
static const struct rule messages[] = {
	/* Through the ring is asked for, */
	{ SENDS, RINGWARD | ALWAYS | LONG, ASLEEP | HINTED, MODE_FETCHED, SLMPM_REASON_SETTING },
	{ SENDS, RINGWARD | LONG | LESS | TRIAL, ASLEEP | HINTED, MODE_PACKETS,
	  SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | FULL | BULK, ASLEEP | MORE, MODE_FETCHED, SLMPM_REASON_RING },
	{ SENDS, RINGWARD | LONG | QUEUED | BULK, ASLEEP | MORE, MODE_FETCHED, SLMPM_REASON_QUEUE },
	{ SENDS, RINGWARD | LONG | LESS, ASLEEP | HINTED, MODE_FETCHED, SLMPM_REASON_FASTER },
	{ SENDS, RINGWARD | LONG | TRIAL, ASLEEP | HINTED, MODE_FETCHED, SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | KNOWN, ASLEEP | HINTED, MODE_PACKETS, SLMPM_REASON_FASTER },
	{ SENDS, RINGWARD | LONG, ASLEEP | HINTED, MODE_PACKETS, SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | ASLEEP, HINTED, MODE_PACKETS, SLMPM_REASON_ABSENT },
	{ SENDS, RINGWARD, 0, MODE_PACKETS, ASKED },
	/* or that it be fetched; */
	{ SENDS, AROUND | ASLEEP, 0, MODE_PACKETS, SLMPM_REASON_ABSENT },
	{ SENDS, AROUND | BUSY | LIGHT | SMALL, 0, MODE_PACKETS, SLMPM_REASON_QUEUE },
	{ SENDS, AROUND, 0, MODE_FETCHED, ASKED },
	/* and that there is not. */
	{ SENDS, 0, 0, MODE_PACKETS, SLMPM_REASON_ONLY },
	{ SENDS, 0, 0, MODE_FETCHED, SLMPM_REASON_ONLY },
};

static const struct rule one_sided[] = {
	/* Directly, */
	{ ONE_SIDED, AROUND | BEHIND, 0, MODE_REQUEST, SLMPM_REASON_ORDER },
	{ MOVES, AROUND | BUSY | LIGHT | SMALL | ENGINED, WAITS, MODE_REQUEST, SLMPM_REASON_QUEUE },
	{ MOVES, AROUND | ENGINED | HINTED, WAITS, MODE_ENGINE, ASKED },
	{ MOVES, AROUND | ENGINED, WAITS, MODE_ENGINE, SLMPM_REASON_SIZE },
	{ MOVES, AROUND | ASKING, 0, MODE_ASKED, SLMPM_REASON_ENGINE },
	{ MOVES, AROUND | BEYOND, 0, MODE_COPY, SLMPM_REASON_UNREACHABLE },
	{ PUTS, AROUND | ALWAYS | LONG, 0, MODE_SHARED, SLMPM_REASON_SETTING },
	{ PUTS, AROUND | LONG | LESS, TRIAL, MODE_SHARED, SLMPM_REASON_FASTER },
	{ PUTS, AROUND | LONG | TRIAL, LESS, MODE_SHARED, SLMPM_REASON_TRIAL },
	{ PUTS, AROUND | LONG | LESS | TRIAL, 0, MODE_COPY, SLMPM_REASON_TRIAL },
	{ PUTS, AROUND | LONG | KNOWN, 0, MODE_COPY, SLMPM_REASON_FASTER },
	{ PUTS, AROUND | LONG, 0, MODE_COPY, SLMPM_REASON_TRIAL },
	{ ONE_SIDED, AROUND, 0, MODE_COPY, ASKED },
	/* or by request; */
	{ MOVES, RINGWARD | FULL | ENGINED, WAITS, MODE_ENGINE, SLMPM_REASON_RING },
	{ MOVES, RINGWARD | QUEUED | ENGINED, WAITS, MODE_ENGINE, SLMPM_REASON_QUEUE },
	{ ONE_SIDED, RINGWARD | FULL, 0, MODE_COPY, SLMPM_REASON_RING },
	{ ONE_SIDED, RINGWARD | QUEUED, 0, MODE_COPY, SLMPM_REASON_QUEUE },
	{ ONE_SIDED, RINGWARD, 0, MODE_REQUEST, ASKED },
	/* and that there is not. */
	{ ONE_SIDED, 0, 0, MODE_COPY, SLMPM_REASON_ONLY },
	{ ONE_SIDED, 0, 0, MODE_REQUEST, SLMPM_REASON_ONLY },
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const struct rule *find_rule(const struct mode_ask *a, uint32_t holds, uint32_t ways)
{
	const struct rule *r = a->op == MODE_SEND ? messages : one_sided;
	const struct rule *end =
		a->op == MODE_SEND ? messages + COUNT(messages) : one_sided + COUNT(one_sided);

	for (; r < end; r++)
		if (r->ops >> a->op & 1 && !(r->when & ~holds) && !(r->unless & holds) &&
		    ways & MODE_BIT(r->way))
			return r;
	return NULL;
}

/* ---- what is asked for ---------------------------------------------------------------------- */

static bool is_forced(const struct mode_ask *a, const struct mode_limits *l)
{
	return !a->hint && l->force != MODE_AUTO;
}

static bool goes_around(const struct mode_ask *a, const struct mode_limits *l)
{
	if (a->hint)
		return a->hint != HINT(SMT) && a->hint != HINT(REQUEST);
	if (is_forced(a, l))
		return l->force == MODE_DMA;
	return a->op != MODE_SEND;
}

/* The operation has the route of its hint: messages are fetched, not put or got. */
static bool makes_sense(const struct mode_ask *a)
{
	switch (a->hint) {
	case HINT(RGET): return a->op == MODE_SEND;
	case HINT(PUT):
	case HINT(GET):
	case HINT(REQUEST): return a->op != MODE_SEND;
	default: return true;
	}
}

static uint32_t side(bool around)
{
	return around ? PAST_RING : MODE_IN_RING;
}

/* Those among which there is a choice: of a strict hint its own, of a forced one, too, where there
 * are any. */
static uint32_t admitted(const struct mode_ask *a, const struct mode_link *link, bool around,
			 const struct mode_limits *l)
{
	uint32_t ways = link->view.behind ? link->ways & ~DIRECT : link->ways;
	uint32_t own = ways & side(around);

	if (a->strict)
		return makes_sense(a) ? own : 0;
	return is_forced(a, l) && own && !(a->eager && link->view.sleeps) ? own : ways;
}

static enum slmpm_reason reason_of(const struct mode_ask *a, const struct rule *r, bool around,
				   const struct mode_limits *l)
{
	bool own = MODE_BIT(r->way) & side(around);

	if (a->strict)
		return SLMPM_REASON_STRICT;
	if (is_forced(a, l) && own)
		return SLMPM_REASON_SETTING;
	if (r->reason != ASKED)
		return (enum slmpm_reason)r->reason;
	return a->hint ? SLMPM_REASON_HINT : SLMPM_REASON_CALL;
}

struct mode mode_select_on(const struct mode_ask *asked, const struct mode_link *link, int i,
			   const struct mode_limits *l)
{
	struct mode_ask a = *asked;
	struct mode mode = {.link = (uint8_t)i, .way = MODE_NONE, .reason = SLMPM_REASON_STRICT};
	const struct rule *rule;
	uint32_t holds, ways;
	bool around;

	if (!a.strict && !makes_sense(&a))
		a.hint = 0;
	around = goes_around(&a, l);
	ways = admitted(&a, link, around, l);
	holds = of_request(&a, ways, l) | of_link(&a, &link->view, l) |
		(around ? AROUND : RINGWARD);
	holds |= of_both(&a, ways, holds);
	rule = find_rule(&a, a.strict ? holds & ~(uint32_t)ASLEEP : holds, ways);
	if (!rule) {
		mode.reason = link->view.behind ? SLMPM_REASON_ORDER : SLMPM_REASON_STRICT;
		return mode;
	}
	mode.way = rule->way;
	mode.reason = (uint8_t)reason_of(&a, rule, around, l);
	return mode;
}

/* ---- fabrics -------------------------------------------------------------------------------- */

const char *mode_fabric(enum mode_place place, const char *notified, const char *setting)
{
	if (notified)
		return notified;
	return place == MODE_HERE ? setting : "tcp";
}

bool mode_comes_near(const char *setting)
{
	return strcmp(mode_fabric(MODE_HERE, NULL, setting),
		      mode_fabric(MODE_THERE, NULL, setting)) != 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

enum mode_rma mode_form(enum mode_rma setting, bool active, bool native)
{
	if (setting == MODE_RMA_AUTO && !native)
		setting = MODE_RMA_AM;
	return setting >= MODE_RMA_AM && active ? setting : MODE_RMA_RING;
}

/* ---- names ---------------------------------------------------------------------------------- */

int mode_protocol(enum mode_op op, enum mode_route way)
{
	switch (way) {
	case MODE_PACKETS: return SLMPM_BY_SMT;
	case MODE_FETCHED: return SLMPM_BY_RGET;
	case MODE_REQUEST: return SLMPM_BY_REQUEST;
	case MODE_COPY:
	case MODE_SHARED:
	case MODE_ENGINE:
	case MODE_ASKED: return op == MODE_GET ? SLMPM_BY_GET : SLMPM_BY_PUT;
	default: return -1;
	}
}

uint32_t slmpm_via(int protocol)
{
	return protocol >= 0 && protocol < SLMPM_PROTOCOLS ? SLMPM_VIA(protocol) : 0;
}

uint32_t slmpm_on_link(int link)
{
	uint32_t flags = SLMPM_ON_LINK(link);

	return link >= 0 && !(flags & ~SLMPM_ON_LINK_MASK) ? flags : 0;
}

const char *slmpm_reason_name(int reason)
{
	static const char *const names[SLMPM_REASONS] = {
		"none",   "short",  "call",   "hint",        "strict",    "only", "setting",
		"size",   "faster", "trial",  "ring",        "queue",     "both", "order",
		"absent", "link",   "engine", "unreachable", "aggregate",
	};

	return reason >= 0 && reason < SLMPM_REASONS ? names[reason] : NULL;
}

void mode_count(struct mode_tally *tally, enum mode_op op, struct mode mode)
{
	int protocol = mode_protocol(op, (enum mode_route)mode.way);

	if (protocol < 0)
		return;
	tally->by[protocol][mode.reason]++;
	tally->last = mode;
	tally->last_op = (uint8_t)op;
}
