/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector's table (mode.h): conditions, rules in the order in which they count, links. */
#include "slmpm/mode/mode.h"

#include <stddef.h>
#include <string.h>

/* ---- conditions ----------------------------------------------------------------------------- */

enum condition {
	RINGWARD = 1 << 0, /* through the ring is asked for; ... */
	AROUND = 1 << 1,   /* ... or past it */
	WISHED = 1 << 2,   /* by flags */
	WAITS = 1 << 3,    /* the caller */
	ASLEEP = 1 << 4,   /* nobody would see in time that a message is not fetched */
	ALWAYS = 1 << 5,   /* a setting wants the longer way */
	LONG = 1 << 6,     /* there is a longer way, and it is long enough for that */
	BULK = 1 << 7,     /* long enough to leave the ring */
	SMALL = 1 << 8,    /* short enough to come to it */
	ENGINED = 1 << 9,  /* there is an engine, and it is long enough for that */
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

#define BIT(way)   (1u << (way))
#define DIRECT     (BIT(MODE_COPY) | BIT(MODE_SHARED) | BIT(MODE_ENGINE) | BIT(MODE_ASKED))
#define PAST_RING  (BIT(MODE_FETCHED) | DIRECT)
#define IN_RING    (BIT(MODE_PACKETS) | BIT(MODE_REQUEST))
#define WISH(name) (SLMPM_BY_##name + 1)

static uint32_t when(bool holds, enum condition c)
{
	return holds ? (uint32_t)c : 0;
}

/* Who wishes it past the ring does not mind what the asking takes. */
static uint64_t shortest_ask(const struct mode_ask *a, const struct mode_limits *l)
{
	bool wished = a->wish || l->force == MODE_DMA;

	return wished && l->engine < l->ask ? l->engine : l->ask;
}

static uint32_t of_request(const struct mode_ask *a, uint32_t ways, const struct mode_limits *l)
{
	uint64_t longer = a->op == MODE_SEND ? l->fetch : l->share;
	uint32_t way = BIT(a->op == MODE_SEND ? MODE_FETCHED : MODE_SHARED);

	return when(a->wish, WISHED) | when(a->waits, WAITS) | when(a->always, ALWAYS) |
	       when(ways & way && a->size >= longer, LONG) | when(a->size >= l->bulk, BULK) |
	       when(a->size <= l->small, SMALL) |
	       when(ways & BIT(MODE_ENGINE) && a->size >= l->engine, ENGINED) |
	       when(ways & BIT(MODE_ASKED) && a->size >= shortest_ask(a, l), ASKING) |
	       when(a->beyond && a->size >= shortest_ask(a, l), BEYOND);
}

static bool is_full(const struct mode_view *v, const struct mode_limits *l)
{
	return v->segments && v->unread * 100 >= l->ring * v->segments;
}

static uint32_t of_link(const struct mode_ask *a, const struct mode_view *v,
			const struct mode_limits *l)
{
	bool known = v->cost[0] && v->cost[1];

	return when(is_full(v, l), FULL) | when(v->unread * 100 <= l->light * v->segments, LIGHT) |
	       when(v->queue > l->queue, QUEUED) | when(v->dma > l->dma, BUSY) |
	       when(a->eager && v->sleeps, ASLEEP) | when(v->behind, BEHIND) | when(known, KNOWN) |
	       when(known && v->cost[1] <= v->cost[0], LESS) |
	       when(known && v->cost[1] > v->cost[0], MORE) | when(v->trial, TRIAL);
}

/* A message may be fetched that is shorter than usual, where the ring has enough to do. */
static uint32_t of_both(const struct mode_ask *a, uint32_t ways, uint32_t holds)
{
	return when(a->op == MODE_SEND && ways & BIT(MODE_FETCHED) && holds & BULK &&
			    holds & (FULL | QUEUED),
		    LONG);
}

/* ---- rules ---------------------------------------------------------------------------------- */

enum { SENDS = 1 << MODE_SEND, PUTS = 1 << MODE_PUT, GETS = 1 << MODE_GET };
#define MOVES     (PUTS | GETS)
#define ONE_SIDED (MOVES | 1 << MODE_ATOMIC)
#define ASKED     SLMPM_REASON_NONE /* what was asked for: by the call or by a wish */

/* The first of which all `when` hold, none of `unless`, and whose way there is. */
struct rule {
	uint8_t ops;
	uint32_t when, unless;
	uint8_t way, reason;
};

/* clang-format off */
static const struct rule messages[] = {
	/* Through the ring is asked for, */
	{ SENDS, RINGWARD | ALWAYS | LONG, ASLEEP | WISHED, MODE_FETCHED, SLMPM_REASON_SETTING },
	{ SENDS, RINGWARD | LONG | LESS | TRIAL, ASLEEP | WISHED, MODE_PACKETS, SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | FULL | BULK, ASLEEP | MORE, MODE_FETCHED, SLMPM_REASON_RING },
	{ SENDS, RINGWARD | LONG | QUEUED | BULK, ASLEEP | MORE, MODE_FETCHED, SLMPM_REASON_QUEUE },
	{ SENDS, RINGWARD | LONG | LESS, ASLEEP | WISHED, MODE_FETCHED, SLMPM_REASON_FASTER },
	{ SENDS, RINGWARD | LONG | TRIAL, ASLEEP | WISHED, MODE_FETCHED, SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | KNOWN, ASLEEP | WISHED, MODE_PACKETS, SLMPM_REASON_FASTER },
	{ SENDS, RINGWARD | LONG, ASLEEP | WISHED, MODE_PACKETS, SLMPM_REASON_TRIAL },
	{ SENDS, RINGWARD | LONG | ASLEEP, WISHED, MODE_PACKETS, SLMPM_REASON_ABSENT },
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
		    ways & BIT(r->way))
			return r;
	return NULL;
}

/* ---- what is asked for ---------------------------------------------------------------------- */

static bool is_forced(const struct mode_ask *a, const struct mode_limits *l)
{
	return !a->wish && l->force != MODE_AUTO;
}

static bool goes_around(const struct mode_ask *a, const struct mode_limits *l)
{
	if (a->wish)
		return a->wish != WISH(SMT) && a->wish != WISH(REQUEST);
	if (is_forced(a, l))
		return l->force == MODE_DMA;
	return a->op != MODE_SEND;
}

/* Of a wish: has this operation such ways at all? To fetch is of messages, to put and to get not. */
static bool makes_sense(const struct mode_ask *a)
{
	switch (a->wish) {
	case WISH(RGET): return a->op == MODE_SEND;
	case WISH(PUT):
	case WISH(GET):
	case WISH(REQUEST): return a->op != MODE_SEND;
	default: return true;
	}
}

static uint32_t side(bool around)
{
	return around ? PAST_RING : IN_RING;
}

/* Those among which there is a choice: of a strict wish its own, of a forced one, too, where there
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
	bool own = BIT(r->way) & side(around);

	if (a->strict)
		return SLMPM_REASON_STRICT;
	if (is_forced(a, l) && own)
		return SLMPM_REASON_SETTING;
	if (r->reason != ASKED)
		return (enum slmpm_reason)r->reason;
	return a->wish ? SLMPM_REASON_WISH : SLMPM_REASON_CALL;
}

static struct mode select_on(const struct mode_ask *asked, const struct mode_link *link, int i,
			     const struct mode_limits *l)
{
	struct mode_ask a = *asked;
	struct mode mode = {.link = (uint8_t)i, .way = MODE_NONE, .reason = SLMPM_REASON_STRICT};
	const struct rule *rule;
	uint32_t holds, ways;
	bool around;

	if (!a.strict && !makes_sense(&a))
		a.wish = 0;
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

/* ---- links ---------------------------------------------------------------------------------- */

static bool is_crowded(const struct mode_view *v, const struct mode_limits *l)
{
	return is_full(v, l) || v->queue > l->queue;
}

/* The engine could move it, if it had not too much to do. */
static bool is_for_engine(const struct mode_ask *a, const struct mode_link *link,
			  const struct mode_limits *l)
{
	return !a->waits && link->ways & BIT(MODE_ENGINE) && a->size >= l->engine;
}

/* Neither the queue that it would wait in nor the ring has room for more. */
static bool is_overrun(const struct mode_ask *a, const struct mode_link *link,
		       const struct mode_limits *l)
{
	const struct mode_view *v = &link->view;

	if (!is_full(v, l))
		return false;
	if (v->queue > l->queue)
		return true;
	return v->dma > l->dma && is_for_engine(a, link, l);
}

/* It goes through a ring that has too much to do already; or past one, and there is too much there, too. */
static bool is_in_crowd(const struct mode_ask *a, const struct mode *mode,
			const struct mode_link *link, const struct mode_limits *l)
{
	if (BIT(mode->way) & IN_RING)
		return is_crowded(&link->view, l);
	return a->op != MODE_SEND && !link->view.behind && is_overrun(a, link, l);
}

/* Of shared memory a full ring is the reader's doing, who is no quicker on another link: it is left where the
 * user says so, also by thresholds. */
static bool may_leave(const struct mode_ask *a, const struct mode_link *link,
		      const struct mode_limits *l)
{
	if (l->leave != MODE_LEAVE_WIRE)
		return l->leave == MODE_LEAVE;
	return link->wire ||
	       (is_overrun(a, link, l) && (a->op == MODE_SEND ? l->own_send : l->own_move));
}

static bool is_cheaper(const struct mode_link *link, const struct mode_link *than)
{
	return link->view.echo && link->view.echo < than->view.echo;
}

/* In place of WANTED, which is crowded or does not stand: NULL, none. */
static const struct mode_link *find_other(const struct mode_ask *a, const struct mode_link *links,
					  int n, const struct mode_link *wanted,
					  const struct mode_limits *l)
{
	const struct mode_link *best = NULL;

	for (const struct mode_link *link = links; link < links + n; link++) {
		if (link == wanted || !link->up)
			continue;
		if (wanted->up && is_crowded(&link->view, l))
			continue;
		if (wanted->up && !may_leave(a, wanted, l) &&
		    !(l->leave != MODE_STAY && is_overrun(a, wanted, l) &&
		      is_cheaper(link, wanted)))
			continue;
		if (!best || (link->view.all.echo && link->view.all.echo < best->view.all.echo))
			best = link;
	}
	return best;
}

static struct mode select_among(const struct mode_ask *a, const struct mode_link *links, int n,
				int wanted, const struct mode_limits *l)
{
	struct mode mode = {.link = (uint8_t)wanted, .way = MODE_NONE};
	const struct mode_link *link = &links[wanted], *other;

	if (link->up) {
		mode = select_on(a, link, wanted, l);
		if (n == 1 || a->strict || !is_in_crowd(a, &mode, link, l))
			return mode;
	} else if (a->strict) {
		mode.reason = SLMPM_REASON_STRICT;
		return mode;
	}
	other = find_other(a, links, n, link, l);
	if (!other)
		return mode;
	mode = select_on(a, other, (int)(other - links), l);
	mode.reason = link->up && is_overrun(a, link, l) ? SLMPM_REASON_BOTH : SLMPM_REASON_LINK;
	return mode;
}

/* ---- what all instances see ----------------------------------------------------------------- */

static bool is_crowded_for_all(const struct mode_view *v, const struct mode_limits *l)
{
	return v->all.queue > l->queue || v->all.permille >= 10 * l->ring;
}

/* What others see counts as if it were seen here; a network is left for that, and so is any other link. */
static void share_view(struct mode_link *link, const struct mode_limits *l)
{
	struct mode_view *v = &link->view;
	uint64_t unread = v->segments * v->all.permille / 1000;

	if (!v->all.known)
		return;
	if (v->all.cost[0] && v->all.cost[1]) {
		v->trial &= v->cost[0] && v->cost[1]; /* others have tried */
		v->cost[0] = v->all.cost[0];
		v->cost[1] = v->all.cost[1];
	}
	if (is_crowded_for_all(v, l))
		link->wire = true;
	v->queue = v->all.queue > v->queue ? v->all.queue : v->queue;
	v->unread = unread > v->unread ? unread : v->unread;
}

static bool is_same(struct mode a, struct mode b)
{
	return a.link == b.link && a.way == b.way && a.reason == b.reason;
}

struct mode mode_select(const struct mode_ask *a, const struct mode_link *links, int n, int wanted,
			const struct mode_limits *l)
{
	struct mode own = select_among(a, links, n, wanted, l), mode;
	struct mode_link shared[MODE_LINKS];

	if (!links[wanted].view.all.known || own.way == MODE_NONE)
		return own;
	for (int i = 0; i < n; i++) {
		shared[i] = links[i];
		share_view(&shared[i], l);
	}
	mode = select_among(a, shared, n, wanted, l);
	if (!is_same(mode, own))
		mode.reason = SLMPM_REASON_AGGREGATE;
	return mode;
}

/* One that is wanted and has just been lost is waited for: its loss is told next. */
int mode_path(uint32_t up, int wanted)
{
	if (wanted >= 0)
		return up >> wanted & 1 ? wanted : -1;
	return up ? __builtin_ctz(up) : -1;
}

/* ---- fabrics -------------------------------------------------------------------------------- */

const char *mode_fabric(enum mode_place place, const char *told, const char *setting)
{
	if (told)
		return told;
	return place == MODE_HERE ? setting : "tcp";
}

bool mode_comes_near(const char *setting)
{
	return strcmp(mode_fabric(MODE_HERE, NULL, setting),
		      mode_fabric(MODE_THERE, NULL, setting)) != 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

enum mode_rma mode_form(enum mode_rma setting, bool active)
{
	return setting >= MODE_RMA_AM && active ? setting : MODE_RMA_RING;
}

/* ---- names ---------------------------------------------------------------------------------- */

int mode_protocol(enum mode_op op, enum mode_way way)
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
		"none",   "short",  "call",   "wish",        "strict",    "only", "setting",
		"size",   "faster", "trial",  "ring",        "queue",     "both", "order",
		"absent", "link",   "engine", "unreachable", "aggregate",
	};

	return reason >= 0 && reason < SLMPM_REASONS ? names[reason] : NULL;
}
