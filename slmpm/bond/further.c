/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links of an endpoint: which there are to be, when each is tried, what became of them. Who
 * connected tries; a link that is lost, or cannot be had, is tried again after a pause that grows.
 */
#include "slmpm/bond/further.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/further_parts.h"
#include "slmpm/config.h"
#include "slmpm/domain.h"
#include "slmpm/landing.h"
#include "slmpm/log.h"
#include "slmpm/trace.h"
#include "slmpm/wait.h"

#define MS          UINT64_C(1000000)
#define PAUSE_FIRST (50 * MS)
#define PAUSE_LONG  (10000 * MS)
#define TELL        (50 * MS)

/* ---- the bond ------------------------------------------------------------------------------- */

/*
 * Who fetches or shares a copy relies on words in memory that both see at once: where some travel over
 * another fabric than memory does, nobody may.
 */
uint64_t further_features(const struct endpoint *ep)
{
	const struct ways *ways = &config_get()->ways;
	uint64_t features = WIRE_FEATURES;

	for (uint32_t i = 0; i < ways->count; i++)
		if (ways->way[i].fabric[0] &&
		    strcmp(ways->way[i].fabric, ep->link.port->domain->fabric->name) != 0)
			features &= ~(WIRE_FEATURE_FETCH | WIRE_FEATURE_SHARE);
	return features | ((UINT64_C(1) << (ways->count - 1)) - 1) * WIRE_FEATURE_LINKS;
}

/* The first link becomes path 0 of another one. */
static struct fabric_link *new_bond(struct endpoint *ep)
{
	int rc;
	struct fabric_domain *domain = domain_get(ep->ctx, &bond_fabric, &rc);
	struct fabric_link *bond = domain ? calloc(1, bond_fabric.link_size) : NULL;

	if (!bond)
		return NULL;
	bond->domain = domain;
	further_inherit(bond, ep->link.port);
	if (bond_open(bond, (uint64_t)config_get()->links_log, ep->link.port->domain->fabric,
		      ep->link.port) == 0)
		return bond;
	free(bond);
	return NULL;
}

/* The first link goes where the control connection does; the others in the order of the setting. */
static uint32_t find_first(const struct further *f, const struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count && f->homed; i++)
		if (way_holds(&ways->way[i], (const struct sockaddr *)&f->here))
			return i;
	for (uint32_t i = 0; i < ways->count; i++)
		if (!ways->way[i].fabric[0] || !strcmp(ways->way[i].fabric, f->fabric->name))
			return i;
	return 0;
}

static void name_where(struct further *f, struct further_link *l)
{
	char here[NET_NAME], there[NET_NAME];

	if (!f->homed)
		return;
	net_host((const struct sockaddr *)&f->here, here);
	net_host((const struct sockaddr *)&f->there, there);
	snprintf(l->where, sizeof(l->where), "%s - %s", here, there);
}

static void set_out(struct further *f)
{
	const struct ways *ways = &config_get()->ways;
	uint32_t first = find_first(f, ways), next = 1;

	f->link[0].way = &ways->way[first];
	for (uint32_t i = 0; i < ways->count; i++)
		if (i != first)
			f->link[next++].way = &ways->way[i];
	for (uint32_t i = 0; i < BOND_PATHS; i++)
		f->link[i].due = f->link[i].tell = NEVER;
	f->link[0].up = true;
	f->link[0].made = 1;
	f->link[0].pause = PAUSE_FIRST;
	f->link[0].fabric = f->fabric->name;
	name_where(f, &f->link[0]);
}

int further_open(struct control *c)
{
	struct endpoint *ep = c->ep;
	struct fabric_link *bond;
	struct further *f;
	uint32_t links = 1;

	while (links < BOND_PATHS && c->features & WIRE_FEATURE_LINKS << (links - 1))
		links++;
	if (links == 1)
		return 0;
	f = calloc(1, sizeof(*f));
	bond = f ? new_bond(ep) : NULL;
	if (!bond) {
		free(f);
		return -ENOMEM;
	}
	f->ep = ep;
	f->links = links;
	f->fabric = bond_port(bond, 0)->domain->fabric;
	f->active = ep->link.port->active;
	f->wanted = (int32_t)config_get()->link - 1;
	f->alone = NEVER;
	f->homed = net_end(c->socket.fd, false, &f->here) && net_end(c->socket.fd, true, &f->there);
	f->hopes = true;
	bond_hope(bond, true);
	ep->further = f;
	ep->link.fabric = trace_before(landing_before(&bond_fabric));
	ep->link.port = bond;
	set_out(f);
	list_append(&ep->ctx->further, &f->node);
	return 0;
}

void further_free(struct endpoint *ep)
{
	struct further *f = ep->further;

	if (!f)
		return;
	list_remove(&f->node);
	further_try_free(f);
	free(f);
	ep->further = NULL;
}

/* ---- when ----------------------------------------------------------------------------------- */

static void open_all(struct further *f, uint64_t now)
{
	f->open = true;
	for (uint32_t i = 1; i < f->links; i++)
		if (!f->link[i].made && f->link[i].due == NEVER)
			f->link[i].due = now;
}

void further_begin(struct endpoint *ep)
{
	struct further *f = ep->further;

	if (f && f->active && (!config_get()->links_after || f->wanted > 0))
		open_all(f, wait_now());
	wait_changed(ep->ctx);
}

void further_tried(struct further *f, uint32_t link, bool failed)
{
	struct further_link *l = &f->link[link];

	if (!failed) {
		l->due = NEVER;
		l->pause = PAUSE_FIRST;
	} else if (f->active) {
		l->pause = l->pause ? l->pause : PAUSE_FIRST;
		l->due = l->life + 1 < BOND_LIVES ? wait_now() + l->pause : NEVER;
		l->pause = 2 * l->pause < PAUSE_LONG ? 2 * l->pause : PAUSE_LONG;
	}
}

int further_wanted(const struct endpoint *ep)
{
	return ep->further ? ep->further->wanted : -1;
}

void further_use(struct endpoint *ep, uint32_t link)
{
	struct further *f = ep->further;

	f->wanted = link < f->links ? (int32_t)link : -1;
	if (f->wanted < 0 || bond_use(ep->link.port, link) == 0)
		return;
	if (f->active && f->link[link].due == NEVER && f->try.port == NULL)
		f->link[link].due = wait_now();
	else if (!f->active)
		further_ask_for(f, link);
	wait_changed(ep->ctx);
}

/* ---- what became of them -------------------------------------------------------------------- */

static void tell(struct further *f, uint32_t i, uint32_t type, const char *what)
{
	const struct further_link *l = &f->link[i];
	char text[160];

	snprintf(text, sizeof(text), "link %u (%s%s%s) %s", i, l->fabric ? l->fabric : "?",
		 l->where[0] ? " " : "", l->where, what);
	log_line(type == SLMPM_EVENT_LINK_LOST ? SLMPM_LOG_INFO : SLMPM_LOG_DEBUG, "%s: %s",
		 f->ep->name, text);
	context_event(f->ep->ctx, f->ep, type, text);
}

static void tell_of_loss(struct further *f, uint32_t i)
{
	const char *reason = bond_reason(f->ep->link.port, i);
	char what[96];

	f->link[i].tell = NEVER;
	snprintf(what, sizeof(what), "is lost: %s", reason ? reason : "the peer says so");
	tell(f, i, SLMPM_EVENT_LINK_LOST, what);
}

static void came_up(struct further *f, uint32_t i)
{
	struct further_link *l = &f->link[i];

	if (l->tell != NEVER)
		tell_of_loss(f, i);
	l->up = true;
	l->made++;
	f->alone = NEVER;
	tell(f, i, SLMPM_EVENT_LINK_UP, l->made > 1 ? "stands again" : "stands");
	if (f->wanted == (int32_t)i)
		(void)bond_use(f->ep->link.port, i);
}

static void went_down(struct further *f, uint32_t i, uint64_t now)
{
	struct further_link *l = &f->link[i];

	l->up = false;
	l->lost++;
	l->tell = now + TELL;
	if (!f->active)
		return;
	open_all(f, now); /* now they are */
	l->due = now + PAUSE_FIRST;
}

/* It has come and gone between two looks, and was never seen. */
static bool was_missed(const struct further *f, uint32_t i)
{
	enum bond_state state = bond_state(f->ep->link.port, i);
	const struct further_link *l = &f->link[i];

	return f->active && (state == PATH_SHUT || state == PATH_LOST) && !l->up &&
	       l->due == NEVER && l->life + 1 < BOND_LIVES;
}

static void look_at_links(struct further *f, uint64_t now)
{
	struct fabric_link *bond = f->ep->link.port;

	for (uint32_t i = 0; i < f->links; i++) {
		bool up = bond_state(bond, i) == PATH_UP;

		/* It may have come and gone since. */
		if (up && f->link[i].up && bond_life(bond, i) != f->link[i].life)
			went_down(f, i, now);
		if (up && !f->link[i].up)
			came_up(f, i);
		else if (!up && f->link[i].up)
			went_down(f, i, now);
		else if (was_missed(f, i))
			further_tried(f, i, true);
		if (up)
			f->link[i].life = bond_life(bond, i);
	}
	if (bond_up(bond))
		f->alone = NEVER;
	else if (f->alone == NEVER)
		f->alone = now;
}

static bool ends(const struct endpoint *ep)
{
	return ep->state != SLMPM_PEER_UP || ep->end_of_stream || ep->closing;
}

static void earlier(uint64_t *next, uint64_t when)
{
	*next = when < *next ? when : *next;
}

static void give_up_hope(struct further *f)
{
	f->hopes = false;
	f->alone = NEVER;
	bond_hope(f->ep->link.port, false);
}

/* Whether something was due. */
static bool look(struct further *f, uint64_t now, uint64_t *next)
{
	const struct config *config = config_get();
	uint64_t patience = (uint64_t)config->dead_ms * MS;
	bool done = false;

	if (f->active && !f->open && bond_moved(f->ep->link.port) >= (uint64_t)config->links_after)
		open_all(f, now);
	if (f->waits)
		further_say_on(f);
	for (uint32_t i = 0; i < f->links; i++) {
		struct further_link *l = &f->link[i];

		if (now >= l->tell) {
			tell_of_loss(f, i);
			done = true;
		}
		if (now >= l->due && !f->try.port) {
			further_try(f, i);
			done = true;
		}
		earlier(next, l->tell);
		if (!f->try.port)
			earlier(next, l->due);
	}
	if (f->try.port && now >= f->try.deadline) {
		further_try_end(f, true, "it takes too long");
		done = true;
	}
	if (f->try.port)
		earlier(next, f->try.deadline);
	if (f->waits)
		earlier(next, now + MS);
	if (f->alone != NEVER && now >= f->alone + patience && f->hopes) {
		give_up_hope(f);
		done = true;
	} else if (f->alone != NEVER && f->hopes) {
		earlier(next, f->alone + patience);
	}
	return done;
}

/* Without the control connection, which would notice, nobody else says that its machine is gone. */
static bool hear(struct further *f, uint64_t now, uint64_t *next)
{
	uint64_t part = (uint64_t)config_get()->dead_ms * MS / 4;
	struct fabric_wr wr = {.op = FABRIC_HEAR};
	bool lost = false;

	if (f->ep->control->socket.fd >= 0)
		return false;
	for (uint32_t i = 0; i < f->links && now >= f->hear; i++) {
		struct fabric_link *port = bond_port(f->ep->link.port, i);

		if (bond_state(f->ep->link.port, i) == PATH_UP)
			lost |= port->domain->fabric->post(port, &wr) == -EPIPE;
	}
	if (now >= f->hear)
		f->hear = now + part;
	earlier(next, f->hear);
	return lost;
}

uint64_t further_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = NEVER;
	bool news = false, done = false;

	LIST_EACH(at, &ctx->further) {
		struct further *f = LIST_ENTRY(at, struct further, node);

		if (ends(f->ep)) {
			further_try_free(f);
			continue;
		}
		earlier(&next,
			bond_tend(f->ep->link.port, now_ns, (uint64_t)config_get()->dead_ms * MS));
		/* One domain for all: asked for once. */
		if (!news && bond_news(f->ep->link.port->domain))
			news = true;
		if (news || f->alone != NEVER)
			look_at_links(f, now_ns);
		done |= look(f, now_ns, &next);
		done |= hear(f, now_ns, &next);
	}
	return done ? 0 : next;
}

bool further_hoping(const struct context *ctx)
{
	LIST_EACH(at, &ctx->further)
		if (LIST_ENTRY(at, struct further, node)->alone != NEVER)
			return true;
	return false;
}

void further_ask_all(struct context *ctx)
{
	LIST_EACH(at, &ctx->further) {
		struct further *f = LIST_ENTRY(at, struct further, node);

		if (f->ep->state == SLMPM_PEER_UP)
			further_try_ask(f);
	}
}

/* ---- what is of all links ------------------------------------------------------------------- */

static struct fabric_link *each(const struct endpoint *ep, uint32_t i)
{
	struct further *f = ep->further;

	if (!f)
		return i == 0 ? ep->link.port : NULL;
	if (i < BOND_PATHS)
		return bond_port(ep->link.port, i);
	return i == BOND_PATHS ? ep->link.port : i == BOND_PATHS + 1 ? f->try.port : NULL;
}

#define PORTS (BOND_PATHS + 2)

void further_bell(struct endpoint *ep, int fd)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (each(ep, i))
			each(ep, i)->bell = fd;
	if (ep->further && fd < 0)
		give_up_hope(ep->further);
}

void further_process(struct endpoint *ep, int fd)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (each(ep, i))
			each(ep, i)->process = fd;
}

static bool has_stream(const struct fabric_link *port)
{
	return port && port->domain->fd >= 0;
}

bool further_speaks(const struct endpoint *ep)
{
	if (!ep->further)
		return has_stream(ep->link.port);
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		enum bond_state state = bond_state(ep->link.port, i);

		if ((state == PATH_UP || state == PATH_SHUT) &&
		    has_stream(bond_port(ep->link.port, i)))
			return true;
	}
	return false;
}

bool further_stays(const struct endpoint *ep)
{
	return ep->further && further_speaks(ep);
}

bool further_is_inherited(const struct endpoint *ep)
{
	return ep->further || has_stream(ep->link.port);
}

struct fabric_domain *further_memory(const struct endpoint *ep)
{
	return ep->further ? bond_memory(ep->link.port) : ep->link.port->domain;
}
