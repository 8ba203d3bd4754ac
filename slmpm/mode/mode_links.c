/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector's choice among links (mode.h), by what is seen here and by all instances. */
#include <stddef.h>

#include "slmpm/mode/mode.h"

/* ---- links ---------------------------------------------------------------------------------- */

static bool is_congested(const struct mode_view *v, const struct mode_limits *l)
{
	return mode_is_full(v, l) || v->queue > l->queue || v->overloaded;
}

/* The engine could move it, if it had not too much to do. */
static bool is_for_engine(const struct mode_ask *a, const struct mode_link *link,
			  const struct mode_limits *l)
{
	return !a->waits && link->ways & MODE_BIT(MODE_ENGINE) &&
	       a->size >= mode_shortest_engine(a, l);
}

/* Neither the queue that it would wait in nor the ring has room for more. */
static bool is_overrun(const struct mode_ask *a, const struct mode_link *link,
		       const struct mode_limits *l)
{
	const struct mode_view *v = &link->view;

	if (!mode_is_full(v, l))
		return false;
	if (v->queue > l->queue)
		return true;
	return v->dma > l->dma && is_for_engine(a, link, l);
}

/* It goes through an overloaded ring; or past one, and there is too much to do, too. */
static bool meets_congestion(const struct mode_ask *a, const struct mode *mode,
			     const struct mode_link *link, const struct mode_limits *l)
{
	if (MODE_BIT(mode->way) & MODE_IN_RING)
		return is_congested(&link->view, l);
	return a->op != MODE_SEND && !link->view.behind && is_overrun(a, link, l);
}

/* Of shared memory a full ring is the reader's doing, who is no quicker on another link: it is left
 * where the user says so, also by thresholds. */
static bool may_leave(const struct mode_ask *a, const struct mode_link *link,
		      const struct mode_limits *l)
{
	if (l->leave != MODE_LEAVE_WIRE)
		return l->leave == MODE_LEAVE;
	return link->wire || (is_overrun(a, link, l) && l->own_ring &&
			      (a->op == MODE_SEND ? l->own_queue : l->own_dma));
}

/* The user's default link is left by what the user has set, too. What its reader may have read
 * without publishing it does not fill its ring: nothing would be published while nothing comes. */
static bool may_leave_default(const struct mode_link *link, const struct mode_limits *l)
{
	const struct mode_view *v = &link->view;
	bool any = l->leave == MODE_LEAVE;

	if (l->leave == MODE_STAY)
		return false;
	if (v->overloaded || (v->queue > l->queue && (any || l->own_queue)))
		return true;
	return (any || l->own_ring) && mode_is_full(v, l) &&
	       v->unread * 100 > l->unpublished * v->segments;
}

static bool is_cheaper(const struct mode_link *link, const struct mode_link *than)
{
	return link->view.echo && link->view.echo < than->view.echo;
}

/* Is WANTED, which stands, to be left for LINK? */
static bool is_better(const struct mode_ask *a, const struct mode_link *link,
		      const struct mode_link *wanted, const struct mode_limits *l)
{
	if (is_congested(&link->view, l))
		return false;
	if (a->set)
		return may_leave_default(wanted, l);
	if (may_leave(a, wanted, l))
		return true;
	return l->leave != MODE_STAY && is_overrun(a, wanted, l) && is_cheaper(link, wanted);
}

/* WANTED is overloaded by others: a ring that only seems full has less to do. */
static bool is_lighter(const struct mode_link *link, const struct mode_link *wanted,
		       const struct mode_limits *l)
{
	const struct mode_view *v = &link->view;

	return l->leave != MODE_STAY && wanted->view.overloaded && !v->overloaded &&
	       v->queue <= l->queue && v->unread * 100 <= l->unpublished * v->segments;
}

/* In place of WANTED, which is congested or does not stand: NULL, none. */
static const struct mode_link *find_other(const struct mode_ask *a, const struct mode_link *links,
					  int n, const struct mode_link *wanted,
					  const struct mode_limits *l)
{
	const struct mode_link *best = NULL;

	for (const struct mode_link *link = links; link < links + n; link++) {
		if (link == wanted || !link->up)
			continue;
		if (wanted->up && !is_better(a, link, wanted, l) && !is_lighter(link, wanted, l))
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
		mode = mode_select_on(a, link, wanted, l);
		if (n == 1 || a->strict || !meets_congestion(a, &mode, link, l))
			return mode;
	} else if (a->strict) {
		mode.reason = SLMPM_REASON_STRICT;
		return mode;
	}
	other = find_other(a, links, n, link, l);
	if (!other)
		return mode;
	mode = mode_select_on(a, other, (int)(other - links), l);
	mode.reason = link->up && is_overrun(a, link, l) ? SLMPM_REASON_BOTH : SLMPM_REASON_LINK;
	return mode;
}

/* ---- what all instances see ----------------------------------------------------------------- */

bool mode_is_overloaded(const struct mode_view *v, const struct mode_limits *l)
{
	return v->all.queue > l->queue || v->all.permille >= 10 * l->ring;
}

/* What others see counts as if it were seen here, and any link is left for that. */
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
	v->overloaded = v->all.overloaded || mode_is_overloaded(v, l);
	if (v->overloaded)
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
