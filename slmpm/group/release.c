/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections among members that no group has any more: released by both sides, closed, freed. */
#include "slmpm/connect/bootstrap.h"
#include "slmpm/dial/dial.h"
#include "slmpm/group/pairing.h"
#include "slmpm/link/progress.h"

/* What has come is taken in, and the end goes behind what was sent. True: it was up. */
static bool pair_say_close(const struct pair *p)
{
	const bool was_up = p->ep->state == SLMPM_PEER_UP;

	if (was_up)
		progress_drain(p->ep);
	if (p->ep->state == SLMPM_PEER_UP && !p->ep->life->sent_end)
		dial_say_close(p->ep);
	return was_up;
}

static void pair_end(const struct pair *p, bool was_up, const char *why)
{
	endpoint_end(p->ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, why);
	bootstrap_stop(p->ep, was_up ? NULL : p->ep->life->reason);
}

void pair_close(const struct pair *p, const char *why)
{
	pair_end(p, pair_say_close(p), why);
}

/* Who founds a part, and those that it is formed of, know each other by these. */
static bool is_of_part(const struct endpoint *ep)
{
	LIST_EACH_ENTRY(const struct group, g, &ep->ctx->groups, node) {
		if (!g->part)
			continue;
		if (g->founder == handle_id(ep))
			return true;
		for (uint32_t s = 0; !g->founder && s < g->seats; s++)
			if (g->members[s].peer == handle_id(ep))
				return true;
	}
	return false;
}

/* The application has the handle, perhaps by the event that it is up. */
static bool is_given_out(const struct pair *p)
{
	return p->known || (!p->released && !event_find(p->ep, SLMPM_EVENT_UP, 0));
}

static bool is_needed(const struct pair *p)
{
	return p->member || !pair_is_up(p) || is_given_out(p) || is_of_part(p->ep);
}

/* Once the word is out: what is dropped unsent would look like a fault at the other side. */
static void pair_finish(const struct pair *p)
{
	const bool was_up = pair_say_close(p);

	if (dial_has_left(p->ep))
		pair_end(p, was_up, "its group has gone");
	else
		p->ep->ctx->unpaired = true;
}

/* Either side may still need what its application has the handle of, or a group. Who made it says
 * first that it does not, and closes it once the other has said so, too: so CLOSE, which goes
 * another way, finds both words there. */
static void pair_release(struct pair *p)
{
	struct wire_group packet = {.step = LITTLE_32(GROUP_RELEASED)};

	if (is_needed(p))
		return;
	if (!p->released)
		context_forget_events(p->ep);
	p->released = true;
	if (!p->said && (p->own || p->theirs))
		p->said = groups_send(p->ep, &packet);
	if (p->own && p->theirs)
		pair_finish(p);
	else if ((p->own || p->theirs) && !p->said)
		p->ep->ctx->unpaired = true; /* there was no memory for it */
}

int pair_released(struct endpoint *ep)
{
	struct pair *p = ep->rooms->pair;

	if (PEER_FAULT(!p))
		return -SLMPM_EPROTO;
	if (p->theirs)
		return 0;
	p->theirs = true;
	if (!p->own) {
		pair_release(p);
	} else if (p->released) {
		ep->ctx->unpaired = true;
		context_changed(ep->ctx);
	}
	return 0;
}

/* What is unread of one that both have released was the group's. */
static bool pair_is_read(const struct pair *p)
{
	return !p->ep->life->was_up || dial_is_read(p->ep) ||
	       (p->released && p->theirs && !dial_has_lent(p->ep));
}

/* Those that have ended, and that the application has never known, are not its to close. */
void pairs_reap(struct context *ctx)
{
	ctx->unpaired = false;
	LIST_EACH_ENTRY(struct pair, p, &ctx->paired, node) {
		pair_release(p);
		if (p->known || pair_lives(p) || (p->member && p->member->wanted))
			continue;
		if (pair_is_read(p))
			endpoint_free(p->ep);
		else
			ctx->unpaired = true;
	}
}
