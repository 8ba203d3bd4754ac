/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages: whether to fetch; and what both sides need: memory in reach, words, turns. */
#include "slmpm/message/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/bond/bond.h"
#include "slmpm/choice/pick.h"
#include "slmpm/link/link.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/addressee.h"

/* All of a process's memory, as far as the kernel lets one reach it. */
static const struct fabric_memory all = {.size = UINT64_MAX, .writable = true};

/* Of the segments that may be held back in the ring out: one side's share. */
static uint32_t held_max(const struct endpoint *ep)
{
	return addressee_hold_max(ep, link_ring_out(ep)) / 2;
}

static uint64_t shortest(const struct mode_limits *limits)
{
	uint64_t least = limits->fetch < limits->bulk ? limits->fetch : limits->bulk;

	return least ? least : 1;
}

void fetch_open(struct endpoint *ep)
{
	const struct fabric_domain *memory = secondary_memory(ep);
	const struct config *config = config_get();

	(void)link_flush(ep); /* not later: a loan may lie open then */
	if (held_max(ep) < FETCH_SENDER_WORDS ||
	    addressee_hold_max(ep, link_ring_in(ep)) / 2 < FETCH_SENDER_WORDS)
		return;
	if (ep->life->attach && config->fetch != WHEN_NEVER && memory && memory->fabric->reg &&
	    !ep->link.check)
		ep->fetch_min = shortest(mode_limits());
}

struct fetch *fetch_of(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	if (f)
		return f;
	f = ep->rooms->fetch = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->peer = all;
	f->room_in.max = f->room_out.max = held_max(ep);
	list_init(&f->in);
	list_init(&f->out);
	list_init(&f->waiting);
	return f;
}

void fetch_end(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	if (!f)
		return;
	/* The messages go with the endpoint's lists. */
	LIST_EACH(at, &f->in)
		list_remove(at);
	LIST_EACH_ENTRY(struct request, r, &ep->link.announced, node)
		if (r->fetch)
			fetch_forget(r);
	f->in_hand = NULL;
}

bool fetch_release(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	while (f && !list_empty(&f->in))
		if (!fetch_undo(LIST_ENTRY(f->in.next, struct fetch_in, node)->m))
			return false;
	return true;
}

void fetch_free(struct endpoint *ep)
{
	if (!ep->rooms->fetch)
		return;
	ep->link.fabric->dereg(ep->link.port->domain, &ep->rooms->fetch->peer);
	free(ep->rooms->fetch);
	ep->rooms->fetch = NULL;
}

void fetch_last(struct list *list, struct list *node)
{
	list_remove(node);
	list_append(list, node);
}

/* One is over before the next begins, but for a few that wait for the sender's share. What cannot
 * begin, for want of room for words, lets others past, which may have that. */
static int read_in_turn(struct endpoint *ep, struct fetch *f)
{
	uint32_t begun = 0;
	int n = 0;

	for (uint32_t i = 0; begun < FETCH_AHEAD && !n; i++) {
		struct list *at = f->in.next;
		struct fetch_in *p;

		for (uint32_t k = 0; k < i && at != &f->in; k++)
			at = at->next; /* a step may have taken others out */
		if (at == &f->in)
			break;
		p = LIST_ENTRY(at, struct fetch_in, node);
		begun += p->notified || p->alone;
		n = fetch_read_step(ep, p);
	}
	return n;
}

/* Those that wait also where no share can be written now. */
static int send_in_turn(struct endpoint *ep, struct fetch *f)
{
	struct list *first = f->out.next;
	int n = 0;

	if (first != &f->out && ep->state == SLMPM_PEER_UP) {
		fetch_last(&f->out, first);
		n = fetch_write_step(ep, LIST_ENTRY(first, struct fetch_out, node));
	}
	if (!n && !list_empty(&f->waiting) && ep->state == SLMPM_PEER_UP)
		n = fetch_wait_step(ep, LIST_ENTRY(f->waiting.next, struct fetch_out, node));
	return n;
}

bool fetch_is_out(const struct endpoint *ep)
{
	return !list_empty(&ep->rooms->fetch->out) || !list_empty(&ep->rooms->fetch->waiting);
}

int fetch_step(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	if (!fetch_busy(ep))
		return 0;
	return read_in_turn(ep, f) + send_in_turn(ep, f);
}

/* ---- what is said --------------------------------------------------------------------------- */

bool fetch_notify(struct endpoint *ep, struct packet *p, struct request *r)
{
	struct fetch *f = fetch_of(ep);
	struct fabric_memory own = all;
	struct fabric_blob blob = {.fd = -1};
	unsigned char payload[sizeof(struct wire_fetch) + WIRE_RANGES * sizeof(struct wire_range) +
			      sizeof(blob.bytes)];

	if (f && !f->introduced && ep->link.fabric->reg(ep->link.port, &own, true, true, &blob) < 0)
		blob.length = 0;
	memcpy(payload, p->data, p->length);
	memcpy(payload + p->length, blob.bytes, blob.length);
	p->data = payload;
	p->length += blob.length;
	if (!split_notify(ep, p, r))
		return false;
	if (blob.length)
		f->introduced = true;
	return true;
}

bool fetch_introduced(struct endpoint *ep, const struct head *h, uint32_t length)
{
	struct fetch *f = ep->rooms->fetch;
	struct fabric_blob blob = {.length = h->length - length, .fd = -1};

	if (!blob.length)
		return true;
	if (blob.length > sizeof(blob.bytes) || f->peer.ops || !ep->link.fabric->reg)
		return false;
	memcpy(blob.bytes, (const unsigned char *)h->data + length, blob.length);
	return ep->link.fabric->reg(ep->link.port, &f->peer, false, true, &blob) == 0;
}

/* ---- whether: by what both ways have cost of late ----------------------------------------- */

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
	if (!strict && ((f && f->room_out.held + FETCH_SENDER_WORDS > f->room_out.max) ||
			!link_is_read_next(ep)))
		return false; /* others behind it need not wait for that */
	return fetch_ranges(r, ranges) != 0;
}

/* Nobody came for the last one in time, and to wait for that costs more than it could save. */
static bool is_hopeless(const struct endpoint *ep, const struct request *r, const struct choice *c)
{
	return c->without && r->length <= ep->life->eager_max && config_get()->fetch == WHEN_AUTO &&
	       mode_limits()->force == MODE_AUTO;
}

/* The cost of each route alone decides: not how full the ring is, nor how long the queue, nor what
 * others tell. */
static bool goes_by_cost(const struct endpoint *ep, uint64_t length)
{
	return length >= mode_limits()->fetch && !bond_is(ep->link.port) &&
	       !config_get()->aggregate;
}

/* Besides the choice's own: what then may decide. */
static uint8_t circumstances(struct endpoint *ep, uint64_t length)
{
	bool late = ep->ctx->wait == SLMPM_WAIT_BLOCK ||
		    (config_get()->fetch != WHEN_ALWAYS && pick_is_shared(ep));

	return (uint8_t)((length <= ep->life->eager_max) | late << 1);
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

struct choice *fetch_choice(struct endpoint *ep, uint64_t length)
{
	struct fetch *f = ep->rooms->fetch;

	return choice_of(f->choices[f->received != ep->received], length);
}

/* The turn before has ended. */
static void conclude_last(struct fetch *f)
{
	if (f->last.note)
		choice_conclude(&f->last, clock_ticks());
}

bool fetch_leaves(struct endpoint *ep, uint64_t length, struct mode *mode)
{
	struct fetch *f = ep->rooms->fetch;

	*mode = (struct mode){.way = MODE_PACKETS, .reason = SLMPM_REASON_CALL};
	if (length < ep->fetch_min)
		return true;
	if (!f || !goes_by_cost(ep, length))
		return false;
	conclude_last(f);
	*mode = choice_decided(fetch_choice(ep, length), circumstances(ep, length));
	return mode->way == MODE_PACKETS;
}

/* To ask each time takes a few percent of 64 KiB. */
struct mode fetch_mode(struct endpoint *ep, const struct request *r)
{
	static const struct choice unknown;
	struct fetch *f = ep->rooms->fetch;
	struct choice *c = f ? fetch_choice(ep, r->length) : NULL;
	uint8_t now = circumstances(ep, r->length);
	struct mode mode = {.way = MODE_NONE};

	if (f)
		conclude_last(f);
	if (!c || r->hint || !goes_by_cost(ep, r->length))
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

/* The message SEQ began to go in packets at BEGAN, in ticks: MEASURED, as fetch_is_measured. */
static void packets_begin(struct endpoint *ep, uint64_t length, uint64_t seq, bool measured,
			  uint64_t began)
{
	struct fetch *f = ep->rooms->fetch;
	struct choice *c = fetch_choice(ep, length);
	enum choice_note note;

	f->received = ep->received;
	f->begun = seq;
	if (measured || c->without)
		note = choice_taken(c, false);
	else /* shorter ones so that something is known once the ring is full */
		note = c->cost[0] ? CHOICE_UNTIMED : CHOICE_TIMED;
	if (!note)
		return;
	f->note = note;
	f->of = c;
	f->timed = seq;
	f->began = began;
}

void fetch_packets(struct endpoint *ep, const struct request *r, uint64_t began)
{
	if (!r->wire && config_get()->fetch == WHEN_AUTO && fetch_of(ep))
		packets_begin(ep, r->length, r->seq, fetch_is_measured(r), began);
}

/* Behind message SEQ others of that length may be on their way already. */
static void fetch_ended(struct endpoint *ep, uint64_t seq, struct choice_last ended)
{
	struct fetch *f = ep->rooms->fetch;

	choice_conclude(&f->last, f->last.since);
	f->last = ended;
	if (seq != f->begun)
		choice_conclude(&f->last, f->last.since);
}

static void packets_end(struct endpoint *ep, uint64_t length, uint64_t seq)
{
	struct fetch *f = ep->rooms->fetch;
	uint64_t took;

	if (!f || f->timed != seq)
		return;
	took = clock_ticks() - f->began;
	fetch_ended(ep, seq,
		    (struct choice_last){
			    .of = f->of,
			    .note = f->note,
			    .length = length,
			    .took = took,
			    .since = f->began + took,
		    });
}

void fetch_sent(struct endpoint *ep, const struct request *r)
{
	packets_end(ep, r->length, r->seq);
}

void fetch_left(struct endpoint *ep, uint64_t length, uint64_t began)
{
	if (length < ep->fetch_min)
		return;
	packets_begin(ep, length, ep->sent, true, began);
	packets_end(ep, length, ep->sent);
}

void fetch_learn(struct endpoint *ep, const struct fetch_out *p, bool missed)
{
	struct fetch *f = ep->rooms->fetch;
	uint64_t length = p->r->length, now = clock_ticks();
	/* Those that were announced before it have taken their part of that; of what kept the first of
	 * them waiting each has a share. */
	uint64_t alone = now - (f->over > p->began ? f->over : p->began);
	uint64_t share = (now - p->began) / (p->ahead + 1);
	uint64_t took = alone > share ? alone : share;
	struct choice *c = p->of;

	if (missed) {
		if (c->without) /* it was announced before that was known */
			return;
		choice_missed(c);
		took += choice_expected(c, false, length); /* it goes in packets after all */
		choice_learn(c, true, p->note ? p->note : CHOICE_FIRST, took, length);
		return;
	}
	f->over = now;
	choice_met(c);
	monitor_timed(ep, SLMPM_BY_RGET, length, p->r->pieces->base, took, took);
	fetch_ended(ep, p->r->seq,
		    (struct choice_last){
			    .of = p->of,
			    .note = p->note,
			    .other = true,
			    .length = length,
			    .took = took,
			    .since = now,
		    });
}
