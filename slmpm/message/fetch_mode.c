/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a message is fetched, by what both ways have cost of late (fetch.h). */
#include "slmpm/link/link.h"
#include "slmpm/message/fetch.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/clock.h"
#include "slmpm/choice/pick.h"
#include "slmpm/bond/bond.h"

uint32_t fetch_ranges(const struct request *r, struct wire_range *ranges)
{
	uint32_t n = 0;

	for (int i = 0; i < r->piece_count; i++) {
		if (!r->pieces[i].len)
			continue;
		if (n == WIRE_RANGES)
			return 0;
		ranges[n].address = LITTLE_64((uint64_t)(uintptr_t)r->pieces[i].base);
		ranges[n++].length = LITTLE_64((uint64_t)r->pieces[i].len);
	}
	return n;
}

/* STRICT: or it waits until it can be. */
static bool can_be_fetched(const struct endpoint *ep, const struct request *r, bool strict)
{
	const struct fetch *f = ep->rooms->fetch;
	struct wire_range ranges[WIRE_RANGES];

	if (ep->fetch_min == UINT64_MAX || !r->length || r->wire || r->kind != REQUEST_SEND)
		return false;
	if (f && !strict && f->room_out.held + FETCH_SENDER_WORDS > f->room_out.max)
		return false;
	return fetch_ranges(r, ranges) != 0;
}

/* Nobody came for the last one in time, and to wait for that costs more than it could save. */
static bool is_hopeless(const struct endpoint *ep, const struct request *r, const struct choice *c)
{
	return c->without && r->length <= ep->life->eager_max && config_get()->fetch == WHEN_AUTO &&
	       mode_limits()->force == MODE_AUTO;
}

/* What each way costs here alone decides: not how full the ring is, nor how long the queue, nor what
 * others tell. */
static bool goes_by_cost(const struct endpoint *ep, const struct request *r)
{
	return r->length >= mode_limits()->fetch && !r->hint && !bond_is(ep->link.port) &&
	       !config_get()->aggregate;
}

/* Besides the choice's own: what then may decide. */
static uint8_t circumstances(const struct endpoint *ep, const struct request *r)
{
	bool late = ep->ctx->wait == SLMPM_WAIT_BLOCK ||
		    (ep->ctx->oversubscribed && config_get()->fetch != WHEN_ALWAYS);

	return (uint8_t)((r->length <= ep->life->eager_max) | late << 1);
}

static struct mode ask_mode(struct endpoint *ep, const struct request *r, const struct choice *c)
{
	struct mode_ask ask = {
		.op = MODE_SEND,
		.eager = r->length <= ep->life->eager_max,
		.always = config_get()->fetch == WHEN_ALWAYS,
		.size = r->length,
	};
	uint32_t ways = 1u << MODE_PACKETS;
	bool hopeless = is_hopeless(ep, r, c);
	struct mode mode;

	mode_ask_hint(&ask, r->hint);
	if (can_be_fetched(ep, r, ask.strict) && (ask.hint || !hopeless))
		ways |= 1u << MODE_FETCHED;
	mode = pick_link(ep, &ask, ways, mode_hint_link(r->hint), c);
	if (hopeless && mode.reason == SLMPM_REASON_CALL)
		mode.reason = SLMPM_REASON_ABSENT;
	return mode;
}

/* To ask each time takes a few percent of 64 KiB. */
struct mode fetch_mode(struct endpoint *ep, const struct request *r)
{
	static const struct choice unknown;
	struct choice *c =
		ep->rooms->fetch ? choice_of(ep->rooms->fetch->choices, r->length) : NULL;
	uint8_t now = circumstances(ep, r);
	struct mode mode = {.way = MODE_NONE};

	if (!c || !goes_by_cost(ep, r))
		return ask_mode(ep, r, c ? c : &unknown);
	mode = choice_decided(c, now);
	if (mode.way == MODE_PACKETS || (mode.way && can_be_fetched(ep, r, false)))
		return mode;
	mode = ask_mode(ep, r, c);
	if (mode.reason == SLMPM_REASON_FASTER || mode.reason == SLMPM_REASON_ABSENT)
		choice_decide(c, now, mode);
	return mode;
}

bool fetch_is_measured(const struct request *r)
{
	return r->mode.reason == SLMPM_REASON_FASTER || r->mode.reason == SLMPM_REASON_TRIAL;
}

void fetch_packets(struct endpoint *ep, const struct request *r)
{
	struct fetch *f = r->wire || config_get()->fetch != WHEN_AUTO ? NULL : fetch_of(ep);
	struct choice *c = f ? choice_of(f->choices, r->length) : NULL;
	enum choice_note note;

	if (!c)
		return;
	if (fetch_is_measured(r) || c->without)
		note = choice_taken(c, false);
	else /* shorter ones so that something is known once the ring is full */
		note = c->cost[0] ? CHOICE_UNTIMED : CHOICE_TIMED;
	if (!note)
		return;
	f->note = note;
	f->timed = r->seq;
	f->began = clock_ticks();
}

void fetch_sent(struct endpoint *ep, const struct request *r)
{
	struct fetch *f = ep->rooms->fetch;
	uint64_t took;

	if (!f || f->timed != r->seq)
		return;
	took = clock_ticks() - f->began;
	choice_learn(choice_of(f->choices, r->length), false, f->note,
		     took + took * ep->packet_max / r->length, /* the reader's last one */
		     r->length);
}

void fetch_learn(struct endpoint *ep, const struct fetch_out *p)
{
	uint64_t length = p->r->length, took = clock_ticks() - p->began;
	struct choice *c = choice_of(ep->rooms->fetch->choices, length);
	enum choice_note note = p->note;

	if (p->asked) {
		choice_missed(c);
		took += choice_expected(c, false, length); /* it goes in packets after all */
		note = note ? note : CHOICE_FIRST;
	} else {
		choice_met(c);
		monitor_timed(ep, SLMPM_BY_RGET, length, p->r->pieces->base, took, took);
	}
	choice_learn(c, true, note, took, length);
}
