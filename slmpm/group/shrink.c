/* SPDX-License-Identifier: BSD-3-Clause */
/* A broken group goes on without those that are gone: the call, and what wakes it. */
#include "slmpm/group/tags.h"

#include <stdio.h>

#include "slmpm/base/clock.h"
#include "slmpm/completion/late.h"
#include "slmpm/group/pairing.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define ENDS_MS 1200 /* that they may take */
#define CALL    "slmpm_group_shrink"

/* ---- who is gone ----------------------------------------------------------------------------- */

/* One that cannot be connected with any more shows nothing any more, either. */
static bool member_has_gone(struct member *m)
{
	return member_is_dead(m) || (m->distant && (m->distant->left || m->distant->refused));
}

static bool member_is_gone(void *arg, uint32_t rank)
{
	return member_has_gone(member_of(arg, rank));
}

static void mark_dead(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (g->apart ? member_has_gone(member_of(g, r)) : member_of(g, r)->ended)
			agree_mark(&g->shrinking->agreement, r);
}

/* ---- agreed ---------------------------------------------------------------------------------- */

/* RANK is left out: what is still asked of it is kept. */
static void member_leaves(void *arg, uint32_t rank)
{
	struct group *g = arg;
	struct member *m = member_of(g, rank);

	m->out = true;
	m->came = attendance_came(g, rank);
	m->pid = g->boards.processes[rank];
	pair_leave(m);
	distant_leave(m);
	watch_close(g->ctx, &m->process);
}

/* Broken again by those that were not gone yet when it was agreed on. */
static void begin_anew(struct group *g)
{
	g->meeting.next = 0;
	g->status = g->error = 0;
	g->left = false;
	g->culprit = -1;
	g->detail[0] = g->said[0] = 0;
	g->spread = false;
	tags_follow(g);
	group_inspect(g);
}

static void conclude_shrink(struct group *g, int result)
{
	struct shrinking *s = g->shrinking;

	g->shrinking = NULL;
	g->ctx->collecting--;
	group_announce_no_more(g);
	agree_end(&s->agreement);
	if (g->apart)
		survivors_end(g);
	s->result = result;
	if (result < 0)
		(void)snprintf(s->detail, sizeof(s->detail), CALL ": %s", group_detail());
	if (result <= 0)
		return;
	begin_anew(g);
	parts.regrouped(g);
}

static bool shrink_advance(struct group *g)
{
	int rc;

	/* What came before it was announced has rung no bell: once more (operation.c). */
	if (g->ctx->armed && !g->apart && !group_is_announced(g))
		group_announce(g);
	mark_dead(g);
	rc = agree_step(&g->shrinking->agreement);
	if (g->apart)
		survivors_show(g);
	if (rc)
		conclude_shrink(g, rc);
	return rc;
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool shrink_is_over(void *arg)
{
	const struct group *g = arg;

	return !g->shrinking;
}

#define NAMED 8 /* ranks of those that are waited for */

static COLD int shrink_late(struct group *g, int timeout_ms)
{
	char ranks[NAMED * sizeof(", 1023 (process -2147483648)")] = "", which[32] = "";
	const char *why = NULL;
	uint32_t n = 0;
	size_t at = 0;

	for (uint32_t r = 0; r < g->boards.size; r++) {
		if (!agree_waits_for(&g->shrinking->agreement, r))
			continue;
		if (!why && (why = member_suspicion(g, r)))
			(void)snprintf(which, sizeof(which), ", suspect is rank %u: ", r);
		if (n++ >= NAMED)
			continue;
		at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u (process %d)",
				       n > 1 ? ", " : "", r, g->boards.processes[r]);
	}
	return error_set(late_code(timeout_ms), CALL ": nothing yet from rank%s %s%s%s%s",
			 n > 1 ? "s" : "", ranks, n > NAMED ? " and others" : "", which,
			 why ? why : "");
}

/* From what this member shows on no operation of it may begin, which would have another number than
 * has been shown: until a verdict, whatever becomes of the call. */
static void refuse_operations(struct group *g)
{
	uint32_t r = (uint32_t)g->culprit, theirs;

	g->left = false;
	if (g->error)
		return;
	g->error = g->status;
	if (g->said[0])
		(void)snprintf(g->detail, sizeof(g->detail), "%s", g->said);
	else if (!g->apart && boards_broken(&g->boards, &theirs) == g->status)
		(void)snprintf(g->detail, sizeof(g->detail), "%s", group_detail());
	else if (g->culprit < 0)
		(void)snprintf(g->detail, sizeof(g->detail), "group %u is broken", g->tag);
	else
		(void)snprintf(g->detail, sizeof(g->detail),
			       "group %u is broken, by " BOARD_MEMBER "%s", g->tag,
			       BOARD_MEMBER_OF(&g->boards, r),
			       g->status == -SLMPM_EDEAD   ? ", which has died" :
			       g->status == -SLMPM_ECLOSED ? ", which has left" :
							     "");
}

/* All others are to come, too: what they have under way ends now. */
static int begin_shrink(struct group *g, struct shrinking *s)
{
	int rc = g->apart ? survivors_begin(g) : 0;

	if (rc < 0)
		return rc;
	parts.ungrouped(g, false);
	refuse_operations(g);
	if (g->apart)
		distant_spread(g);
	else
		boards_end(&g->boards, g->status, (uint32_t)g->culprit, NULL);
	agree_begin(&s->agreement, &g->boards, member_is_gone, member_leaves, g);
	s->agreement.apart = g->apart;
	g->shrinking = s;
	g->shrink_on = shrink_advance;
	g->ctx->collecting++;
	if (UNLIKELY(g->ctx->away)) /* another thread, which knows nothing of it */
		context_wake(g->ctx);
	return 0;
}

static void inspect_processes(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++)
		(void)member_is_dead(member_of(g, r));
	group_inspect(g);
}

static bool is_driven(const struct group *g)
{
	return !list_empty(&g->drives) || !list_empty(&g->driven);
}

/* Those that were started end by an error now: between machines as soon as nothing is read for them
 * any more; those that were asked for, as who asks learns why they cannot begin. */
static bool none_is_under_way(void *arg)
{
	struct group *g = arg;

	(void)operations_go_on(g);
	(void)tags_go_on(g);
	return g->begun == g->done && !tags_wait(g) && !is_driven(g);
}

static int may_shrink(struct group *g, int timeout_ms)
{
	int rc = context_forbids(g->ctx, CALL);

	if (rc == 0)
		rc = group_is_joined(g, CALL);
	if (rc < 0)
		return rc;
	if (g->shrinking)
		return error_set(SLMPM_EBUSY, CALL ": another thread does so");
	if (g->overlays)
		return error_set(SLMPM_EBUSY, CALL ": %u networks lie over it", g->overlays);
	if (!g->status)
		inspect_processes(g);
	if (!g->status)
		return error_set(SLMPM_ESTATE, CALL ": the group is not broken");
	if (!none_is_under_way(g) && (g->apart || is_driven(g)) && timeout_ms) {
		g->waits++; /* it stays */
		(void)wait_until(g->ctx, none_is_under_way, g,
				 timeout_ms < 0 || timeout_ms > ENDS_MS ? ENDS_MS : timeout_ms);
		g->waits--;
	}
	if (!g->status) /* another thread has shrunk it meanwhile */
		return error_set(SLMPM_ESTATE, CALL ": the group is not broken");
	if (g->shrinking)
		return error_set(SLMPM_EBUSY, CALL ": another thread does so");
	if (!none_is_under_way(g) || g->waits)
		return error_set(SLMPM_EBUSY, CALL ": another thread has %s under way",
				 g->waits ? "slmpm_group_peer, _split, _alloc or _shrink" :
					    "an operation of the group");
	return 0;
}

static int shrink(struct group *g, int timeout_ms)
{
	const uint64_t deadline = clock_deadline(timeout_ms); /* of both waits */
	struct shrinking s;
	int rc = may_shrink(g, timeout_ms);

	if (rc == 0)
		rc = begin_shrink(g, &s);
	if (rc < 0)
		return rc;
	if (!shrink_advance(g) &&
	    wait_until(g->ctx, shrink_is_over, g, clock_ms(clock_now(), deadline, -1)) < 0 &&
	    g->shrinking) {
		rc = shrink_late(g, timeout_ms);
		conclude_shrink(g, 0);
		return rc;
	}
	return s.result < 0 ? error_set(-s.result, "%s", s.detail) : 0;
}

int slmpm_group_shrink(slmpm_group group, int timeout_ms)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);

	if (!g)
		return rc;
	rc = shrink(g, timeout_ms);
	context_unlock(ctx);
	return rc;
}
