/* SPDX-License-Identifier: BSD-3-Clause */
/* When each link of an endpoint is tried, and what became of it. Who connected tries; a link that
 * is lost, or cannot be had, is tried again after a pause that grows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/connect/secondary.h"
#include "slmpm/base/config.h"
#include "slmpm/base/log.h"
#include "slmpm/link/wait.h"

#define MS         UINT64_C(1000000)
#define PAUSE_LONG (10000 * MS)
#define TELL       (50 * MS)
#define SPARE      4 /* times a patience: so much may standing still add, and no more */

/* ---- when ----------------------------------------------------------------------------------- */

static void secondary_events_open_all(struct secondary *f, uint64_t now)
{
	f->open = true;
	for (uint32_t i = 1; i < f->links; i++)
		if (!f->link[i].made && f->link[i].due == NEVER)
			f->link[i].due = now;
}

static bool is_other(const struct secondary *f, const char *fabric)
{
	return strcmp(fabric, "auto") != 0 && !secondary_is_over(f, 0, fabric);
}

/* Do settings name a fabric that the first link is not over? */
static bool wants_others(const struct secondary *f)
{
	const struct config *c = config_get();

	return !c->links_after || f->wanted > 0 || is_other(f, c->default_smt) ||
	       is_other(f, c->default_put) || is_other(f, c->default_rget);
}

void secondary_begin(struct endpoint *ep)
{
	struct secondary *f = ep->rooms->secondary;

	if (f && f->active && wants_others(f))
		secondary_events_open_all(f, clock_now());
	context_changed(ep->ctx);
}

void secondary_tried(struct secondary *f, uint32_t link, bool failed)
{
	struct secondary_link *l = &f->link[link];

	if (!failed) {
		l->due = NEVER;
		l->pause = SECONDARY_PAUSE;
	} else if (f->active) {
		l->pause = l->pause ? l->pause : SECONDARY_PAUSE;
		l->due = l->life + 1 < BOND_INCARNATIONS ? clock_now() + l->pause : NEVER;
		l->pause = 2 * l->pause < PAUSE_LONG ? 2 * l->pause : PAUSE_LONG;
	}
}

/* The default fabric of messages, where no link is wanted and the one in use is over another. */
static void use_default(struct secondary *f)
{
	const char *fabric = config_get()->default_smt;
	int link = secondary_default(f->ep, fabric);

	if (f->wanted < 0 && link >= 0 &&
	    !secondary_is_over(f, bond_home(f->ep->link.port), fabric))
		(void)bond_use(f->ep->link.port, (uint32_t)link);
}

void secondary_use(struct endpoint *ep, uint32_t link)
{
	struct secondary *f = ep->rooms->secondary;

	f->wanted = link < f->links ? (int32_t)link : -1;
	secondary_spread(f);
	use_default(f);
	if (f->wanted < 0 || bond_use(ep->link.port, link) == 0)
		return;
	if (f->active && f->link[link].due == NEVER && f->try.port == NULL)
		f->link[link].due = clock_now();
	else if (!f->active)
		secondary_send_word(f, WIRE_ROUND_ASK, link, 0, "");
	context_changed(ep->ctx);
}

/* ---- what became of them -------------------------------------------------------------------- */

static void secondary_events_tell(struct secondary *f, uint32_t i, uint32_t type, const char *what)
{
	const struct secondary_link *l = &f->link[i];
	char text[160];

	snprintf(text, sizeof(text), "link %u (%s%s%s) %s", i, l->fabric ? l->fabric : "?",
		 l->where[0] ? " " : "", l->where, what);
	log_line(type == SLMPM_EVENT_LINK_LOST ? SLMPM_LOG_INFO : SLMPM_LOG_DEBUG, "%s: %s",
		 f->ep->life->name, text);
	context_link_event(f->ep->ctx, f->ep, type, i, text);
}

static void tell_of_loss(struct secondary *f, uint32_t i)
{
	const char *reason = bond_reason(f->ep->link.port, i);
	char what[96];

	f->link[i].tell = NEVER;
	snprintf(what, sizeof(what), "is lost: %s", reason ? reason : "the peer says so");
	secondary_events_tell(f, i, SLMPM_EVENT_LINK_LOST, what);
}

static void came_up(struct secondary *f, uint32_t i)
{
	struct secondary_link *l = &f->link[i];

	if (l->tell != NEVER)
		tell_of_loss(f, i);
	l->up = true;
	l->made++;
	f->alone = NEVER;
	secondary_events_tell(f, i, SLMPM_EVENT_LINK_UP, l->made > 1 ? "stands again" : "stands");
	if (f->wanted == (int32_t)i)
		(void)bond_use(f->ep->link.port, i);
	use_default(f);
}

static void went_down(struct secondary *f, uint32_t i, uint64_t now)
{
	struct secondary_link *l = &f->link[i];

	l->up = false;
	l->lost++;
	l->tell = now + TELL;
	if (!f->active)
		return;
	secondary_events_open_all(f, now); /* now they are */
	l->due = now + SECONDARY_PAUSE;
}

/* It has come and gone between two inspections, and was never seen. */
static bool was_missed(const struct secondary *f, uint32_t i)
{
	enum bond_state state = bond_state(f->ep->link.port, i);
	const struct secondary_link *l = &f->link[i];

	return f->active && (state == PATH_SHUT || state == PATH_LOST) && !l->up &&
	       l->due == NEVER && l->life + 1 < BOND_INCARNATIONS;
}

static void secondary_events_inspect_links(struct secondary *f, uint64_t now)
{
	struct fabric_link *bond = f->ep->link.port;

	for (uint32_t i = 0; i < f->links; i++) {
		struct secondary_link *l = &f->link[i];
		bool up = bond_state(bond, i) == PATH_UP;

		/* It may have come and gone since. */
		if (l->up && (!up || bond_life(bond, i) != l->life))
			went_down(f, i, now);
		if (up && !l->up)
			came_up(f, i);
		else if (was_missed(f, i))
			secondary_tried(f, i, true);
		if (up)
			l->life = bond_life(bond, i);
	}
	if (bond_up(bond))
		f->alone = NEVER;
	else if (f->alone == NEVER) {
		f->alone = f->seen = now;
		f->spared = 0;
	}
}

static void earlier(uint64_t *next, uint64_t when)
{
	*next = when < *next ? when : *next;
}

void secondary_give_up(struct secondary *f)
{
	f->may_reconnect = false;
	f->alone = NEVER;
	bond_may_reconnect(f->ep->link.port, false);
}

/* How long this process stood still, the peer has not: it is given no less time for that, up to a
 * limit. */
static void secondary_events_spare(struct secondary *f, uint64_t now, uint64_t patience)
{
	uint64_t gap = now - f->seen;

	f->seen = now;
	if (gap < patience / 2 || f->spared > SPARE * patience)
		return;
	f->alone += gap;
	f->spared += gap;
}

/* *NEXT: when to inspect again, 0 where something was due. */
static void secondary_events_inspect(struct secondary *f, uint64_t now, uint64_t *next)
{
	const struct config *config = config_get();
	uint64_t patience = (uint64_t)config->dead_ms * MS;

	if (f->active && !f->open && bond_moved(f->ep->link.port) >= (uint64_t)config->links_after)
		secondary_events_open_all(f, now);
	if (f->waits)
		secondary_send_round(f);
	for (uint32_t i = 0; i < f->links; i++) {
		struct secondary_link *l = &f->link[i];

		if (now >= l->tell) {
			tell_of_loss(f, i);
			*next = 0;
		}
		if (now >= l->due && !f->try.port) {
			secondary_try(f, i);
			*next = 0;
		}
		earlier(next, l->tell);
		if (!f->try.port)
			earlier(next, l->due);
	}
	if (f->try.port && now >= f->deadline) {
		secondary_try_end(f, true, "it takes too long");
		*next = 0;
	}
	if (f->try.port)
		earlier(next, f->deadline);
	if (f->waits)
		earlier(next, now + MS);
	if (f->alone == NEVER || !f->may_reconnect)
		return;
	secondary_events_spare(f, now, patience);
	earlier(next, now + patience / 8);
	if (now >= f->alone + patience) {
		secondary_give_up(f);
		*next = 0;
	}
}

uint64_t secondary_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = NEVER;
	bool news = false;

	LIST_EACH_ENTRY(struct secondary, f, &ctx->secondary, node) {
		if (f->ep->state != SLMPM_PEER_UP || f->ep->link.ended || f->ep->closing) {
			secondary_try_free(f);
			continue;
		}
		earlier(&next, bond_keepalive(f->ep->link.port, now_ns,
					      (uint64_t)config_get()->dead_ms * MS));
		/* One domain for all: asked for once. */
		news = news || bond_news(f->ep->link.port->domain);
		if (news || f->alone != NEVER)
			secondary_events_inspect_links(f, now_ns);
		secondary_events_inspect(f, now_ns, &next);
	}
	return next;
}

void secondary_ask_all(struct context *ctx)
{
	LIST_EACH_ENTRY(struct secondary, f, &ctx->secondary, node)
		if (f->ep->state == SLMPM_PEER_UP)
			secondary_try_ask(f);
}
