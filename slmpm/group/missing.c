/* SPDX-License-Identifier: BSD-3-Clause */
/* For whom a group that forms waits, at who founds it and at those that join. */
#include "slmpm/group/formation.h"

#include "slmpm/completion/late.h"
#include "slmpm/endpoint.h"

static const char *joiner_name(const struct joiner *s)
{
	return s->ep ? s->ep->life->name : "this process";
}

/* The step that others wait for. */
static bool lags_behind(const struct group *g, const struct joiner *s)
{
	const struct formation *f = g->formation;

	if (!s->ep)
		return false;
	if (f->come < f->others)
		return !s->joining;
	return g->apart && f->listening < f->others ? !s->port : !s->ready;
}

uint32_t formation_missing(const struct group *g)
{
	uint32_t expired = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct joiner *s = &g->formation->joiners[r];

		if (!lags_behind(g, s))
			continue;
		if (!s->expired)
			return r;
		expired = r;
	}
	return expired;
}

int formation_waits(const struct group *g, int timeout_ms)
{
	const struct formation *f = g->formation;
	uint32_t r = formation_missing(g);
	const struct joiner *s = &f->joiners[r];
	bool all_came = f->come == f->others;
	bool all_listen = !g->apart || f->listening == f->others;
	uint32_t missing = f->others - (!all_came ? f->come : all_listen ? f->ready : f->listening);

	return late_error(g->ctx, s->ep, timeout_ms,
			  "group %u is forming: rank %u (%s) %s; %u of %u are there", g->tag, r,
			  joiner_name(s),
			  all_came    ? "does not answer" :
			  s->withdrew ? "has given up" :
					"has not come",
			  g->boards.size - missing, g->boards.size);
}

/* ---- who joins ------------------------------------------------------------------------------- */

struct joining *joining_of(const struct endpoint *ep, const struct group *g)
{
	if (!ep->rooms->groups)
		return NULL;
	LIST_EACH_ENTRY(struct joining, j, &ep->rooms->groups->ours, node)
		if (j->group == g)
			return j;
	return NULL;
}

/* What is missing of the group that J is to make this process a member of. */
static const char *lacks(const struct joining *j)
{
	if (j->ep->state == SLMPM_PEER_CONNECTING)
		return "has not connected yet";
	return !j->begun ? "has not all members" :
	       !j->ready ? "has not named all members" :
			   "has not the answers of others";
}

/* The peer that founds it, with *J; NULL: this process does, or that one has ended. */
static struct endpoint *founder_of(const struct group *g, const struct joining **j)
{
	const struct context *ctx = g->ctx;

	for (uint32_t i = 0; i < ctx->live; i++)
		if ((*j = joining_of(ctx->endpoints[i], g)))
			return ctx->endpoints[i];
	return NULL;
}

COLD int group_late_to_form(const struct group *g, int timeout_ms)
{
	const struct joining *j;
	struct endpoint *ep;

	if (g->formation)
		return formation_waits(g, timeout_ms);
	ep = founder_of(g, &j);
	if (!ep)
		return late_error(g->ctx, NULL, timeout_ms, "group %u is forming", g->tag);
	return late_error(g->ctx, ep, timeout_ms, "group %u is forming: %s, which founds it, %s",
			  g->tag, ep->life->name, lacks(j));
}
